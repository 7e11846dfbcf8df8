"""No alarm where what a user sees is finite: over all ops, at ordinary and at special points, to second order; and one where it is not."""

import math

import numpy as np
import pytest

import nestgrad as ng
from nestgrad.errors import AnomalyError, NotConnectedError, NotTrackedError
from nestgrad.ops import TABLE, Kind
from nestgrad.ops.samples import native
from nestgrad.testing.calling import called

BASES = {"numpy": ng.NumpyBackend(), "torch": ng.TorchBackend(dtype="float64")}
ORDER = 2


def two_levels(base):
    return ng.Autodiff(ng.Autodiff(base))


def derivatives(base, f, arrays, exact=(), order=ORDER):
    """The answer of ``f``, and what its first and second pass give for each variable."""
    stack = two_levels(base)
    xs = [
        stack.tensor(a, requires_grad=k not in exact and base.is_floating(base.asarray(a)))
        for k, a in enumerate(arrays)
    ]  # fmt: skip
    y = f(*xs)
    yield [y]
    for _ in range(order):
        found = []
        for x in xs:
            try:
                found.append(y.sum().wrt(x))
            except (NotTrackedError, NotConnectedError):
                continue
        if not found:
            return
        yield found
        y = sum((g * g).sum() for g in found)


def finite(found):
    return all(np.isfinite(np.asarray(y.numpy(), float)).all() for y in found)


def finite_orders(*args):
    """How many of the answer and its derivatives are finite, one after the other."""
    with np.errstate(all="ignore"):
        orders = [finite(found) for found in derivatives(*args)]
    return (orders.index(False), len(orders)) if False in orders else (len(orders), len(orders))


def watched(count, *args):
    """The first ``count`` of them, with an alarm."""
    with np.errstate(all="ignore"), ng.detect_anomaly():
        steps = derivatives(*args)
        for _ in range(count):
            next(steps)


@pytest.mark.parametrize("op", TABLE.values(), ids=TABLE)
def test_ops_at_their_samples(op):
    base = BASES["numpy"]
    for sample in op.samples.calls:
        arrays, params = sample.native(base)
        args = base, lambda *xs, params=params: called(op, *xs, **params), arrays, sample.exact
        count, _ = finite_orders(*args)
        watched(count, *args)


SPECIAL = [(op, point) for op in TABLE.values() if op.kind is Kind.ELEMENTWISE for point in op.samples.special]


@pytest.mark.parametrize("backend", BASES)
@pytest.mark.parametrize("op, point", SPECIAL, ids=[f"{op.name} at {point}" for op, point in SPECIAL])
def test_ops_at_special_points(op, point, backend):
    """An alarm comes with the first order that is infinite or NaN, and not before."""
    base = BASES[backend]
    values = point if isinstance(point, tuple) else (point,)
    count = len(op.arguments)
    params = native(base, dict(zip(op.params, values[count:], strict=True)))
    rest = [base.tensor(float(v)) for v in values[1:count]]
    args = base, lambda x: called(op, x, *rest, **params), [float(values[0])]
    if not all(math.isfinite(v) for v in values[:count]):
        return  # operands that hold one
    good, orders = finite_orders(*args)
    watched(good, *args)
    if good < orders:
        with pytest.raises(AnomalyError, match=r"gave (NaN|inf) in the"):
            watched(good + 1, *args)


MASK = [[0.0, -math.inf, -math.inf], [0.0, 0.0, -math.inf], [0.0, 0.0, 0.0]]

COMMON = {
    "masked softmax": lambda x: ng.softmax(x + np.array(MASK), axis=-1),
    "masked log_softmax": lambda x: ng.where(np.isfinite(MASK), ng.log_softmax(x + np.array(MASK), axis=-1), 0.0),
    "masked logsumexp": lambda x: ng.logsumexp(x + np.array(MASK), axis=-1),
    "attention with a mask": lambda x: ng.nn.scaled_dot_product_attention(x, x, x, is_causal=True),
    "where on the operand": lambda x: ng.where(x > 0, ng.log(ng.where(x > 0, x, 1.0)), 0.0),
    "safe_where": lambda x: ng.safe_where(x > 0, ng.log, ng.zeros_like, x),
    "xlogy": lambda x: ng.xlogy(ng.zeros_like(x), x * 0.0),
    "a masked root": lambda x: ng.where(x > 0, ng.sqrt(abs(x)), 0.0),
    "prod with zeros": lambda x: ng.prod(x * (x > 0)),
    "cumprod with zeros": lambda x: ng.cumprod(x * (x > 0), axis=0),
    "powers at zero": lambda x: (x * 0.0) ** 2 + (x * 0.0) ** 3.0,
    "std": lambda x: ng.std(x),
    "cross entropy": lambda x: ng.nn.cross_entropy(x, np.array([0, 1, 2])),
    "kl_div of a zero": lambda x: ng.nn.kl_div(ng.where(x > 1.0, -math.inf, x), ng.where(x > 1.0, 0.0, x * x + 0.5)),
    "max": lambda x: ng.max(x, axis=0),
    "clip": lambda x: ng.clip(x, -math.inf, 0.5),
    "nan_to_num": lambda x: ng.nan_to_num(x),
}


@pytest.mark.parametrize("backend", BASES)
@pytest.mark.parametrize("name", COMMON)
def test_common_functions(name, backend):
    args = BASES[backend], COMMON[name], [[[0.5, -1.0, 0.25], [2.0, 0.0, -0.5], [1.0, 3.0, -2.0]]]
    count, orders = finite_orders(*args)
    assert count == orders
    watched(count, *args)


def test_what_is_taken_away_inside_of_a_rule_is_none():
    """The slope of a root at zero is infinite, and its cotangent zero."""
    x = two_levels(BASES["numpy"]).tensor([0.0, 4.0], requires_grad=True)
    with ng.detect_anomaly(), np.errstate(all="ignore"):
        y = ng.where(x > 1.0, x.sqrt(), x)
        assert y.wrt(x).tolist() == [1.0, 0.25]


def test_the_norm_of_zeros_has_a_slope_and_no_curvature():
    x = two_levels(BASES["numpy"]).tensor([0.0, 0.0], requires_grad=True)
    with ng.detect_anomaly(), np.errstate(all="ignore"):
        g = ng.norm(x).wrt(x)
        assert g.tolist() == [0.0, 0.0]
        with pytest.raises(AnomalyError, match="in the backward pass of Autodiff level 1"):
            (g * g).sum().wrt(x), g.sum().wrt(x)
