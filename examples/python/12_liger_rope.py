"""Liger's rotary embedding of queries and keys."""
import torch
from common import compare, device, rand
import tile

B, S, H, D = 2, 128, 8, 64
x = rand(B, S, H, D)
angle = torch.arange(S, device=device)[:, None] / 10000 ** (torch.arange(D // 2, device=device) / (D // 2))
cosine, sine = angle.cos(), angle.sin()


def by_torch():
    a, b = x[..., : D // 2], x[..., D // 2:]
    c, s = cosine[:, None], sine[:, None]
    return torch.cat([a * c - b * s, b * c + a * s], -1)


compare("rotary embedding", lambda: tile.stdlib.rotary_halves(x, cosine, sine), by_torch)
