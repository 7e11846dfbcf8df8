"""Links of linear maps whose coefficients are known, found by running them on numbered entries.

A map that moves entries about, and scales them perhaps, shows where each entry of its answer comes from: run on ones, on the numbers of the
entries, and on numbers drawn at random, it gives ``c``, ``c k`` and ``c r_k`` for entry ``k``. What is a mixture of several entries fails
this test. Of a sum, or of entries that are added to places, the transpose is such a map.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from nestgrad.dependence.pattern import HOST, Links, gathering, taking

Shape = tuple[int, ...]
Map = Callable[[list[Any]], Sequence[Any]]
"""From arrays of the base backend to arrays of it, linear in all of them together."""

_DRAWS = 2
"""How many times entries are named at random: two mixtures would have to hit the number of one entry by chance."""


def forward(base: Any, f: Map, shapes: Sequence[Shape], wanted: Sequence[bool]) -> list[Links] | None:
    """Links of each result of ``f`` from the entries of those arguments that are ``wanted``, one after the other; ``None`` for mixtures.

    Args:
        base: The base backend, on which ``f`` runs.
        f: A linear map.
        shapes: Of its arguments.
        wanted: Which of them count. The others are zero.
    """
    size = sum(prod(shape) for shape, want in zip(shapes, wanted, strict=True) if want)
    answers = [f(_arguments(base, label, shapes, wanted)) for label in _labels(size)]
    found = []
    for values in zip(*answers, strict=True):
        places = _places(base, values, size)
        if places is None:
            return None
        found.append(taking(places, size))
    return found


def transposed(base: Any, f: Callable[[Any], Any], shape: Shape, out_shape: Shape) -> Links | None:
    """Links of a linear map of one argument of ``shape``, by its transpose ``f``, from arrays of ``out_shape``."""
    size = prod(out_shape)
    answers = [f(_arguments(base, label, [out_shape], [True])[0]) for label in _labels(size)]
    if any(tuple(base.shape(answer)) != shape for answer in answers):
        return None
    places = _places(base, answers, size)
    return None if places is None else gathering(places, size)


def _labels(size: int) -> list[Any]:
    drawing = HOST.generator(size)
    return [HOST.full((size,), 1.0), HOST.arange(1, size + 1) * 1.0, *(HOST.uniform((size,), drawing) + 1.0 for _ in range(_DRAWS))]


def _arguments(base: Any, label: Any, shapes: Sequence[Shape], wanted: Sequence[bool]) -> list[Any]:
    made, start = [], 0
    for shape, want in zip(shapes, wanted, strict=True):
        if want:
            stop = start + prod(shape)
            made.append(base.asarray(label[start:stop].reshape(shape)))
            start = stop
        else:
            made.append(base.asarray(HOST.full(shape, 0.0)))
    return made


def _places(base: Any, values: Sequence[Any], size: int) -> Any:
    """Which entry each entry of the answer is a multiple of, -1 where it is zero; ``None`` if one is a mixture."""
    short = "64" not in str(base.dtype(values[0]))  # single precision, as after a cast
    ones, numbers, *draws = (HOST.cast(HOST.asarray(base.to_numpy(v)), "float64").reshape(-1) for v in values)
    zero = (ones == 0.0) & (numbers == 0.0)
    for draw in draws:
        zero = zero & (draw == 0.0)
    scale = HOST.where(ones == 0.0, 1.0, ones)
    exact = numbers / scale
    place = HOST.where(zero, 0.0, exact).round().clip(1, max(size, 1)).astype("int64") - 1
    fits = (abs(exact - (place + 1)) <= (1e-3 if short else 1e-6)) & (ones != 0.0)
    for draw, label in zip(draws, _labels(size)[2:], strict=True):
        fits = fits & (abs(draw / scale - (label[place] if size else 0.0)) <= (1e-5 if short else 1e-9))
    return HOST.where(zero, -1, place) if bool((fits | zero).all()) else None
