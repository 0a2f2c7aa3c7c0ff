"""Liger's SwiGLU with gradients: nothing but the two inputs is kept for the backward pass."""
import torch
from common import compare, rand
import tile
import tile.torch

m = tile.compile("""
import nn

kernel swiglu[T: f16 | bf16 | f32](a: in T[M, N], b: in T[M, N], c: out T[M, N]) tune BN in {1024} {
    grid (m, n) in (tiles(M, 1), tiles(N, BN)) { c[m, n] = T(nn.silu(f32(a[m, n])) * f32(b[m, n])) }
}

kernel swiglu_backward[T: f16 | bf16 | f32](a: in T[M, N], b: in T[M, N], dc: in T[M, N], da: out T[M, N], db: out T[M, N])
    tune BN in {1024}
{
    grid (m, n) in (tiles(M, 1), tiles(N, BN)) {
        let x = f32(a[m, n])
        let g = f32(dc[m, n])
        let s = sigmoid(x)
        da[m, n] = T(g * f32(b[m, n]) * s * (1 + x * (1 - s)))
        db[m, n] = T(g * x * s)
    }
}
""")
swiglu = tile.torch.op("tile_examples::swiglu", m.swiglu, backward=m.swiglu_backward)
a, b, dc = (rand(256, 1408) for _ in range(3))


def run(function):
    leaves = [t.detach().clone().requires_grad_() for t in (a, b)]
    c = function(*leaves)
    c.backward(dc)
    return (c.detach(), *(t.grad for t in leaves))


compare("SwiGLU, forward and backward", lambda: run(swiglu), lambda: run(lambda a, b: torch.nn.functional.silu(a) * b))
