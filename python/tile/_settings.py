"""Settings of compilers: `tile.backends`, as in torch.backends, and the context manager `tile.config`.

They hold for what is compiled from then on; kernels that are there keep those that they were compiled with. What
`tile.backends` sets holds for all threads, `tile.config` for the thread, or task, that is in it."""

from contextvars import ContextVar

from tile import _tile

ON_MISS = {"wait": 1, "general": 2, "background": 3}
LOG = {"guards": 1, "compile": 2}

_values = {"deterministic": False, "allow_tf32": False, "cpu_capability": None, "on_miss": None, "variant_limit": 0,
           "log": (), "tuning": None, "imports": ()}
_inner = ContextVar("tile.config", default={})  # what tile.config has set here
_compilers = {}


def _check(name, value):
    if name not in _values:
        raise AttributeError(f"there is no setting {name!r}; there are {', '.join(sorted(_values))}")
    if name == "on_miss" and value is not None and value not in ON_MISS:
        raise ValueError(f"on_miss is {value!r}, expected {', '.join(ON_MISS)} or None")
    if name == "log":
        value = (value,) if isinstance(value, str) else tuple(value)
        if not set(value) <= set(LOG):
            raise ValueError(f"log is {value!r}, expected some of {', '.join(LOG)}")
    if name == "imports":
        value = tuple(str(path) for path in value)
    return value


def get(name):
    return _inner.get().get(name, _values[name])


def put(name, value):
    _values[name] = _check(name, value)


class _Config(type):
    def __setattr__(cls, name, value):
        _check(name, value)
        raise AttributeError(f"tile.config is a context: `with tile.config({name}={value!r}):`; tile.backends sets for all")


class config(metaclass=_Config):
    """with tile.config(deterministic=True, log="compile"): modules that are compiled here have these settings.

    deterministic   kernels that add floats atomically are refused
    allow_tf32      on GPUs every dot of f32 may use tf32
    cpu_capability  "avx2", ..: code for better CPUs is neither made nor run
    on_miss         "wait", "general" or "background": what a launch does that finds no code
    variant_limit   specialised variants for the same types; 0: the usual 8
    log             "guards", "compile": lines for logging.getLogger("tile")
    tuning          a tuning file, or "off"
    imports         folders that are searched for imports
    """

    def __init__(self, **settings):
        self._settings = {name: _check(name, value) for name, value in settings.items()}
        self._tokens = []

    def __enter__(self):
        self._tokens.append(_inner.set({**_inner.get(), **self._settings}))
        return self

    def __exit__(self, *exception):
        _inner.reset(self._tokens.pop())


def compiler():
    """The compiler with the settings of now."""
    v = {**_values, **_inner.get()}
    key = tuple(v.values())
    found = _compilers.get(key)
    if found is None:
        found = _tile.compiler(v["imports"], v["cpu_capability"], ON_MISS.get(v["on_miss"], 0), v["variant_limit"],
                               sum(LOG[word] for word in v["log"]), v["deterministic"], v["allow_tf32"], v["tuning"])
        _compilers[key] = found
    return found


def log_line(text):
    import logging

    text = text.rstrip("\n")
    text = text[6:] if text.startswith("tile: ") else text
    warning = text.startswith("warning: ")
    logging.getLogger("tile").log(logging.WARNING if warning else logging.INFO, "%s", text[9:] if warning else text)


class Target:
    """A target of the compiler: `name`, `description`, whether it is `usable` here, and if not `why_not`."""

    __slots__ = ("name", "description", "usable", "why_not")

    def __init__(self, name, description, usable, why_not):
        self.name, self.description, self.usable, self.why_not = name, description, usable, why_not

    def __repr__(self):
        return f"<tile target {self.name}: {'usable' if self.usable else self.why_not}>"


class _Backend:
    _names = {}

    def __getattr__(self, name):
        if name in type(self)._names:
            return get(type(self)._names[name])
        raise AttributeError(name)

    def __setattr__(self, name, value):
        if name not in type(self)._names:
            raise AttributeError(f"there is no setting {name!r} here")
        put(type(self)._names[name], value)

    def __dir__(self):
        return sorted(set(type(self)._names) | {"is_available"})

    def __repr__(self):
        return f"<tile settings: {', '.join(f'{name} = {getattr(self, name)!r}' for name in type(self)._names)}>"


class _Cpu(_Backend):
    """tile.backends.cpu: `capability`, `threads` (of the process's pool, TILE_NUM_THREADS; only read)."""

    _names = {"capability": "cpu_capability"}

    @property
    def threads(self):
        return _tile.threads()

    def is_available(self):
        return True


class _Cuda(_Backend):
    """tile.backends.cuda: `allow_tf32`, `is_available()`."""

    _names = {"allow_tf32": "allow_tf32"}

    def is_available(self):
        return any(name == "cuda" and usable for name, _, usable, _ in _tile.targets())


class _Backends(_Backend):
    """tile.backends: `deterministic`, `on_miss`, `variant_limit`, `log`, `tuning`, `imports`; `cpu`, `cuda`, `targets()`."""

    _names = {name: name for name in ("deterministic", "on_miss", "variant_limit", "log", "tuning", "imports")}
    cpu, cuda = _Cpu(), _Cuda()

    def targets(self):
        return [Target(*row) for row in _tile.targets()]


backends = _Backends()
