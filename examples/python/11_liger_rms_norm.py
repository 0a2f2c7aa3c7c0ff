"""Liger's RMSNorm with gradients, as an operator of PyTorch."""
import torch
from common import compare, rand
import tile
import tile.torch

s = tile.stdlib
norm = tile.torch.op("tile_examples::rms_norm", s.rmsnorm_forward, backward=(s.rmsnorm_backward, s.rmsnorm_backward_params))
x, gamma, dy = rand(256, 1024), rand(1024), rand(256, 1024)


def run(function):
    leaves = [t.detach().clone().requires_grad_() for t in (x, gamma)]
    y = function(*leaves)
    y.backward(dy)
    return (y.detach(), *(t.grad for t in leaves))


compare("RMSNorm, forward and backward", lambda: run(lambda x, g: norm(x, g, 1e-6)[0]),
        lambda: run(lambda x, g: torch.nn.functional.rms_norm(x, (1024,), g, 1e-6)), rtol=1e-3, atol=1e-3)
