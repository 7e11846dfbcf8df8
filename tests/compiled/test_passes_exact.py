"""Passes that change no bit: whatever the inputs are, NaN, infinities and signed zeros too, the values are those of the trace."""

from typing import Any

import numpy as np
import pytest
from pass_cases import BASE, SPECIAL, alone, bound, of_sample, run, same_bits, samples, traced

import nestgrad as ng
from nestgrad.compiled.passes import optimized
from nestgrad.compiled.passes.folding import folded
from nestgrad.compiled.passes.fusing import fused
from nestgrad.compiled.passes.pruning import pruned
from nestgrad.compiled.passes.rewriting import Code, Rules, Walk
from nestgrad.compiled.passes.shaping import SHAPING
from nestgrad.compiled.passes.sharing import key, merge_constants, shared
from nestgrad.compiled.passes.units import UNITS


def units(code: Code) -> Code:
    """The algebra alone."""
    return Walk(code, UNITS).run()


def shaping(code: Code) -> Code:
    """The moves alone."""
    return Walk(code, SHAPING).run()


def exactly(program: Any) -> Any:
    """All that changes no bit."""
    return alone(program, pruned, folded, merged, lambda code: Walk(code, UNITS, key).run())


def merged(code: Code) -> Code:
    """Equal constants made one."""
    merge_constants(code)
    return code


PASSES = {"pruned": pruned, "shared": shared, "folded": folded, "units": units, "fused": fused, "shaping": shaping}


@pytest.mark.parametrize(("op", "sample"), [s[1:] for s in samples()], ids=[s[0] for s in samples()])
def test_one_op_of_the_table_keeps_its_values(op: Any, sample: Any):
    program, arrays = of_sample(op, sample)
    for one in PASSES.values():
        same_bits(program, alone(program, one), arrays)


X, Y = np.array([0.3, -0.7, 1.1]), np.array([0.9, 0.4, -0.2])
ONES, TWOS = np.ones(3), np.full(3, 2.0)

EXACT = {
    "ones": (lambda x, y: x * ng.tensor(ONES) + ng.tensor(ONES) * y, 1),
    "a number": (lambda x, y: x * ng.tensor(TWOS) + y * ng.tensor(2.0), 3),
    "double negation": (lambda x, y: -(-1.0 * x) + y, 1),
    "sum with a negative": (lambda x, y: x + (-y), 1),
    "difference with a negative": (lambda x, y: x - (-y), 1),
    "signs of a product": (lambda x, y: (-x) * (-y), 1),
    "signs go outwards": (lambda x, y: (-x) * y + y, 2),
    "scaled negative": (lambda x, y: (-x) * 3.0 - (-(y * 2.0)), 3),
    "zeros": (lambda x, y: (x - ng.tensor(np.zeros(3))) * (y + ng.tensor(np.full(3, -0.0))), 1),
    "twice the same": (lambda x, y: (x * y).tanh() + (y * x).tanh(), 3),
    "equal constants": (lambda x, y: (x + ng.tensor(X)) * (x + ng.tensor(X.copy())) + y, 3),
    "detach": (lambda x, y: x.detach() * y, 1),
    "constants": (lambda x, y: x * (ng.tensor(X).exp() + ng.tensor(Y)), 1),
}
"""Functions, and how many ops are left of them."""


@pytest.mark.parametrize("name", EXACT)
def test_a_group_becomes_fewer_ops_with_the_same_bits(name: str):
    f, left = EXACT[name]
    program = traced(f, X, Y)
    made = exactly(program)
    assert len(made.instructions) == left, str(made)
    rng = np.random.default_rng(0)
    for _ in range(20):
        same_bits(program, made, [rng.choice(SPECIAL, 3), rng.choice(SPECIAL, 3)])


W = np.arange(9.0).reshape(3, 3) / 7 - 0.5
FUSED = {
    "square": (lambda x, y: x * x + y, ["square", "add"]),
    "sum with a product": (lambda x, y: y.tanh() + x * y, ["tanh", "mul_add"]),
    "product of three": (lambda x, y: (x.tanh() * y * x) * 3.0, ["tanh", "triple"]),
    "slope of tanh": (lambda x, y: (1.0 - y.square()) * x.tanh(), ["tanh", "tanh_vjp"]),
    "layer": (lambda x, y: ng.tensor(W) @ x.reshape(3, 1).broadcast_to(3, 3) + y, ["reshape", "broadcast_to", "linear"]),
    "what another reads stays": (lambda x, y: (x * y + y) * (x * y), ["mul", "add", "mul"]),
}


@pytest.mark.parametrize("name", FUSED)
def test_a_group_becomes_the_op_that_the_table_has_for_it(name: str):
    f, left = FUSED[name]
    program = traced(f, X, Y)
    made = alone(program, shared, fused)
    assert [step.op.name for step in made.instructions] == left
    rng = np.random.default_rng(0)
    for _ in range(20):
        same_bits(program, made, [rng.choice(SPECIAL, 3), rng.choice(SPECIAL, 3)])


@pytest.mark.parametrize(("x", "w", "left"), [
    ((4, 3), (3, 5), ["linear"]),
    ((2, 4, 3), (3, 5), ["linear"]),
    ((4, 3), (3, 1), ["matmul", "add"]),
    ((4, 3), (2, 3, 5), ["matmul", "add"]),
    ((2, 4, 3), (2, 3, 5), ["matmul", "add"]),
])  # fmt: skip
def test_a_layer_has_one_matrix_of_weights_and_as_many_numbers(x: Any, w: Any, left: list[str]):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape) for shape in (x, w, (5,))]
    program = traced(lambda x, w, z: x @ w + z, *arrays)
    made = alone(program, fused)
    assert [step.op.name for step in made.instructions] == left
    same_bits(program, made, arrays)


