"""What a row of the breadth table is: a kernel, an element type, a shape; and a function that makes its arguments and says
what PyTorch computes in its place. Can be imported without PyTorch, so that a test can list the rows."""
try:
    import torch
except ImportError:  # only listed
    torch = None

TYPES = ("f32", "bf16")

# Matrices: past the L2 cache of any GPU, many short rows, few long ones, ragged. On CPUs a small one.
MATRICES = ((16384, 4096), (65536, 256), (32, 65536), (4093, 1037))
TINY_MATRIX = (5, 37)
VECTORS = ((1 << 26,), (1 << 20,), (1000003,))
TINY_VECTOR = (1003,)


class Case:
    """Arguments of the kernel in order, without those that its settings fix; which of them it writes (`updates`: also
    reads); a function of PyTorch with its inputs, and others that compute the same. Where it changes its inputs, these
    are copies. `error` compares in another way; `loose` is how far results may be off instead of what the type allows;
    `moved` are bytes, where the arguments are not what is read and written."""

    def __init__(self, arguments, results, function, *inputs, updates=(), also=(), error=None, loose=None, moved=None,
                 flops=None):
        self.arguments, self.results, self.function, self.inputs = arguments, tuple(results), function, inputs
        self.updates, self.also, self.error, self.loose, self.flops = tuple(updates), tuple(also), error, loose, flops
        self.moved = moved if moved is not None else self.bytes()

    def bytes(self):
        tensors = [a for a in self.arguments if not isinstance(a, (int, float))]
        return sum(size_of(t) for t in (*tensors, *self.updates))


def size_of(tensor):
    return tensor.numel() * tensor.element_size()


class Make:
    """Makes tensors on a device, of the row's type where no other is said."""

    def __init__(self, kind, device):
        self.name, self.device = kind, device
        self.kind = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[kind]

    def of(self, kind):
        return kind if kind is not None else self.kind

    def randn(self, *shape, kind=None, scale=1.0):
        return torch.randn(shape, device=self.device, dtype=self.of(kind)).mul_(scale)

    def rand(self, *shape, kind=None):
        return torch.rand(shape, device=self.device, dtype=self.of(kind))

    def empty(self, *shape, kind=None):
        return torch.empty(shape, device=self.device, dtype=self.of(kind))

    def zeros(self, *shape, kind=None):
        return torch.zeros(shape, device=self.device, dtype=self.of(kind))

    def ints(self, low, high, *shape, kind=None):
        return torch.randint(low, high, shape, device=self.device, dtype=kind or torch.int64)

    def listed(self, values, kind=None):
        return torch.tensor(values, device=self.device, dtype=kind or torch.int32)

    def f32(self, *shape, scale=1.0):
        """Numbers that the row's type has, as f32: what is f32 in Tile and of the row's type in PyTorch is the same."""
        return torch.randn(shape, device=self.device).mul_(scale).to(self.kind).float()


class Row:
    def __init__(self, name, kind, shape, build, settings, file):
        self.name, self.kind, self.shape, self.build, self.settings, self.file = name, kind, shape, build, settings, file

    def key(self):
        return f"{self.name} {self.kind} {'x'.join(map(str, self.shape))}"

    def kernel(self):
        return self.name.split(":")[1].split("/")[0]


class Table:
    """Rows of the kernels of a folder."""

    def __init__(self, folder, fixed=None):
        self.folder, self.entries = folder, []
        self.fixed = fixed or {}

    def add(self, name, shapes=MATRICES, tiny=TINY_MATRIX, types=TYPES, **settings):
        """For a function (make, *shape) -> Case. `settings` fix constants and functions; a value that is `T` is the
        row's type."""
        def note(build):
            self.entries.append((name, tuple(shapes), tiny, tuple(types), settings, build))
            return build
        return note

    def names(self):
        return [entry[0] for entry in self.entries]

    def rows(self, small):
        for name, shapes, tiny, types, settings, build in self.entries:
            for kind in types:
                chosen = {key: kind if value == "T" else value for key, value in settings.items()}
                for shape in ((tiny,) if small else shapes):
                    yield Row(name, kind, shape, build, chosen, f"{self.folder}/{name.split(':')[0]}.tile")
