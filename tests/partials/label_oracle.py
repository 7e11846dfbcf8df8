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
    """Off the diagonals derivatives vanish, and on them they are those of the program for one entry.

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
    for key in keys:
        told = [label for label in found if applies(program, label, key)]
        if not told:
            continue
        whole = derivative(program, values, key)
        scale = np.abs(whole).max(initial=0.0) + 1.0
        for label in told:
            axes = places(program, label, key)
            rest = whole.copy()
            for i in range(label.size):
                rest[tuple(i if k in axes else slice(None) for k in range(rest.ndim))] = 0.0
            assert np.all(rest == 0.0), f"{key}: {label} has entries off the diagonal"
        for cut in (told, [draw.choice(told)]):
            program_of_one, entry = shrunk(program, cut), [draw.randrange(label.size) for label in cut]
            one = [
                spread(BASE, v, x, cut)[tuple(i if v in label.axes else 0 for i, label in zip(entry, cut, strict=True))]
                for v, x in zip(program.inputs, values, strict=True)
            ]
            index: list[Any] = [slice(None)] * whole.ndim
            for i, label in zip(entry, cut, strict=True):
                for k in places(program, label, key):
                    index[k] = slice(i, i + 1)
            np.testing.assert_allclose(derivative(program_of_one, one, key), whole[tuple(index)], rtol=1e-9, atol=1e-11 * scale)
            if all(label.out is not None for label in cut):
                (got,), (want,) = program_of_one.run(BASE, one), program.run(BASE, values)
                np.testing.assert_allclose(got, want[tuple(index[: want.ndim])], rtol=1e-12, atol=1e-13)
    return found


def carriers(program: Program, found: Sequence[Label]) -> list[tuple[int, dict[int, int], int | None]]:
    """Labels in short: size, axis by the number of the input, axis of the output."""
    return [(label.size, {k: label.axes[v] for k, v in enumerate(program.inputs) if v in label.axes}, label.out) for label in found]
