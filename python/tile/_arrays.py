"""What the extension asks of array libraries where its own ways do not do. None of them is imported here unless an
array of it has come."""

import sys

# DLPack: codes of types
INT, UINT, FLOAT, BFLOAT, BOOL, F8E4M3, F8E5M2 = 0, 1, 2, 4, 6, 10, 12

# (name of the language, code, bits, names elsewhere)
TYPES = (
    ("bool", BOOL, 8, ("bool", "bool_")),
    ("i8", INT, 8, ("int8",)), ("i16", INT, 16, ("int16",)), ("i32", INT, 32, ("int32",)), ("i64", INT, 64, ("int64",)),
    ("u8", UINT, 8, ("uint8",)), ("u16", UINT, 16, ("uint16",)), ("u32", UINT, 32, ("uint32",)),
    ("u64", UINT, 64, ("uint64",)),
    ("f8e4m3", F8E4M3, 8, ("float8_e4m3fn",)), ("f8e5m2", F8E5M2, 8, ("float8_e5m2",)),
    ("f16", FLOAT, 16, ("float16", "half")), ("bf16", BFLOAT, 16, ("bfloat16",)),
    ("f32", FLOAT, 32, ("float32",)), ("f64", FLOAT, 64, ("float64", "double")),
)
BY_NAME = {name: row for row in TYPES for name in (row[0],) + row[3]}
BY_DLPACK = {(row[1], row[2]): row for row in TYPES}


def find_type(dtype):
    """The row of a type given as "f32", np.float32, np.dtype(..), torch.float32 or jnp.float32; None: no such type."""
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
    if name is None:
        name = str(dtype)
    return BY_NAME.get(name.rpartition(".")[2])


# Types of ml_dtypes that have a byte for each number of 4 bits.
_PAIRS = ("%s has one number in each byte, and a kernel takes two: "
          "(b[..., 0::2] & 15 | b[..., 1::2] << 4) of b = a.view(numpy.uint8), whose last extent is even")
ONE_IN_A_BYTE = {name: _PAIRS % name for name in ("int4", "uint4", "float4_e2m1fn")}


def describe(array):
    """A view with a buffer of an array whose type buffers do not know (ml_dtypes), and its DLPack type; None: unknown."""
    numpy = sys.modules.get("numpy")
    name = getattr(getattr(array, "dtype", None), "name", "")
    if name in ONE_IN_A_BYTE:
        raise TypeError(ONE_IN_A_BYTE[name])
    row = find_type(getattr(array, "dtype", ""))
    if numpy is None or row is None or not isinstance(array, numpy.ndarray):
        return None
    return array.view(f"u{row[2] // 8}"), row[1], row[2]


_numpy_dtypes = {}


def numpy_dtype(code, bits):
    """The np.dtype of a DLPack type; of those that NumPy lacks ml_dtypes has it."""
    found = _numpy_dtypes.get((code, bits))
    if found is None:
        import numpy

        name = BY_DLPACK[code, bits][3][0]
        if code in (BFLOAT, F8E4M3, F8E5M2):
            import ml_dtypes

            found = numpy.dtype(getattr(ml_dtypes, name))
        else:
            found = numpy.dtype(name)
        _numpy_dtypes[code, bits] = found
    return found


def _numpy():
    try:
        import numpy
    except ModuleNotFoundError:
        raise ModuleNotFoundError("results of such arrays are made by NumPy, which is not installed: pass the result, too",
                                  name="numpy") from None
    return numpy


def numpy_maker(code, bits):
    import functools

    numpy = _numpy()
    return functools.partial(numpy.empty, dtype=numpy_dtype(code, bits))


def root_of(array):
    """The name of the library that the array is of."""
    return type(array).__module__.partition(".")[0]


def empty(like, shape, code, bits):
    """A new array of the library of `like`; of NumPy where there is none."""
    root = root_of(like)
    if root == "cupy":
        import cupy

        with like.device:
            return cupy.empty(shape, numpy_dtype(code, bits))
    if root == "torch":
        import torch

        return torch.empty(shape, dtype=getattr(torch, BY_DLPACK[code, bits][3][0]), device=like.device)
    if root in ("jax", "jaxlib"):
        raise TypeError("arrays of JAX cannot be written: call the kernel by tile.jax.call, or pass a NumPy array for the result")
    return _numpy().empty(shape, numpy_dtype(code, bits))


def _stream(array):
    """The stream on which a kernel for the array is launched: the caller's current one."""
    root = root_of(array)
    if root == "cupy":
        import cupy

        return cupy.cuda.get_current_stream(array.device.id).ptr
    if root == "torch":
        import torch

        return torch.cuda.current_stream(array.device).cuda_stream
    return 0


def dlpack(array):
    """The array's capsule; its library's current stream, before which the library orders its own work (where the launch is on
    another one, `before` orders it again); and whether there is such a stream."""
    on_gpu = array.__dlpack_device__()[0] == 2
    stream = _stream(array) if on_gpu else 0
    wanted = {"stream": stream or 1} if on_gpu else {}  # 1: the default stream, in DLPack's words
    shows = not on_gpu or root_of(array) in ("cupy", "torch")
    try:
        return array.__dlpack__(max_version=(1, 3), **wanted), stream, shows
    except TypeError:
        return array.__dlpack__(**wanted), stream, shows


def before(arrays, device, stream):
    from tile import _streams

    return _streams.before(arrays, device, stream)


def behind(found, device, stream):
    from tile import _streams

    _streams.behind(found, device, stream)


def grad_enabled():
    torch = sys.modules.get("torch")
    return torch is not None and torch.is_grad_enabled()


def torch_probes():
    from tile import _probes

    return _probes.torch_probes()
