"""Random shapes, layouts and dtypes: first and second derivatives against torch's own double backward, which shares no code with ours."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st

import nestgrad as ng
from nestgrad.backends import NumpyBackend, TorchBackend
from nestgrad.errors import ShapeError
from nestgrad.levels.autodiff import Autodiff
from nestgrad.ops import TABLE, Kind
from nestgrad.tensor.handle import apply
from nestgrad.testing.calling import called

# Seeded, so that a run says the same each time; the machine is shared, so no deadline.
RUN = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])

BACKENDS = st.sampled_from(["numpy", "torch"])
DTYPES = st.sampled_from(["float64", "float32"])
TOLERANCE = {"float64": 1e-11, "float32": 2e-4}
"""Of second derivatives of a dozen ops, relative to the largest entry: some fifty thousand, two thousand spacings."""

UNARY = {
    "sin": torch.sin,
    "exp": torch.exp,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "softplus": torch.nn.functional.softplus,
    "square": torch.square,
    "atan": torch.atan,
    "erf": torch.erf,
    "relu": torch.relu,
    "abs": torch.abs,
    "neg": torch.neg,
}
BINARY = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": lambda x, y: x / (y * y + 1.0),
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "pow": lambda x, y: torch.pow(x * x + 0.5, y),
    "where": lambda x, y: torch.where(x.detach() > 0.2, x, y),
}
OUR_BINARY = {
    "div": lambda x, y: x / (y * y + 1.0),
    "pow": lambda x, y: (x * x + 0.5) ** y,
    "where": lambda x, y: ng.where(x > 0.2, x, y),
}


@st.composite
def shapes(draw: Any, most: int = 3) -> tuple[int, ...]:
    """0-d, zero-size, ones, and small ordinary ones."""
    return tuple(draw(st.lists(st.integers(0, 3), max_size=most)))


@st.composite
def partners(draw: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts against ``shape``: some axes 1, some leading axes missing or new."""
    other = [draw(st.sampled_from([n, 1])) for n in shape][draw(st.integers(0, len(shape))) :]
    return tuple(([draw(st.integers(0, 3)) for _ in range(draw(st.integers(0, 1)))] if len(other) == len(shape) else []) + other)


def axes_for(draw: Any, rank: int) -> tuple[int, ...]:
    return tuple(sorted(draw(st.sets(st.integers(0, rank - 1))))) if rank else ()


def drawn_step(draw: Any, shape: tuple[int, ...]) -> tuple[str, Any, Any]:
    """An op with its parameters: its name, ours and torch's."""
    kinds = ["unary", "reduce", "reshape", "permute", "index", "gather", "broadcast", "concat", "pad", "softmax"]
    kind = draw(st.sampled_from(kinds))
    rank = len(shape)
    if kind == "unary":
        name = draw(st.sampled_from(sorted(UNARY)))
        return name, lambda x: apply(name, x), UNARY[name]
    if kind == "reduce":
        return drawn_reduction(draw, shape)
    if kind == "reshape":
        new = draw(st.sampled_from([(-1,), (*shape, 1), (1, *shape), tuple(reversed(shape))]))
        new = (int(np.prod(shape)),) if new == (-1,) else new
        return f"reshape{new}", lambda x: x.reshape(new), lambda t: t.reshape(new)
    if kind == "permute":
        order = tuple(draw(st.permutations(range(rank))))
        return f"permute{order}", lambda x: x.permute(order), lambda t: t.permute(order)
    if kind == "index" and rank:
        choice = [slice(None), slice(None, None, -1), slice(1, None), slice(None, None, 2), slice(0, 0), None]
        parts = tuple(draw(st.sampled_from(choice)) for _ in shape)
        numpy_index: Any = tuple(parts)
        return f"getitem{parts}", lambda x: x[numpy_index], lambda t: torch_index(t, parts)
    if kind == "gather" and rank and shape[0]:
        rows = draw(st.lists(st.integers(0, shape[0] - 1), min_size=0, max_size=4))
        picked = np.array(rows, np.int64)
        return f"getitem{rows}", lambda x: x[picked], lambda t: t[torch.tensor(rows, dtype=torch.int64)]
    if kind == "broadcast":
        new = (draw(st.integers(0, 2)), *shape)
        return f"broadcast_to{new}", lambda x: x.broadcast_to(new), lambda t: t.broadcast_to(new)
    if kind == "concat" and rank:
        axis = draw(st.integers(0, rank - 1))
        return f"concat{axis}", lambda x: ng.concat([x, x * x, x], axis=axis), lambda t: torch.cat([t, t * t, t], axis)
    if kind == "pad" and rank:
        widths = tuple((draw(st.integers(0, 1)), draw(st.integers(0, 2))) for _ in shape)
        flat = [n for pair in reversed(widths) for n in pair]
        return f"pad{widths}", lambda x: x.pad(widths), lambda t: torch.nn.functional.pad(t, flat)
    if kind == "softmax" and rank:
        axis = draw(st.integers(0, rank - 1))
        if draw(st.booleans()):
            return f"softmax{axis}", lambda x: x.softmax(axis), lambda t: torch.softmax(t, axis)
        return f"log_softmax{axis}", lambda x: x.log_softmax(axis), lambda t: torch.log_softmax(t, axis)
    return "sin", lambda x: apply("sin", x), torch.sin


