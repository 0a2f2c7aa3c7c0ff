"""What type checkers see of the package: checked, not run."""
import numpy as np

import tile
import tile.jax
import tile.torch

module: tile.Module = tile.compile("kernel f(x: inout f32[N]) { grid n in tiles(N, 8) { x[n] = x[n] + 1 } }", BM=4)
kernel: tile.Kernel = module.f
array = np.ones(8, np.float32)
kernel(array)
bound: tile.Bound = kernel.bind(array)
bound()
names: list[str] = [parameter.name for parameter in kernel.parameters]
launches: int = kernel.stats.launches
text: str = kernel.emit("asm", T="f32")
with tile.config(deterministic=True):
    other = tile.load("softmax.tile")["softmax"].with_settings(BM=4)
try:
    other(array)
except tile.ArgumentError as error:
    place: str | None = error.argument
except tile.CompileError as error:
    line: int | None = error.lineno
tile.backends.deterministic = True
share: float = kernel.bench(array).share
best: dict[str, int] = kernel.tune(array, progress=True).best
operator = tile.torch.op("mine::f", kernel, vmap=False)
result = tile.jax.call(kernel, array)
tile.plan(bound, bound)()
