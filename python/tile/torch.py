"""Kernels as operators of PyTorch.

    softmax = tile.torch.op("mine::softmax", m.softmax, backward=m.softmax_backward)
    y = softmax(x)                          # or torch.ops.mine.softmax(x)

The operator takes the kernel's parameters that are not `out`, and returns those that are. It has fake tensors, so that
torch.compile traces through it without a break, autograd where `backward` is given, and vmap, by one call with more rows where
rows are independent, else by one for each element of the batch. docs/python-torch.md tells more."""

import torch
from torch.autograd import forward_ad
from torch._functorch.autograd_function import enable_single_level_autograd_function

from tile import _rows, _shapes, _tile
from tile._arrays import BY_NAME, find_type
from tile._module import Kernel

__all__ = ["op"]

_libraries = {}
_dtypes = {row[0]: getattr(torch, row[3][0]) for row in BY_NAME.values() if hasattr(torch, row[3][0])}


def _library(namespace, short):
    """A library for one operator and its backward pass, which lives as long as the process, or until the same operator is
    registered again, as when a notebook's cell is run once more: it replaces the former, as with torch.library.custom_op."""
    former = _libraries.pop((namespace, short), None)
    if former is not None:
        former._destroy()
    made = _libraries[namespace, short] = torch.library.Library(namespace, "FRAGMENT")
    return made


def _overload(namespace, short):
    """The operator as an object. PyTorch 2.15 and later can dispatch calls from Python to kernels in Python without their
    arguments' way through C++, as torch.library.custom_op has it do."""
    call = getattr(getattr(torch.ops, namespace), short).default
    if hasattr(call, "_enable_pyobj_dispatch"):
        call._enable_pyobj_dispatch(True)
    return call


# ---- schemas ----


def _scalar_type(parameter):
    name = parameter.dtype or "f32"
    return "bool" if name == "bool" else "float" if name.startswith(("f", "b")) else "SymInt"


def _schema(kernel):
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    arguments, results = [], []
    for p in kernel.parameters:
        if p.access == "out":
            results.append("Tensor")
        elif p.access is None:
            arguments.append(f"{_scalar_type(p)} {p.name}")
        else:
            arguments.append(f"Tensor{f'({next(letters)}!)' if p.access == 'inout' else ''} {p.name}")
    returned = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return f"({', '.join(arguments)}) -> {returned}"


# ---- fake tensors ----


def _make_fake(kernel):
    inputs = [p for p in kernel.parameters if p.access != "out"]

    def fake(*args):
        tensors = [value for parameter, value in zip(inputs, args) if parameter.access is not None]
        device = tensors[0].device if tensors else "cpu"
        made = [torch.empty(shape, dtype=_dtypes.get(dtype, dtype), device=device)
                for shape, dtype in _shapes.results(kernel, args)]
        return made[0] if len(made) == 1 else tuple(made) if made else None

    return fake


# ---- gradients ----


class _Backward:
    """A backward kernel, whose parameters are found by their names: its outputs `dx` are the gradients of inputs `x`, its
    inputs `dy` those of results `y`; others are inputs and results of the forward kernel."""

    def __init__(self, forward, backward):
        self.backward, self.kernel = backward, backward._detached()
        inputs = [p.name for p in forward.parameters if p.access != "out"]
        outputs = [p.name for p in forward.parameters if p.access == "out"]
        self.sources = []
        self.places = []  # of the inputs whose gradients it computes
        for p in backward.parameters:
            if p.access == "out":
                self.places.append(inputs.index(self._strip(p.name, inputs, backward)))
            elif p.access == "inout":
                raise ValueError(f"{backward.name}: {p.name} is inout; give backward as a function (ctx, *gradients)")
            elif p.name in inputs:
                self.sources.append(("input", inputs.index(p.name)))
            elif p.name in outputs:
                self.sources.append(("output", outputs.index(p.name)))
            else:
                self.sources.append(("gradient", outputs.index(self._strip(p.name, outputs, backward))))
        self.keeps = any(kind != "gradient" for kind, _ in self.sources)

    @staticmethod
    def _strip(name, names, backward):
        for prefix in ("d_", "d", "grad_"):
            if name.startswith(prefix) and name[len(prefix):] in names:
                return name[len(prefix):]
        raise ValueError(f"{backward.name}: {name} is neither an input nor a result of the forward kernel, nor the gradient "
                         f"(d..) of one: {', '.join(names)}; use a forward kernel that has it as a result, or give backward as a "
                         "function (ctx, *gradients)")

    def keep(self, ctx, tensors, inputs, outputs):
        for kind, i in self.sources:
            value = inputs[i] if kind == "input" else outputs[i] if kind == "output" else None
            if isinstance(value, torch.Tensor):
                tensors.append(value)
            elif value is not None:
                ctx.kept[i] = value

    def arguments(self, ctx, saved, gradients):
        return [gradients[i] if kind == "gradient" else ctx.kept[i] if kind == "input" and i in ctx.kept else next(saved)
                for kind, i in self.sources]


