"""Triton's tutorial 1: the sum of two vectors."""
from common import compare, rand
import tile

m = tile.compile("""
kernel add[T: f16 | bf16 | f32](x: in T[N], y: in T[N], z: out T[N])
    tune BN in {1024, 4096}
{
    grid n in tiles(N, BN) { z[n] = x[n] + y[n] }
}
""")

for size in (98432, 1 << 20):
    x, y = rand(size), rand(size)
    compare(f"add, {size} elements", lambda: m.add(x, y), lambda: x + y)
