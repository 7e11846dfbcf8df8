"""Random functions of inputs of two dtypes: a map is the loop in its dtype, too, and a tangent has the dtype of its value."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from random_functions import MIXED, RandomFunction, functions, of_nestgrad, runs

import nestgrad as ng
from nestgrad import func

BACKENDS = {"numpy": ng.NumpyBackend(), "torch": ng.TorchBackend(dtype="float64")}


def near(found: Any, expected: Any, story: Any) -> None:
    """Assert that shapes and dtypes agree, and numbers to the digits of the shorter dtype."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype), story
    a, b = found.numpy(), expected.numpy()
    if a.size and np.isfinite(b).all():
        assert np.abs(a - b).max() <= 1e-3 * max(1.0, np.abs(b).max()), (story, a, b)


def compare(data: Any, f: RandomFunction) -> None:
    base = BACKENDS[data.draw(st.sampled_from(sorted(BACKENDS)))]
    run = f.over(of_nestgrad(base))
    outputs = lambda *xs: run(*xs) if f.several else (run(*xs),)
    xs = [base.tensor(x) for x in f.inputs]
    axes = (0, *(data.draw(st.sampled_from((0, None))) for _ in xs[1:]))
    many = [x if axis is None else ng.stack([0.5 * x, x, 0.9 * x]) for x, axis in zip(xs, axes, strict=True)]
    loop = [outputs(*[x if axis is None else x[k] for x, axis in zip(many, axes, strict=True)]) for k in range(3)]
    for k, found in enumerate(func.vmap(outputs, axes)(*many)):
        near(found, ng.stack([row[k] for row in loop]), (f, base, axes))
    i = data.draw(st.integers(0, len(xs) - 1))
    tangents(lambda x: outputs(*xs[:i], x, *xs[i + 1 :]), xs[i], (f, base, i))


def tangents(g: Any, x: Any, story: Any) -> None:
    """By one of the inputs, while the others stand still."""
    t = 0.7 * x
    values, found = func.jvp(g, (x,), (t,))
    assert [y.dtype for y in found] == [y.dtype for y in values], story
    for row in func.taylor(g, x, t, 3)[1:]:
        assert [y.dtype for y in row] == [y.dtype for y in values], story
    mapped = func.vmap(lambda x, t: func.jvp(g, (x,), (t,))[1])(ng.stack([x, x]), ng.stack([t, t]))
    for expected, other, second in zip(found, func.linearize(g, x)[1](t), mapped, strict=True):
        near(other, expected, story)
        near(second[1], expected, story)
    values, pullback = func.vjp(g, x)
    assert pullback(values)[0].dtype == x.dtype, story


@runs(30)
@given(data=st.data())
def test_dtypes_are_those_of_the_loop_and_of_the_values(data):
    compare(data, data.draw(functions(dtypes=MIXED)))


@pytest.mark.fuzz
@runs(2000, long=True)
@given(data=st.data())
def test_more_dtypes_are_those_of_the_loop_and_of_the_values(data):
    compare(data, data.draw(functions(dtypes=MIXED)))