def drawn_reduction(draw: Any, shape: tuple[int, ...]) -> tuple[str, Any, Any]:
    axes, keep = axes_for(draw, len(shape)), draw(st.booleans())
    some = all(shape[k] for k in axes)
    names = ["sum", "prod", *(["mean", "max", "min", "logsumexp", "var"] if some else [])]
    name = draw(st.sampled_from(names))
    if not axes:  # to torch, no axes mean all
        same = {"var": lambda t: t * 0.0}.get(name, lambda t: t)
        return f"{name}()", lambda x: getattr(x, name)(axis=(), keepdims=keep), same
    theirs = {
        "sum": lambda t: torch.sum(t, axes, keep),
        "mean": lambda t: torch.mean(t, axes, keep),
        "max": lambda t: torch.amax(t, axes, keep),
        "min": lambda t: torch.amin(t, axes, keep),
        "logsumexp": lambda t: torch.logsumexp(t, axes, keep),
        "var": lambda t: torch.var(t, axes, correction=0, keepdim=keep),
        "prod": lambda t: torch_prod(t, axes, keep),
    }[name]
    return f"{name}{axes}", lambda x: getattr(x, name)(axis=axes, keepdims=keep), theirs


def torch_prod(t: Any, axes: tuple[int, ...], keep: bool) -> Any:
    for axis in reversed(axes):
        t = torch.prod(t, axis, keepdim=keep)
    return t


def torch_index(t: Any, parts: tuple[Any, ...]) -> Any:
    """Slices that may step backwards, and new axes."""
    axis = 0
    for part in parts:
        if part is None:
            t = t.unsqueeze(axis)
        elif part.step == -1:
            t = t.flip(axis)
        else:
            t = t[(*(slice(None),) * axis, part)]
        axis += 1
    return t


LAYOUTS = ("contiguous", "transposed", "strided", "reversed")


