"""What the tests of passes share: every op of the table as a program, and the comparison of two programs."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

import nestgrad as ng
from nestgrad.compiled.passes.rewriting import Code
from nestgrad.levels.traced.program import Program
from nestgrad.levels.traced.recording import recorded
from nestgrad.ops.samples import Sample
from nestgrad.ops.table import TABLE, Op

BASE = ng.NumpyBackend("float64")
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e300, -1e300, 5e-324, 1.0, -2.5]


def samples() -> list[Any]:
    """Every sample of every op, with a name for the test."""
    return [(f"{op.name}-{k}", op, sample) for op in TABLE.values() for k, sample in enumerate(op.samples.calls)]


def of_sample(op: Op, sample: Sample) -> tuple[Program, list[Any]]:
    """One call of an op as a program of its arrays, and the arrays."""
    arrays, params = sample.native(BASE)

    def f(xs: list[Any]) -> list[Any]:
        call, given = op.of(BASE.dressed), op.bound((), params)
        out = call(*xs, **dict(zip(op.params, given, strict=True))) if op.variadic else call(*xs, *given)
        return list(out) if op.results else [out]

    return recorded(BASE, op.name, arrays, f), arrays


def bound(program: Program, array: Any) -> Program:
    """The program with its last input as a constant."""
    *inputs, last = program.inputs
    return replace(program, inputs=tuple(inputs), constants=(*program.constants, (last, array)), derived={})


def run(program: Program, values: Sequence[Any]) -> list[Any]:
    """The outputs as arrays, those of several results one by one."""
    with np.errstate(all="ignore"):
        outs = program.run(BASE, values)
    return [np.asarray(part) for out in outs for part in (out if isinstance(out, tuple) else (out,))]


def same_bits(program: Program, other: Program, values: Sequence[Any]) -> None:
    """Two programs give the same arrays, to the bit; any NaN is NaN."""
    for got, want in zip(run(other, values), run(program, values), strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
        if want.dtype.kind == "f":
            finite = ~np.isnan(want)
            np.testing.assert_array_equal(np.signbit(got)[finite], np.signbit(want)[finite])


def alone(program: Program, *passes: Any) -> Program:
    """The program after some passes."""
    code = Code.of(program)
    for one in passes:
        code = one(code)
    return code.program(program)


def traced(f: Any, *args: Any) -> Program:
    """The program of a function."""
    program: Program = ng.func.trace(f)(*(BASE.tensor(a) for a in args))
    return program


def pinn(points: int = 64, units: int = 8) -> tuple[Program, list[Any]]:
    """The training step of a network for a differential equation, in double precision; and its arguments."""
    rng = np.random.default_rng(0)
    sizes = [1, units, units, units, 1]
    weights = [a for n, m in pairwise(sizes) for a in (rng.normal(size=(n, m)) / np.sqrt(n), 0.1 * rng.normal(size=m))]

    def step(x: Any, p: list[Any]) -> Any:
        S = ng.Autodiff(ng.Autodiff(ng.Autodiff(BASE)))
        x, p = S.tensor(x, requires_grad=True), [S.tensor(w, requires_grad=True) for w in p]
        h = x
        for k in range(0, 6, 2):
            h = ng.linear(h, p[k], p[k + 1]).tanh()
        u = ng.linear(h, p[6], p[7])
        u_x = u.wrt(x)
        r = u * u_x - 0.1 * u_x.wrt(x)
        grads = (r * r).mean().backward()
        return [w.grad(grads) for w in p]

    x = rng.uniform(-1, 1, (points, 1))
    return ng.func.trace(step)(BASE.tensor(x), [BASE.tensor(w) for w in weights]), [x, *weights]
