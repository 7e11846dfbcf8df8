"""Functions without curvature: a warning where second derivatives of a piecewise linear function are asked for."""

import warnings
from typing import Any

from nestgrad.errors import LevelError, TraceError
from nestgrad.func.mapping import vmap
from nestgrad.func.series import taylor
from nestgrad.functions.create import arange
from nestgrad.levels.base import running
from nestgrad.pde.points import Field
from nestgrad.tensor import Tensor

_ENOUGH = 64
"""At how many points to look whether slopes differ."""

_DIFFERENT = 1e-2
"""How much slopes differ, relative to the largest, where it is not by rounding: that of a deep linear net in half precision is less."""


class PiecewiseLinearWarning(UserWarning):
    """Second derivatives that are all exactly zero, of a function that is not linear: it has kinks, as relu does, and no curvature."""


def warn_of_kinks(name: str, field: Field, x: Tensor, found: Any) -> None:
    """Warn if the field is piecewise linear: no second derivative at the points ``x``, but another slope at some than at others.

    ``found`` are the second derivatives, or a tuple of which they are the last. Only where numbers can be read: not in a transform, nor
    where they are a batch, or traced. Where all are exactly zero, the field runs once more, at some of the points: what is zero may be the
    sum of a harmonic function. A second derivative along an odd direction is zero only if all are; and of a linear function, which has none
    either, all slopes are the same.
    """
    seconds = found[-1] if isinstance(found, tuple) else found
    if x.ndim != 2 or x.shape[0] < 2 or not (x.size and seconds.size) or running.get() is not None or _ignored():
        return
    if _numbers(x) is None or not _zero(seconds):
        return
    some = x.detach()[:: -(-x.shape[0] // _ENOUGH)]
    odd = (1.0 + arange(x.shape[1], backend=x.b.base)).astype(x.dtype).sin() + 1.5
    _, slopes, curvature = (c.detach() for c in vmap(lambda p: taylor(field, p, odd, 2))(some))
    if _zero(curvature) and bool(((slopes - slopes[0]).abs() > _DIFFERENT * slopes.abs().max()).any()):
        warnings.warn(
            f"{name}: all second derivatives are exactly zero, while first derivatives differ between points: the function is piecewise "
            "linear, as a net with relu is, so that a residual with second derivatives sees nothing of it. Try a smooth activation, such "
            f"as tanh, silu or softplus; or warnings.simplefilter('ignore', {PiecewiseLinearWarning.__name__}) if it is meant",
            PiecewiseLinearWarning,
            stacklevel=3,  # who called the operator
        )


def _ignored() -> bool:
    """Whether the first filter that is for this warning everywhere ignores it: then nothing is read, which a GPU would have to wait for."""
    for action, message, category, module, line in warnings.filters:
        if issubclass(PiecewiseLinearWarning, category) and not message and not module and not line:
            return action == "ignore"
    return False


def _numbers(x: Tensor) -> Any:
    """The values, as the base backend has them. ``None`` where there are none: a batch, or a value of a trace, refuses to be read."""
    try:
        return x.b.read(x.value)
    except (LevelError, TraceError):
        return None


def _zero(x: Tensor) -> bool:
    """Whether there are numbers, and all are exactly zero. Asked after each run, so past the levels and operators of Tensors."""
    base, values = x.b.base, _numbers(x)
    return values is not None and not base.to_numpy(base.amax(base.abs(values), tuple(range(x.ndim)))).item()
