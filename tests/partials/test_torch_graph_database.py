"""Torch's own database of operations: whatever graph an operation makes is adopted right, or refused by name."""

from typing import Any

import pytest
import torch
from adopted import Run
from nested_oracle import change, gradient

from nestgrad.backends.torch import graph as room
from nestgrad.errors import UnsupportedNode

common = pytest.importorskip("torch.testing._internal.common_methods_invocations", reason="torch's database needs expecttest")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

SAMPLES, ENTRIES = 2, 100

OTHERWISE = {
    "native_group_norm": "torch has no derivatives of the mean and the deviation that it returns beside",
    "cov": "samples of two precisions: torch's second derivatives have the lower one's digits",
}
"""Where torch is not right, or not exact."""


def _operations():
    return [op for op in common.op_db if op.supports_dtype(torch.float64, "cpu") and op.supports_autograd and op.name not in OTHERWISE]


def _leaves(value: Any) -> list[torch.Tensor]:
    """Variables in the arguments of a sample, each once."""
    if isinstance(value, torch.Tensor):
        return [value] if value.requires_grad and value.is_leaf else []
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    found: list[torch.Tensor] = []
    for part in parts:
        found += [x for x in _leaves(part) if not any(x is y for y in found)]
    return found


def _samples(op):
    try:
        samples = list(op.sample_inputs("cpu", torch.float64, requires_grad=True))
    except (RuntimeError, ImportError, NotImplementedError) as error:
        pytest.skip(f"torch makes no samples: {error}")
    small = [s for s in samples if sum(x.numel() for x in _leaves((s.input, s.args, s.kwargs))) < ENTRIES]
    return small[:: max(1, len(small) // SAMPLES)]


def _plain(out):
    """Whether ``out`` is a tensor of doubles with a graph that has a rule for each node."""
    return (isinstance(out, torch.Tensor) and out.requires_grad and out.dtype == torch.float64 and out.layout == torch.strided
            and out.numel() < 200 and not room.unsupported(out, room.index()))  # fmt: skip


def _truth(out, variables, weights, along):
    """The gradient of torch, and its change along a line, where torch knows that."""
    total = (out * weights).sum()
    try:
        second = gradient(change(total, variables, along), variables)
    except RuntimeError as error:
        assert "not implemented" in str(error) or "not differentiable" in str(error), str(error)
        return gradient(total, variables), None
    return gradient(total, variables), second


def _compared(out, variables):
    """Assert that the derivatives of ``out`` are those of torch; whether there was something finite to compare."""
    numbers = torch.Generator().manual_seed(0)
    weights, *along = (torch.randn(x.shape, dtype=x.dtype, generator=numbers) for x in (out, *variables))
    first, second = _truth(out, variables, weights, along)
    if not all(bool(x.isfinite().all()) for x in (out, *first, *(second or ()))):
        return False
    run = Run(out, variables)
    for expected, tangents in ((first, None), (second, along)):
        for got, x in zip(run.gradient(weights, tangents) if expected else (), expected or (), strict=True):
            scale = 1.0 + float(x.detach().abs().amax()) if x.numel() else 1.0
            torch.testing.assert_close(got.to(x.dtype), x, rtol=1e-8, atol=1e-8 * scale)
    return True


@pytest.mark.parametrize("op", _operations(), ids=lambda op: f"{op.name}.{op.variant_test_name}".strip("."))
def test_all_operations(op):
    compared = 0
    for sample in _samples(op):
        torch.manual_seed(0)
        try:
            found = op(sample.input, *sample.args, **sample.kwargs)
        except RuntimeError:
            continue  # samples that are errors
        variables = _leaves((sample.input, sample.args, sample.kwargs))
        for out in found if isinstance(found, (list, tuple)) else [found]:
            if _plain(out):
                try:
                    compared += _compared(out, variables)
                except UnsupportedNode:
                    continue  # a node of which some settings have no rule
    if not compared:
        pytest.skip("nothing with derivatives that torch knows and that has rules")
