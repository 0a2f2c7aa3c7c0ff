"""Every operator that has a gradient by kernels of the standard library, and those of examples/python: opcheck, and gradcheck in
f32, of which the steps and tolerances are as large as its rounding asks for. On a GPU too, where there is one.

usage: test_gradients.py"""
import itertools
import os
import sys
import unittest
import warnings

os.environ.setdefault("TILE_CACHE_DIR", "")

import torch

import command
import tile
import tile.torch

s, number = tile.stdlib, itertools.count()
SWIGLU = """
kernel swiglu(a: in f32[M, N], b: in f32[M, N], y: out f32[M, N]) {
    grid (m, n) in (M, tiles(N, 256)) {
        let x = a[m, n]
        y[m, n] = x / (1 + exp(-x)) * b[m, n]
    }
}
kernel swiglu_backward(a: in f32[M, N], b: in f32[M, N], dy: in f32[M, N], da: out f32[M, N], db: out f32[M, N]) {
    grid (m, n) in (M, tiles(N, 256)) {
        let x = a[m, n]
        let s = 1 / (1 + exp(-x))
        da[m, n] = dy[m, n] * b[m, n] * (s + x * s * (1 - s))
        db[m, n] = dy[m, n] * x * s
    }
}
"""


def keep(*places):
    """Saves inputs and results, which are counted behind the inputs, for the backward pass."""
    def setup(ctx, inputs, output):
        output = output if isinstance(output, tuple) else (output,)
        ctx.rest = [value for value in inputs if not isinstance(value, torch.Tensor)]
        ctx.save_for_backward(*((*inputs, *output)[i] for i in places))

    return setup


def embedding(ctx, dy):
    table, token = ctx.saved_tensors
    gradient = torch.zeros_like(table)
    add_rows(dy.reshape(-1, dy.shape[-1]), token.reshape(-1), gradient)
    return gradient, None


def varlen(ctx, do, _):
    dq, dk, dv = of_sequences(*ctx.saved_tensors, do, ctx.rest[0], ctx.rest[0], ctx.rest[1])
    return dq, dk, dv, None, None, None, None


add_rows = tile.torch.op("tile_test_gradients::add_rows", s.embedding_backward)
of_sequences = tile.torch.op("tile_test_gradients::of_sequences", s.attention_varlen_backward.with_settings(causal=True))


class Gradients(unittest.TestCase):
    device = "cpu"

    def rand(self, *shape):
        return torch.randn(*shape, device=self.device)

    def check(self, kernel, backward, arguments, differentiable, setup=None):
        """differentiable: the numbers of the inputs that have a gradient; of results, the first counts."""
        op = tile.torch.op(f"tile_test_gradients::k{next(number)}_{kernel.name}", kernel, backward=backward, setup_context=setup)
        leaves = [a.clone().requires_grad_() if i in differentiable else a for i, a in enumerate(arguments)]
        torch.library.opcheck(op, tuple(leaves))

        def first(*given):
            made = op(*(given[differentiable.index(i)] if i in differentiable else a for i, a in enumerate(arguments)))
            return made[0] if isinstance(made, tuple) else made

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that f32 is not f64
            self.assertTrue(torch.autograd.gradcheck(first, tuple(leaves[i] for i in differentiable), eps=1e-2, atol=5e-3, rtol=1e-2))
        return op

    def test_layernorm(self):
        self.check(s.layernorm_forward, (s.layernorm_backward, s.layernorm_backward_params),
                   (self.rand(3, 7), self.rand(7), self.rand(7), 1e-5), [0, 1, 2])

    def test_layernorm_of_x_alone(self):
        self.check(s.layernorm_forward, s.layernorm_backward, (self.rand(3, 7), self.rand(7), self.rand(7), 1e-5), [0])

    def test_rmsnorm(self):
        self.check(s.rmsnorm_forward, (s.rmsnorm_backward, s.rmsnorm_backward_params), (self.rand(3, 7), self.rand(7), 1e-6), [0, 1])

    def test_of_several_kernels_only_those_that_are_asked_for_run(self):
        norm = tile.torch.op("tile_test_gradients::norm", s.rmsnorm_forward, backward=[s.rmsnorm_backward, s.rmsnorm_backward_params])
        x, gamma, seen = self.rand(3, 7), self.rand(7), []
        for leaf, kernel in ((x, "rmsnorm_backward"), (gamma, "rmsnorm_backward_params")):
            leaf.requires_grad_()
            y = norm(x, gamma, 1e-6)[0]
            with tile.observe(lambda name, _: seen.append(name)):
                y.sum().backward()
            leaf.requires_grad_(False)
        self.assertEqual(seen, ["rmsnorm_backward", "rmsnorm_backward_params"])
        with self.assertRaisesRegex(ValueError, "two backward kernels"):
            tile.torch.op("tile_test_gradients::wrong", s.rmsnorm_forward, backward=[s.rmsnorm_backward] * 2)

    def test_cross_entropy(self):
        target = torch.tensor([0, 8, 3, -100], device=self.device)
        self.check(s.cross_entropy, s.cross_entropy_backward, (self.rand(4, 9), target), [0])

    def test_attention(self):
        q, k, v = self.rand(1, 2, 3, 4), self.rand(1, 1, 5, 4), self.rand(1, 1, 5, 4)
        for causal in (False, True):
            self.check(s.attention_lse.with_settings(causal=causal), s.attention_backward.with_settings(causal=causal),
                       (q, k, v, 0.5), [0, 1, 2])

    def test_attention_of_sequences(self):
        cu = torch.tensor([0, 2, 5], dtype=torch.int32, device=self.device)
        q, k, v = self.rand(5, 2, 4), self.rand(5, 1, 4), self.rand(5, 1, 4)
        self.check(s.attention_varlen_lse.with_settings(causal=True), varlen, (q, k, v, cu, cu, 3, 0.5), [0, 1, 2],
                   keep(0, 1, 2, 3, 4, 7, 8))

    def test_embedding(self):
        token = torch.tensor([[0, 3, 3], [1, 0, 9]], device=self.device)
        self.check(s.embedding, embedding, (self.rand(4, 5), token), [0], keep(0, 1))

    def test_swiglu(self):
        m = tile.compile(SWIGLU)
        self.check(m.swiglu, m.swiglu_backward, (self.rand(3, 4), self.rand(3, 4)), [0, 1])

    def test_results_whose_gradient_is_not_taken(self):
        """They have none: a loss of them is an error, and not a gradient without their part."""
        op = self.check(s.cross_entropy, s.cross_entropy_backward, (self.rand(2, 5), torch.tensor([1, 2], device=self.device)), [0])
        x = self.rand(2, 5).requires_grad_()
        loss, lse = op(x, torch.tensor([1, 2], device=self.device))
        self.assertTrue(loss.requires_grad)
        self.assertFalse(lse.requires_grad)
        with self.assertRaises(RuntimeError):
            lse.sum().backward()
        (loss.sum() + lse.sum()).backward()
        torch.testing.assert_close(x.grad.sum(1), torch.zeros(2, device=self.device), atol=1e-6, rtol=0)


@unittest.skipUnless(torch.cuda.is_available() and tile.backends.cuda.is_available(), "there is no GPU that PyTorch and Tile can use")
class OnGpu(Gradients):
    device = "cuda"


if __name__ == "__main__":
    command.main(sys.argv[1:])
