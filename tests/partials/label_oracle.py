"""What labels promise, held against derivatives of the whole program that know nothing of labels."""

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import nestgrad as ng
from nestgrad import func
from nestgrad.levels.traced.program import Program
from nestgrad.partials.independence import Label, labels, shrunk, spread

BASE = ng.NumpyBackend("float64")


def derivative(program: Program, values: Sequence[Any], key: Sequence[int]) -> np.ndarray:
    """The derivative by the inputs of a key, of shape (output, inputs)."""
    f: Callable[..., Any] = lambda *xs: func.call(program, *xs)
    for number in key:
        f = _by(f, number)
    return np.asarray(f(*(ng.tensor(v) for v in values)).numpy())


def _by(f: Callable[..., Any], number: int) -> Callable[..., Any]:
    return func.jacrev(f, argnums=number)


def places(program: Program, label: Label, key: Sequence[int]) -> list[int]:
    """The axes of a derivative that carry a label."""
    output = program.outputs[0]
    found, start = [] if label.out is None else [label.out], len(output.shape)
    for number in key:
        v = program.inputs[number]
        if v in label.axes:
            found.append(start + label.axes[v])
        start += len(v.shape)
    return found


def applies(program: Program, label: Label, key: Sequence[int]) -> bool:
    """Whether a label tells something of a derivative: of one that is summed, an input of the key must carry it."""
    return label.out is not None or any(program.inputs[number] in label.axes for number in key)


def assert_labels_hold(program: Program, values: Sequence[Any], keys: Sequence[Sequence[int]], seed: int = 0) -> tuple[Label, ...]:
    """Off the diagonals derivatives vanish, on them they are those of the program for one entry, and so are values.

    Args:
        program: With one output.
        values: Of its inputs.
        keys: Numbers of inputs, for each derivative.
        seed: Which entries are looked at.

    Returns:
        The labels.
    """
    draw = random.Random(seed)
    found = labels(program, sorted({*itertools.chain(*keys)}))
    for key in keys if program.floating(program.outputs[0]) else ():
        told = [label for label in found if applies(program, label, key)]
        if not told:
            continue
        whole = derivative(program, values, key)
        for label in told:
            axes = places(program, label, key)
            rest = whole.copy()
            for i in range(label.size):
                rest[tuple(i if k in axes else slice(None) for k in range(rest.ndim))] = 0.0
            assert np.all(rest == 0.0), f"{key}: {label} has entries off the diagonal"
        scale = np.abs(whole).max(initial=0.0) + 1.0
        for cut in (told, [draw.choice(told)]):
            entry = [draw.randrange(label.size) for label in cut]
            got = derivative(shrunk(program, cut), _of_entry(program, values, cut, entry), key)
            want = whole[_index(whole.ndim, [places(program, label, key) for label in cut], entry)]
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11 * scale)
    cut = [label for label in found if label.out is not None]
    entry = [draw.randrange(label.size) for label in cut]
    (value,) = program.run(BASE, values)
    (one,) = shrunk(program, cut).run(BASE, _of_entry(program, values, cut, entry))
    np.testing.assert_allclose(one, value[_index(value.ndim, [[label.out] for label in cut], entry)], rtol=1e-12, atol=1e-13)
    return found


def _of_entry(program: Program, values: Sequence[Any], cut: Sequence[Label], entry: Sequence[int]) -> list[Any]:
    """The inputs of one entry of each label."""
    found = []
    for v, x in zip(program.inputs, values, strict=True):
        index = tuple(i if v in label.axes else 0 for i, label in zip(entry, cut, strict=True))
        found.append(np.asarray(spread(BASE, v, x, cut))[index])
    return found


def _index(rank: int, axes: Sequence[Sequence[Any]], entry: Sequence[int]) -> tuple[slice, ...]:
    """One entry along some axes, which stay."""
    index = [slice(None)] * rank
    for i, own in zip(entry, axes, strict=True):
        for k in own:
            index[k] = slice(i, i + 1)
    return tuple(index)


def carriers(program: Program, found: Sequence[Label]) -> list[tuple[int, dict[int, int], int | None]]:
    """Labels in short: size, axis by the number of the input, axis of the output."""
    return [(label.size, {k: label.axes[v] for k, v in enumerate(program.inputs) if v in label.axes}, label.out) for label in found]
