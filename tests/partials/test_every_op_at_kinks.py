"""Every op where it has a kink, or a derivative that is none: printed special points, ties, zeros; on a level, and as torch's graph."""

from math import prod
from typing import Any

import numpy as np
import pytest
from contracting import array, directions, total
from graph_cases import along, tensor
from op_cases import BASE, OPS, Call, calls

import nestgrad as ng
from nestgrad.errors import SingularMatrixError
from nestgrad.ops import TABLE
from nestgrad.ops.samples import native
from nestgrad.testing.calling import called

SPECIAL = [(op, point) for op in TABLE.values() for point in op.samples.special]
ORDER = 3

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize("after", ["alone", "summed"])
@pytest.mark.parametrize("op, point", SPECIAL, ids=[f"{op.name} at {point}" for op, point in SPECIAL])
def test_derivatives_at_special_points_are_the_printed_ones(op: Any, point: Any, after: str) -> None:
    """Of a number, and in an array; where none is printed the answer is infinite or NaN."""
    printed, values = op.samples.special[point], point if isinstance(point, tuple) else (point,)
    count = len(op.arguments)
    params = native(BASE, dict(zip(op.params, values[count:], strict=True)))
    for shape in ((), (2,)):
        x = ng.Autodiff(BASE).tensor(np.full(shape, values[0]), requires_grad=True)
        y = called(op, x, *[BASE.tensor(v) for v in values[1:count]], **params)
        ng.backward(y.sum() if after == "summed" else y, order=len(printed))
        for k, want in enumerate(printed, 1):
            dense = array(x.hgrad[k - 1]).reshape(-1, *(prod(shape),) * k)
            for n in range(prod(shape)):
                entry = dense[(n if after == "alone" else 0, *(n,) * k)]
                if want is None:
                    assert not np.isfinite(entry), f"order {k}: got {entry}, expected infinity or NaN"
                else:
                    assert entry == pytest.approx(want, rel=1e-14, abs=1e-14), f"order {k}"
                    dense[(n if after == "alone" else 0, *(n,) * k)] = 0.0
            assert None in printed or not dense.any(), f"order {k}: there is something beside the diagonal"


POINTS = {"zero": np.zeros_like, "tie": lambda a: np.full_like(a, a.flat[0] if a.size else 0.0), "pairs": lambda a: np.round(a)}
"""All entries 0, all the same, and whole numbers, of which some are the same."""

SMALL = 9


def cases(op: Any) -> list[Call]:
    """Of ordinary size."""
    return [call for call in calls(op) if call.fits("plain") and 0 < sum(a.size for a in call.given()) <= SMALL]


@pytest.mark.parametrize("name", POINTS)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_ties_and_zeros_on_a_level(op: Any, name: str) -> None:
    """All partials are those that nested tangents of the op itself give, wherever these are finite."""
    b = BASE.dressed
    for call in cases(op)[: 1 + (name == "zero")]:
        points = [np.asarray(POINTS[name](a)) for a in call.given()]
        moves = directions(points)
        level = ng.Autodiff(BASE)
        leaves = [level.tensor(p, requires_grad=True) for p in points]
        with np.errstate(all="ignore"):
            try:
                y = tensor(b, call.on(b, BASE)(*[x.value for x in leaves]))
            except SingularMatrixError:
                continue
            if not np.isfinite(y.numpy()).all():
                continue
            try:
                right = along(b, lambda zs, call=call: call.on(b, BASE)(*zs), points, moves, ORDER)
            except SingularMatrixError:
                with pytest.raises(SingularMatrixError):
                    ng.backward(y, order=ORDER, crossings=True)
                continue
            controller = ng.backward(y, order=ORDER, crossings=True)
            for k in range(1, ORDER + 1):
                found, size = total(controller, leaves, moves, k, f"{op.name} {name}")
                want = np.zeros(np.shape(found)) if right[k] is None else np.broadcast_to(right[k], y.shape).reshape(-1)
                good = np.isfinite(want)
                error = abs(found - want)[good].max(initial=0.0)
                assert error <= 1e-9 * (1 + (size if np.isfinite(size) else 0.0)), (
                    f"{op.name} {name} {call.sample}: order {k} is off by {error}"
                )


SEAM = {"elu": 2, "selu": 2, "celu": 2, "prelu": 2}
"""Where torch takes the slope at 0 from one side, and a second derivative from the other; with the order."""

