"""The way of a launch from Python to the driver, with PyTorch's tensors on a GPU that is not there: tests/gpu/fake is the driver,
tests/python/fake the runtime. What kernels compute is not tested: they do nothing.

usage: test_fake_gpu.py BUILD-FOLDER [--measure]     with --measure, nanoseconds of a call beside C's, on that driver"""
import ctypes
import os
import pathlib
import subprocess
import sys
import sysconfig
import unittest

HERE = pathlib.Path(__file__).resolve().parent


def start_again(build):
    """This program once more, with the fakes before all else."""
    folder = build / "fake_python"
    includes = sorted(pathlib.Path(sysconfig.get_paths()["purelib"]).glob("nvidia/cu*/include"))
    driver = build / "fake_cuda" / "libcuda.so.1"
    if not includes or not driver.exists():
        print(f"skipped: PyTorch without CUDA's headers, or no {driver}")
        sys.exit()
    folder.mkdir(exist_ok=True)
    library = folder / "libfake_runtime.so"
    subprocess.run(["cc", "-std=gnu17", "-O2", "-shared", "-fPIC", "-w", f"-I{includes[-1]}", HERE / "fake" / "fake_runtime.c", "-o",
                    library, driver], check=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(driver.parent), "LD_PRELOAD": str(library), "FAKE_CUDA": "devices=2",
                   "TILE_CACHE_DIR": "", "TILE_FAKE_GPU": "1"}
    sys.exit(subprocess.run([sys.executable, __file__, *sys.argv[1:]], env=environment).returncode)


if __name__ == "__main__" and "TILE_FAKE_GPU" not in os.environ:
    start_again(pathlib.Path(sys.argv[1]).resolve())

import torch

import tile
from test_cuda import TEXT, launch_in_c, repeat

fake = ctypes.CDLL("libcuda.so.1")


class Launch(ctypes.Structure):
    _fields_ = [("kernel", ctypes.c_char_p), ("context", ctypes.c_void_p), ("stream", ctypes.c_void_p)]


class State(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("allocations", "libraries", "events", "r0", "r1", "r2", "r3", "depth", "calls",
                                                  "launches", "cubins", "violations")]


fake.fake_cuda_launch.restype = ctypes.POINTER(Launch)
fake.fake_cuda_state.restype = State
fake.fake_cuda_primary.restype = ctypes.c_void_p


def rand(*shape, device="cuda:0"):
    return torch.zeros(*shape, device=device)


class Foreign:
    """An array of a library that shows no stream, as JAX: DLPack alone says when its memory may be read, and is kept."""

    def __init__(self, tensor):
        self.tensor, self.streams = tensor, []

    def __dlpack_device__(self):
        return 2, self.tensor.device.index

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        return torch.utils.dlpack.to_dlpack(self.tensor)


def waits(function):
    """(stream that waits, stream that it waits for) while the function runs."""
    runtime, found = ctypes.CDLL(os.environ["LD_PRELOAD"]), []
    first = runtime.fake_waits(1 << 30, None, None)
    function()
    for number in range(first, runtime.fake_waits(1 << 30, None, None)):
        there, what = ctypes.c_void_p(), ctypes.c_void_p()
        runtime.fake_waits(number, ctypes.byref(there), ctypes.byref(what))
        found.append((there.value, what.value))
    return found


class FakeGpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.m = tile.compile(TEXT)

    def tearDown(self):
        self.assertEqual(fake.fake_cuda_state().violations, 0)

    def launch(self, function):
        """The stream and context of the only launch."""
        before = fake.fake_cuda_state().launches
        function()
        self.assertEqual(fake.fake_cuda_state().launches, before + 1)
        found = fake.fake_cuda_launch(before)[0]
        return found.stream, found.context

    def test_the_current_stream(self):
        x, y, z = rand(100), rand(100), rand(100)
        bound = self.m.add.bind(x, y, z)
        calls = (lambda: self.m.add(x, y, z), lambda: self.m.add(x, y), bound)
        for _ in range(200):
            self.m.add(x, y, z), self.m.add(x, y)
        for call in calls:
            self.assertEqual(self.launch(call)[0], None)
        for stream in (torch.cuda.Stream(), torch.cuda.Stream()):
            with torch.cuda.stream(stream):
                for call in calls:
                    self.assertEqual(self.launch(call)[0], stream.cuda_stream)
        self.assertEqual(self.launch(calls[0])[0], None)

    def test_the_device_of_the_tensors(self):
        """Whatever the current device is."""
        for index in (0, 1):
            x, y, z = (rand(100, device=f"cuda:{index}") for _ in range(3))
            stream = torch.cuda.Stream(device=index)
            for call in (lambda: self.m.add(x, y), lambda: self.m.add(x, y, z), lambda: self.m.add(x, y, z)):
                for current in (0, 1):
                    with torch.cuda.device(current):
                        self.assertEqual(self.launch(call)[1], fake.fake_cuda_primary(index))
                with torch.cuda.stream(stream):
                    self.assertEqual(self.launch(call), (stream.cuda_stream, fake.fake_cuda_primary(index)))

    def test_other_devices_are_refused(self):
        x, y = rand(100), rand(100, device="cuda:1")
        for args, name in (((x, y), "y"), ((y, x), "y"), ((x, torch.zeros(100)), "y"), ((torch.zeros(100), x), "y")):
            with self.assertRaises(tile.ArgumentError) as caught:
                self.m.add(*args)
            self.assertEqual((caught.exception.argument, caught.exception.code), (name, "DEVICE"))
        with self.assertRaises(tile.ArgumentError) as caught:
            self.m.add(x, x, y)
        self.assertEqual((caught.exception.argument, caught.exception.code), ("z", "DEVICE"))

    def test_arrays_of_several_libraries_are_ordered(self):
        """The launch is on the first array's stream; what other libraries have queued comes before, and what they queue behind."""
        x, y, z, stream = rand(100), Foreign(rand(100)), rand(100), torch.cuda.Stream()
        bound = self.m.add.bind(y, x, z)
        with torch.cuda.stream(stream):
            made = waits(lambda: self.assertEqual(self.launch(lambda: self.m.add(x, y, z))[0], stream.cuda_stream))
            self.assertEqual((made, y.streams[-1]), ([], stream.cuda_stream))
            made = waits(lambda: self.assertEqual(self.launch(lambda: self.m.add(x, y))[0], stream.cuda_stream))
            self.assertEqual((made, y.streams[-1]), ([], stream.cuda_stream))
            for call in (lambda: self.m.add(y, x, z), lambda: self.m.add(y, x, z=z), bound, tile.plan(bound)):
                made = waits(lambda: self.assertEqual(self.launch(call)[0], None))
                self.assertEqual((made, y.streams[-1]), ([(None, stream.cuda_stream), (stream.cuda_stream, None)], 1))
            self.assertEqual(waits(lambda: self.m.add(x, x, z)), [])
        self.assertEqual(waits(lambda: self.m.add(y, x, z)), [])

    def test_arrays_without_streams_are_kept(self):
        """Until the launch has run: their library would give their memory to others."""
        from tile import _streams

        x, y, z = rand(100), Foreign(rand(100)), rand(100)
        runtime = ctypes.CDLL(os.environ["LD_PRELOAD"])
        self.m.add(x, y, z)
        runtime.fake_events_pass(0)
        for count in (1, 2, 3):
            self.m.add(x, y, z)
            self.assertGreaterEqual(len(_streams._kept), count)
        runtime.fake_events_pass(1)
        self.m.add(x, y, z)
        self.assertEqual(len(_streams._kept), 1)
        other, result = Foreign(rand(100)), Foreign(rand(100))
        before = len(_streams._kept)
        self.launch(lambda: self.m.add(y, other, result))  # nobody has events: it waits
        self.assertEqual((len(_streams._kept), result.streams), (before, [1, 1]))

    def test_a_plan_for_several_devices(self):
        parts = [self.m.add.bind(*(rand(100, device=f"cuda:{index}") for _ in range(3))) for index in (0, 1)]
        before = fake.fake_cuda_state().launches
        tile.plan(*parts)()
        found = [fake.fake_cuda_launch(before + i)[0].context for i in (0, 1)]
        self.assertEqual(found, [fake.fake_cuda_primary(0), fake.fake_cuda_primary(1)])

    def test_parameters_that_require_gradients(self):
        x = torch.nn.Parameter(rand(100))
        with self.assertRaises(tile.ArgumentError) as caught:
            self.m.add(x, x.data)
        self.assertEqual(caught.exception.argument, "x")
        with torch.no_grad():
            self.launch(lambda: self.m.add(x, x))


def measure():
    import statistics
    import tempfile

    add = tile.compile(TEXT).add
    x, y, z = (rand(1024) for _ in range(3))
    names = {**locals(), "bound": add.bind(x, y, z)}
    rows = {"tile": repeat("add(x, y, z)", names), "tile, bound": repeat("bound()", names), "nothing": repeat("pass", names)}
    with tempfile.TemporaryDirectory() as folder:
        rows["C"] = launch_in_c(folder, tile._module.for_gpu(add, 0), (x, y, z))
        samples = {name: [run(200) for _ in range(200)] for name, run in rows.items()}
    for name, found in samples.items():
        print(f"{name:12} {statistics.median(found):6.0f} ns a call, at least {min(found):6.0f}")


if __name__ == "__main__":
    if "--measure" in sys.argv:
        measure()
    else:
        unittest.main(argv=sys.argv[:1])
