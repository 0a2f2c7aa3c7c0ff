"""Liger's cross entropy, whose gradient is computed from the logits and one number a row."""
import torch
from common import compare, device, rand
import tile
import tile.torch

s = tile.stdlib


def backward(ctx, dloss, dlse):
    x, target, lse = ctx.saved_tensors
    return s.cross_entropy_backward._detached()(x, target, lse, dloss.contiguous()), None


loss = tile.torch.op("tile_examples::cross_entropy", s.cross_entropy, backward=backward, setup_context=lambda ctx, inputs,
                     output: ctx.save_for_backward(inputs[0], inputs[1], output[1]))
x, target = rand(256, 4000), torch.randint(0, 4000, (256,), device=device)


def run(function):
    leaf = x.detach().clone().requires_grad_()
    value = function(leaf).mean()
    value.backward()
    return value.detach(), leaf.grad


compare("cross entropy, forward and backward", lambda: run(lambda x: loss(x, target)[0]),
        lambda: run(lambda x: torch.nn.functional.cross_entropy(x, target, reduction="none")))
