"""``check_op``: one entry of the op table, or an op of one's own, on one backend, at the entry's samples and special points."""

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from nestgrad.backends.numpy import NumpyBackend
from nestgrad.custom import Operation
from nestgrad.errors import BackendError, RuleError, WrongDerivativeError
from nestgrad.levels.autodiff import Autodiff
from nestgrad.levels.dressed import Dressed
from nestgrad.levels.marks import NONE
from nestgrad.ops import TABLE, Kind, Op
from nestgrad.ops.samples import Sample, native
from nestgrad.tensor import Tensor
from nestgrad.tensor.handle import make
from nestgrad.testing.calling import called
from nestgrad.testing.differences import precision
from nestgrad.testing.gradients import check_grads
from nestgrad.testing.modes import check_modes


def check_op(
    op: Op | Operation | str,
    backend: Any,
    order: int = 3,
    *,
    reference: Callable[..., Any] | None = None,
    rtol: float | None = None,
    seed: int = 0,
) -> None:
    """Check an op on a backend: values, and derivatives up to ``order``, at its samples and special points.

    * The value has the shape, the kind of dtype and the numbers of the reference, and no argument is changed.
    * A linear op's backward pass is its transpose, ``<u, L v> == <L' u, v>``, a bilinear one's follows the product rule.
    * Derivatives agree with finite differences (``check_grads``), whichever of the arguments are tracked.
    * Forward mode is the transpose of reverse mode, ``<u, J t> == <J' u, t>``; Taylor mode gives the same derivatives along a line; a batch
      of two samples gives what each gives by itself.
    * At special points the derivatives are the printed ones, also in an array that has ordinary points beside; where the entry says that
      there is none, the answer is infinite or NaN.
    * The result of a constant op is a constant.

    Args:
        op: An entry, the name of one in the table, or what ``define`` returned. An entry that is not in the table is checked as if it were.
        backend: A base backend.
        order: The highest order.
        reference: A function of NumPy arrays (of float64) and the op's parameters. ``None``: the op on ``NumpyBackend``.
        rtol: Of values, relative to the largest of an array. ``None``: 32 spacings of the backend's default dtype.
        seed: Of the random directions.

    Raises:
        WrongDerivativeError: With op, argument, order, entry, both values and the tolerance, and the rule to look at.
        BackendError: A wrong value: with op, sample, entry, both values and the tolerance.
        RuleError: No samples.
        NestgradError: What the backend, or a rule, raises.

    >>> from nestgrad.backends import NumpyBackend
    >>> check_op("sin", NumpyBackend())
    """
    entry = TABLE[op] if isinstance(op, str) else op.op if isinstance(op, Operation) else op
    with np.errstate(all="ignore"):  # infinities at special points are values under test
        _check(entry, Checked(entry, backend, seed), order, reference, rtol, seed)


def _check(entry: Op, checked: "Checked", order: int, reference: Callable[..., Any] | None, rtol: float | None, seed: int) -> None:
    for sample in samples_of(entry):
        checked.value(sample, reference, rtol)
        if entry.kind is Kind.CONSTANT:
            checked.constant(sample)
            check_modes(checked, sample, order)
            continue
        try:
            checked.transpose(sample)
            checked.subsets(sample)
            if checked.free(sample):
                arrays, params = checked.native(sample)
                f = lambda *xs, params=params: called(entry, *xs, **params)
                tensors = [make(checked.base.dressed, a, NONE) for a in arrays]
                check_grads(f, tensors, order, stack=checked.base, name=checked.called(sample), seed=seed)
        except WrongDerivativeError as error:
            raise WrongDerivativeError(str(error) + _suspects(entry, str(error))) from None
        check_modes(checked, sample, order)
    for point, derivatives in entry.samples.special.items():
        checked.special(point, derivatives[:order])


