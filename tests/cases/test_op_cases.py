"""Gradients and second derivatives of single operations, as figures that were computed elsewhere.

The first order is Burn's own, the second order is the gradient of Phi, a weighted sum of the first-order gradients, from PyTorch in
float64; ``op_cases.json`` tells where each figure comes from.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from expressions import evaluate
from vocabulary import call

from nestgrad import jit
from nestgrad.errors import NotTrackedError
from nestgrad.func import vjp

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "op_cases.json").read_text())["cases"]

TIES = {"scatter_nd_max_tie": {"a": [[1, 1, 1], [1, 0.5, 0], [1, 1, 1]], "v": [[0, 0.5, 1]]}}
"""Where the figures are a convention of Burn's: two equal entries get the whole derivative each. Here they share it evenly."""

CONSTANT = {"round"}
"""Expressions that depend on nothing: rounding is a constant here, so the imperative style has no graph, which is an error."""

DIGITS = 1e-10
"""The figures in float64 are printed with 12 digits."""


every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])


def _inputs(case: dict[str, Any], stack: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return (
        {name: stack.tensor(data, requires_grad=True) for name, data in case["inputs"].items()},
        {name: stack.tensor(data) for name, data in case.get("const", {}).items()},
    )


def _check_first(case: dict[str, Any], name: str, got: Any) -> None:
    want = TIES.get(case["name"], case["expected_gradients"]).get(name)
    if want is not None and not isinstance(want, dict):
        np.testing.assert_allclose(got.numpy(), want, rtol=case["rtol"], atol=case["atol"])
    exact = case.get("gradients_f64", {}).get(name)
    if exact is not None:
        _check(got, exact)


def _check(got: Any, want: Any) -> None:
    """To the printed digits; a printed zero may be a rounding of the other entries' size."""
    np.testing.assert_allclose(got.numpy(), want, rtol=DIGITS, atol=1e-12 * float(np.max(np.abs(want))))


def test_all_cases_are_there():
    assert len(CASES) == 64


@every_case
def test_backward_of_ones_gives_the_gradient_of_the_sum(case, stack):
    inputs, constants = _inputs(case, stack(1))
    y = evaluate(case["expression"], inputs | constants, call)
    if case["name"] in CONSTANT:
        with pytest.raises(NotTrackedError, match="depends on nothing that requires gradients"):
            y.backward()
        return
    if "forward" in case:
        np.testing.assert_allclose(y.numpy(), case["forward"], rtol=case["rtol"])
    grads = y.backward()
    for name, x in inputs.items():
        _check_first(case, name, x.grad(grads))


@every_case
def test_vjp_of_ones_gives_the_gradient_of_the_sum(case, base):
    names = list(case["inputs"])
    constants = {name: base.tensor(data) for name, data in case.get("const", {}).items()}

    def f(*inputs: Any) -> Any:
        return evaluate(case["expression"], dict(zip(names, inputs, strict=True)) | constants, call)

    y, pullback = vjp(f, *(base.tensor(case["inputs"][name]) for name in names))
    for name, g in zip(names, pullback(np.ones(y.shape)), strict=True):
        _check_first(case, name, g)


@every_case
def test_the_gradient_of_a_weighted_sum_of_gradients_is_the_second_order(case, stack):
    if "second_order_f64" not in case:
        case = case | {"second_order_f64": {}}
    inputs, constants = _inputs(case, stack(2))
    y = evaluate(case["expression"], inputs | constants, call)
    if case["name"] in CONSTANT:
        assert y.tracked_on() == () and not y.marks
        return
    for name, h in zip(inputs, _second(y, list(inputs.values())), strict=True):
        _check_second(case, name, inputs[name], h)


@pytest.mark.parametrize("inside", [0, 1, 2])
@every_case
def test_compiled_with_none_one_or_both_orders_inside(case, inside, stack):
    """Once at another point, too, before the one that is compared."""
    if case["name"] in CONSTANT:
        return
    case = {"second_order_f64": {}} | case
    S = stack(2)
    inputs, constants = _inputs(case, S)

    def f(*xs: Any) -> Any:
        y = evaluate(case["expression"], dict(zip(inputs, xs, strict=True)) | constants, call)
        return y if inside == 0 else _phi(y, xs) if inside == 1 else _second(y, xs)

    compiled = jit(f)
    compiled(*(S.tensor(x.numpy() * 0.9, requires_grad=True) for x in inputs.values()))
    xs = list(inputs.values())
    made = compiled(*xs)
    if inside == 0:
        grads = made.backward()
        for name, x in inputs.items():
            _check_first(case, name, x.grad(grads))
    found = made if inside == 2 else _second(made, xs) if inside == 0 else [x.grad(made.backward()) for x in xs]
    for name, h in zip(inputs, found, strict=True):
        _check_second(case, name, inputs[name], h)


def _phi(y: Any, xs: Sequence[Any]) -> Any:
    """The weighted sum of the gradients of the sum of ``y``."""
    grads = y.backward()
    return sum((_weights(k, x.shape) * x.grad(grads)).sum() for k, x in enumerate(xs))


def _second(y: Any, xs: Sequence[Any]) -> list[Any]:
    """Its derivatives."""
    grads = _phi(y, xs).backward()
    return [x.grad(grads) for x in xs]


def _check_second(case: dict[str, Any], name: str, x: Any, h: Any) -> None:
    want = case["second_order_f64"]
    assert h.shape == x.shape
    if want == "zero":
        assert np.abs(h.numpy()).max() <= 1e-12
    elif name in want:
        _check(h, want[name])


def _weights(k: int, shape: tuple[int, ...]) -> Any:
    """The weights of Phi, as the head of the case file defines them."""
    i = np.arange(int(np.prod(shape)))
    return (((5 * i + 3 * k) % 7 - 3) / 2.0).reshape(shape)
