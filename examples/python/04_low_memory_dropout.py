"""Triton's tutorial 4: dropout whose mask is computed from a seed, and never stored."""
import torch
from common import compare, rand
import tile

dropout = tile.stdlib.dropout
x = rand(64, 1000)
first, again, other = (dropout(x, 0.5, seed) for seed in (123, 123, 512))
assert torch.equal(first, again), "the same seed drops the same"
assert not torch.equal(first, other), "another one does not"
kept = first != 0
print(f"kept with p = 0.5: {kept.float().mean().item():.3f}")
assert abs(kept.float().mean().item() - 0.5) < 0.02
compare("what is kept is scaled", lambda: first, lambda: torch.where(kept, x / 0.5, 0))
