"""Patterns of single operations hold every entry of the derivative that is not zero, for each op of the table."""

import numpy as np
import pytest
from dense import nonzeros, pattern_of

import nestgrad as ng
from nestgrad.func import grad
from nestgrad.ops import TABLE, Kind
from nestgrad.tensor.handle import make

BASE = ng.NumpyBackend()


DERIVED = [op for op in TABLE.values() if op.kind is not Kind.CONSTANT]


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


@pytest.mark.parametrize("op", DERIVED, ids=lambda op: op.name)
def test_the_pattern_of_an_op_holds_its_jacobian(op):
    for sample in op.samples.calls:
        f, point = joined(op, sample)
        if point.size:
            assert not (nonzeros(f, point) & ~pattern_of(f, point)).any(), sample


@pytest.mark.parametrize("op", DERIVED, ids=lambda op: op.name)
def test_the_pattern_of_a_gradient_holds_its_hessian(op):
    f, point = joined(op, op.samples.calls[0])
    if point.size:
        weights = np.linspace(0.5, 1.5, f(ng.tensor(point)).shape[0])
        slope = grad(lambda x: (f(x) ** 2 * weights).sum())
        assert not (nonzeros(slope, point) & ~pattern_of(slope, point)).any()


def whole(b, *xs):
    """The sum of all entries, as often as the first argument has some."""
    total = None
    for x in xs:
        part = b.sum(x, tuple(range(len(b.shape(x)))))
        total = part if total is None else b.add(total, part)
    return b.broadcast_to(total, b.shape(xs[0]))


NAMES = ["cumsum", "recur", "matmul", "product", "vecdot", "rows", "to_rows", "softmax", "sort", "sin", "cross", "flip"]
PARAMS = {"axis": 0, "axes": (0,), "reverse": False, "tx": False, "ty": False, "count": 2, "descending": False}


@pytest.mark.parametrize("name", NAMES)
def test_an_op_of_ones_own_may_have_the_name_and_the_parameters_of_another(name):
    """What it does is not what the entry of the table does, so nothing is known of it but its tangent."""
    known = TABLE[name]
    value = {1: lambda b, x, *_: whole(b, x), 2: lambda b, x, y, *_: whole(b, x, y)}[len(known.arguments)]
    tangent = lambda b, t: whole(b, t)
    own = ng.define(
        f"{name}({', '.join((*known.arguments, *known.params))})", "special", *(... for _ in known.arguments), value=value,
        forward=[tangent] * len(known.arguments),
    )  # fmt: skip
    params = {word: PARAMS[word] for word in known.params}
    f = lambda x: own(*(x.reshape(2, 2) for _ in known.arguments), **params)
    assert pattern_of(f, np.linspace(0.3, 1.1, 4)).all()