OTHERWISE = {"zero": SEAM, "tie": {}, "pairs": SEAM | {"sin, elu": 2, "sin, selu": 2, "sin, celu": 2}}
"""Where torch has another second derivative at a kink."""


@pytest.mark.parametrize("name", POINTS)
def test_ties_and_zeros_in_torch(name: str) -> None:
    """All partials to order 2 of the graphs of functions with kinks are those of nested backward passes, wherever these are finite."""
    torch = pytest.importorskip("torch", reason="these are graphs that PyTorch recorded")
    from nested_oracle import weighted, weights

    checked, off = [], {}
    for kind, f in kinks(torch).items():
        point = POINTS[name](np.array([[0.4, -1.2], [1.6, 0.6]]))
        leaves = [torch.tensor(p, requires_grad=True) for p in (point, point[0] if name == "pairs" else point[:, :1])]
        y, moves = f(*leaves), directions(leaves)
        right, scale = weighted(y, leaves, moves, 2), weights(y.shape).reshape(-1)
        controller = ng.backward(y, order=2, crossings=True)
        known = [k for k in range(2) if hasattr(leaves[k], "hgrad")]
        for k in (1, 2):
            if np.isfinite(right[k - 1]):
                found, size = total(controller, [leaves[n] for n in known], [moves[n] for n in known], k, f"{kind} {name}")
                error = abs(float(found @ scale) - right[k - 1])
                checked.append(kind)
                if not error <= 1e-9 * (1 + size * scale.size):
                    off.setdefault(kind, k)
    assert len(set(checked)) > 60
    assert off == OTHERWISE[name], off


def kinks(torch: Any) -> dict[str, Any]:
    """Functions of two tensors, the second of which broadcasts."""
    F = torch.nn.functional
    one = {
        "abs": torch.abs, "relu": torch.relu, "leaky_relu": F.leaky_relu, "elu": F.elu, "selu": F.selu, "celu": F.celu,
        "hardtanh": F.hardtanh, "hardswish": F.hardswish, "softshrink": F.softshrink, "hardshrink": F.hardshrink,
        "threshold": lambda x: F.threshold(x, 0.0, 0.5), "relu6": F.relu6, "softplus": F.softplus, "clamp": lambda x: x.clamp(0.0, 1.0),
        "clamp_min": lambda x: x.clamp_min(0.0), "square": torch.square, "cube": lambda x: x**3, "sin": torch.sin,
        "amax": lambda x: x.amax(1), "amin": lambda x: x.amin(0, keepdim=True), "max": lambda x: x.max(),
        "median": lambda x: x.median(1)[0],
        "sort": lambda x: x.sort(1)[0], "topk": lambda x: x.topk(2, 1)[0], "max of axis": lambda x: x.max(1)[0],
        "cummax": lambda x: x.cummax(1)[0], "prod": lambda x: x.prod(), "prod of axis": lambda x: x.prod(1),
        "cumprod": lambda x: x.cumprod(1),
        "norm": lambda x: x.norm(), "vector_norm": lambda x: torch.linalg.vector_norm(x, dim=1), "norm 1": lambda x: x.norm(p=1),
        "softmax": lambda x: x.softmax(1), "logsumexp": lambda x: x.logsumexp(0), "var": lambda x: x.var(1), "tanh": torch.tanh,
        "max_pool": lambda x: F.max_pool1d(x[None], 2)[0],
    }  # fmt: skip
    two = {
        "maximum": torch.maximum, "minimum": torch.minimum, "fmax": torch.fmax, "fmin": torch.fmin, "mul": torch.mul,
        "where": lambda x, y: torch.where(x > y, x * y, y**2), "huber": F.huber_loss, "smooth_l1": F.smooth_l1_loss, "l1": F.l1_loss,
        "mse": F.mse_loss, "clamp by": lambda x, y: torch.clamp(x, min=y), "prelu": lambda x, y: F.prelu(x, y.reshape(-1)[:1]),
    }  # fmt: skip
    found = {name: lambda x, y, f=f: f(x) * (1.0 + x.sum()) for name, f in one.items()}
    found |= {f"sin, {name}": lambda x, y, f=f: f(torch.sin(x) * y).sin() for name, f in one.items()}
    return found | {name: lambda x, y, f=f: f(x, y.expand_as(x) if "loss" in str(f) else y).exp() for name, f in two.items()}
