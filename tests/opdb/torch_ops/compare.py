"""Run the samples of one operation, on both backends, and say what passed, what was left out, and what differs."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

import nestgrad as ng
from torch_ops.derivatives import Arrays, Derivatives, LeftOut, by_nestgrad, by_torch
from torch_ops.exceptions import EXCEPTIONS
from torch_ops.samples import infos, samples
from torch_ops.table import ADAPTERS

BACKENDS = {"torch": ng.get_backend("torch", dtype="float64"), "numpy": ng.NumpyBackend()}
RTOL, ATOL = 1e-8, 1e-9
"""Both sum in another order. ATOL is relative to the largest entry, where that is above 1."""
FEWER_DIGITS = {"float32": 1e-5, "float16": 1e-2, "bfloat16": 1e-1}
"""RTOL where a result is of a narrower dtype."""
RTOL_DIFFERENCES = 1e-5
"""Central differences of torch's gradient have about ten digits, less what the third derivative takes."""


REFUSED = {
    "of an array with 0 axes": "an axis of an array without axes: an error here, as in NumPy",
    "in mode 'circular' for an axis of": "padding by a negative number from the other end: an error here",
    "expected a positive number, or inf": "vectors divided by a norm of power 0 or less: an error here",
    "expected (N, C, ...)": "a batch of one axis: an error here",
    "the first two of samples and channels": "channels without an axis of samples: an error here",
    "expected a number from 0 on, or infinity": "negative powers of a norm: an error here",
}
"""What is an error here, by words of its text."""


@dataclass
class Outcome:
    """What became of the samples of an operation.

    Attributes:
        passed: How many agree, on both backends.
        by_differences: How many of them have a second derivative that torch cannot form, so that differences are the oracle.
        left_out: By the reason, how many.
        excepted: How many differ as an exception says.
        wrong: A line for each that differs.
    """

    passed: int = 0
    by_differences: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    excepted: int = 0
    wrong: list[str] = field(default_factory=list)


@cache
def _torch(name: str, number: int) -> Derivatives:
    return by_torch(infos()[name], samples(name)[number], number, ADAPTERS[name].results)


def run(name: str, numbers: list[int], backends: tuple[str, ...] = tuple(BACKENDS)) -> Outcome:
    """Compare the samples of these numbers."""
    outcome = Outcome()
    adapter = ADAPTERS[name]
    for number in numbers:
        sample = samples(name)[number]
        try:
            theirs = _torch(name, number)
            ours = {key: by_nestgrad(adapter.call, BACKENDS[key], sample, number) for key in backends}
        except LeftOut as told:
            outcome.left_out[str(told)] += 1
            continue
        except (ng.errors.ShapeError, ng.errors.ArgumentError) as error:
            reason = next((text for words, text in REFUSED.items() if words in str(error)), None)
            if reason is not None:
                outcome.left_out[reason] += 1
            else:
                outcome.wrong.append(_failed(name, number, error))
            continue
        except Exception as error:  # every sample is to be told of
            outcome.wrong.append(_failed(name, number, error))
            continue
        found = [f"{key}: {text}" for key in backends for text in differences(ours[key], theirs)]
        if not found:
            outcome.passed += 1
            outcome.by_differences += theirs.differences
        elif name in EXCEPTIONS and all(text.partition(": ")[2].startswith(EXCEPTIONS[name].where) for text in found):
            outcome.excepted += 1
        else:
            outcome.wrong.append(f"{name} sample {number}: {shown(sample)}: {'; '.join(found)}")
    return outcome


def _failed(name: str, number: int, error: Exception) -> str:
    return f"{name} sample {number}: {shown(samples(name)[number])}: {type(error).__name__}: {error}"


def differences(ours: Derivatives, theirs: Derivatives) -> list[str]:
    """Where two differ, in words."""
    rtol = max([RTOL, *(FEWER_DIGITS.get(str(v.dtype), RTOL) for v in theirs.values)])
    found = _differ("value", ours.values, theirs.values, rtol)
    found += _differ("first", ours.first, theirs.first, rtol)
    if theirs.second is not None and ours.second is not None:
        found += _differ("second", ours.second, theirs.second, RTOL_DIFFERENCES if theirs.differences else rtol)
    return found


def _differ(what: str, ours: Arrays, theirs: Arrays, rtol: float) -> list[str]:
    if len(ours) != len(theirs):
        return [f"{what}: {len(ours)} arrays, torch {len(theirs)}"]
    found = []
    for k, (p, q) in enumerate(zip(ours, theirs, strict=True)):
        if p.shape != q.shape:
            found.append(f"{what} {k}: shape {p.shape}, torch {q.shape}")
            continue
        p, q = p.astype(float), q.astype(float)
        finite = np.abs(q[np.isfinite(q)])
        scale = max(1.0, finite.max()) if finite.size else 1.0
        close = np.isclose(p, q, rtol=rtol, atol=rtol / RTOL * ATOL * scale, equal_nan=True)
        if not close.all():
            place = tuple(np.argwhere(~close)[0])
            found.append(f"{what} {k} at {tuple(map(int, place))} of {p.shape}: {p[place]!r}, torch {q[place]!r} ({(~close).sum()} differ)")
    return found


def shown(sample: Any) -> str:
    """A sample in one line."""

    def short(x: Any) -> str:
        if hasattr(x, "shape") and hasattr(x, "dtype"):
            return f"{str(x.dtype).removeprefix('torch.')}{list(x.shape)}"
        if isinstance(x, (list, tuple)):
            return f"({', '.join(map(short, x))})"
        return repr(x)

    parts = [short(sample.input), *map(short, sample.args), *(f"{k}={short(v)}" for k, v in sample.kwargs.items())]
    return f"({', '.join(parts)})"