def _rules(forward, backward):
    """A rule for each backward kernel; None: backward is a function, or nothing."""
    kernels = (backward,) if isinstance(backward, Kernel) else backward
    if kernels is None or callable(kernels):
        return None
    rules = [_Backward(forward, k) for k in kernels]
    places = [place for rule in rules for place in rule.places]
    if len(set(places)) < len(places):
        raise ValueError(f"two backward kernels of {forward.name} compute the gradient of one input")
    return rules


def _register_backward_kernel(short, library, namespace, rule):
    """Its own operator, so that torch.compile sees the backward pass too."""
    library.define(short + _schema(rule.backward), tags=(torch.Tag.pt2_compliant_tag,))
    for key in ("CPU", "CUDA"):
        library.impl(short, rule.kernel, key)
    torch.library.register_fake(f"{namespace}::{short}", _make_fake(rule.backward), lib=library)
    compute = _overload(namespace, short)
    _register_autograd(library, short, compute, rule.kernel, _make_missing_backward(f"{namespace}::{short}"), None)
    torch.library.register_vmap(f"{namespace}::{short}", _make_vmap(rule.backward, compute), lib=library)
    return compute


def _register_backward(name, library, namespace, forward, rules):
    """The backward pass, and what is to be done behind the forward one. Results whose gradient no kernel takes have none: what
    depends on them would else lack their part of the gradient, and nobody would say so."""
    computes = [_register_backward_kernel(f"{name}_backward{i or ''}", library, namespace, rule) for i, rule in enumerate(rules)]
    inputs = sum(p.access != "out" for p in forward.parameters)
    taken = {i for rule in rules for kind, i in rule.sources if kind == "gradient"}
    untaken = [i for i in range(len(forward.parameters) - inputs) if i not in taken]
    keeps = any(rule.keeps for rule in rules)

    def run(ctx, *gradients):
        saved, result = iter(ctx.saved_tensors if keeps else ()), [None] * inputs
        for rule, compute in zip(rules, computes):
            arguments = rule.arguments(ctx, saved, gradients)
            if len(rules) > 1 and not any(ctx.needs_input_grad[place] for place in rule.places):
                continue
            made = compute(*arguments)
            for place, gradient in zip(rule.places, made if isinstance(made, tuple) else (made,)):
                result[place] = gradient
        return tuple(result)

    def setup(ctx, inputs, output):
        outputs = output if isinstance(output, tuple) else (output,)
        tensors, ctx.kept = [], {}
        for rule in rules:
            rule.keep(ctx, tensors, inputs, outputs)
        ctx.save_for_backward(*tensors)
        if untaken:
            ctx.mark_non_differentiable(*(outputs[i] for i in untaken))

    return run, setup if keeps or untaken else None


def _make_missing_backward(name):
    def backward(ctx, *gradients):
        raise RuntimeError(f"{name} has no backward pass: tile.torch.op takes one as backward")

    return backward


def _refuse_tangents(short, args):
    for value in args:
        if isinstance(value, torch.Tensor) and forward_ad.unpack_dual(value).tangent is not None:
            raise NotImplementedError(f"{short} has no derivative in forward mode: use torch.func.vjp, grad or jacrev")


def _register_autograd(library, short, call, launch, backward, setup, writes=False):
    """As torch.library.register_autograd does, at a fraction of its cost: plain tensors outside of all modes go straight to
    the kernel, unless it writes its inputs; everything else goes on through the dispatcher, below autograd."""
    below_autograd = torch._C._AutoDispatchBelowAutograd
    modes = (torch._C._len_torch_dispatch_stack, torch._C._are_functorch_transforms_active) if not writes else (lambda: True,)

    def below(*args):
        if forward_ad._current_level >= 0:
            _refuse_tangents(short, args)
        with below_autograd():
            return call(*args)

    dispatch = _tile.dispatch(launch, below, modes, forward_ad, (torch.Tensor, torch.nn.Parameter))

    def make_function(forward):
        # Each of the transforms of torch.func that are active comes here by itself; this is the base class for that.
        class Function(torch.autograd.function._SingleLevelFunction):
            pass

        def forward_and_setup(ctx, *args):
            output = forward(ctx, *args)
            setup(ctx, args, output)
            return output

        Function.forward = staticmethod(forward if setup is None else forward_and_setup)
        Function.backward = staticmethod(backward)
        Function.__name__ = Function.__qualname__ = f"tile.{short}"
        return Function.apply

    def forward_below(ctx, *args):
        with torch.enable_grad():  # which a Function turns off: of the next transform, if there is one
            return below(*args)

    apply_transformed = make_function(forward_below)

    def apply_below(*args):
        with enable_single_level_autograd_function():
            return apply_transformed(*args)

    dispatch.set(make_function(dispatch.forward), apply_below)
    library.impl(short, dispatch, "Autograd")