def _suspects(op: Op, message: str) -> str:
    """The rules that a message is about, by the names of their arguments."""
    found = re.search(r"by arguments? \[?([\d, ]+)", message)
    if op.kind is Kind.COMPOSITE or found is None:
        return ""
    names = ["xs" if op.variadic else op.arguments[int(k)] for k in re.findall(r"\d+", found[1])]
    return f"{'' if message.endswith('?') else '.'} Look at the rule of {' and '.join(dict.fromkeys(names))} in {op.signature}"


def samples_of(op: Op) -> tuple[Sample, ...]:
    """The calls on which an op is tested.

    Raises:
        RuleError: If there is none: an op without samples is not tested at all.
    """
    if not op.samples.calls:
        raise RuleError(f"op {op.signature} has no samples, so nothing would be tested. Give define(..., samples=...) at least one call")
    return op.samples.calls


class Checked:
    """An op on a backend of its own, whose table holds that very entry."""

    def __init__(self, op: Op, backend: Any, seed: int) -> None:
        self.op = op
        self.base = backend
        if TABLE.get(op.name) is not op:
            self.base = copy.copy(backend)
            self.base._dressed = Dressed(self.base, {**TABLE, op.name: op})
        self.rng = np.random.default_rng(seed)
        self.eps = precision(self.base)

    def native(self, sample: Sample) -> tuple[list[Any], dict[str, Any]]:
        """Arrays and parameters as the backend takes them."""
        return sample.native(self.base)

    def called(self, sample: Sample) -> str:
        """The call, for messages."""
        shapes = [f"shape {np.shape(a)}" for a in sample.arrays]
        return f"{self.op.name}({', '.join([*shapes, *(f'{k}={v!r}' for k, v in sample.params.items())])}) on {self.base!r}"

    def free(self, sample: Sample) -> list[int]:
        """Which arguments are differentiated by."""
        rules = self.op.rules if not self.op.variadic else self.op.rules * len(sample.arrays)
        arrays, _ = self.native(sample)
        return [
            k
            for k, a in enumerate(arrays)
            if k not in sample.exact and self.base.is_floating(a) and (self.op.kind is Kind.COMPOSITE or rules[k] is not None)
        ]

    def run(self, *xs: Any, **params: Any) -> Tensor:
        """The op on Tensors."""
        return called(self.op, *xs, **params)

    def tensors(self, sample: Sample) -> tuple[list[Tensor], dict[str, Any]]:
        """Constants, and parameters."""
        arrays, params = self.native(sample)
        return [make(self.base.dressed, a, NONE) for a in arrays], params

    # values

    def value(self, sample: Sample, reference: Callable[..., Any] | None, rtol: float | None) -> None:
        """Value, shape and kind of dtype against the reference; arguments stay what they are."""
        xs, params = self.tensors(sample)
        before = [x.numpy() for x in xs]
        out = self.run(*xs, **params)
        got = np.asarray(out.numpy())
        for k, (x, was) in enumerate(zip(xs, before, strict=True)):
            if not np.array_equal(x.numpy(), was, equal_nan=was.dtype.kind == "f"):
                raise BackendError(f"{self.called(sample)}: the method changed argument {k}; expected it as it was")
        arrays, numpy_params = sample.native(NumpyBackend())
        want = np.asarray((reference or _by_numpy(self.op))(*arrays, **numpy_params))
        kinds = ("bool" if want.dtype.kind == "b" else "int" if want.dtype.kind in "iu" else "float", self.base.kind(out.value))
        if got.shape != want.shape or kinds[0] != kinds[1]:
            raise BackendError(
                f"{self.called(sample)}: got shape {got.shape} and {kinds[1]} numbers; expected shape {want.shape} and {kinds[0]} numbers"
            )
        if kinds[0] == "float" and "dtype" not in sample.params and out.dtype != self.base.default_dtype:
            raise BackendError(f"{self.called(sample)}: got dtype {out.dtype}; expected the arguments', {self.base.default_dtype}")
        self._same(sample, got, want, rtol)

    def _same(self, sample: Sample, got: Any, want: Any, rtol: float | None) -> None:
        got, want = got.astype(float), want.astype(float)
        if not want.size:
            return
        spacing = max(self.eps, 2.0**-52)
        finite = np.abs(want[np.isfinite(want)])
        allowed = (32 * spacing if rtol is None else rtol) * float(finite.max(initial=0.0))
        with np.errstate(invalid="ignore"):
            apart = np.where((got == want) | (np.isnan(got) & np.isnan(want)), 0.0, np.abs(got - want))
        worst = np.unravel_index(int(np.argmax(np.nan_to_num(apart, nan=np.inf))), want.shape)
        if not apart[worst] <= allowed:
            at = tuple(int(k) for k in worst)
            raise BackendError(
                f"{self.called(sample)}: wrong value at entry {at}: got {float(got[worst])!r}, "
                f"expected {float(want[worst])!r} (tolerance {allowed:.2g})"
            )

    # derivatives

    def constant(self, sample: Sample) -> None:
        """Whatever the arguments are, the result is tracked on no level."""
        xs, params = self.tensors(sample)
        stack = Autodiff(self.base)
        tracked = [stack.tensor(x, requires_grad=True) if self.base.is_floating(x.value) else x for x in xs]
        out = self.run(*tracked, **params)
        if out.tracked_on() or out.marks:
            raise WrongDerivativeError(f"{self.called(sample)}: the result of a constant op is tracked; expected a constant")

    def transpose(self, sample: Sample) -> None:
        """``<u, L v>`` against ``<L' u, v>``, where ``L`` is the derivative of a linear or bilinear op, known without any rule."""
        free = self.free(sample)
        if self.op.kind not in (Kind.LINEAR, Kind.BILINEAR) or not free:
            return
        xs, params = self.tensors(sample)
        tangents = {k: self.random(xs[k]) for k in free}
        if self.op.kind is Kind.LINEAR:
            pushed = [self.run(*(tangents.get(k, x) for k, x in enumerate(xs)), **params)]
        else:
            pushed = [self.run(*(tangents[k] if k == i else x for k, x in enumerate(xs)), **params) for i in free]
        u = self.random(pushed[0])
        pulled = self._pulled(xs, params, free, u)
        ways: tuple[list[Any], list[Any]] = ([], [])
        for p in pushed:
            ways[0].append(u.numpy().astype(float) * p.numpy().astype(float))
        for k in free:
            ways[1].append(np.asarray(pulled[k].numpy(), float) * tangents[k].numpy().astype(float))
        left, right = (sum(float(t.sum()) for t in terms) for terms in ways)
        scale = sum(float(np.abs(t).sum()) for terms in ways for t in terms)
        allowed = 32 * max(self.eps, 2.0**-52) * scale  # sums of a few products of numbers of size 1
        if not abs(left - right) <= allowed:
            raise WrongDerivativeError(
                f"{self.called(sample)}: derivative of order 1 by arguments {free}: the backward pass is not the transpose: "
                f"got <L' u, v> = {right!r}, expected <u, L v> = {left!r} (tolerance {allowed:.2g}) for random u, v"
            )

    def subsets(self, sample: Sample) -> None:
        """The gradient by an argument does not depend on whether the others are tracked."""
        free = self.free(sample)
        if len(free) < 2:
            return
        xs, params = self.tensors(sample)
        u = self.random(self.run(*xs, **params))
        every = self._pulled(xs, params, free, u)
        for k in free:
            alone = self._pulled(xs, params, [k], u)[k]
            a, b = np.asarray(alone.numpy(), float), np.asarray(every[k].numpy(), float)
            allowed = 64 * max(self.eps, 2.0**-52) * float(np.abs(b).max(initial=0.0))
            if a.shape != b.shape or not np.allclose(a, b, rtol=0.0, atol=allowed):
                raise WrongDerivativeError(
                    f"{self.called(sample)}: derivative of order 1 by argument {k}: got {a.tolist()} while only this argument is tracked, "
                    f"expected {b.tolist()}, as when all are (tolerance {allowed:.2g})"
                )

    def _pulled(self, xs: list[Tensor], params: Mapping[str, Any], free: list[int], u: Tensor) -> dict[int, Tensor]:
        stack = Autodiff(self.base)
        tracked = [stack.tensor(x, requires_grad=True) if k in free else x for k, x in enumerate(xs)]
        gradients = self.run(*tracked, **params).backward(u)
        return {k: gradients.wrt(tracked[k]) for k in free}

    def special(self, point: Any, derivatives: tuple[float | None, ...]) -> None:
        """Derivatives by the first argument at a special point, alone and in an array beside an ordinary point."""
        count = len(self.op.arguments)
        values = point if isinstance(point, tuple) else (point,)
        args, params = values[:count], dict(zip(self.op.params, values[count:], strict=True))
        ordinary = self._ordinary(params)
        for first in (args[0], [args[0], ordinary, args[0]] if ordinary is not None else [args[0]]):
            for k, got in enumerate(self._orders(first, args[1:], params, len(derivatives))):
                entries = np.asarray(got, float).reshape(-1)
                self._printed(point, k + 1, entries[[0, -1]], derivatives[k])
                if entries.size == 3 and not np.isfinite(entries[1]):
                    raise WrongDerivativeError(
                        f"{self.op.name} on {self.base!r}: derivative of order {k + 1} by argument 0, entry (1,) of {first!r}: "
                        f"got {float(entries[1])!r}, expected the finite derivative of an ordinary point, whatever its neighbours are"
                    )

    def _ordinary(self, params: Mapping[str, Any]) -> float | None:
        """A number from a sample that is called with the same parameters."""
        for sample in self.op.samples.calls:
            if dict(sample.params) == params and np.size(sample.arrays[0]):
                return float(np.reshape(sample.arrays[0], -1)[0])
        return None

    def _orders(self, first: Any, rest: tuple[Any, ...], params: Mapping[str, Any], order: int) -> Iterator[Any]:
        stack: Any = self.base
        for _ in range(order):
            stack = Autodiff(stack)
        x = stack.tensor(first, requires_grad=True)
        y = self.run(x, *(self.base.tensor(a) for a in rest), **native(self.base, params))
        for _ in range(order):
            y = y.backward().wrt(x)
            yield y.numpy()

    def _printed(self, point: Any, order: int, entries: Any, want: float | None) -> None:
        for got in entries:
            allowed = 64 * max(self.eps, 2.0**-52) * max(1.0, abs(want or 0.0))
            if want is None and np.isfinite(got):
                told = "infinity or NaN, since there is no finite derivative"
            elif want is not None and not abs(got - want) <= allowed:
                told = f"{want!r} (tolerance {allowed:.2g})"
            else:
                continue
            raise WrongDerivativeError(
                f"{self.op.name} on {self.base!r}: derivative of order {order} by argument 0, entry (), at the special point {point!r}: "
                f"got {float(got)!r}, expected {told}"
            )

    def random(self, like: Tensor) -> Tensor:
        """Numbers from -2 to 2 in 32nds, so that they are the same in every dtype."""
        numbers = self.rng.integers(-64, 64, tuple(like.shape)) / 32
        return make(self.base.dressed, self.base.cast(self.base.asarray(numbers), like.dtype), NONE)


def _by_numpy(op: Op) -> Callable[..., Any]:
    """The op on NumPy, as its default reference."""
    base = NumpyBackend()
    if op.native is not None:
        method = op.of(base)
    else:
        method = getattr(base, op.name, None) or getattr(Dressed(base, {**TABLE, op.name: op}), op.name)

    def reference(*xs: Any, **params: Any) -> Any:
        out = method(*xs, **params) if op.variadic else method(*xs, *(params[p] for p in op.params if p in params))
        return np.concatenate([np.ravel(v) for v in out]) if op.results else out

    return reference
