"""Kernels under JAX, by XLA's FFI: on CPUs and GPUs, inside jit.

    y = tile.jax.call(m.softmax, x)
    f = jax.jit(lambda x: tile.jax.call(m.softmax, x) * 2)

Arguments are those of the kernel that are not `out`; results are those that are `out` or `inout`. Numbers are compiled into
the program. docs/python-jax.md tells more."""

import functools
import struct

import jax
import numpy

from tile import _rows, _shapes, _tile
from tile._arrays import BY_NAME, find_type
from tile._module import Kernel, for_gpu

__all__ = ["call"]

_kept = {}  # kernels that compiled programs refer to by their addresses: they live as long as the process


@functools.cache
def _register():
    for capsule, platform in zip(_tile.xla_handlers(), ("cpu", "CUDA")):
        jax.ffi.register_ffi_target("tile_kernel", capsule, platform=platform)


@functools.cache
def _has_gpu():
    """Is there one for JAX, the default or not? An array or jit's caller may choose it."""
    try:
        return bool(jax.devices("gpu"))
    except RuntimeError:
        return False


def _keep(kernel):
    address = kernel._address()
    _kept[address] = kernel
    return address


def _word(parameter, value):
    """A number as the handler takes it: an integer, or the bits of a double."""
    if parameter.dtype == "bool":
        return int(bool(value))
    if parameter.dtype and parameter.dtype[0] in "iu":
        number = value.__index__()
        return number - (1 << 64) if number >= 1 << 63 else number
    return struct.unpack("<q", struct.pack("<d", float(value)))[0]


def _dtype(dtype):
    return jax.numpy.dtype(BY_NAME[dtype][3][0]) if isinstance(dtype, str) else dtype


def _by_rows(kernel, lead, inputs, values, run, vmap_method):
    """`run` with a rule for vmap: a batch is more rows of the tensors `lead`."""
    names = [p.name for p in inputs if p.access is not None]

    def again(arrays):
        left = iter(arrays)
        return call(kernel, *(v if p.access is None else next(left) for p, v in zip(inputs, values)), vmap_method=vmap_method)

    @jax.custom_batching.custom_vmap
    def batched(*arrays):
        return tuple(run(*arrays))

    @batched.def_vmap
    def rule(size, is_batched, *arrays):
        if any(b and name not in lead for name, b in zip(names, is_batched)):
            made = jax.vmap(lambda *a: tuple(run(*a)), in_axes=[0 if b else None for b in is_batched])(*arrays)
            return made, tuple(True for _ in made)
        rows = [jax.numpy.broadcast_to(a, (size, *a.shape)) if name in lead and not b else a
                for name, b, a in zip(names, is_batched, arrays)]
        made = again(a.reshape((a.shape[0] * a.shape[1], *a.shape[2:])) if name in lead else a for name, a in zip(names, rows))
        made = made if isinstance(made, tuple) else (made,)
        return tuple(y.reshape((size, y.shape[0] // size, *y.shape[1:])) for y in made), tuple(True for _ in made)

    return batched


def call(kernel, *arguments, vmap_method="sequential", **settings):
    """Calls a kernel on JAX's arrays, also while tracing; settings are values for its generics, constants and tune names.

    Under vmap it is one call where the rows of the kernel are independent, else as `vmap_method` of jax.ffi.ffi_call says."""
    if not isinstance(kernel, Kernel):
        raise TypeError(f"a tile.Kernel is expected, not {kernel!r}")
    kernel = kernel.with_settings(**settings) if settings else kernel
    inputs = [p for p in kernel.parameters if p.access != "out"]
    if len(arguments) != len(inputs):
        raise TypeError(f"{kernel.name} takes {len(inputs)} arguments under JAX, but {len(arguments)} are given: "
                        f"{kernel.signature}")
    _register()
    values = [a if p.access is None else jax.numpy.asarray(a) for p, a in zip(inputs, arguments)]
    results = {p.name: jax.ShapeDtypeStruct(tuple(shape), _dtype(dtype)) for p, (shape, dtype) in
               zip((p for p in kernel.parameters if p.access == "out"), _shapes.results(kernel, values))}
    arrays = [(p, v) for p, v in zip(inputs, values) if p.access is not None]
    aliases, types = {}, []
    for parameter in kernel.parameters:
        if parameter.access == "inout":
            place = [p.name for p, _ in arrays].index(parameter.name)
            aliases[place] = len(types)
            types.append(jax.ShapeDtypeStruct(arrays[place][1].shape, arrays[place][1].dtype))
        elif parameter.access == "out":
            types.append(results[parameter.name])
    words = [_word(p, v) for p, v in zip(inputs, values) if p.access is None]
    run = jax.ffi.ffi_call("tile_kernel", types, input_output_aliases=aliases, vmap_method=vmap_method,
                           has_side_effect=not types)
    run = functools.partial(run, cpu=numpy.int64(_keep(kernel)), scalars=numpy.array(words, numpy.int64),
                            cuda=numpy.int64(_keep(for_gpu(kernel, 0)) if _has_gpu() else 0))
    found = [find_type(v.dtype) for _, v in arrays]
    lead = _rows.leading(kernel, [t[0] for t in found]) if all(found) else None
    if lead:
        run = _by_rows(kernel, lead, inputs, values, run, vmap_method)
    made = run(*(v for _, v in arrays))
    return made[0] if len(made) == 1 else tuple(made)
