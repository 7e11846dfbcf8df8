"""Every op as the graph that it leaves in torch, orders 1 to 4: every partial derivative against nested backward passes of torch.

An op is run by torch's own functions on tensors that require gradients. Some leave no graph, or one that torch cannot differentiate
either: which ones is asserted exactly. Where torch has no derivative, or a wrong one, the truth is differences of values of fifty digits.
"""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="these are graphs that PyTorch recorded")

from contracting import directions, total  # noqa: E402
from digits_oracle import DIGITS, along  # noqa: E402
from nested_oracle import weighted, weights  # noqa: E402
from op_cases import LITTLE, OPS, ROOM, SITUATIONS, WIDE, Call, calls, chosen, order_of  # noqa: E402

import nestgrad as ng  # noqa: E402
from nestgrad.errors import ArgumentError, MutatedError, UnsupportedNode  # noqa: E402

BASE = ng.TorchBackend(dtype="float64")

RIGHT, NONE, WRITTEN, OUT = "right", "no graph", "written into", "torch: no graph with out="
LACKS, WRONG = "torch lacks a derivative", "torch is wrong"

EXPECTED: dict[str, set[str]] = {
    "hardsigmoid": {LACKS},
    "sigmoid_curve": {RIGHT, WRITTEN},
    "silu_vjp": {RIGHT, "NotImplemented"},
    "mish_vjp": {RIGHT, "NotImplemented"},
    "gelu_vjp": {RIGHT, WRITTEN},
    "gelu_curve": {WRITTEN},
    "gelu_tanh": {WRITTEN},
    "bce_logits": {RIGHT, WRITTEN},
    "bce_logits_vjp": {RIGHT, WRITTEN},
    "over": {RIGHT, OUT},
    "gauss": {WRITTEN},
    "cast": {NONE},
    "halves_spread": {OUT},
    "project": {RIGHT, "NativeLayerNormBackwardBackward0"},
    "standardise_vjp": {"NativeLayerNormBackwardBackward0"},
    "standardise_scale_vjp": {"NativeLayerNormBackwardBackward0"},
    "standardise": {RIGHT, NONE, WRONG},
    "cbrt": {WRITTEN},
    "pole": {RIGHT, WRITTEN},
    "heaviside": {"NotImplemented"},
    "max_along": {"ScatterReduceBackward0"},
    "min_along": {"ScatterReduceBackward0"},
    "sum": {RIGHT, NONE},
    "log_softmax": {RIGHT, WRITTEN},
    "log_softmax_jvp": {OUT},
    "recur": {OUT},
    "logcumsumexp": {WRONG},
    "index_set": {RIGHT, "CopySlices"},
    "sinc_slope": {WRITTEN},
    "erfcx_slope": {LACKS},
    "widening": {WRITTEN},
    "bell": {WRITTEN},
    "log_ndtr_slope": {WRITTEN},
}
"""What becomes of the calls of an op, where that is not that all are right; nodes without a rule by name."""


LONG = {"erfcx_slope", "polygamma"}
"""Long series in torch, of which there are two orders."""


def outcome(call: Call, name: str, room: Any = ROOM) -> str:
    """Compare, and say in a word what there was to compare."""
    what, situation, given = f"{call.op.name} {name} {dict(call.sample.params)}", SITUATIONS[name], call.given()
    points, b = situation.leaves(given), BASE.dressed
    order, moves = order_of(points, room), directions(points)
    leaves = [(torch.from_numpy if name == "strided" else torch.tensor)(a).requires_grad_() for a in points]
    try:
        y = situation.function(b, call.on(b, BASE), leaves, [torch.tensor(a) for a in given])
    except RuntimeError as error:
        assert "out=" in str(error), what
        return OUT
    if y.grad_fn is None:
        return NONE
    try:
        controller = ng.backward(y, order=order, crossings=True)
    except MutatedError:
        return WRITTEN
    except UnsupportedNode as error:
        return str(error).split("got ")[1].split(";")[0].removeprefix("a graph with ").split(",")[0].split(" with ")[0]
    reached = [k for k, x in enumerate(leaves) if _reached(controller, x)]
    found = [total(controller, [leaves[k] for k in reached], [moves[k] for k in reached], k, what) for k in range(1, order + 1)]
    scale = weights(y.shape).reshape(-1)
    try:
        right = weighted(y, leaves, moves, order)
    except RuntimeError:
        result = LACKS
    else:
        errors = [abs(float(part @ scale) - want) for (part, _), want in zip(found, right, strict=True)]
        good = all(error <= 1e-8 * (size * scale.size + 1e-3) for error, (_, size) in zip(errors, found, strict=True))
        result = RIGHT if good else WRONG
    if result is not RIGHT:
        ops = DIGITS.dressed
        constants = [DIGITS.cast(a, float) for a in given]
        exact = along(lambda zs: situation.function(ops, call.on(ops, DIGITS), zs, constants), points, moves, order)
        for k, ((part, size), want) in enumerate(zip(found, exact, strict=True), 1):
            error = abs(part - want.reshape(-1)).max(initial=0.0)
            assert error <= 1e-8 * (size + 1e-3), f"{what}: {result}, and order {k} is off by {error}, beside {size}"
    return result


def _reached(controller: ng.Controller, x: Any) -> bool:
    try:
        controller.fetch_hgrad((x,))
    except ArgumentError:
        return False
    return True


def entries(call: Call) -> tuple[bool, int]:
    """How many entries the leaves have; none are last."""
    size = sum(a.size for a in call.given())
    return not size, size


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_the_graph_of_an_op_at_its_smallest_sample(op: Any) -> None:
    call = min((call for call in calls(op) if call.fits("plain") and not _mask(call)), key=entries)
    assert outcome(call, "plain", LITTLE if op.name in LONG else ROOM) in EXPECTED.get(op.name, {RIGHT})


@pytest.mark.slow  # half a minute: torch's own third and fourth derivatives
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_the_graph_of_an_op_at_all_its_samples(op: Any) -> None:
    room = LITTLE if op.name in LONG else ROOM
    found = {outcome(call, "plain", room) for call in calls(op) if call.fits("plain") and not _mask(call)}
    assert found == EXPECTED.get(op.name, {RIGHT})


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_the_graph_of_an_op_in_a_situation(op: Any) -> None:
    for name, call in chosen(op, 1):
        assert outcome(call, name, LITTLE if op.name in LONG else ROOM) in EXPECTED.get(op.name, set()) | {RIGHT}


@pytest.mark.slow
@pytest.mark.parametrize("name", SITUATIONS)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_the_graph_of_an_op_at_all_its_samples_in_all_situations(op: Any, name: str) -> None:
    for call in calls(op):
        if call.fits(name) and not _mask(call):
            assert outcome(call, name, WIDE) in EXPECTED.get(op.name, set()) | {RIGHT}


def _mask(call: Call) -> bool:
    """Whether torch wants another dtype for what is no leaf: a mask of no entries has no values that would tell."""
    return call.op.name == "where" and 0 in np.shape(call.arrays()[0])
