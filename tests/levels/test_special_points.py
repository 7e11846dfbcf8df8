"""Special points in forward and Taylor mode: printed derivatives at kinks and removable points, branches that ``where`` did not take."""

import importlib.util
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from operators import Energy, Truth, by_levels

import nestgrad as ng
from nestgrad.ops import TABLE, Kind
from nestgrad.ops.samples import native
from nestgrad.testing.calling import called

DOUBLE = {"numpy": ng.NumpyBackend(), "torch": ng.TorchBackend(dtype="float64")}


def by_tangents(base, f, value, order):
    """Derivatives of order 1, 2, ... of an elementwise ``f``, by as many levels of ``Forward``."""
    found = []
    for k in range(1, order + 1):
        levels = [base]
        for _ in range(k):
            levels.append(ng.Forward(levels[-1]))
        x = base.tensor(value)
        for level in levels[1:]:
            x = level.dual(x, np.ones(np.shape(value)))
        y = f(x)
        for level in levels[:0:-1]:
            y = level.tangent(y)
        found.append(y.numpy())
    return found


def by_coefficients(base, f, value, order):
    """The same from one series."""
    level = ng.Taylor(base, order)
    terms = level.terms(f(level.series(base.tensor(value), np.ones(np.shape(value)))))
    return [terms[k].numpy() * math.factorial(k) for k in range(1, order + 1)]


WAYS = {"forward": by_tangents, "taylor": by_coefficients}

SPECIAL = [(op, point) for op in TABLE.values() for point in op.samples.special]


def ordinary(op, params):
    """A number from a sample that is called with the same parameters."""
    firsts = [np.ravel(sample.arrays[0]) for sample in op.samples.calls if dict(sample.params) == params]
    return next((float(numbers[0]) for numbers in firsts if numbers.size), None)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("backend", DOUBLE)
@pytest.mark.parametrize("op, point", SPECIAL, ids=[f"{op.name} at {point}" for op, point in SPECIAL])
def test_derivatives_at_special_points_are_the_printed_ones(op, point, backend, way):
    """Alone, and in an array beside an ordinary point; where none is printed the answer is infinite or NaN."""
    base, printed = DOUBLE[backend], op.samples.special[point]
    values = point if isinstance(point, tuple) else (point,)
    count = len(op.arguments)
    params = dict(zip(op.params, values[count:], strict=True))
    rest = [base.tensor(v) for v in values[1:count]]
    beside = ordinary(op, params)
    for value in (values[0], [values[0]] if beside is None else [values[0], beside, values[0]]):
        found = WAYS[way](base, lambda x: called(op, x, *rest, **native(base, params)), value, len(printed))
        for k, (got, want) in enumerate(zip(found, printed, strict=True), 1):
            for entry in (np.ravel(got)[0], np.ravel(got)[-1]):
                if want is None:
                    assert not np.isfinite(entry), f"order {k}: got {entry}, expected infinity or NaN"
                else:
                    assert entry == pytest.approx(want, rel=1e-14, abs=1e-14), f"order {k}"
            assert np.ndim(got) == 0 or beside is None or np.isfinite(got[1]), f"order {k}: a neighbour is {got[1]}"


@pytest.mark.parametrize("backend", DOUBLE)
@pytest.mark.parametrize("op", [op for op in TABLE.values() if op.kind is not Kind.CONSTANT], ids=lambda op: op.name)
def test_forward_and_taylor_mode_agree_with_reverse_mode_to_third_order(op, backend):
    """All derivatives along a line, of a cubic in the answer."""
    base = DOUBLE[backend]
    for k, sample in enumerate(op.samples.calls):
        f = Energy(base, op, sample, order=3, seed=k)
        f.directions = f.directions[:1] * 3
        right = Truth(f)
        level = ng.Taylor(base, 3)
        terms = level.terms(f(*(level.series(x, v) for x, v in zip(f.point, f.directions[0], strict=True))))
        for order in (1, 2, 3):
            want = pytest.approx(right.derivative(1.0, tuple(range(order))), rel=1e-10, abs=1e-10)
            assert by_levels("F" * order, f) == want, f"sample {k}, order {order}, forward"
            assert terms[order].item() * math.factorial(order) == want, f"sample {k}, order {order}, Taylor"


# branches that where did not take


