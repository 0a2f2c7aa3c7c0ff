"""Kernels on NumPy arrays: launches of several threads, signals, processes, and memory."""
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import unittest
import weakref

import numpy as np

import tile
from test_numpy import Case, TEXT, rand


class Threads(Case):
    def test_eight_launch_and_one_compiles(self):
        x = rand(64, 256)
        wanted, wrong, stop = x + x, [], threading.Event()

        def launch():
            z = np.empty_like(x)
            while not stop.is_set():
                self.m.add(x, x, z)
                if not (z == wanted).all():
                    wrong.append(1)

        threads = [threading.Thread(target=launch) for _ in range(8)]
        for thread in threads:
            thread.start()
        for i in range(6):
            tile.compile(TEXT + f"\nkernel k{i}(x: inout f32[N]) {{ grid n in tiles(N, 32) {{ x[n] = x[n] + {i} }} }}")[
                f"k{i}"](rand(100))
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_everything_at_once(self):
        """What threads share: a module, its kernels and settings, types of arrays that are met for the first time."""
        m, wrong, until = tile.compile(TEXT), [], time.perf_counter() + 1.5

        def work(seed):
            choose = np.random.default_rng(seed)
            try:
                while time.perf_counter() < until:
                    shape = tuple(int(n) for n in choose.integers(1, 40, 2))
                    x = choose.standard_normal(shape).astype(choose.choice(["float32", "float64", "int32"]))
                    x = x.view(type("Own", (np.ndarray,), {})) if choose.random() < 0.1 else x
                    what = choose.integers(7)
                    if what == 0:
                        good = (m.add(x, x) == x + x).all()
                    elif what == 1:
                        bound = m.add.bind(x, x)
                        bound()
                        good = (bound.arguments[2] == x + x).all()
                    elif what == 2:
                        good = (m.add(x, x, BM=int(choose.choice([1, 4]))) == x + x).all()
                    elif what == 3:
                        good = pickle.loads(pickle.dumps(m.add)).signature == m.add.signature and m.add.stats.launches >= 0
                    elif what == 4:
                        try:
                            m.add(x, x[:, :-1], x)
                            good = False
                        except tile.ArgumentError as error:
                            good = error.argument in ("y", "z")
                    elif what == 5:
                        with tile.observe(lambda name, status: None):
                            good = (m.add(x.T, x.T) == (x + x).T).all()
                    else:
                        good = "launches" in m.add.explain(x, x, x.copy())
                    if not good:
                        wrong.append((int(what), shape, x.dtype))
            except Exception as error:
                wrong.append(repr(error))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong[:5], [])

    def test_the_gil_is_released_while_compiling(self):
        m = tile.compile(TEXT)
        ticks, stop = [], threading.Event()

        def tick():
            while not stop.is_set():
                ticks.append(time.perf_counter())
                time.sleep(0.0005)

        thread = threading.Thread(target=tick)
        thread.start()
        time.sleep(0.01)
        start = time.perf_counter()
        m.add.with_settings(BN=256)(rand(5, 5), rand(5, 5))
        end = time.perf_counter()
        stop.set()
        thread.join()
        self.assertGreater(sum(start < t < end for t in ticks), 3)

    def test_interrupt_while_compiling(self):
        # Where a shell starts the tests in the background, SIGINT is ignored.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        timer = threading.Timer(0.005, lambda: os.kill(os.getpid(), signal.SIGINT))
        with self.assertRaises(KeyboardInterrupt):
            timer.start()
            for i in range(1000):
                tile.compile(TEXT + f"\n// {i}\n").add(rand(3, 3), rand(3, 3))
        timer.join()
        x = rand(3, 3)
        np.testing.assert_array_equal(self.m.add(x, x), x + x)

    def test_fork(self):
        x = rand(300, 300)
        self.m.add(x, x)
        child = os.fork()
        if child == 0:
            good = (self.m.add(x, x) == x + x).all() and (tile.compile(TEXT).map(x[0]) == x[0] * 2).all()
            os._exit(0 if good else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_exit_with_everything_alive(self):
        script = ("import threading, numpy as np, tile\n"
                  "m = tile.stdlib\nx = np.ones((8, 8), np.float32)\nm.softmax(x)\nb = m.softmax.bind(x)\nb()\n"
                  "t = threading.Thread(target=lambda: [m.softmax(x) for _ in range(100000)], daemon=True)\nt.start()\n")
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_reload(self):
        script = ("import importlib, numpy as np, tile\ntile.stdlib.softmax(np.ones((2, 2), np.float32))\n"
                  "importlib.reload(tile)\nprint(tile.stdlib.softmax(np.ones((2, 2), np.float32))[0, 0])\n")
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "0.5"), done.stderr)


class Memory(Case):
    def resident(self):
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def test_many_launches(self):
        x, z = rand(1, 16), np.zeros((1, 16), np.float32)
        counts = sys.getrefcount(x), sys.getrefcount(z), sys.getrefcount(self.m.add)
        for _ in range(10000):
            self.m.add(x, x, z)
        before = self.resident()
        for _ in range(int(os.environ.get("TILE_TEST_LAUNCHES", "1000000"))):
            self.m.add(x, x, z)
        for _ in range(20000):
            self.m.add(x, x)
        self.assertLess(self.resident() - before, 4 << 20)
        self.assertEqual((sys.getrefcount(x), sys.getrefcount(z), sys.getrefcount(self.m.add)), counts)

    def test_failures_leak_nothing(self):
        x, z = rand(1, 16), rand(1, 15)
        gc.collect()  # of what earlier tests left
        counts = sys.getrefcount(x), sys.getrefcount(z), sys.getrefcount(None)
        for _ in range(200):
            for args in ((x, x, z), (x, None, z), (x,), (x, x.T), (x, [1])):
                with self.assertRaises((tile.ArgumentError, TypeError)):
                    self.m.add(*args)
            with self.assertRaises(tile.ArgumentError):
                self.m.add.bind(x, x, z)
        del args
        gc.collect()
        self.assertEqual((sys.getrefcount(x), sys.getrefcount(z)), counts[:2])
        self.assertLess(abs(sys.getrefcount(None) - counts[2]), 100)

    def test_modules_are_released(self):
        dead = weakref.ref(tile.compile(TEXT))
        gc.collect()
        self.assertIsNone(dead())
        m = tile.compile(TEXT)
        kernel = m.twice
        dead = weakref.ref(m)
        del m
        kernel(rand(4))
        del kernel
        gc.collect()
        self.assertIsNone(dead())


if __name__ == "__main__":
    unittest.main()
