"""Triton's tutorial 5: layer normalisation with its gradients, as an operator of PyTorch."""
import torch
from common import compare, device, rand
import tile
import tile.torch

s = tile.stdlib
norm = tile.torch.op("tile_examples::norm", s.layernorm_forward, backward=(s.layernorm_backward, s.layernorm_backward_params))

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
