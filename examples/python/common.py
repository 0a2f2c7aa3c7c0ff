"""What the examples share: the device, and a printed comparison with PyTorch."""
import sys
import time

import torch

device = sys.argv[1] if len(sys.argv) > 1 else "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)


def rand(*shape, dtype=torch.float32):
    return torch.randn(*shape, device=device).to(dtype)


def microseconds(function):
    """The best of a few runs, each of which is waited for."""
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        function()
        if device == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return best * 1e6


def compare(what, mine, theirs, rtol=1e-4, atol=1e-4):
    """Calls both, compares the results (a tensor or several), and prints a line; ends the program where they differ."""
    a, b = mine(), theirs()
    for x, y in zip(a if isinstance(a, tuple) else (a,), b if isinstance(b, tuple) else (b,)):
        torch.testing.assert_close(x.float(), y.float(), rtol=rtol, atol=atol)
    print(f"{what:44} on {device}: same as PyTorch; {microseconds(mine):9.0f} us, PyTorch {microseconds(theirs):9.0f} us")
