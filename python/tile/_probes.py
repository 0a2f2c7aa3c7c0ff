"""Tensors of all the kinds that the extension has to tell apart: from them it learns where PyTorch keeps what it says of a
tensor, and checks it (python/src/torch_layout.c, ADR 91)."""

import sys

PLAIN, GRAD, OTHER = 0, 1, 2  # never had to do with gradients; needs one; all others, of which views are some


def _types(torch):
    names = ("float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64",
             "bool", "float8_e4m3fn", "float8_e5m2", "complex64")
    return [getattr(torch, name) for name in names if hasattr(torch, name)]


def _shaped(torch, dtype):
    """Of every rank, in memory of every order."""
    base = torch.empty(720, dtype=dtype, device="cpu")
    for shape in ((), (7,), (3, 5), (2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 2, 6), (2, 3, 1, 4, 5, 2), (1, 2, 3, 1, 4, 5, 1)):
        yield torch.empty(shape, dtype=dtype, device="cpu")
    long = torch.empty(2, 3, 4, 1, 2, 5, 1, dtype=dtype, device="cpu")
    yield from (base[7:], base[::3], base[:0], base.view(24, 30).t(), base.view(24, 30)[1:, ::2], base[:1].expand(4, 9),
                base.view(2, 3, 4, 30).contiguous(memory_format=torch.channels_last), long.clone().resize_(6, 7),
                long.clone().squeeze_().transpose_(0, 2), torch.empty(2, 3, device="cpu").resize_(2, 3, 1, 1, 1, 1, 2),
                long.clone().as_strided_((2, 5), (1, 3), 4))


def _make(torch):
    for dtype in _types(torch):
        yield PLAIN, torch.empty(3, 5, dtype=dtype, device="cpu")
        yield OTHER, torch.empty(3, 5, dtype=dtype, device="meta")
    for dtype in (torch.float32, torch.int16):
        for made in _shaped(torch, dtype):
            yield OTHER, made
    pairs = torch.empty(3, 5, dtype=torch.complex64, device="cpu")
    yield from ((OTHER, pairs.conj()), (OTHER, pairs.conj().imag), (OTHER, pairs.imag))
    with torch.inference_mode():
        yield OTHER, torch.empty(3, 5, dtype=torch.float32, device="cpu")
    yield OTHER, torch.empty(3, 5, dtype=torch.float32, device="cpu").to_sparse()
    with torch.enable_grad():
        leaf = torch.empty(3, 5, dtype=torch.float32, device="cpu", requires_grad=True)
        made = leaf.exp()
        yield from ((GRAD, leaf), (GRAD, made), (GRAD, made[1:]), (GRAD, torch.nn.Parameter(leaf.detach())), (OTHER, leaf.detach()))
        yield GRAD, torch.empty(4, dtype=torch.float32, device="cpu").requires_grad_()


def torch_probes():
    """A list of (kind, tensor, the integer of its dispatch keys); None where PyTorch lacks what they are made by. They are
    made by a thread of their own, which no mode and no transform of the caller sees."""
    import threading

    found = []

    def make(torch):
        try:
            for kind, tensor in _make(torch):
                found.append((kind, tensor, torch._C._dispatch_keys(tensor).raw_repr()))
            found.append(None)
        except Exception:  # of a PyTorch that is different: its functions are asked each time
            pass

    if "torch" not in sys.modules:
        return None
    thread = threading.Thread(target=make, args=(sys.modules["torch"],))
    thread.start()
    thread.join()
    return found[:-1] if found and found[-1] is None else None
