"""The other modes of one op against reverse mode, which finite differences have confirmed: forward, Taylor and batched.

An entry states a derivative once, and each mode reads its own part of it: ``forward`` of a special op, ``series``, ``batched``. A part that
tells something else than the rules is found here.
"""

from collections.abc import Callable, Sequence
from math import factorial
from typing import TYPE_CHECKING

import numpy as np

from nestgrad.errors import WrongDerivativeError
from nestgrad.func import grad
from nestgrad.levels.batched import Batched
from nestgrad.levels.forward import Forward
from nestgrad.levels.marks import NONE
from nestgrad.levels.taylor import Taylor
from nestgrad.ops import Kind
from nestgrad.ops.samples import Sample
from nestgrad.tensor import Tensor
from nestgrad.tensor.handle import make

if TYPE_CHECKING:
    from nestgrad.testing.operations import Checked


def check_modes(checked: "Checked", sample: Sample, order: int) -> None:
    """Compare forward mode, Taylor mode up to ``order`` and a batch of two with reverse mode and single runs.

    Raises:
        WrongDerivativeError: With op, mode, rule, both values and the tolerance.
    """
    xs, params = checked.tensors(sample)
    f = lambda *given: checked.run(*given, **params)
    if checked.op.kind is not Kind.CONSTANT:
        for k in checked.free(sample):
            if xs[k].size:
                _tangent(checked, sample, f, xs, k)
                _series(checked, sample, f, xs, k, order)
    if xs and all(x.size for x in xs):
        _batch(checked, sample, f, xs)


def _tangent(checked: "Checked", sample: Sample, f: Callable[..., Tensor], xs: Sequence[Tensor], k: int) -> None:
    """``<u, J t> == <J' u, t>``, by one argument."""
    t = checked.random(xs[k])
    forward = Forward(checked.base)
    pushed = forward.tangent(f(*xs[:k], forward.dual(xs[k], t), *xs[k + 1 :]))
    u = checked.random(pushed)
    pulled = grad(lambda x: (f(*xs[:k], x, *xs[k + 1 :]) * u).sum())(xs[k])
    ways = [np.asarray(a.numpy(), float) * np.asarray(b.numpy(), float) for a, b in ((u, pushed), (pulled, t))]
    allowed = 128 * max(checked.eps, 2.0**-52) * sum(float(np.abs(w).sum()) for w in ways)
    left, right = (float(w.sum()) for w in ways)
    if not abs(left - right) <= allowed:
        raise WrongDerivativeError(
            f"{checked.called(sample)}: forward mode by argument {k}: got <u, J t> = {left!r}, expected <J' u, t> = {right!r} of reverse "
            f"mode (tolerance {allowed:.2g}). Look at {_part(checked, k, 'forward')}"
        )


def _series(checked: "Checked", sample: Sample, f: Callable[..., Tensor], xs: Sequence[Tensor], k: int, order: int) -> None:
    """Taylor coefficients along a line against nested derivatives."""
    t = checked.random(xs[k])
    taylor = Taylor(checked.base, order)
    terms = taylor.terms(f(*xs[:k], taylor.series(xs[k], t), *xs[k + 1 :]))
    u = checked.random(terms[0])
    along: Callable[..., Tensor] = lambda s: (f(*xs[:k], xs[k] + t * s, *xs[k + 1 :]) * u).sum()
    zero = make(checked.base.dressed, checked.base.full((), 0.0, xs[k].dtype), NONE)
    for n in range(1, order + 1):
        along = grad(along)
        want = along(zero).item()
        products = np.asarray(terms[n].numpy(), float) * np.asarray(u.numpy(), float) * factorial(n)
        # sums of products that cancel, and differences of rules that are written in two ways
        allowed = 4096 * max(checked.eps, 2.0**-52) * (float(np.abs(products).sum()) + abs(want))
        if not abs(float(products.sum()) - want) <= allowed:
            raise WrongDerivativeError(
                f"{checked.called(sample)}: Taylor mode by argument {k}: got derivative {float(products.sum())!r} of order {n} along a "
                f"line, expected {want!r} of nested reverse mode (tolerance {allowed:.2g}). Look at {_part(checked, k, 'series')}"
            )


def _batch(checked: "Checked", sample: Sample, f: Callable[..., Tensor], xs: Sequence[Tensor]) -> None:
    """A batch of two samples against one after the other: all arguments in it, and each alone."""
    base = checked.base
    others = [x if k in sample.exact else _turned(checked, x) for k, x in enumerate(xs)]
    every = list(range(len(xs)))
    for batched in [every] if len(xs) == 1 else [every, *([k] for k in every)]:
        level = Batched(base)
        stacked = [
            level.batch(make(base.dressed, base.concat(*(base.reshape(p.value, (1, *p.shape)) for p in pair), axis=0), NONE))
            for pair in zip(xs, others, strict=True)
        ]
        out = level.unbatch(f(*(stacked[k] if k in batched else x for k, x in enumerate(xs)))).numpy()
        for row, given in enumerate((xs, [others[k] if k in batched else x for k, x in enumerate(xs)])):
            want = np.asarray(f(*given).numpy())
            got = np.asarray(out[row])
            allowed = 64 * max(checked.eps, 2.0**-52) * float(np.abs(want.astype(float)).max(initial=0.0))
            same = got.shape == want.shape and np.allclose(got.astype(float), want.astype(float), rtol=0.0, atol=allowed, equal_nan=True)
            if not same:
                raise WrongDerivativeError(
                    f"{checked.called(sample)}: batched mode, arguments {batched} in a batch of 2, sample {row}: got {got.tolist()!r:.80}, "
                    f"expected {want.tolist()!r:.80}, as without a batch (tolerance {allowed:.2g}). Look at batched= of {checked.op.name}"
                )


def _turned(checked: "Checked", x: Tensor) -> Tensor:
    """The same numbers, moved on by one: another sample of the same domain."""
    base, shape = checked.base, tuple(x.shape)
    flat = base.reshape(x.value, (x.size,))
    moved = base.concat(base.getitem(flat, (slice(1, None),)), base.getitem(flat, (slice(0, 1),)), axis=0)
    return make(base.dressed, base.reshape(moved, shape), NONE)


def _part(checked: "Checked", k: int, part: str) -> str:
    """What an entry states for a mode, for people."""
    op = checked.op
    if part == "series" and op.series is not None:
        return f"series= of {op.name}"
    argument = "xs" if op.variadic else op.arguments[k]
    return f"the {'forward ' if op.kind is Kind.SPECIAL else ''}rule of argument {argument} of {op.name}"
