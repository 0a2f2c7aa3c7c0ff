"""The experiment of latency.c in PyTorch: eager, torch.compile static (dynamic=False, fixed shape) and dynamic
(dynamic=True, varying shapes). Prints lines: name, N, "fixed" or "varying", microseconds a call.

usage: latency_torch.py DEVICE [CALLS]     (cuda or cpu; 300)"""
import importlib.util
import os
import statistics
import sys
import tempfile
import time

import torch

OPS = ["x = x + 0.1", "x = torch.sin(x)", "x = x * 1.1", "x = torch.cos(x)", "x = x + 0.2", "x = torch.relu(x)",
       "x = x - 0.1", "x = torch.exp(x * 0.5)", "x = x + 0.3", "x = torch.sigmoid(x)", "x = x * 1.2",
       "x = torch.sin(x)", "x = x + 0.4", "x = torch.cos(x)", "x = x - 0.2", "x = torch.relu(x)", "x = x + 0.5",
       "x = torch.exp(x * 0.4)", "x = x * 1.3", "x = torch.sigmoid(x)"]
NS = [1, 5, 10, 15, 20, 25, 30]


def load(folder):
    """Dynamo passes over code without a file."""
    path = os.path.join(folder, "tiny_models.py")
    with open(path, "w") as file:
        file.write("import torch\n")
        for n in NS:
            body = "".join("    %s\n" % OPS[i % len(OPS)] for i in range(n))
            file.write("\n\ndef f%d(x):\n%s    return x.sum()\n" % (n, body))
    spec = importlib.util.spec_from_file_location("tiny_models", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["tiny_models"] = module
    spec.loader.exec_module(module)
    return module


def measure(function, inputs, device, calls):
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    for i in range(30):
        function(inputs[i % len(inputs)])
    wait()
    batches = []
    for _ in range(calls // 100):
        begin = time.perf_counter()
        for i in range(100):
            function(inputs[i % len(inputs)])
        wait()
        batches.append((time.perf_counter() - begin) / 100 * 1e6)
    return statistics.median(batches)


def main(device, calls):
    shapes = {"fixed": [(8, 16)] * 10, "varying": [((i % 10) + 4, 16) for i in range(10)]}
    inputs = {name: [torch.randn(*shape, device=device) for shape in list_] for name, list_ in shapes.items()}
    with tempfile.TemporaryDirectory() as folder:
        module = load(folder)
        for n in NS:
            function = getattr(module, "f%d" % n)
            for name in inputs:
                print("eager", n, name, "%.3f" % measure(function, inputs[name], device, calls), flush=True)
            for peer, name, dynamic in (("compile-static", "fixed", False), ("compile-dynamic", "varying", True)):
                torch._dynamo.reset()
                compiled = torch.compile(function, dynamic=dynamic)
                print(peer, n, name, "%.3f" % measure(compiled, inputs[name], device, calls), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 300)