def laid_out(array: Any, layout: str) -> Any:
    """The same numbers, differently in memory."""
    if layout == "transposed" and array.ndim:
        return np.ascontiguousarray(array.T).T
    if layout == "strided" and array.ndim:
        wide = np.full((*array.shape[:-1], 2 * array.shape[-1]), 99.0, array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    if layout == "reversed" and array.ndim:
        return np.ascontiguousarray(array[::-1])[::-1]
    return array


def numbers(shape: tuple[int, ...], seed: int, dtype: str) -> Any:
    """Distinct numbers away from 0 and from each other, so that no kink is near."""
    n = int(np.prod(shape))
    rng = np.random.default_rng(seed)
    spread = (np.arange(1, n + 1) / (n + 1) + 0.013 * (seed + 1) / (n + 1)) * rng.choice([-1.0, 1.0], n) * 1.3
    return np.asarray(rng.permutation(spread).reshape(shape), dtype)


def shared(stack: Any, backend: str, array: Any, layout: str) -> Any:
    """A variable over that very memory."""
    if backend == "numpy":
        return stack.from_numpy(laid_out(array, layout), requires_grad=True)
    data = laid_out(array, layout if layout != "reversed" else "transposed")  # torch has no negative strides
    return stack.from_torch(torch.from_numpy(np.array(data) if layout == "contiguous" else data), requires_grad=True)


def compare(got: Any, want: Any, dtype: str, what: str) -> None:
    found, right = got.numpy(), want.numpy(force=True)  # forced, since torch gives zeros a type of their own
    assert found.shape == right.shape and str(found.dtype) == dtype, what
    scale = float(np.abs(right).max(initial=0.0))
    np.testing.assert_allclose(found, right, rtol=0, atol=TOLERANCE[dtype] * (1 + scale), err_msg=what)


@RUN
@given(st.data())
def test_first_and_second_derivatives_agree_with_torch(data: st.DataObject) -> None:
    draw = data.draw
    backend, dtype = draw(BACKENDS), draw(DTYPES)
    shape = draw(shapes())
    other = draw(partners(shape))
    name = draw(st.sampled_from(sorted(BINARY)))
    arrays = [numbers(s, seed, dtype) for seed, s in enumerate((shape, other))]
    layouts = [draw(st.sampled_from(LAYOUTS)) for _ in arrays]
    ts = [torch.tensor(a, requires_grad=True) for a in arrays]
    t = BINARY[name](*ts)
    steps = []
    for _ in range(draw(st.integers(0, 3))):
        step = drawn_step(draw, tuple(t.shape))
        t = step[2](t)
        steps.append(step)
    what = f"{name} {shape} {other} {layouts} {[s[0] for s in steps]} on {backend}"

    stack = Autodiff(Autodiff(NumpyBackend(dtype) if backend == "numpy" else TorchBackend(dtype=dtype)))
    xs = [shared(stack, backend, a, layout) for a, layout in zip(arrays, layouts, strict=True)]
    x = OUR_BINARY.get(name, lambda p, q: apply(name, p, q))(*xs)
    for _, ours, _ in steps:
        x = ours(x)
    compare(x, t, dtype, what)

    weights = torch.tensor(numbers(tuple(t.shape), 7, dtype))
    first = torch.autograd.grad((t * weights).sum(), ts, create_graph=True, materialize_grads=True)
    grads = (x * stack.tensor(weights.numpy())).sum().backward()
    ours = [v.grad(grads) for v in xs]
    for g, w in zip(ours, first, strict=True):
        compare(g, w, dtype, f"first derivative of {what}")

    directions = [numbers(a.shape, 11 + k, dtype) for k, a in enumerate(arrays)]
    total = sum((g * torch.tensor(v)).sum() for g, v in zip(first, directions, strict=True))
    second = torch.autograd.grad(total, ts, materialize_grads=True) if total.requires_grad else [torch.zeros_like(v) for v in ts]
    contracted = sum((g * stack.tensor(v)).sum() for g, v in zip(ours, directions, strict=True))
    grads = contracted.backward()
    for v, w in zip(xs, second, strict=True):
        compare(v.grad(grads), w, dtype, f"second derivative of {what}")


@RUN
@given(st.data())
def test_matrix_products_agree_with_torch(data: st.DataObject) -> None:
    draw = data.draw
    backend, dtype = draw(BACKENDS), draw(DTYPES)
    m, k, n = (draw(st.integers(0, 3)) for _ in range(3))
    batch = draw(shapes(2))
    other = draw(partners(batch))
    vector = draw(st.sampled_from(["neither", "left", "right", "both"]))
    shape = (k,) if vector in ("left", "both") else (*batch, m, k)
    second_shape = (k,) if vector in ("right", "both") else (*other, k, n)
    arrays = [numbers(s, seed, dtype) for seed, s in enumerate((shape, second_shape))]
    layouts = [draw(st.sampled_from(LAYOUTS)) for _ in arrays]
    ts = [torch.tensor(a, requires_grad=True) for a in arrays]
    stack = Autodiff(Autodiff(NumpyBackend(dtype) if backend == "numpy" else TorchBackend(dtype=dtype)))
    xs = [shared(stack, backend, a, layout) for a, layout in zip(arrays, layouts, strict=True)]
    what = f"{shape} @ {second_shape} {layouts} on {backend}"
    t, x = torch.tanh(ts[0] @ ts[1]), (xs[0] @ xs[1]).tanh()
    compare(x, t, dtype, what)
    first = torch.autograd.grad(t.sum(), ts, create_graph=True)
    grads = x.backward()
    ours = [v.grad(grads) for v in xs]
    for g, w in zip(ours, first, strict=True):
        compare(g, w, dtype, f"first derivative of {what}")
    second = torch.autograd.grad(sum((g * g).sum() for g in first), ts, materialize_grads=True)
    grads = (ours[0] * ours[0]).sum() + (ours[1] * ours[1]).sum()
    grads = grads.backward()
    for v, w in zip(xs, second, strict=True):
        compare(v.grad(grads), w, dtype, f"second derivative of {what}")


@pytest.mark.parametrize("backend", ["numpy", "torch"])
@pytest.mark.parametrize("op", TABLE.values(), ids=lambda op: op.name)
def test_memory_layout_makes_no_difference(op: Any, backend: str) -> None:
    base = NumpyBackend() if backend == "numpy" else TorchBackend(dtype="float64")
    stack = Autodiff(base)
    for sample in op.samples.calls:
        arrays, params = sample.native(base)
        free = [k for k, a in enumerate(arrays) if base.is_floating(a) and k not in sample.exact]
        plain = [stack.tensor(a, requires_grad=k in free) for k, a in enumerate(arrays)]
        y = called(op, *plain, **params)
        seed = base.tensor(numbers(y.shape, 3, "float64"))
        right = [] if op.kind is Kind.CONSTANT else [y.backward(seed).get(plain[k]) for k in free]
        for layout in LAYOUTS[1:]:
            odd = [shared(stack, backend, base.to_numpy(a), layout) if k in free else plain[k] for k, a in enumerate(arrays)]
            z = called(op, *odd, **params)
            assert z.shape == y.shape
            # the order of sums follows memory
            np.testing.assert_allclose(z.numpy(), y.numpy(), rtol=1e-13, atol=1e-14, err_msg=layout)
            for k, g in zip(free, right, strict=False):
                if g is not None:
                    np.testing.assert_allclose(z.backward(seed).wrt(odd[k]).numpy(), g.numpy(), rtol=1e-13, atol=1e-14, err_msg=layout)


OPERATORS = st.sampled_from(["add", "sub", "mul", "div", "pow", "maximum", "minimum"])


@RUN
@given(OPERATORS, BACKENDS, st.permutations(["float32", "float64"]), shapes(2))
def test_mixed_dtypes_give_each_argument_its_own(name: str, backend: str, dtypes: list[str], shape: tuple[int, ...]) -> None:
    stack = Autodiff(NumpyBackend() if backend == "numpy" else TorchBackend(dtype="float64"))
    # torch knows a weaker kind of array, the 0-d one, which lets the other's dtype win
    arrays = [np.abs(numbers((2, *shape), seed, dtype)) + 0.25 for seed, dtype in enumerate(dtypes)]
    xs = [stack.tensor(a, requires_grad=True) for a in arrays]
    out = apply(name, *xs)
    assert str(out.dtype).endswith("float64")
    exact = [torch.tensor(a.astype(np.float64), requires_grad=True) for a in arrays]
    right = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "pow": torch.pow}.get(name) or getattr(torch, name)
    first = torch.autograd.grad(right(*exact).sum(), exact)
    for x, dtype, w in zip(xs, dtypes, first, strict=True):
        g = x.grad(out.backward())
        assert str(g.dtype).endswith(dtype) and g.shape == x.shape
        np.testing.assert_allclose(g.numpy(), w.numpy().astype(dtype), rtol=1e-6)


@pytest.mark.parametrize("name", ["max", "min", "logsumexp"])
@pytest.mark.parametrize("backend", [NumpyBackend(), TorchBackend()], ids=repr)
def test_nothing_has_no_extremum(backend: Any, name: str) -> None:
    with pytest.raises(ShapeError, match="expected at least one entry"):
        getattr(Autodiff(backend).tensor(np.zeros((2, 0)), requires_grad=True), name)()
