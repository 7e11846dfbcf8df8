"""Every op on one level, orders 1 to 4, in all situations: every partial derivative against differences of values of fifty digits."""

from typing import Any

import numpy as np
import pytest
from contracting import directions, total
from digits_oracle import DIGITS, along
from graph_cases import tensor
from op_cases import BASE, LITTLE, OPS, ROOM, SITUATIONS, WIDE, Call, calls, chosen, order_of

import nestgrad as ng

LARGE = {"large_det"}
"""Ops of which no call is small enough for order 4."""


def size(call: Call) -> int:
    """How many entries the leaves have."""
    return sum(a.size for a in call.given())


def check(call: Call, name: str, room: Any = ROOM) -> None:
    """All partials of an op in a situation, up to the order that there is room for."""
    what, situation, given = f"{call.op.name} {name} {dict(call.sample.params)}", SITUATIONS[name], call.given()
    points, level, b = situation.leaves(given), ng.Autodiff(BASE), BASE.dressed
    order, moves = order_of(points, room), directions(points)
    leaves = [(level.from_numpy if name == "strided" else level.tensor)(a, requires_grad=True) for a in points]
    y = tensor(b, situation.function(b, call.on(b, BASE), [x.value for x in leaves], given))
    controller = ng.backward(y, order=order, crossings=True)

    def exact(zs: list[Any]) -> Any:
        ops = DIGITS.dressed
        return situation.function(ops, call.on(ops, DIGITS), zs, [DIGITS.cast(a, float) for a in given])

    right = along(exact, points, moves, order)
    assert all(np.isfinite(want).all() for want in right), what
    for k, want in enumerate(right, 1):
        found, size = total(controller, leaves, moves, k, what)
        error = abs(found - want.reshape(-1)).max(initial=0.0)
        assert error <= 1e-8 * (size + 1e-3), f"{what}: order {k} is off by {error}, beside {size}"


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_an_op_at_all_its_samples(op: Any) -> None:
    """The smallest to order 4, the others, which the slow test takes as far, to order 2."""
    found = [call for call in calls(op) if call.fits("plain")]
    least = min((call for call in found if size(call)), key=size)
    for call in found:
        check(call, "plain", WIDE if call is least else LITTLE)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_an_op_in_a_situation(op: Any) -> None:
    for name, call in chosen(op, 1):
        check(call, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", SITUATIONS)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_an_op_at_all_its_samples_in_all_situations(op: Any, name: str) -> None:
    for call in calls(op):
        if call.fits(name):
            check(call, name, WIDE)


def test_every_op_is_differentiated_to_order_4() -> None:
    """And each situation is met by most."""
    low = {op.name for op in OPS if not any(call.fits("plain") and size(call) and order_of(call.given(), WIDE) == 4 for call in calls(op))}
    assert low == LARGE
    met = {name: sum(any(call.fits(name) for call in calls(op)) for op in OPS) for name in SITUATIONS}
    assert all(count > 200 for name, count in met.items() if name != "twice") and met["twice"] > 50, met
