"""Triton's tutorial 10: products of 8-bit values with scales, of which each row and column has one."""
import torch
from common import compare, device, rand
import tile

M, N, K = 128, 256, 512
a, b = rand(M, K), rand(K, N)
row, column = a.abs().amax(1) / 127, b.abs().amax(0) / 127
qa = (a / row[:, None]).round().to(torch.int8)
qb = (b / column).round().to(torch.int8)
product = tile.stdlib.matmul_i8.with_settings(U="f32")
compare("i8 product with scales", lambda: product(qa, qb, row, column),
        lambda: (qa.float() @ qb.float()) * row[:, None] * column, rtol=1e-3, atol=1e-3)

fa, fb = (t.to(torch.float8_e4m3fn) for t in (a, b.t().contiguous()))
ones = torch.ones(max(M, N), device=device)
product = tile.stdlib.matmul_f8.with_settings(U="f32")
compare("f8 product with scales", lambda: product(fa, fb, ones[:M].clone(), ones[:N].clone() * 2),
        lambda: fa.float() @ fb.float().t() * 2, rtol=1e-2, atol=1e-1)
