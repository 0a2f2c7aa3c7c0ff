from os import PathLike
from types import TracebackType
from typing import Any, Callable, Iterable, Mapping, Sequence

from tile.bench import Result, Tuned

__version__: str

class Error(Exception):
    status: str | None

class CompileError(Error, SyntaxError):
    diagnostics: Sequence[Mapping[str, Any]]
    report: str

class ArgumentError(Error, ValueError):
    kernel: Kernel | None
    argument: str | None
    index: int | None
    code: str | None

class SettingError(Error, ValueError): ...

class Parameter:
    name: str
    access: str | None
    type: str
    dtype: str | None
    dimensions: tuple[str, ...]

class Setting:
    name: str
    kind: str
    allowed: str
    value: str | None
    default: str | None
    family: str | None
    types: tuple[str, ...]

class Stats:
    launches: int
    hits: int
    misses: int
    variants: int
    evictions: int
    compile_ns: int
    guard_ns: int

class Bound:
    kernel: Kernel
    arguments: tuple[Any, ...]
    def __call__(self) -> None: ...

class Kernel:
    __name__: str
    __qualname__: str
    name: str
    signature: str
    doc: str
    prints: bool
    is_gpu: bool
    module: Module
    parameters: tuple[Parameter, ...]
    settings: tuple[Setting, ...]
    stats: Stats
    def __call__(self, *arguments: Any, **settings: Any) -> Any: ...
    def with_settings(self, **settings: Any) -> Kernel: ...
    def bind(self, *arguments: Any, **arguments_by_name: Any) -> Bound: ...
    def prepare(self, *arguments: Any, **settings: Any) -> None: ...
    def explain(self, *arguments: Any) -> str: ...
    def emit(self, stage: str = "asm", *, target: str | None = None, after: str | None = None, general: bool = False,
             **settings: Any) -> str: ...
    def layouts(self, *, target: str = "sm_90a", **settings: Any) -> list[Any]: ...
    def bench(self, *arguments: Any, flops: float | None = None, seconds: float = 0.5) -> Result: ...
    def tune(self, *arguments: Any, progress: bool = False, seconds: float = 0.05, most: int = 256) -> Tuned: ...

class Module:
    source: str
    file: str | None
    settings: dict[str, str]
    target: str | None
    warnings: str
    kernels: dict[str, Kernel]
    def __init__(self, source: str, file: str | None = None, settings: Mapping[str, Any] | None = None,
                 target: str | None = None, flags: int = 0) -> None: ...
    def __getitem__(self, name: str) -> Kernel: ...
    def __getattr__(self, name: str) -> Kernel: ...
    def with_settings(self, **settings: Any) -> Module: ...

class _Stdlib:
    def __getattr__(self, name: str) -> Kernel: ...
    def __getitem__(self, path: str) -> Module: ...

stdlib: _Stdlib

def compile(source: str, *, file: str | None = None, debug: bool = False, contract: bool = True,
            target: str | None = None, **settings: Any) -> Module: ...
def load(path: str | PathLike[str], *, debug: bool = False, contract: bool = True, target: str | None = None,
         **settings: Any) -> Module: ...
def plan(*bound: Bound) -> Bound: ...
def load_ipython_extension(shell: Any) -> None: ...

class observe:
    def __init__(self, before: Callable[[str, int], Any] | None = None,
                 after: Callable[[str, int], Any] | None = None) -> None: ...
    def __enter__(self) -> observe: ...
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None: ...

class config:
    def __init__(self, *, deterministic: bool = ..., allow_tf32: bool = ..., cpu_capability: str | None = ...,
                 on_miss: str | None = ..., variant_limit: int = ..., log: str | Iterable[str] = ...,
                 tuning: str | None = ..., imports: Iterable[str | PathLike[str]] = ...) -> None: ...
    def __enter__(self) -> config: ...
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None: ...

class _Target:
    name: str
    description: str
    usable: bool
    why_not: str | None

class _Cpu:
    capability: str | None
    @property
    def threads(self) -> int: ...
    def is_available(self) -> bool: ...

class _Cuda:
    allow_tf32: bool
    def is_available(self) -> bool: ...

class _Backends:
    deterministic: bool
    on_miss: str | None
    variant_limit: int
    log: str | Iterable[str]
    tuning: str | None
    imports: Iterable[str | PathLike[str]]
    cpu: _Cpu
    cuda: _Cuda
    def targets(self) -> list[_Target]: ...

backends: _Backends
