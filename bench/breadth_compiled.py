"""torch.compile in the table of breadth.py: processes fill Inductor's cache, all at once, before one measures."""
import os
import signal
import subprocess
import sys
import threading

SECONDS = 25  # for a row's code; PyTorch's loops over thousands of rows would be traced for minutes


class TooLong(Exception):
    pass


def limited(call, seconds=SECONDS):
    """The call; the first time it may take so long, and else raises TooLong. For the main thread."""
    done = False

    def stop(*_):
        raise TooLong(f"not compiled within {seconds} s")

    def run():
        nonlocal done
        if done:
            return call()
        before = signal.signal(signal.SIGALRM, stop)
        signal.alarm(seconds)
        try:
            result = call()
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
        done = True
        return result

    return run


def peer(torch, case):
    """A call of the case's function as torch.compile makes it."""
    torch._dynamo.reset()
    compiled = torch.compile(case.function, dynamic=False, mode="max-autotune-no-cudagraphs")
    return limited(lambda: compiled(*case.inputs))


def fill(rows, build):
    """In a process of its own: compiles the rows one behind the other, and prints those that cannot be."""
    for row in rows:
        try:
            build(row)()
        except Exception as error:  # whatever PyTorch says: the row goes without
            print(f"{row.key()}\t{type(error).__name__}", flush=True)


def fill_all(arguments):
    """Fills the cache by as many processes as there are processors; the keys of the rows that cannot be compiled."""
    count = os.cpu_count() or 1
    environment = dict(os.environ, TORCHINDUCTOR_COMPILE_THREADS="1")
    processes = [subprocess.Popen([sys.executable, sys.argv[0], *arguments, f"--fill={i + 1}/{count}"], env=environment,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for i in range(count)]
    failed = set()
    readers = [threading.Thread(target=lambda p=p: failed.update(line.split("\t")[0] for line in p.stdout if "\t" in line))
               for p in processes]
    for reader in readers:
        reader.start()
    for process, reader in zip(processes, readers):
        reader.join()
        process.wait()
    return failed
