"""Liger's GeGLU: gelu (tanh form) of one half times the other."""
import torch
from common import compare, rand
import tile

m = tile.compile("""
import nn

kernel geglu[T: f16 | bf16 | f32](a: in T[M, N], b: in T[M, N], c: out T[M, N]) tune BN in {1024} {
    grid (m, n) in (tiles(M, 1), tiles(N, BN)) { c[m, n] = T(nn.gelu_tanh(f32(a[m, n])) * f32(b[m, n])) }
}
""")
a, b = rand(256, 1408), rand(256, 1408)
compare("GeGLU", lambda: m.geglu(a, b), lambda: torch.nn.functional.gelu(a, approximate="tanh") * b)
