"""Liger's RMSNorm with gradients, as an operator of PyTorch."""
import torch
from common import compare, rand
import tile
import tile.torch

s = tile.stdlib


def backward(ctx, dy, drstd):
    x, gamma, rstd = ctx.saved_tensors
    return (s.rmsnorm_backward._detached()(dy.contiguous(), x, gamma, rstd),
            s.rmsnorm_backward_params._detached()(dy.contiguous(), x, rstd), None)


norm = tile.torch.op("tile_examples::rms_norm", s.rmsnorm_forward, backward=backward, setup_context=lambda ctx, inputs,
                     output: ctx.save_for_backward(inputs[0], inputs[1], output[1]))
x, gamma, dy = rand(256, 1024), rand(1024), rand(256, 1024)


def run(function):
    leaves = [t.detach().clone().requires_grad_() for t in (x, gamma)]
    y = function(*leaves)
    y.backward(dy)
    return (y.detach(), *(t.grad for t in leaves))


compare("RMSNorm, forward and backward", lambda: run(lambda x, g: norm(x, g, 1e-6)[0]),
        lambda: run(lambda x, g: torch.nn.functional.rms_norm(x, (1024,), g, 1e-6)), rtol=1e-3, atol=1e-3)