MOVED = {
    "reshapes": (lambda x, y: (x.reshape(3, 1).reshape(1, 3).reshape(3) + y, x.reshape(3) * y), ["add", "mul"]),
    "permutations": (lambda x, y: (y * x.reshape(1, 3)).T.T + y, ["reshape", "mul", "add"]),
    "a repeated repetition": (lambda x, y: x.broadcast_to(1, 3).broadcast_to(2, 3) - 1.0, ["sub", "broadcast_to"]),
    "repeated by itself": (lambda x, y: x[:1].broadcast_to(3) * y, ["getitem", "mul"]),
    "each number once": (lambda x, y: x.broadcast_to(2, 3).exp().tanh(), ["exp", "tanh", "broadcast_to"]),
    "transposes": (lambda x, y: (ng.tensor(W) * x).T @ (ng.tensor(W) * y).T, ["mul", "mul", "product"]),
    "a part of a stack": (lambda x, y: ng.stack([x, y])[1] * ng.stack([x, y], axis=1)[:, 0], ["mul"]),
    "a part of a concatenation": (lambda x, y: ng.concat([x, y])[3:6] * 2.0, ["scale"]),
    "all of it": (lambda x, y: x[:] + y.sum(axis=()), ["add"]),
}


@pytest.mark.parametrize("name", MOVED)
def test_a_move_is_left_out(name: str):
    f, left = MOVED[name]
    program = traced(f, X, Y)
    made = alone(program, lambda code: Walk(code, SHAPING, key).run())
    assert [step.op.name for step in made.instructions] == left
    rng = np.random.default_rng(0)
    for _ in range(20):
        same_bits(program, made, [rng.choice(SPECIAL, 3), rng.choice(SPECIAL, 3)])


@pytest.mark.parametrize(("shape", "axes"), [((2, 3), (0,)), ((4, 2, 3), (0, 1)), ((2, 3), ()), ((0, 3), (0,))])
@pytest.mark.parametrize("keepdims", [False, True])
def test_a_sum_of_what_was_repeated_is_a_multiple(shape: Any, axes: Any, keepdims: bool):
    program = traced(lambda x: x.broadcast_to(*shape).sum(axis=axes, keepdims=keepdims) * 1.5, X)
    made = optimized(program)
    assert ("sum" in [step.op.name for step in made.instructions]) == (0 in shape)
    np.testing.assert_allclose(run(made, [X])[0], run(program, [X])[0], rtol=1e-15)


def test_what_would_change_a_value_stays():
    """0 x is NaN at infinity, x - x at NaN, and x + 0.0 is 0.0 at -0.0."""
    zero = ng.tensor(np.zeros(3))
    program = traced(lambda x, y: (x * zero, y - y, x + zero, x.maximum(y), y.maximum(x)), X, Y)
    assert len(exactly(program).instructions) == len(optimized(program).instructions) == len(program.instructions) == 5


def test_parameters_are_told_apart():
    """Slices by their parts, arrays of positions by their numbers, 1 from 1.0 and 0.0 from -0.0."""
    rows = [BASE.index([0, 2]), BASE.index([2, 0])]
    program = traced(lambda x: ng.stack([x[rows[0]], x[rows[1]], x[rows[0]], x[:2], x[0:2], x[1:3]]), X)
    assert [i.op.name for i in alone(program, shared).instructions].count("getitem") == 5


def test_constants_are_told_apart_by_shape_sign_and_value():
    arrays = [np.zeros(3), np.full(3, -0.0), np.zeros((1, 3)), np.array([0.0, -0.0, 0.0]), np.array([0.0, -0.0, 0.0]), np.full(3, np.nan)]
    program = traced(lambda x: tuple(x + ng.tensor(a) for a in arrays), X)
    assert len(alone(program, shared).constants) == 5


def test_a_result_that_depends_on_constants_alone_is_computed_once():
    program = bound(traced(lambda x, y: x * (y.exp() + y.tanh()).sum() + y, X, Y), Y)
    made = alone(program, folded)
    assert [i.op.name for i in made.instructions] == ["mul", "add"]
    assert len(made.constants) == 2
    same_bits(program, made, [X])


def test_a_broadcast_is_not_blown_up_into_a_constant():
    program = bound(traced(lambda x, y: x + (y * 2.0).broadcast_to((2000, 100)), 1.0, np.ones((2000, 1))), np.ones((2000, 1)))
    made = alone(program, folded)
    assert [i.op.name for i in made.instructions] == ["broadcast_to", "add"]
    assert sum(BASE.nbytes(a) for _, a in made.constants) == 16_000


def test_an_op_that_raises_is_left_to_the_run():
    program = bound(traced(lambda x, y: x * y[1], 1.0, Y), Y[:1])
    made = alone(program, folded)
    assert [i.op.name for i in made.instructions] == ["getitem", "mul"]
    with pytest.raises(IndexError):
        made.run(BASE, [X[0]])


def test_a_long_program_takes_no_recursion():
    def f(x: Any) -> Any:
        for _ in range(3000):
            x = (x * ng.tensor(1.0)).sin()
        return x

    program = traced(f, 0.3)
    assert len(alone(program, lambda c: Walk(c, Rules()).run()).instructions) == 6000
    assert len(optimized(program).instructions) == 3000