def singular():
    """Functions with their points at which the value or a derivative is infinite or NaN, as the tests of reverse mode have them."""
    path = Path(__file__).parents[1] / "ops" / "test_singular.py"
    spec = importlib.util.spec_from_file_location("nestgrad_tests_singular", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.SINGULAR


SINGULAR = singular()


ORDER = 4


def taken(name, swapped):
    """A function that takes the cube at the singular points and the singular function elsewhere; where; and its four derivatives there."""
    base, (f, points) = DOUBLE["numpy"], SINGULAR[name]
    other = 1.7 if name in ("log(log(x))", "acosh") else 0.4
    values = np.array([*points, other])
    cube = base.tensor([True] * len(points) + [False])

    def chosen(x):
        return ng.where(~cube, f(x), x**3) if swapped else ng.where(cube, x**3, f(x))

    stack = base
    for _ in range(ORDER):
        stack = ng.Autodiff(stack)
    alone = stack.tensor(other, requires_grad=True)
    y, right = f(alone), []
    for _ in range(ORDER):
        y = y.wrt(alone)
        right.append(y.item())
    cubes = [3 * values**2, 6 * values, np.full_like(values, 6.0), np.zeros_like(values)]
    return chosen, values, [[*cubes[k][:-1], right[k]] for k in range(ORDER)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("swapped", [False, True], ids=["taken where true", "taken where false"])
@pytest.mark.parametrize("name", SINGULAR)
def test_where_keeps_the_branch_not_taken_out(name, swapped, way):
    """The cube has its derivatives wherever it is taken, the other has its own elsewhere, and so has the sum over all points."""
    chosen, values, right = taken(name, swapped)
    found = WAYS[way](DOUBLE["numpy"], chosen, values, ORDER)
    sums = WAYS[way](DOUBLE["numpy"], lambda x: chosen(x).sum(), values, ORDER)
    for k, want in enumerate(right):
        np.testing.assert_allclose(found[k], want, rtol=1e-12, err_msg=f"order {k + 1}")
        np.testing.assert_allclose(sums[k], sum(want), rtol=1e-12, err_msg=f"order {k + 1}, the sum")


@pytest.mark.parametrize("swapped", [False, True], ids=["taken where true", "taken where false"])
@pytest.mark.parametrize("name", SINGULAR)
def test_where_keeps_it_out_of_mixed_modes(name, swapped):
    """Tangents and series of gradients, gradients of tangents and of coefficients."""
    chosen, values, right = taken(name, swapped)
    x, ones = ng.tensor(values), ng.tensor(np.ones_like(values))
    gradient = ng.func.grad(lambda x: chosen(x).sum())
    expansion = ng.func.taylor(gradient, x, ones, 3)
    found = {
        "a tangent of a gradient": (2, ng.func.jvp(gradient, (x,), (ones,))[1]),
        "a gradient of a tangent": (2, ng.func.grad(lambda x: ng.func.jvp(chosen, (x,), (ones,))[1].sum())(x)),
        "a gradient of a coefficient": (4, ng.func.grad(lambda x: 6.0 * ng.func.taylor(chosen, x, ones, 3)[3].sum())(x)),
        **{f"coefficient {k} of a gradient": (k + 1, math.factorial(k) * expansion[k]) for k in range(4)},
    }
    for what, (order, got) in found.items():
        np.testing.assert_allclose(got.numpy(), right[order - 1], rtol=1e-12, err_msg=what)


@pytest.mark.parametrize("word", ["".join(word) for n in (1, 2, 3, 4) for word in product("xy", repeat=n)])
def test_where_on_a_quotient_has_all_mixed_partials_in_forward_mode(word):
    """``where(y > 0, x / y, x y)`` at ``y = 0`` is ``x y``, and ``x / y`` at ``y = 2``."""
    levels = [DOUBLE["numpy"]]
    for _ in word:
        levels.append(ng.Forward(levels[-1]))
    x, y = levels[0].tensor([0.0, 2.0, 2.0]), levels[0].tensor([0.0, 0.0, 2.0])
    for level, letter in zip(levels[1:], word, strict=True):
        x, y = (level.dual(x, np.ones(3)), y) if letter == "x" else (x, level.dual(y, np.ones(3)))
    z = ng.where(y > 0.0, x / y, x * y)
    for level in levels[:0:-1]:
        z = level.tangent(z)
    n, m = word.count("x"), word.count("y")
    product_at_0 = {(1, 0): [0.0, 0.0], (0, 1): [0.0, 2.0], (1, 1): [1.0, 1.0]}.get((n, m), [0.0, 0.0])
    quotient_at_2 = (2.0, 1.0, 0.0, 0.0, 0.0)[n] * (-1) ** m * math.factorial(m) / 2.0 ** (m + 1)
    assert z.tolist() == pytest.approx([*product_at_0, quotient_at_2], rel=1e-14)


@pytest.mark.parametrize("slope", [0.0, 1.0, -3.0])
def test_where_on_a_quotient_has_the_series_of_the_branch_taken(slope):
    """Along ``(x + t, y + slope t)``: ``x y`` has three coefficients, ``(2 + t) / (2 + slope t)`` a geometric series."""
    T = ng.Taylor(DOUBLE["numpy"], 4)
    x, y = T.series([0.0, 2.0, 2.0], np.ones(3)), T.series([0.0, 0.0, 2.0], np.full(3, slope))
    found = np.array([c.numpy() for c in T.terms(ng.where(y > 0.0, x / y, x * y))])
    geometric = [(-slope / 2) ** k for k in range(5)]
    right = [geometric[0], *(geometric[k] + geometric[k - 1] / 2 for k in range(1, 5))]
    want = [[0.0, 0.0, slope, 0.0, 0.0], [0.0, 2 * slope, slope, 0.0, 0.0], right]
    np.testing.assert_allclose(found.T, want, rtol=1e-14, atol=1e-15)
