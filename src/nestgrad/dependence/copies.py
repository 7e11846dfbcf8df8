"""Linear maps whose coefficients are known, found out by running them on numbered entries.

A map that moves entries about, and scales them perhaps, shows where each entry of its answer comes from: run on ones, on the numbers of the
entries, and on numbers drawn at random, it gives ``c``, ``c k`` and ``c r_k`` for entry ``k``. What is a mixture of several entries fails
this test. Of a sum, or of entries that are added to places, the transpose is such a map.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from nestgrad.dependence.pattern import HOST

Shape = tuple[int, ...]
Map = Callable[[list[Any]], Sequence[Any]]
"""From arrays of the base backend to arrays of it, linear in all of them together."""

Places = Any
"""An int array: for each entry of an answer the entry of the argument that it is a multiple of, or -1 where it is zero."""


def sources(base: Any, f: Map, shapes: Sequence[Shape], wanted: Sequence[bool]) -> list[Places] | None:
    """Where each entry of each result of ``f`` comes from; ``None`` if one is a mixture.

    Args:
        base: The base backend, on which ``f`` runs.
        f: A linear map.
        shapes: Of its arguments.
        wanted: Which of them count; their entries are numbered one after the other. The others are zero.
    """
    labels = _labels(sum(prod(shape) for shape, want in zip(shapes, wanted, strict=True) if want))
    answers = [f(_arguments(base, label, shapes, wanted)) for label in labels]
    found = []
    for values in zip(*answers, strict=True):
        places = _places(base, labels, values)
        if places is None:
            return None
        found.append(places)
    return found


def targets(base: Any, f: Callable[[Any], Any], shape: Shape, out_shape: Shape) -> Places | None:
    """Where each entry of an argument of ``shape`` goes, by the transpose ``f`` of the map, from arrays of ``out_shape``."""
    labels = _labels(prod(out_shape))
    answers = [f(_arguments(base, label, [out_shape], [True])[0]) for label in labels]
    return _places(base, labels, answers) if all(tuple(base.shape(answer)) == shape for answer in answers) else None


def _labels(size: int) -> list[Any]:
    return [HOST.full((size,), 1.0), HOST.arange(1, size + 1) * 1.0, HOST.uniform((size,), HOST.generator(size)) + 1.0]


def _arguments(base: Any, label: Any, shapes: Sequence[Shape], wanted: Sequence[bool]) -> list[Any]:
    made, start = [], 0
    for shape, want in zip(shapes, wanted, strict=True):
        stop = start + prod(shape) if want else start
        made.append(base.asarray(label[start:stop].reshape(shape) if want else HOST.full(shape, 0.0)))
        start = stop
    return made


def _places(base: Any, labels: Sequence[Any], values: Sequence[Any]) -> Places | None:
    size = len(labels[0])
    ones, numbers, drawn = (HOST.cast(HOST.asarray(base.to_numpy(v)), "float64").reshape(-1) for v in values)
    zero = (ones == 0.0) & (numbers == 0.0) & (drawn == 0.0)
    scale = HOST.where(ones == 0.0, 1.0, ones)
    exact = HOST.where(zero, 1.0, numbers / scale)
    places = exact.round().clip(1, max(size, 1)).astype("int64") - 1
    label = labels[2][places] if size else drawn
    fits = (abs(exact - (places + 1)) <= 1e-6) & (abs(drawn / scale - label) <= 1e-9) & (ones != 0.0)
    return HOST.where(zero, -1, places) if bool((fits | zero).all()) else None
