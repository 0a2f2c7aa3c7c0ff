"""Triton's tutorial 2: softmax of rows, read once and written once."""
import torch
from common import compare, rand
import tile

m = tile.compile("""
/// A whole row as one tile: compiled for each N.
kernel softmax(x: in f32[M, N], y: out f32[M, N])
    static N
    require N >= 1, "a row has elements"
{
    grid m in M {
        let v = x[m, :]
        let e = exp(v - max(v, axis = 0))
        y[m, :] = e / sum(e, axis = 0)
    }
}
""")

for rows, columns in ((1823, 781), (512, 1024)):
    x = rand(rows, columns)
    compare(f"softmax {rows} x {columns}", lambda: m.softmax(x), lambda: torch.softmax(x, 1))
    compare(f"tile.stdlib.softmax {rows} x {columns}", lambda: tile.stdlib.softmax(x), lambda: torch.softmax(x, 1))
