"""Patterns of single operations hold every entry of the derivative that is not zero, for each op of the table."""

import numpy as np
import pytest
from dense import nonzeros, pattern_of

import nestgrad as ng
from nestgrad.func import grad
from nestgrad.ops import TABLE, Kind
from nestgrad.tensor.handle import make

BASE = ng.NumpyBackend()


def cases(most=None):
    """Each op that has a derivative, on each of its samples, or on so many at most."""
    return [
        pytest.param(op, sample, id=f"{op.name}-{number}")
        for op in TABLE.values()
        if op.kind is not Kind.CONSTANT
        for number, sample in enumerate(op.samples.calls[:most])
    ]


def joined(op, sample):
    """The op as a function of all its arguments that are numbers, end to end; and where it is sampled."""
    arrays, params = sample.native(BASE)
    moving = [i for i in range(len(arrays)) if i not in sample.exact and BASE.is_floating(arrays[i])]
    point = np.concatenate([arrays[i].reshape(-1) for i in moving]) if moving else np.zeros(0)

    def f(x):
        given, start = list(arrays), 0
        for i in moving:
            size = arrays[i].size
            given[i] = x[start : start + size].reshape(arrays[i].shape).value
            start += size
        out = BASE.dressed.run(op, given, op.bound((), params))
        outs = [v for name, v in zip(op.results, out, strict=True) if name not in op.fixed] if op.results else [out]
        return ng.concat([make(x.b, v, x.marks).reshape(-1) for v in outs])

    return f, point


@pytest.mark.parametrize(("op", "sample"), cases(most=2))
def test_the_pattern_of_an_op_holds_its_jacobian(op, sample):
    f, point = joined(op, sample)
    if point.size:
        assert not (nonzeros(f, point) & ~pattern_of(f, point)).any()


@pytest.mark.parametrize(("op", "sample"), cases(most=1))
def test_the_pattern_of_a_gradient_holds_its_hessian(op, sample):
    f, point = joined(op, sample)
    if point.size:
        weights = np.linspace(0.5, 1.5, f(ng.tensor(point)).shape[0])
        slope = grad(lambda x: (f(x) ** 2 * weights).sum())
        assert not (nonzeros(slope, point) & ~pattern_of(slope, point)).any()