def _register_writes(library, short, call, places):
    """Tensors that an operator writes have another version then, by which autograd sees that a value which it kept is gone:
    without it gradients would be those of what is written."""
    below = torch._C._after_ADInplaceOrView_keyset

    def written(keys, *args):
        torch.autograd.graph.increment_version([args[i] for i in places])
        return call.redispatch(keys & below, *args)

    library.impl(short, written, "ADInplaceOrView", with_keyset=True)


# ---- batches ----


def _fold(inputs, lead, info, in_dims, args):
    """The arguments with the batch as more rows, or None."""
    folded = []
    for parameter, value, d in zip(inputs, args, in_dims):
        if parameter.name in lead:
            value = value.unsqueeze(0).expand(info.batch_size, *value.shape) if d is None else value.movedim(d, 0)
            folded.append(value.flatten(0, 1))
        elif d is not None:
            return None
        else:
            folded.append(value)
    return folded


def _make_vmap(kernel, call):
    inputs = [p for p in kernel.parameters if p.access != "out"]
    count = len(kernel.parameters) - len(inputs)

    def part(in_dims, args, i):
        return tuple(a if d is None else a.select(d, i) for a, d in zip(args, in_dims))

    def vmap(info, in_dims, *args):
        types = [find_type(a.dtype) for p, a in zip(inputs, args) if p.access is not None]
        lead = _rows.leading(kernel, [t[0] for t in types]) if all(types) else None
        folded = _fold(inputs, lead, info, in_dims, args) if lead else None
        if folded:
            made = call(*folded)
            parts = [y.unflatten(0, (info.batch_size, y.shape[0] // info.batch_size))
                     for y in (made if count > 1 else (made,))]
        else:
            rows = [call(*part(in_dims, args, i)) for i in range(info.batch_size)]
            parts = [torch.stack([row[k] if count > 1 else row for row in rows]) for k in range(count)]
        if count == 0:
            return None, None
        return (parts[0], 0) if count == 1 else (tuple(parts), (0,) * count)

    return vmap


def op(name, kernel, *, backward=None, setup_context=None, fake=None, vmap=True, **settings):
    """Registers a kernel as the operator "namespace::name", and returns it. An operator of that name which this function
    registered before is replaced.

    kernel         a tile.Kernel; settings are values for its generics, constants and tune names
    backward       a kernel that computes the gradients, or several, of which each computes some; parameters are found by
                   name: outputs `dx` for inputs `x`, inputs `dy` for results `y`, all else inputs and results of the
                   forward kernel. Results whose gradient none takes are not differentiable. Or a function
                   (ctx, *gradients) as torch.library.register_autograd takes it, with `setup_context`; it calls
                   operators, not kernels, so that torch.compile sees through it
    fake           a function that gives empty results for fake tensors, where shapes do not follow from names
    vmap           register vmap: as one call where the rows of the kernel are independent, else one for each element
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"a tile.Kernel is expected, not {kernel!r}")
    namespace, _, short = name.partition("::")
    if not short.isidentifier() or not namespace.isidentifier():
        raise ValueError(f"{name!r} is no name of an operator: expected 'namespace::name'")
    kernel = kernel.with_settings(**settings) if settings else kernel
    if not kernel.parameters:
        raise ValueError(f"{kernel.signature} needs settings before it can be an operator")
    rules = _rules(kernel, backward)  # before the name is taken
    library = _library(namespace, short)
    library.define(short + _schema(kernel), tags=(torch.Tag.pt2_compliant_tag,))
    launch = kernel._detached()
    for key in ("CPU", "CUDA"):
        library.impl(short, launch, key)
    torch.library.register_fake(name, fake or _make_fake(kernel), lib=library)
    call = _overload(namespace, short)
    if rules:
        backward, setup_context = _register_backward(short, library, namespace, kernel, rules)
    inputs = [p for p in kernel.parameters if p.access != "out"]
    writes = [i for i, p in enumerate(inputs) if p.access == "inout"]
    if writes:
        _register_writes(library, short, call, writes)
    elif backward is None:
        backward = _make_missing_backward(name)
    if backward is not None:
        _register_autograd(library, short, call, launch, backward, setup_context, bool(writes))
    if vmap:
        torch.library.register_vmap(name, _make_vmap(kernel, call), lib=library)
    return call
