"""Products drawn at random (products.py), on what this machine has, beside NumPy's: a kernel for each, compiled for it alone.

usage: test_products.py [--count=N] [--seed=N] [--most=N] [--targets=LIST] [--jobs=N]
  --count=N        products of each target (24)
  --seed=N         the first one's number (1)
  --most=N         the largest extent (200)
  --targets=LIST   of cpu, avx2, avx512, .. which run in this process, cuda by PyTorch, and emulated.sm_90a, .. by `tilec` (what there is)
  --jobs=N         this many at once (as many as there are processors)
  --print          the text of each product that is wrong, too"""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

os.environ["TILE_CACHE_DIR"] = ""

import numpy as np

import tile
from products import BF16, E4M3, E5M2, NAMES, Product

OPTIONS = None
BITS = {BF16: np.dtype("uint16"), E4M3: np.dtype("uint8"), E5M2: np.dtype("uint8")}


class Wrong(Exception):
    pass


TILEC = pathlib.Path(tile.__file__).resolve().parents[2] / "bin/tilec"  # of the build that has made the package


def run_here(product, target):
    """On NumPy's arrays."""
    whole = product.out.whole.copy()
    kernel = tile.compile(product.text(), target=target).product
    kernel(*[product.inputs[name].array() for name, _, _ in product.parameters], *product.scalars.values(), whole[product.out.index])
    return whole


def run_cuda(product, _):
    """On PyTorch's tensors, which are views of the same kind."""
    import torch

    def moved(view):
        bits = BITS.get(view.whole.dtype)
        whole = torch.from_numpy(view.whole.view(bits) if bits else view.whole.copy()).cuda()
        return whole.view(TORCH[NAMES[view.whole.dtype]]) if bits else whole

    TORCH = {"bf16": torch.bfloat16, "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2}
    whole = moved(product.out)
    kernel = tile.compile(product.text(), target="cuda").product
    inputs = [moved(product.inputs[name])[product.inputs[name].index] for name, _, _ in product.parameters]
    kernel(*inputs, *product.scalars.values(), whole[product.out.index])
    torch.cuda.synchronize()
    bits = BITS.get(product.result)
    return whole.view(torch.uint16).cpu().numpy().view(product.result) if bits else whole.cpu().numpy()


def run_emulated(product, target):
    """In the executor of the target's machine form, with operands that files have; the result is an array of its own."""
    def part(index):
        return "[" + ",".join(f"{s.start}:{s.stop}:{s.step}" for s in index) + "]"

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "product.tile").write_text(product.text())
        words = [str(TILEC), "run", f"{folder}/product.tile:product", f"--target={target.removeprefix('emulated.')}", "--emulate", "-q"]
        for parameter, kind, _ in product.parameters:
            view = product.inputs[parameter]
            bits = BITS.get(view.whole.dtype)
            np.save(folder / f"{parameter}.npy", view.whole.view(bits) if bits else view.whole)
            words.append(f"{parameter}={folder}/{parameter}.npy" + (f":{kind}" if bits else "") + part(view.index))
        words += [f"{key}={value}" for key, value in product.scalars.items()]
        shape = product.out.array().shape
        words.append(f"c={folder}/c.npy:{NAMES[product.result]}[{','.join(map(str, shape))}]")
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            raise Wrong(f"tilec ends with {done.returncode}: {done.stderr.strip()[:600]}")
        found = np.load(folder / "c.npy")
        whole = product.out.whole.copy()
        whole[product.out.index] = found.view(product.result) if product.result in BITS else found
        return whole


def runner(target):
    return run_emulated if target.startswith("emulated.") else run_cuda if target == "cuda" else run_here


def check(target, seed, most):
    """What is wrong with a product, or what the compiler says of its tiles."""
    product = Product(seed, most)
    try:
        problem = product.wrong(runner(target)(product, target))
    except (Wrong, tile.Error) as error:
        problem = str(error)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    if problem and OPTIONS.print:
        problem += "\n" + product.text()
    return problem and f"{target}, --seed={seed}: {product.about()}\n    {problem}"


def default_targets():
    """What runs here; of GPUs that do not, the executor of their machine form."""
    usable = [target.name for target in tile.backends.targets() if target.usable]
    return [*(name for name in ("avx2", "cpu", "cuda") if name in usable), "emulated.sm_80", "emulated.sm_90a"]


class Products(unittest.TestCase):
    def test_products(self):
        with concurrent.futures.ThreadPoolExecutor(OPTIONS.jobs) as pool:
            for target in OPTIONS.targets:
                found = list(pool.map(lambda seed: check(target, seed, OPTIONS.most), range(OPTIONS.seed, OPTIONS.seed + OPTIONS.count)))
                problems = [problem for problem in found if problem]
                print(f"{target}: {len(found)} products, {len(problems)} wrong", flush=True)
                for problem in problems:
                    with self.subTest(target=target):
                        self.fail(problem)


def main():
    global OPTIONS
    parser = argparse.ArgumentParser(usage=__doc__)
    for name, kind, value in (("count", int, 24), ("seed", int, 1), ("most", int, 200), ("jobs", int, os.cpu_count())):
        parser.add_argument(f"--{name}", type=kind, default=value)
    parser.add_argument("--targets", type=lambda text: text.split(","), default=default_targets())
    parser.add_argument("--print", action="store_true")
    OPTIONS = parser.parse_args()
    unittest.main(argv=[sys.argv[0]])


if __name__ == "__main__":
    main()
