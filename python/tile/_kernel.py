"""What a kernel can do beside being called. The functions here become methods of the extension's type."""

import sys

from tile import _errors, _settings, _tile
from tile._arrays import BY_DLPACK, find_type
from tile._module import Kernel, _load_kernel, setting_texts


class Parameter:
    """A parameter of a kernel: `name`, `access` ("in", "out", "inout"; None: a scalar), `type` as written, `dtype` ("f32";
    None: a type parameter that the arguments decide), `dimensions` as written."""

    __slots__ = ("name", "access", "type", "dtype", "dimensions")

    def __init__(self, name, access, type, dimensions, code, bits):
        self.name, self.access, self.type, self.dimensions = name, access, type, dimensions
        self.dtype = BY_DLPACK[code, bits][0] if bits else None

    def __repr__(self):
        if self.access is None:
            return f"{self.name}: {self.type}"
        return f"{self.name}: {self.access} {self.type}[{', '.join(self.dimensions)}]"


class Setting:
    """What may be set of a kernel: `name`, `kind` ("type", "constant", "function", "static", "tune"), `allowed` as written,
    `value` that was set or None, `default` or None, `family` ("cpu", "gpu", None: both), `types` that a type may be."""

    __slots__ = ("name", "kind", "allowed", "value", "default", "family", "types")

    def __init__(self, name, kind, allowed, value, default, family, types):
        self.name, self.kind, self.allowed, self.value = name, kind, allowed, value
        self.default, self.family = default, family
        self.types = tuple(BY_DLPACK[row][0] for row in types)

    def __repr__(self):
        return f"<{self.kind} {self.name}: {self.value or self.allowed or self.default}>"


class Stats:
    """Counters of a kernel since it was compiled: `launches`, `hits`, `misses`, `variants`, `evictions`, `compile_ns`,
    `guard_ns`."""

    __slots__ = ("launches", "hits", "misses", "variants", "evictions", "compile_ns", "guard_ns")

    def __init__(self, *values):
        for name, value in zip(self.__slots__, values):
            setattr(self, name, value)

    def __repr__(self):
        return f"Stats({', '.join(f'{name}={getattr(self, name)}' for name in self.__slots__)})"


def _interface(self):
    found = self.__dict__.get("_known")
    if found is None:
        name, signature, doc, prints, is_gpu, parameters, settings = self._interface()
        found = (name, signature, doc, prints, is_gpu, tuple(Parameter(*row) for row in parameters),
                 tuple(Setting(*row) for row in settings))
        self.__dict__["_known"] = found
    return found


def _member(index, doc):
    return property(lambda self: _interface(self)[index], doc=doc)


def with_settings(self, **settings):
    """The kernel with values for generics, constants, static dimensions or tune names, compiled once: the same as giving
    them as keywords of a call, without looking them up each time."""
    module = self.module
    kernel = module._like({**module.settings, **setting_texts(settings)}, module.target)[self.name]
    if not kernel.parameters and self.parameters:  # the settings do not fit this kernel
        kernel(None)
    return kernel


def _spec(argument, parameter):
    """An argument of prepare: an array, a number, a shape (the parameter decides the type), (type, shape) or "f32[4, 8]"."""
    if parameter.access is None:
        return argument
    if isinstance(argument, str):
        name, _, rest = argument.partition("[")
        argument = (name, tuple(int(n) for n in rest.rstrip("]").split(",") if n.strip()))
    device, strides = (1, 0), None
    if hasattr(argument, "shape") and hasattr(argument, "dtype"):
        dtype, shape = argument.dtype, tuple(argument.shape)
        strides = _strides(argument)
        if hasattr(argument, "__dlpack_device__"):
            device = argument.__dlpack_device__()
    elif len(argument) == 2 and not hasattr(argument[0], "__index__"):
        dtype, shape = argument
    else:
        dtype, shape = parameter.dtype, tuple(argument)
    row = None if dtype is None else find_type(dtype)
    if row is None:
        raise _errors.make_argument_error(None, f"{parameter.name}: its type is missing: give ('f32', shape)", -1, "TYPE")
    return tuple(int(n) for n in shape), strides, row[1], row[2], int(device[0]), int(device[1])


