from typing import Any

from tile import Kernel

def call(kernel: Kernel, *arguments: Any, vmap_method: str = "sequential", **settings: Any) -> Any: ...
