"""Random programs on levels and in torch, some through derivatives: all partials to order 3 against nested backward passes of torch."""

from itertools import combinations_with_replacement, product
from math import prod
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the oracle is torch's")

from contracting import array, directions, total  # noqa: E402
from hypothesis import HealthCheck, assume, given, settings, strategies as st  # noqa: E402
from nested_oracle import weighted, weights  # noqa: E402
from random_graphs import OURS, THEIRS, Drawn, numbers, programs  # noqa: E402

import nestgrad as ng  # noqa: E402

# Seeded, so that a run says the same each time; the machine is shared, so no deadline.
RUN = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
LONG = settings(RUN, max_examples=1500, derandomize=False)

ORDER = 3


def torch_run(program: Drawn, points: list[Any]) -> tuple[Any, list[Any]]:
    """The output and the leaves, if it depends on any of them in a way that differences can tell."""
    leaves = [torch.tensor(p, requires_grad=True) for p in points]
    y = program.run(THEIRS, leaves)
    assume(y.grad_fn is not None)
    assume(bool(torch.isfinite(y).all()) and y.numel())
    return y, leaves


def our_run(program: Drawn, points: list[Any], depth: int) -> tuple[Any, list[Any]]:
    """The same on levels."""
    stack: Any = ng.NumpyBackend()
    for _ in range(depth):
        stack = ng.Autodiff(stack)
    leaves = [stack.tensor(p, requires_grad=True) for p in points]
    return program.run(OURS, leaves), leaves


def by_hand(batched: Any, indeps: Any, out: Any, shapes: Any) -> Any:
    """The dense array of one with independent axes, entry by entry, as the words of ``Block.batched`` have it."""
    axes = len(indeps[0]) if indeps else 0
    dense = np.zeros((prod(out), *(n for shape in shapes for n in shape)))
    for row, at in enumerate(np.ndindex(*out)):
        for entry in product(*[np.ndindex(*shape) for shape in shapes]):
            places = []
            for axis in range(axes):
                found = {position[slot[axis]] for position, slot in zip(entry, indeps, strict=True) if slot[axis] is not None}
                found |= {at[axis]} if found and axis < len(out) else set()
                places.append(found or {0})
            if all(len(found) == 1 for found in places):
                rest = [n for position, slot in zip(entry, indeps, strict=True) for k, n in enumerate(position) if k not in slot]
                dense[(row, *(n for position in entry for n in position))] = batched[(row, *(min(f) for f in places), *rest)]
    return dense


def compare(y: Any, leaves: list[Any], right: Any, points: list[Any], what: str) -> None:
    """All partials of ``y``, dense and with independent axes, with and without a gradient, are those of torch's output and leaves."""
    moves = directions(leaves)
    truth = weighted(*right, moves, ORDER)
    scale = weights(y.shape)
    known = [x for x in leaves if reached(y, x)]
    if not known:
        assert truth == [0.0] * ORDER, what
        return
    moves = [v for x, v in zip(leaves, moves, strict=True) if any(x is k for k in known)]
    controller = ng.backward(y, order=ORDER, crossings=True)
    seeded = ng.Controller(y)
    for k in range(1, ORDER + 1):
        found, size = total(controller, known, moves, k, what)
        error = abs(float(found @ scale.reshape(-1)) - truth[k - 1])
        assert error <= 1e-8 * (1e-3 + size * scale.size), f"{what}: order {k} is off by {error}"
    if ORDER * sum(prod(x.shape) for x in known) <= 12:
        seeded.backward(order=2, gradient=like(y, scale), crossings=True, keep_batch=True)
        for key in [(x,) for x in known] + [*combinations_with_replacement(known, 2)]:
            shapes = [tuple(x.shape) for x in key]
            dense = array(controller.fetch_hgrad(key)[0])
            got, (_, indeps, _) = controller.fetch_hgrad(key, keep_batch=True)
            np.testing.assert_array_equal(by_hand(array(got), indeps, tuple(y.shape), shapes), dense, err_msg=what)
            summed = array(seeded.fetch_hgrad(key)[0])
            want = np.tensordot(scale.reshape(-1), dense, (0, 0))[None]
            np.testing.assert_allclose(summed, want, rtol=1e-9, atol=1e-10 * (1 + abs(dense).max(initial=0.0)), err_msg=what)


def like(y: Any, numbers: Any) -> Any:
    """Numbers as a tensor of the kind of ``y``."""
    return torch.tensor(numbers) if isinstance(y, torch.Tensor) else ng.tensor(numbers)


def reached(y: Any, x: Any) -> bool:
    """Whether the graph of ``y`` has the leaf."""
    try:
        ng.Controller(y).require_grad_((x,))
    except ng.errors.NestgradError:
        return False
    return True


def both(program: Drawn, seed: int, depth: int) -> None:
    points = numbers(program.leaves, seed)
    theirs = torch_run(program, points)
    truth = weighted(*theirs, directions(theirs[1]), ORDER)
    assume(bool(np.isfinite(truth).all()) and max(map(abs, truth)) < 1e6)
    y, leaves = our_run(program, points, depth)
    np.testing.assert_allclose(y.numpy(), theirs[0].detach().numpy(), rtol=1e-9, atol=1e-9)
    compare(y, leaves, theirs, points, f"on {depth} levels, {program}")
    compare(*theirs, theirs, points, f"in torch, {program}")


@RUN
@given(programs(), st.integers(0, 99))
def test_random_programs(program: Drawn, seed: int) -> None:
    both(program, seed, 1)


@RUN
@given(programs(slopes=1), st.integers(0, 99))
def test_random_programs_through_a_derivative(program: Drawn, seed: int) -> None:
    both(program, seed, 2)


@settings(RUN, max_examples=20)
@given(programs(slopes=2), st.integers(0, 99))
def test_random_programs_through_two_derivatives(program: Drawn, seed: int) -> None:
    both(program, seed, 3)


@pytest.mark.slow
@LONG
@given(st.data(), st.integers(0, 2), st.integers(0, 9999))
def test_many_random_programs(data: st.DataObject, slopes: int, seed: int) -> None:
    both(data.draw(programs(slopes=slopes)), seed, slopes + 1)
