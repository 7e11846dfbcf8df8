"""``check_grads``: derivatives of a function of Tensors against finite differences, and against another way to nest levels.

With random weights ``w`` and directions ``v_1, v_2, ...`` let ``s_0(x) = <w, f(x)>`` and ``s_k(x) = <v_k, gradient of s_(k-1)>``: a number
for each order that holds every entry of every derivative, mixed ones too. At order k the gradient of ``s_(k-1)`` is looked up on nested
levels, and compared with finite differences of ``s_(k-1)``, which nested ``func.grad`` computes. At order 1 that is ``f`` alone; so, order
by order, each derivative stands on one that has been checked.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from nestgrad.errors import DTypeError, LevelError, NotTrackedError, WrongDerivativeError
from nestgrad.func import grad
from nestgrad.levels.autodiff import Autodiff
from nestgrad.levels.marks import NONE
from nestgrad.tensor import Tensor
from nestgrad.tensor.handle import default_backend, make
from nestgrad.testing.differences import Difference, along, precision


def check_grads(
    f: Callable[..., Tensor],
    args: Sequence[Any],
    order: int = 3,
    *,
    stack: Any = None,
    rtol: float | None = None,
    atol: float | None = None,
    name: str | None = None,
    seed: int = 0,
) -> None:
    """Check the derivatives of ``f`` by all floating arguments, up to ``order``, mixed ones included.

    Args:
        f: Maps Tensors to a Tensor of any shape. It must be smooth within 0.01 of ``args`` in each direction.
        args: Tensors, arrays, nested lists or numbers. Floating ones are differentiated by; ints, bools and their arrays are handed on.
        order: The highest order.
        stack: A base backend, or levels to look derivatives up on, as many as ``order`` at least. ``None``: ``Autodiff`` as often as
            needed, over the backend of ``args``.
        rtol: Relative to the sum of the sizes of a directional derivative's terms. ``None``: 1e-6, or 2048 spacings of the arguments'
            dtype where that is more (float32: 2.4e-4): the differences are good for some nine digits, and float32 loses what about a
            hundred operations lose near the singularities of their domains.
        atol: Added to it. ``None``: 1024 spacings of the largest sum of the orders below, since these round first.
        name: What messages call ``f``.
        seed: Of the random weights and directions.

    Cost: for each order and argument, eight runs of the next lower order. Where the arguments are of float32 or less and the backend
    has float64, the differences are taken in float64.

    Raises:
        WrongDerivativeError: With function, argument, order, entry, both values and the tolerance. Also if differences do not settle, at a
            kink or a singularity.
        DTypeError: No floating argument, or ``f`` returns no floating Tensor.
        LevelError: ``stack`` has fewer levels than ``order``.

    >>> check_grads(lambda x, y: (x * y).sin(), ([1.0, 2.0], 0.5))
    """
    problem = _Problem(f, args, stack, name, seed)
    levels = problem.levels(stack, order)
    below = problem.size()
    for k, gradients in enumerate(problem.imperative(levels, order), 1):
        functional = problem.functional(k)
        tolerance = _Tolerance(rtol, atol, problem.eps, below)
        for i, got, other in zip(problem.free, gradients, functional, strict=True):
            problem.compare_ways(k, i, got, other, tolerance)
            problem.compare_differences(k, i, problem.numbers(k, i, got), tolerance)
            below = max(below, float(np.abs(problem.numbers(k, i, got)).sum()))


class _Tolerance:
    """How far two derivatives of one order may be apart."""

    def __init__(self, rtol: float | None, atol: float | None, eps: float, below: float) -> None:
        self.rtol = max(1e-6, 2048 * eps) if rtol is None else rtol
        self.atol = 1024 * eps * below if atol is None else atol
        self.ways = 4096 * eps

    def differences(self, scale: float, found: Difference) -> float:
        """Between a directional derivative whose terms have the sum of sizes ``scale``, and a finite difference."""
        return self.rtol * scale + self.atol + found.noise

    def arrangements(self, scale: float) -> float:
        """Between two ways to nest levels: the same rules on the same numbers, added up in another order."""
        return self.ways * scale + self.atol


class _Problem:
    """The function, the point, and the weights and directions that make numbers of its derivatives."""

    def __init__(self, f: Callable[..., Any], args: Sequence[Any], stack: Any, name: str | None, seed: int) -> None:
        self.f, self.seed = f, seed
        self.weights: dict[Any, Tensor] = {}
        self.name = name or getattr(f, "__name__", type(f).__name__)
        self.base = _base(args, stack)
        self.point = [_raw(self.base, a) for a in args]
        self.free = [k for k, a in enumerate(self.point) if not isinstance(a, (bool, int)) and self.base.is_floating(a)]
        if not self.free:
            raise DTypeError(f"check_grads: got no floating argument of {self.name}; expected at least one to differentiate by")
        dtypes = {self.base.dtype(self.point[k]) for k in self.free}
        self.eps = max(precision(self.base, dtype) for dtype in dtypes)
        self.wide, self.fine = self._widest(dtypes)

    def _widest(self, dtypes: set[Any]) -> tuple[list[Any], float]:
        """The point in the finest dtype, and its spacing."""
        try:
            double = self.base.resolve_dtype("float64")
            fine = precision(self.base, double)
        except Exception:  # a backend may refuse a dtype in any way
            return self.point, self.eps
        if fine >= self.eps:
            return self.point, self.eps
        return [self.base.cast(a, double) if k in self.free else a for k, a in enumerate(self.point)], fine

    def levels(self, stack: Any, order: int) -> Any:
        """The levels that derivatives are looked up on."""
        if stack is None or stack.level == 0:
            stack = self.base
            for _ in range(order):
                stack = Autodiff(stack)
        if stack.level < order:
            raise LevelError(f"check_grads: got {stack!r}, which has {stack.level} levels; expected at least {order}, the order")
        return stack

    # the scalars s_k

    def scalar(self, *xs: Any) -> Tensor:
        """``s_0``."""
        out = self.f(*xs)
        if not isinstance(out, Tensor) or not self.base.is_floating(self.base.full((), 1.0, out.dtype)):
            kind = f"a Tensor of dtype {out.dtype}" if isinstance(out, Tensor) else f"a {type(out).__name__}"
            raise DTypeError(f"check_grads: {self.name} returned {kind}; expected a floating Tensor")
        return (out * self._weights(out, 0, 0)).sum()

    def _contracted(self, order: int, gradients: Sequence[Tensor]) -> Tensor:
        """``s_order``, of the gradients of ``s_(order - 1)``."""
        terms = [(g * self._weights(g, order, i)).sum() for i, g in zip(self.free, gradients, strict=True)]
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    def nested(self, order: int) -> Callable[..., Tensor]:
        """``s_order`` as a function, by nested ``func.grad``."""
        if order == 0:
            return self.scalar
        below = grad(self.nested(order - 1), argnums=self.free)
        return lambda *xs: self._contracted(order, below(*xs))

    # the derivatives

    def imperative(self, stack: Any, order: int) -> Iterator[list[Tensor]]:
        """For each order the gradients of ``s_(order - 1)``, looked up on the levels of one stack."""
        xs = [stack.tensor(self._given(a), requires_grad=True) if k in self.free else self._given(a) for k, a in enumerate(self.point)]
        s = self.scalar(*xs)
        for k in range(1, order + 1):
            try:
                gradients = s.backward()
                found = [gradients.get(xs[i]) for i in self.free]
            except NotTrackedError:  # it does not depend on any argument, so all derivatives are zero
                found = [None for _ in self.free]
            gs = [self._empty(xs[i].shape, xs[i].dtype) if g is None else g for i, g in zip(self.free, found, strict=True)]
            yield gs
            s = self._contracted(k, gs)

    def functional(self, order: int) -> tuple[Tensor, ...]:
        """The gradients of ``s_(order - 1)`` by nested ``func.grad``."""
        found: tuple[Tensor, ...] = grad(self.nested(order - 1), argnums=self.free)(*map(self._given, self.point))
        return found

    def difference(self, order: int, i: int, direction: Any) -> Difference:
        """The derivative of ``s_(order - 1)`` by argument ``i`` in one direction, by finite differences."""
        phi = self.nested(order - 1)
        xs = [self._given(a) for a in self.wide]
        u = self._constant(direction, self.base.dtype(self.wide[i]))
        return along(lambda t: phi(*xs[:i], xs[i] + u * t, *xs[i + 1 :]), self.fine)

    def size(self) -> float:
        """The sum of the sizes of the terms of ``s_0``."""
        out = self.f(*map(self._given, self.point))
        return float(np.abs(np.asarray(out.numpy(), float)).sum()) if isinstance(out, Tensor) else 0.0

    # comparisons

    def numbers(self, order: int, i: int, got: Tensor) -> Any:
        """A derivative as an array, after a look at its shape and dtype."""
        x = self.point[i]
        want = (tuple(self.base.shape(x)), self.base.dtype(x))
        if (tuple(got.shape), got.dtype) != want:
            raise WrongDerivativeError(
                f"{self.where(order, i)}: got shape {tuple(got.shape)} and dtype {got.dtype}; "
                f"expected the argument's, {want[0]} and {want[1]}. Does the rule undo what the op does to shapes and dtypes?"
            )
        return np.asarray(got.numpy(), float)

    def compare_ways(self, order: int, i: int, got: Tensor, other: Tensor, tolerance: _Tolerance) -> None:
        """Levels of one stack against nested ``func.grad``, entry by entry."""
        a, b = self.numbers(order, i, got), self.numbers(order, i, other)
        if not a.size:
            return
        with np.errstate(invalid="ignore"):
            apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
        allowed = tolerance.arrangements(float(np.abs(a[np.isfinite(a)]).max(initial=0.0)))
        worst = np.unravel_index(int(np.argmax(np.nan_to_num(apart, nan=np.inf))), a.shape)
        if not apart[worst] <= allowed:
            raise WrongDerivativeError(
                f"{self.where(order, i)}, entry {_plain(worst)}: got {float(a[worst])!r} on nested levels, expected {float(b[worst])!r}, "
                f"as by nested func.grad (tolerance {allowed:.2g}). "
                "Does a rule read something that is not an argument, such as a value taken out of a level?"
            )

    def compare_differences(self, order: int, i: int, got: Any, tolerance: _Tolerance) -> None:
        """A gradient against the finite difference in a random direction; if they disagree, entry by entry."""
        if not got.size:
            return
        u = self._random(got.shape, -order, i)
        if np.isfinite(got).all():
            found = self.difference(order, i, u)
            if self._agree(got, u, found, tolerance):
                return
        entry = self._entry(order, i, got, u, tolerance)
        unit = np.zeros(got.shape)
        unit[entry] = 1.0
        found = self.difference(order, i, unit)
        allowed = tolerance.differences(abs(float(got[entry])), found)
        advice = "Is the rule the derivative of the value?"
        if not found.doubt <= max(allowed, 1e-3 * abs(found.value)):
            advice = f"These do not settle (apart by {found.doubt:.2g}): the point lies next to a kink or a singularity. Try another point"
        raise WrongDerivativeError(
            f"{self.where(order, i)}, entry {_plain(entry)}: got {float(got[entry])!r}, expected {found.value!r} (tolerance {allowed:.2g}) "
            f"by finite differences of order {order - 1}. {advice}"
        )

    def _agree(self, got: Any, u: Any, found: Difference, tolerance: _Tolerance) -> bool:
        terms = got * u
        return bool(abs(float(terms.sum()) - found.value) <= tolerance.differences(float(np.abs(terms).sum()), found))

    def _entry(self, order: int, i: int, got: Any, u: Any, tolerance: _Tolerance) -> tuple[int, ...]:
        """Where a gradient is wrong: of the entries that are not finite the first, else the one that halving leads to."""
        entries = np.flatnonzero(~np.isfinite(got.reshape(-1)))[:1]
        if not entries.size:
            entries = np.arange(got.size)
        while entries.size > 1:
            first, second = np.array_split(entries, 2)
            entries = max((first, second), key=lambda half: self._mismatch(order, i, got, u, half, tolerance))
        return tuple(int(k) for k in np.unravel_index(int(entries[0]), got.shape))

    def _mismatch(self, order: int, i: int, got: Any, u: Any, entries: Any, tolerance: _Tolerance) -> float:
        part = np.zeros(got.size)
        part[entries] = u.reshape(-1)[entries]
        part = part.reshape(got.shape)
        found = self.difference(order, i, part)
        excess = abs(float((got * part).sum()) - found.value) - tolerance.rtol * float(np.abs(got * part).sum())
        return np.inf if np.isnan(excess) else excess

    # small things

    def where(self, order: int, i: int) -> str:
        """The beginning of every message."""
        shape = tuple(self.base.shape(self.point[i]))
        return f"{self.name}: derivative of order {order} (of random weighted sums) by argument {i} (shape {shape})"

    def _given(self, a: Any) -> Any:
        return a if isinstance(a, (bool, int)) else make(self.base.dressed, a, NONE)

    def _constant(self, numbers: Any, dtype: Any) -> Tensor:
        if not numbers.size:
            return self._empty(numbers.shape, dtype)
        return make(self.base.dressed, self.base.asarray(numbers.tolist(), dtype), NONE)

    def _weights(self, like: Tensor, order: int, i: int) -> Tensor:
        """What ``like`` is contracted with: for each order and argument the same numbers."""
        key = (order, i, tuple(like.shape), like.dtype)
        if key not in self.weights:
            self.weights[key] = self._constant(self._random(key[2], order, i), like.dtype)
        return self.weights[key]

    def _empty(self, shape: tuple[int, ...], dtype: Any) -> Tensor:
        return make(self.base.dressed, self.base.full(shape, 0.0, dtype), NONE)

    def _random(self, shape: tuple[int, ...], order: int, i: int) -> Any:
        """Signs and sizes between 1/2 and 1, in 64ths, so that they are the same numbers in every dtype."""
        rng = np.random.default_rng([self.seed, order + 1000, i])
        return rng.integers(32, 64, shape) / 64 * rng.choice([-1.0, 1.0], shape)


def _base(args: Sequence[Any], stack: Any) -> Any:
    if stack is not None:
        return stack.base
    tensors = [a for a in args if isinstance(a, Tensor)]
    return tensors[0].b.base if tensors else default_backend(next((a for a in args if hasattr(a, "dtype")), None))


def _raw(base: Any, arg: Any) -> Any:
    """An argument as an array of the backend; ints and bools stay Python numbers."""
    if isinstance(arg, Tensor):
        return arg.b.read(arg.detach().value)
    return arg if isinstance(arg, (bool, int)) else base.asarray(arg)


def _plain(index: Any) -> tuple[int, ...]:
    return tuple(int(k) for k in index)