def _strides(array):
    """In elements; None: row-major without gaps."""
    if callable(getattr(array, "stride", None)):
        return tuple(array.stride())
    strides = getattr(array, "strides", None)
    return None if strides is None else tuple(n // array.dtype.itemsize for n in strides)


def prepare(self, *arguments, **settings):
    """Compiles the code for arguments of these kinds, without running it and without memory: each is an array, of which
    the type, shape and strides count, a number, "f32[4096, 1000]", ("f32", (4096, 1000)), or a shape where the type is the
    parameter's own."""
    if settings:
        return with_settings(self, **settings).prepare(*arguments)
    if len(arguments) != len(self.parameters):
        raise TypeError(f"{self.name}.prepare() takes {len(self.parameters)} arguments: {self.signature}")
    self._prepare(tuple(_spec(a, p) for a, p in zip(arguments, self.parameters)))


def explain(self, *arrays):
    """What code the kernel has, what each variant relies on, and which guard fails for these arrays; compiles nothing.
    Results may be left out: those that a launch would make stand for them."""
    return self._explain(*arrays)


def emit(self, stage="asm", *, target=None, after=None, general=False, **settings):
    """The text of a stage of the compilation: "tokens", "ast", "tile", "machine", "mlir", "llvm", "asm", "ptx". From the
    tile form on every type parameter needs a setting: k.emit("asm", T="f32")."""
    module = self.module
    if target is None:
        target = "sm_90a" if stage == "ptx" and module.target in (None, "cpu") else module.target
    return _tile.emit(module._compiler, module.source, module.file, target,
                      {**module.settings, **setting_texts(settings)}, module._flags, stage, self.name, after, general)


def layouts(self, *, target="sm_90a", **settings):
    """Where the elements of its tiles lie on a GPU: a list that shows itself in a notebook, as tables of the thread and register
    that hold each element. Type parameters need settings: k.layouts(T="f32")."""
    from tile import _layouts

    return _layouts.read(emit(self, "machine", target=target, after="gpu-rematerialise", **settings))


def _reduce(self):
    return _load_kernel, (self.module, self.name)


def _signature(self):
    """For inspect.signature and help."""
    import inspect

    kind, missing = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    rows = [inspect.Parameter(p.name, kind, annotation=repr(p).partition(": ")[2],
                              default=None if p.access == "out" else missing)
            for p in sorted(self.parameters, key=lambda p: p.access == "out")]
    settings = {s.name: s.value or s.default for s in reversed(self.settings)}  # CPUs' and GPUs' constants may have one name
    rows += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=settings[name])
             for name in dict.fromkeys(s.name for s in self.settings) if name not in {p.name for p in self.parameters}]
    return inspect.Signature(rows)


class _Doc:
    """What help shows: of a kernel its signature and comment."""

    def __get__(self, kernel, owner=None):
        if kernel is None:
            return "A kernel, which is called with arrays."
        return "\n\n".join(text for text in (kernel.signature, kernel.doc) if text)


def _bound_repr(self):
    if self.arguments and all(isinstance(part, _tile.Bound) for part in self.arguments):
        return f"<tile plan of {len(self.arguments)}: {', '.join(part.kernel.name for part in self.arguments)}>"
    return f"<tile bound call of {self.kernel.name}>"


def _repr(self):
    return f"<tile kernel {self.signature}>"


def _html(self):
    from tile import _notebook

    return _notebook.kernel_html(self)


def bench(self, *arguments, **options):
    """Measures the kernel on these arrays: see tile.bench.Result."""
    from tile import bench as measure

    return measure.run(self, arguments, **options)


def tune(self, *arguments, **options):
    """Measures the points of the `tune` clauses on these arrays: see tile.bench.tune."""
    from tile import bench as measure

    return measure.tune(self, arguments, **options)


def install():
    methods = {"with_settings": with_settings, "prepare": prepare, "explain": explain, "emit": emit, "layouts": layouts,
               "bench": bench, "tune": tune, "__reduce__": _reduce, "__repr__": _repr, "_repr_html_": _html}
    for name, function in methods.items():
        setattr(Kernel, name, function)
    Kernel.name = _member(0, "its name")
    Kernel.signature = _member(1, "one line, as written")
    Kernel.doc = _member(2, "the `///` comment before it")
    Kernel.prints = _member(3, "can it print?")
    Kernel.is_gpu = _member(4, "does it run on a GPU?")
    Kernel.parameters = _member(5, "a tuple of Parameter")
    Kernel.settings = _member(6, "a tuple of Setting: generics, constants, static dimensions, tune names")
    Kernel.__signature__ = property(_signature)
    Kernel.__doc__ = _Doc()
    _tile.Bound.__repr__ = _bound_repr
    Kernel.stats = property(lambda self: Stats(*self._stats()), doc="counters: Stats")
