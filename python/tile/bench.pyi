from typing import Any, Sequence

from tile import Kernel

class Result:
    kernel: Kernel
    seconds: float
    bytes: int
    rate: float
    copy_rate: float
    flops: float | None
    flop_rate: float | None
    peak: float | None
    limit: str
    share: float

class Tuned:
    kernel: Kernel
    best: dict[str, int]
    points: list[tuple[dict[str, int], float | None]]
    def __call__(self, *arguments: Any, **keywords: Any) -> Any: ...

def run(kernel: Kernel, arguments: Sequence[Any], *, flops: float | None = None, seconds: float = 0.5) -> Result: ...
def tune(kernel: Kernel, arguments: Sequence[Any], *, progress: bool = False, seconds: float = 0.05,
         most: int = 256) -> Tuned: ...
