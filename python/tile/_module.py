"""Modules of kernels: texts that were compiled."""

import sys

from tile import _errors, _settings, _tile
from tile._arrays import find_type

Kernel = _tile.Kernel


def setting_text(value):
    """A generic's, constant's or tune name's value as the compiler reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        row = find_type(value)
        return row[0] if row else value
    if isinstance(value, (int, float)):
        return repr(value)
    row = find_type(value)
    if row:
        return row[0]
    if hasattr(value, "__index__"):
        return str(value.__index__())
    if hasattr(value, "__float__"):
        return repr(float(value))
    raise _errors.SettingError(f"{value!r} is no value for a setting: expected a number, a type or a function's name")


def setting_texts(settings):
    return {name: setting_text(value) for name, value in settings.items()}


class Module:
    """Kernels that were compiled together: each is an attribute, or m["name"].

    `source` is the text, `file` its name, `settings` what was set, `warnings` what the compiler said about it."""

    def __init__(self, source, file=None, settings=None, target=None, flags=0):
        self.source, self.file, self.settings = source, file, setting_texts(settings or {})
        self.target, self._flags = target, flags
        self._compiler = _settings.compiler()
        try:
            library, self.warnings = _tile.compile(self._compiler, source, file, target, self.settings, flags)
        except _errors.CompileError as error:
            if error.lineno and (error.filename == file or (file is None and error.filename == "<text>")):
                error.text = _errors.source_line(source, error.lineno)
            raise
        self.kernels = {kernel.name: kernel for kernel in library.kernels(self)}
        self._special = {}
        for name, kernel in self.kernels.items():
            self.__dict__.setdefault(name, kernel)

    def __getitem__(self, name):
        return self.kernels[name]

    def __getattr__(self, name):
        if name.startswith("__") or "kernels" not in self.__dict__:
            raise AttributeError(name)
        there = ", ".join(self.kernels)
        raise AttributeError(f"the module {self.file or '<text>'} has no kernel {name!r}; it has {there}", name=name, obj=self)

    def __dir__(self):
        return sorted(set(super().__dir__()) | set(self.kernels))

    def __repr__(self):
        return f"<tile module {self.file or '<text>'}: {', '.join(self.kernels)}>"

    def _repr_html_(self):
        from tile import _notebook

        return _notebook.module_html(self)

    def _like(self, settings, target):
        """The same text with other settings or for another target, kept: it is compiled once."""
        key = (target, tuple(sorted(settings.items())))
        found = self._special.get(key)
        if found is None:
            found = Module(self.source, self.file, settings, target, self._flags)
            found._special = self._special
            found = self._special.setdefault(key, found)
        return found

    def with_settings(self, **settings):
        """The module with values for generics, constants, static dimensions or tune names: m.with_settings(BM=4)."""
        return self._like({**self.settings, **setting_texts(settings)}, self.target)

    def __reduce__(self):
        return _load_pickled, (self.source, self.file, self.settings, self.target, self._flags)


_unpickled = {}


def _load_pickled(source, file, settings, target, flags):
    """Modules with the same text and settings are one within a process."""
    key = (source, file, tuple(sorted(settings.items())), target, flags)
    found = _unpickled.get(key)
    if found is None:
        found = _unpickled.setdefault(key, Module(source, file, settings, target, flags))
    return found


def _load_kernel(module, name):
    return module[name]


def compile(source, *, file=None, debug=False, contract=True, target=None, **settings):
    """Compiles a text of the language; gives a Module whose kernels are its attributes.

    file      names the text in messages; imports are looked up beside it
    debug     assertions hold
    contract  a * b + c may be rounded once
    target    "cpu" (the default), "avx2", "cuda", "interp", ..: tile.backends.targets()
    settings  values for generics, constants and tune names, as for `tilec`: T="bf16", BM=4

    Code is made when a kernel is first called with arguments of a new kind, for CPUs and GPUs alike."""
    return Module(source, file, settings, target, (0 if contract else 1) | (2 if debug else 0))


def load(path, **options):
    """Compiles a file: tile.load("softmax.tile"). Options are those of tile.compile."""
    import os

    path = os.fspath(path)
    with open(path, encoding="utf-8") as file:
        source = file.read()
    return compile(source, file=path, **options)


def specialise(kernel, settings):
    """The kernel with settings given as keywords of a call; a keyword that is none is a TypeError."""
    allowed = {setting.name for setting in kernel.settings}
    other = [name for name in settings if name not in allowed]
    # A function generic may have parameters of its own, which the kernel has once the function is set.
    functions = [s.name for s in kernel.settings if s.kind == "function" and s.name in settings]
    if other and not functions:
        raise TypeError(f"{kernel.name}() got an unexpected keyword argument {other[0]!r}: {kernel.signature}")
    chosen = {name: value for name, value in settings.items() if name in allowed}
    special = kernel.with_settings(**chosen)
    parameters = {p.name for p in special.parameters}
    for name in other:
        if name not in parameters:
            raise TypeError(f"{kernel.name}() got an unexpected keyword argument {name!r}: {kernel.signature}")
        del settings[name]  # it is an argument
    return special


def for_gpu(kernel, device):
    """The same kernel for GPUs."""
    return kernel.module._like(kernel.module.settings, "cuda")[kernel.name]


def print_line(text):
    if sys.stdout is not None:  # as Python's print does without one
        sys.stdout.write(text)


class Stdlib:
    """The standard library: each of its kernels, compiled when it is first used. tile.stdlib.softmax(x)

    A kernel that is in several files, or whose name a file has too, is found by its file: tile.stdlib["norm.tile"]."""

    def __init__(self):
        self._modules = {}
        self._index = None

    def _files(self):
        if self._index is None:
            import re

            texts = _tile.standard()
            index = {}
            for path, text in texts.items():
                for name in re.findall(r"^kernel (\w+)", text, re.MULTILINE):
                    index.setdefault(name, path)
            self._texts, self._index = texts, index
        return self._index

    def __getitem__(self, path):
        found = self._modules.get(path)
        if found is None:
            self._files()
            found = self._modules.setdefault(path, Module(self._texts[path], f"<stdlib>/{path}"))
        return found

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        path = self._files().get(name)
        if path is None:
            raise AttributeError(f"the standard library has no kernel {name!r}", name=name, obj=self)
        kernel = self[path][name]
        self.__dict__[name] = kernel
        return kernel

    def __dir__(self):
        return sorted(self._files())

    def __repr__(self):
        return f"<tile.stdlib: {', '.join(sorted(self._files()))}>"


stdlib = Stdlib()
