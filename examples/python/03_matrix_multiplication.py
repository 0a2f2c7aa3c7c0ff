"""Triton's tutorial 3: a product of matrices, with an activation fused into it."""
import torch
from common import compare, rand
import tile

m = tile.compile("""
import nn

kernel matmul[T: f16 | bf16 | f32, act: fn(f32) -> f32 = nn.relu](a: in T[M, K], b: in T[K, N], c: out T[M, N])
    tune BM in {64, 128}, BN in {64, 128}, BK in {32, 64}
{
    grid (m, n) in (tiles(M, BM), tiles(N, BN)) {
        var acc = zeros[BM, BN](f32)
        for k in tiles(K, BK) { acc = dot(a[m, k], b[k, n], acc) }
        c[m, n] = T(act(acc))
    }
}
""")

a, b = rand(384, 256), rand(256, 512)
compare("matmul + relu", lambda: m.matmul(a, b), lambda: torch.relu(a @ b), rtol=2e-2, atol=2e-2)
leaky = m.matmul.with_settings(act="nn.leaky_relu")
compare("matmul + leaky relu", lambda: leaky(a, b), lambda: torch.nn.functional.leaky_relu(a @ b), rtol=2e-2, atol=2e-2)
