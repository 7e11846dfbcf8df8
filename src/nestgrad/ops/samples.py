"""Sample inputs: where an op is tested, stated beside its rules.

All numbers are plain Python, drawn from a fixed sequence, so that every backend gets the same ones.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

Nested = Any
"""A number, or a list of such."""

_GOLDEN = 0.6180339887498949

REAL, POSITIVE, UNIT = (-1.8, 1.8), (0.2, 2.5), (-0.9, 0.9)
"""Where most samples are drawn from."""

INFINITE = (None, None, None)
"""No finite derivative of any order: infinity or NaN is the honest answer."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One call: arrays as nested lists, then parameters. ``exact`` arguments (indices, masks) are not differentiated."""

    arrays: tuple[Nested, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    exact: tuple[int, ...] = ()

    def native(self, base: Any) -> tuple[list[Any], dict[str, Any]]:
        """Arrays and parameters as a base backend takes them."""
        arrays = [base.full(a.shape, 0.0) if isinstance(a, Empty) else base.asarray(a) for a in self.arrays]
        return arrays, native(base, self.params)


@dataclass(frozen=True, slots=True)
class Samples:
    """Calls at ordinary points, and ``special`` points: point -> derivatives of order 1, 2, 3 there, by the printed convention.

    A special value of ``None`` means that the derivative does not exist there, and that infinity or NaN is the honest answer.
    """

    calls: tuple[Sample, ...]
    special: Mapping[Any, tuple[float | None, ...]] = field(default_factory=dict)


class Empty(list[Any]):
    """No numbers, in a shape that nested lists cannot tell, such as ``(0, 3)``."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape


def native(base: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as a base backend takes them: index arrays and dtypes are its own."""
    made = dict(params)
    if "index" in made:
        made["index"] = tuple(base.index(part) if isinstance(part, list) else part for part in made["index"])
    if "dtype" in made:
        made["dtype"] = base.resolve_dtype(made["dtype"])
    return made


def filled(shape: tuple[int, ...], low: float, high: float, seed: int = 0) -> Nested:
    """Nested lists of the given shape with numbers well spread over the open interval."""
    if 0 in shape:
        return Empty(shape)
    points = ((k * _GOLDEN + 0.13 * seed + 0.37) % 1.0 for k in count(1))
    return _nest(shape, (low + (high - low) * (0.02 + 0.96 * p) for p in points))


def _nest(shape: tuple[int, ...], points: Iterator[float]) -> Nested:
    if not shape:
        return next(points)
    return [_nest(shape[1:], points) for _ in range(shape[0])]


def unary(low: float, high: float, special: Mapping[Any, tuple[float | None, ...]] | None = None, **params: Any) -> Samples:
    """Calls with one array of the interval: 0-d, a vector, a matrix, and none at all."""
    calls = tuple(Sample((filled(s, low, high, k),), params) for k, s in enumerate(((), (3,), (2, 3), (0,))))
    return Samples(calls, special or {})


def binary(
    x: tuple[float, float],
    y: tuple[float, float],
    special: Mapping[Any, tuple[float | None, ...]] | None = None,
    exact: tuple[int, ...] = (),
) -> Samples:
    """Calls with two arrays that broadcast in the ways that arrays do."""
    shapes: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
        ((), ()),
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((2, 1), (1, 3)),
        ((), (2, 2)),
        ((0, 3), (3,)),
    )
    return Samples(tuple(Sample((filled(s, *x, k), filled(t, *y, k + 3)), exact=exact) for k, (s, t) in enumerate(shapes)), special or {})


def shaped(shape: tuple[int, ...], *calls: Mapping[str, Any], low: float = -1.5, high: float = 1.5) -> Samples:
    """The same array called with several sets of parameters."""
    return Samples(tuple(Sample((filled(shape, low, high, k),), params) for k, params in enumerate(calls)))


def calls(*samples: Sample, special: Mapping[Any, tuple[float | None, ...]] | None = None) -> Samples:
    """Calls written out."""
    return Samples(samples, special or {})
