"""Liger's cross entropy, whose gradient is computed from the logits and one number a row."""
import torch
from common import compare, device, rand
import tile
import tile.torch

s = tile.stdlib
loss = tile.torch.op("tile_examples::cross_entropy", s.cross_entropy, backward=s.cross_entropy_backward)
x, target = rand(256, 4000), torch.randint(0, 4000, (256,), device=device)


def run(function):
    leaf = x.detach().clone().requires_grad_()
    value = function(leaf).mean()
    value.backward()
    return value.detach(), leaf.grad


compare("cross entropy, forward and backward", lambda: run(lambda x: loss(x, target)[0]),
        lambda: run(lambda x: torch.nn.functional.cross_entropy(x, target, reduction="none")))
