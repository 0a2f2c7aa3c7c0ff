"""The order of a launch on a GPU whose arrays are of several libraries, each of which has a current stream of its own.

The launch is on the current stream of the first array's library. Before it, that stream waits for what the other libraries have
queued on theirs; behind it, theirs wait for it, so that nobody reads a result too early, or takes an argument's memory for
something else while the kernel reads it. JAX shows no stream: DLPack lets it order what has been queued before the launch, and its
arrays are kept until the launch has run, so that their memory is not given to anything else before."""

import threading

from tile import _tile
from tile._arrays import root_of

_kept = []  # (event, capsules): what launches may still read
_lock = threading.Lock()


class _Torch:
    """Streams and events of PyTorch, of the device whose stream is `stream`, an address, or 0."""

    def __init__(self, device, stream):
        import torch

        self.torch, self.device = torch, torch.device("cuda", device)
        self.stream = torch.cuda.ExternalStream(stream, device=device) if stream else torch.cuda.default_stream(device)
        self.current = torch.cuda.current_stream(device)
        self.is_other = self.current.cuda_stream != stream

    def before(self):
        self.stream.wait_stream(self.current)

    def behind(self):
        self.current.wait_stream(self.stream)

    def event(self):
        event = self.torch.cuda.Event()
        event.record(self.stream)
        return event.query


class _Cupy:
    def __init__(self, device, stream):
        import cupy

        self.cuda = cupy.cuda
        with cupy.cuda.Device(device):
            self.stream = cupy.cuda.ExternalStream(stream, device) if stream else cupy.cuda.Stream.null
            self.current = cupy.cuda.get_current_stream()
        self.is_other = self.current.ptr != stream

    def before(self):
        self.stream.wait_event(self.current.record())

    def behind(self):
        self.current.wait_event(self.stream.record())

    def event(self):
        event = self.stream.record()
        return lambda: event.done


_LIBRARIES = {"torch": _Torch, "cupy": _Cupy}


def _on_gpu(array):
    return hasattr(array, "__dlpack_device__") and array.__dlpack_device__()[0] == 2


def before(arrays, device, stream):
    """Orders what is queued for these arrays before what is launched on the stream from now on. What it returns goes to
    `behind`; None: nothing is to be done there."""
    arrays = [array for array in arrays if _on_gpu(array)]
    roots = {root_of(array) for array in arrays}
    libraries = [_LIBRARIES[name](device, stream) for name in sorted(roots & _LIBRARIES.keys())]
    capsules = [array.__dlpack__(stream=stream or 1) for array in arrays if root_of(array) not in _LIBRARIES]
    others = [library for library in libraries if library.is_other]
    for library in others:
        library.before()
    return (libraries, others, capsules) if others or capsules else None


def behind(found, device, stream):
    """The same in the other direction, when the launch is queued."""
    libraries, others, capsules = found
    for library in others:
        library.behind()
    if capsules and not libraries:  # nobody has events
        _tile.synchronize(device, stream)
    elif capsules:
        has_passed = libraries[0].event()
        with _lock:
            _kept[:] = [row for row in _kept if not row[0]()] + [(has_passed, capsules)]
