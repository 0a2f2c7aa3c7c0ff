"""Triton's tutorial 5: layer normalisation with its gradients, as an operator of PyTorch."""
import torch
from common import compare, device, rand
import tile
import tile.torch

s = tile.stdlib
norm = tile.torch.op("tile_examples::norm", s.layernorm_forward, backward=lambda ctx, dy, dmean, drstd: (
    s.layernorm_backward._detached()(dy.contiguous(), *ctx.saved_tensors),
    *s.layernorm_backward_params._detached()(dy.contiguous(), ctx.saved_tensors[0], *ctx.saved_tensors[2:]), None),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0], inputs[1], output[1], output[2]))

x, gamma, beta, dy = rand(512, 768), rand(768), rand(768), rand(512, 768)


def forward_and_backward(function):
    leaves = [t.detach().clone().requires_grad_() for t in (x, gamma, beta)]
    y = function(*leaves)
    y.backward(dy)
    return (y.detach(), *(t.grad for t in leaves))


compare("layer norm, forward and backward",
        lambda: forward_and_backward(lambda x, g, b: norm(x, g, b, 1e-5)[0]),
        lambda: forward_and_backward(lambda x, g, b: torch.nn.functional.layer_norm(x, (768,), g, b, 1e-5)),
        rtol=1e-3, atol=1e-3)
