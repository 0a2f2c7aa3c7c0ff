"""Tile: block-level kernels on arrays of NumPy, PyTorch, CuPy and JAX.

    m = tile.load("softmax.tile")       # or tile.compile(text), or tile.stdlib
    m.softmax(x, y)                     # writes y
    y = m.softmax(x)                    # allocates it, by the library of x
    m.softmax(x, y, BM=4)               # generics, constants and tune names are keywords

Errors of a text are tile.CompileError, which shows the place as Python shows a SyntaxError; arguments that do not fit are
tile.ArgumentError, which names them. docs/python.md has the rest."""

from _thread import allocate_lock as _allocate_lock

from tile import _tile
from tile._errors import ArgumentError, CompileError, Error, SettingError
from tile import _arrays, _errors, _kernel, _module, _settings
from tile._module import Kernel, Module, compile, load, stdlib
from tile._settings import backends, config
from tile._tile import Bound

__version__ = "0.1.0"
__all__ = ["ArgumentError", "Bound", "CompileError", "Error", "Kernel", "Module", "SettingError", "backends", "compile",
           "config", "load", "observe", "plan", "stdlib"]

_tile.hooks(compile_error=_errors.make_compile_error, argument_error=_errors.make_argument_error,
            argument_class=ArgumentError, status_error=_errors.make_status_error, describe=_arrays.describe,
            dlpack=_arrays.dlpack, before=_arrays.before, behind=_arrays.behind, grad_enabled=_arrays.grad_enabled, torch_probes=_arrays.torch_probes, empty=_arrays.empty,
            numpy_maker=_arrays.numpy_maker,
            specialise=_module.specialise, for_gpu=_module.for_gpu, print_line=_module.print_line,
            log_line=_settings.log_line)
for _class in (ArgumentError, CompileError, Error, SettingError):
    _class.__module__ = "tile"
_kernel.install()


def plan(*bound):
    """One function that launches all of these bound calls, in order."""
    return _tile.plan(bound)


class observe:
    """with tile.observe(before, after): functions of (kernel's name, status) are called around each launch, on the thread
    that launches, for profilers. Either may be None. Of several observers that are in force, whichever threads began them,
    the one that began last is called."""

    _in_force, _lock = [], _allocate_lock()

    def __init__(self, before=None, after=None):
        self._functions = (before, after)

    def __enter__(self):
        with observe._lock:
            observe._in_force.append(self)
            _tile.observe(*self._functions)
        return self

    def __exit__(self, *exception):
        with observe._lock:
            kept = observe._in_force
            del kept[max(i for i in range(len(kept)) if kept[i] is self)]
            _tile.observe(*(kept[-1]._functions if kept else (None, None)))


def __getattr__(name):
    if name in ("torch", "jax", "bench"):
        import importlib

        return importlib.import_module(f"tile.{name}")
    raise AttributeError(f"module 'tile' has no attribute {name!r}")


def load_ipython_extension(shell):
    """%load_ext tile: the cell magic %%tile NAME compiles a cell; NAME is then the module."""
    from tile import _notebook

    _notebook.install(shell)
