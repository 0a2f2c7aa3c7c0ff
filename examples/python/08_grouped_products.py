"""Triton's tutorial 8: products of matrices of several sizes: each a bound call, all of them one plan."""
import torch
from common import compare, rand
import tile

sizes = ((128, 256, 64), (64, 64, 192), (200, 100, 50))
pairs = [(rand(m, k), rand(k, n)) for m, k, n in sizes]
calls = [tile.stdlib.matmul.with_settings(U="f32").bind(a, b) for a, b in pairs]
plan = tile.plan(*calls)


def mine():
    plan()
    return tuple(call.arguments[2] for call in calls)


compare("three products in one plan", mine, lambda: tuple(a @ b for a, b in pairs), rtol=2e-2, atol=2e-2)
