"""What the checks of examples/from-triton share: kernels of a file, with a fault planted or not, and what their results and
gradients are compared with. The checks are those of from_triton_tutorials.py and from_triton_liger.py; test_from_triton.py runs
them."""
import os
import pathlib

os.environ.setdefault("TILE_CACHE_DIR", "")

import ml_dtypes
import numpy as np

import tile
from tile._module import Module

EMULATED = 4  # TILE_COMPILE_EMULATE
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "from-triton"
TOLERANCE = {np.float32: 3e-5, ml_dtypes.bfloat16: 2.5e-2, np.float16: 4e-3}
CALLED = set()
FAMILIES = {}
FAULTS = {}


def family(file, old, new):
    """The checks of a file, and a fault that they have to find: `old` of the text replaced by `new`."""
    def add(check):
        FAMILIES[file] = check
        FAULTS[file] = (old, new)
        return check
    return add


class Kernels:
    """The kernels of a file, as attributes; those that are called are noted down. Code for a GPU runs on the executor."""

    def __init__(self, file, fault=None, target=None):
        self.file = file
        text = (FOLDER / file).read_text()
        if fault:
            if fault[0] not in text: # no AssertionError, which would be a fault that is found
                raise LookupError(f"{file}: the text to replace is not there: {fault[0]}")
            text = text.replace(*fault)
        self.module = Module(text, target=target, flags=EMULATED if target and target.startswith("sm_") else 0)

    def __getattr__(self, name):
        CALLED.add((self.file, name))
        return getattr(self.module, name)


def rng(seed=0):
    return np.random.default_rng(seed)


def normal(dtype, *shape, seed=0, scale=1.0):
    return (rng(seed + sum(shape)).standard_normal(shape) * scale).astype(dtype)


def wide(*arrays):
    made = tuple(np.asarray(a).astype(np.float64) for a in arrays)
    return made if len(made) > 1 else made[0]


def close(actual, expected, dtype, what="", slack=1.0):
    actual, expected = wide(actual), wide(expected)
    assert actual.shape == expected.shape, f"{what}: {actual.shape} and {expected.shape}"
    limit = TOLERANCE[dtype] * slack * (1 + np.abs(expected).max(initial=0))
    error = np.abs(actual - expected).max(initial=0)
    assert error <= limit, f"{what}: off by {error}, where {limit} is allowed"


def same(actual, expected, what=""):
    assert np.array_equal(actual, expected), what


def gradients(function, inputs, found, dtype, slack=1.0, step=1e-5):
    """Compares each gradient found with differences of `function` (a number, of float64) along directions: some of chance, and
    single elements, the last among them."""
    inputs = {name: wide(value) for name, value in inputs.items()}
    for name, gradient in found.items():
        gradient = wide(gradient)
        x = inputs[name]
        assert gradient.shape == x.shape, f"the gradient of {name}: {gradient.shape} and {x.shape}"
        random = rng(len(name))
        directions = [random.standard_normal(x.shape) for _ in range(2)]
        for place in [x.size - 1] + list(random.integers(0, x.size, 3)):
            single = np.zeros(x.size)
            single[place] = 1
            directions.append(single.reshape(x.shape))
        for u in directions:
            up, down = (function(**{**inputs, name: x + sign * step * u}) for sign in (1, -1))
            expected, actual = (up - down) / (2 * step), (gradient * u).sum()
            limit = 10 * TOLERANCE[dtype] * slack * (np.sqrt((gradient * gradient).mean()) * np.sqrt((u * u).sum()) + 1e-3)
            assert abs(expected - actual) <= limit, f"the gradient of {name}: {actual}, but {expected} by differences"


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def layer_norm_of(x, w, b, eps=1e-5):
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + eps) * w + b


def check_layer_norm(k, dtype, shape):
    m, n = shape
    x, w, b = normal(dtype, m, n), normal(dtype, n, seed=1), normal(dtype, n, seed=2)
    dy = normal(dtype, m, n, seed=3)
    y, mean, rstd = k.layer_norm(x, w, b, eps=1e-5)
    close(y, layer_norm_of(*wide(x, w, b)), dtype, "y")
    close(mean, wide(x).mean(1), dtype, "mean")
    close(rstd, 1 / np.sqrt(wide(x).var(1) + 1e-5), dtype, "rstd")
    dx, dw, db = k.layer_norm_backward(dy, x, w, mean, rstd)
    gradients(lambda x, w, b: (layer_norm_of(x, w, b) * wide(dy)).sum(), {"x": x, "w": w, "b": b}, {"x": dx, "w": dw, "b": db}, dtype)


def attention_of(q, k, v, scale, allowed):
    s = np.where(allowed, q @ np.swapaxes(k, -1, -2) * scale, -np.inf)
    return softmax(s) @ v


def check_attention(forward, backward, dtype, shape, allowed, scale, slack=1.0, **settings):
    q, k, v, do = (normal(dtype, *shape, seed=i) for i in range(4))
    o, lse = forward(q, k, v, scale=scale, **settings)
    close(o, attention_of(*wide(q, k, v), scale, allowed), dtype, "o")
    dq, dk, dv = backward(q, k, v, o, do, lse, scale=scale, **settings)
    gradients(lambda q, k, v: (attention_of(q, k, v, scale, allowed) * wide(do)).sum(), {"q": q, "k": k, "v": v},
              {"q": dq, "k": dk, "v": dv}, dtype, slack=slack)
