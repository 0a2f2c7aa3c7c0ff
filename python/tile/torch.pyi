from typing import Any, Callable, Sequence

from tile import Kernel

def op(name: str, kernel: Kernel, *, backward: Kernel | Sequence[Kernel] | Callable[..., Any] | None = None,
       setup_context: Callable[..., Any] | None = None, fake: Callable[..., Any] | None = None, vmap: bool = True,
       **settings: Any) -> Callable[..., Any]: ...
