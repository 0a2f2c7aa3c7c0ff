"""Triton's tutorial 6: attention without its matrix of scores, causal or not."""
import torch
from common import compare, rand
import tile

B, H, S, D = 2, 4, 256, 64
q, k, v = (rand(B, H, S, D) for _ in range(3))
for causal in (False, True):
    compare(f"attention, causal = {causal}", lambda: tile.stdlib.attention(q, k, v, D ** -0.5, causal),
            lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal), rtol=2e-2, atol=2e-2)
