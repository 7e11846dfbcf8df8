"""``jacrev``, ``jacfwd`` and ``hessian``: against torch.func's, whatever the structures and chunks, and against closed forms later."""

from typing import Any

import numpy as np
import pytest
import torch
from functions import FUNCTIONS, RNG, close, leaves, tree_map

import nestgrad as ng
from nestgrad import Tensor, func
from nestgrad.errors import DTypeError, LevelError, ShapeError

KINDS = {"jacrev": func.jacrev, "jacfwd": func.jacfwd}
JIT = "ignore:.*torch.jit.script.*:DeprecationWarning"  # torch's own, when its jvp is first used


@pytest.mark.filterwarnings(JIT)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("chunk_size", [None, 1, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_a_jacobian_is_that_of_torch(base, kind, chunk_size, name):
    f, primals = FUNCTIONS[name]
    argnums = tuple(range(len(primals)))
    found = KINDS[kind](f, argnums, chunk_size=chunk_size)(*tree_map(base.tensor, primals))
    want = torch.func.jacrev(f, argnums)(*tree_map(torch.tensor, primals))
    close(found, want)


@pytest.mark.filterwarnings(JIT)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivatives_are_those_of_torch(base, name):
    """By ``hessian``, in whole and in chunks, and by the four compositions of the two Jacobians."""
    f, primals = FUNCTIONS[name]
    scalar = lambda *args: sum((i + 1.0) * y.sin().sum() for i, y in enumerate(_leaves(f(*args))))
    argnums = (0, 1) if len(primals) == 2 else 0
    want = torch.func.jacrev(torch.func.jacrev(scalar, argnums), argnums)(*tree_map(torch.tensor, primals))
    args = tree_map(base.tensor, primals)
    close(func.hessian(scalar, argnums)(*args), want, rtol=1e-11)
    close(func.hessian(scalar, argnums, chunk_size=5)(*args), want, rtol=1e-11)
    for outer in KINDS.values():
        for inner in KINDS.values():
            close(outer(inner(scalar, argnums), argnums)(*args), want, rtol=1e-11)


def _leaves(tree: Any) -> list[Any]:
    found: list[Any] = []
    tree_map(found.append, tree)
    return found


def test_structures_nest_as_in_jax():
    """The output's structure, with the argument's in each place."""
    jax = pytest.importorskip("jax", reason="the structures are compared with JAX's")
    p = {"w": RNG.normal(size=(2, 3)), "b": (RNG.normal(size=2), 0.5)}
    f = lambda p, lib: {"y": [lib.tanh(p["w"] @ np.ones(3) + p["b"][0])], "z": p["b"][1] * (p["w"] ** 2).sum(0)}
    with jax.enable_x64(True):
        want = jax.jacrev(lambda p: f(p, jax.numpy))(p)
        second = jax.hessian(lambda p: f(p, jax.numpy)["z"].sum())(p)
    ours = tree_map(ng.tensor, p)
    for kind in KINDS.values():
        found = kind(lambda p: f(p, ng))(ours)
        assert list(found) == ["y", "z"] and list(found["y"][0]) == ["w", "b"]
        _like(found, want)
    _like(func.hessian(lambda p: f(p, ng)["z"].sum())(ours), second)


def _like(found: Any, want: Any) -> None:
    if isinstance(want, dict):
        for key in want:
            _like(found[key], want[key])
    elif isinstance(want, (list, tuple)):
        for a, b in zip(found, want, strict=True):
            _like(a, b)
    else:
        assert found.shape == want.shape
        np.testing.assert_allclose(found.numpy(), want, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_what_a_function_closes_over_is_differentiated_later(levels, kind, depth):
    """J = d/dx sin(w x_i) e_ii: the diagonal is w cos(w x), its derivatives by w on as many levels as there are."""
    x, w0 = np.array([0.4, -0.9, 1.7]), 1.3
    w = levels(depth).tensor(w0, requires_grad=True)
    j = KINDS[kind](lambda x: (w * x).sin())(x)
    assert not j.marks and j.shape == (3, 3)
    c, s = np.cos(w0 * x), np.sin(w0 * x)
    wants = [w0 * c, c - w0 * x * s, -2 * x * s - w0 * x**2 * c, -3 * x**2 * c + w0 * x**3 * s]
    np.testing.assert_allclose(j.numpy(), np.diag(wants[0]), rtol=1e-13, atol=1e-15)
    total = j.sum()
    for want in wants[: depth + 1]:
        assert total.item() == pytest.approx(want.sum(), rel=1e-12)
        total = w.grad(total.backward()) if total.tracked_on() else total


@pytest.mark.parametrize("depth", [1, 2])
def test_a_hessian_of_a_tracked_closure_and_argument_is_differentiated_later(levels, depth):
    s = levels(depth)
    w, x = s.tensor(0.7, requires_grad=True), s.tensor([0.3, 1.1], requires_grad=True)
    h = func.hessian(lambda x: (w * x[0] ** 2 * x[1] ** 3).sum())(x)
    a, b = 0.3, 1.1
    np.testing.assert_allclose(h.numpy(), 0.7 * np.array([[2 * b**3, 6 * a * b**2], [6 * a * b**2, 6 * a**2 * b]]), rtol=1e-13)
    assert w.grad(h.backward()).item() == pytest.approx(2 * b**3 + 12 * a * b**2 + 6 * a**2 * b, rel=1e-13)
    by_x = x.grad(h.backward()).numpy()
    np.testing.assert_allclose(by_x, 0.7 * np.array([12 * b**2 + 12 * a * b, 6 * b**2 + 24 * a * b + 6 * a**2]), rtol=1e-13)


def test_zero_curvature_stays_connected(levels):
    x = levels(1).tensor([1.0, 2.0], requires_grad=True)
    for j in (func.jacrev(lambda z: 3.0 * z)(x), func.jacfwd(lambda z: 3.0 * z)(x), func.hessian(lambda z: z.sum())(x)):
        assert x.grad(j.backward()).tolist() == [0.0, 0.0]


def test_a_jacobian_of_nothing_is_empty(base):
    x, e = base.tensor(np.ones((2, 3))), base.tensor(np.zeros((0, 3)))
    for kind in KINDS.values():
        assert kind(lambda x: x.sin())(e).shape == (0, 3, 0, 3)
        assert kind(lambda x: x[:0] * 2.0)(x).shape == (0, 3, 2, 3)
        assert kind(lambda x: x.sum(0))(e).shape == (3, 0, 3)
        a, b = kind(lambda p: p[0].sum() * p[1])((x, e))
        assert (a.shape, b.shape) == ((0, 3, 2, 3), (0, 3, 0, 3))
    assert func.hessian(lambda x: x.sin().sum())(e).shape == (0, 3, 0, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_that_do_not_depend_are_zeros(base, kind):
    found = KINDS[kind](lambda x: (x * x, base.tensor([4.0, 5.0]), 7.0))(base.tensor([1.0, 3.0]))
    assert [j.tolist() for j in found] == [[[2.0, 0.0], [0.0, 6.0]], [[0.0, 0.0]] * 2, [0.0, 0.0]]
    assert KINDS[kind](lambda x: base.tensor([1.0]))(base.tensor([1.0, 3.0])).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("kind", KINDS)
def test_how_often_the_function_runs(kind):
    runs: list[int] = []
    f = lambda x: (runs.append(1), x.sin())[1]
    KINDS[kind](f)(np.ones(6))
    assert len(runs) == 1
    KINDS[kind](f, chunk_size=2)(np.ones(6))
    assert len(runs) == (2 if kind == "jacrev" else 4)


@pytest.mark.parametrize("kind", [*KINDS, "hessian"])
def test_has_aux(base, kind):
    f = lambda x: (x.sin().sum(), {"doubled": x * 2.0, "note": "text"})
    for chunk_size in (None, 1, 2):
        found, aux = {**KINDS, "hessian": func.hessian}[kind](f, has_aux=True, chunk_size=chunk_size)(base.tensor([0.5, 1.0, 2.0]))
        assert aux["doubled"].tolist() == [1.0, 2.0, 4.0] and aux["note"] == "text" and (aux["doubled"] + 1.0).tolist() == [2.0, 3.0, 5.0]
        close(found, np.cos([0.5, 1, 2]) if kind != "hessian" else -np.diag(np.sin([0.5, 1, 2])))


@pytest.mark.parametrize("kind", KINDS)
def test_the_imperative_style_inside(levels, kind):
    """f(x) = d/dy (y^3 w) at y = x: the Jacobian is 6 x w on the diagonal."""
    s = levels(1)
    w = s.tensor(2.0, requires_grad=True)

    def f(x: Tensor) -> Tensor:
        y = s.tensor(x, requires_grad=True)
        return y.grad((y**3 * w).backward())

    j = KINDS[kind](f)(np.array([1.0, 0.5]))
    assert j.tolist() == [[12.0, 0.0], [0.0, 6.0]]
    assert w.grad(j.backward()).item() == 9.0
    h = func.hessian(lambda x: f(x).sum())(np.array([1.0, 0.5]))
    assert h.tolist() == [[12.0, 0.0], [0.0, 12.0]] and w.grad(h.backward()).item() == 12.0


def test_plain_numbers_are_scalars(base):
    w = base.tensor(3.0)
    assert func.jacfwd(lambda x: x**2 * w)(2.0).item() == func.jacrev(lambda x: x**2 * w)(2.0).item() == 12.0
    assert func.hessian(lambda x: x**3 * w)(2.0).item() == 36.0
    assert func.jacfwd(lambda x, y: x * y, argnums=(-1, 0))(2.0, 5.0)[0].item() == 2.0


def test_float32_stays_float32():
    x = np.array([0.5, 1.0], dtype=np.float32)
    for g in (func.jacrev(lambda x: x.sin()), func.jacfwd(lambda x: x.sin()), func.hessian(lambda x: x.sin().sum())):
        assert {a.dtype for a in leaves(g(x).numpy())} == {np.dtype("float32")}


def test_of_two_dtypes_rows_have_the_arguments_and_columns_the_outputs(base):
    """Outputs of both dtypes go back in one pass."""
    a, b = base.tensor([1.0, 2.0], dtype="float32"), base.tensor([3.0, 4.0], dtype="float64")
    f = lambda a, b: (a * a, b * a.sum())
    single, double = a.dtype, b.dtype
    rows, columns = func.jacrev(f, (0, 1))(a, b), func.jacfwd(f, (0, 1))(a, b)
    assert [[j.dtype for j in row] for row in rows] == [[single, double]] * 2
    assert [[j.dtype for j in row] for row in columns] == [[single] * 2, [double] * 2]
    for found in (rows, columns):
        assert [[j.tolist() for j in row] for row in found] == [
            [[[2.0, 0.0], [0.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]], [[[3.0, 3.0], [4.0, 4.0]], [[3.0, 0.0], [0.0, 3.0]]],
        ]  # fmt: skip
    assert [g.dtype for g in func.vjp(f, a, b)[1]((a, b))] == [single, double]
    assert [t.dtype for t in func.linearize(f, a, b)[1](a, b)] == [single, double]


@pytest.mark.parametrize(
    ("run", "error", "match"),
    [
        (lambda x: func.jacrev(lambda v: v)(3), DTypeError, r"jacrev: got an argument of dtype .*int64; expected a floating one"),
        (lambda x: func.jacfwd(lambda v: v)(np.array([1, 2])), DTypeError, r"jacfwd: got an argument of dtype .*int64"),
        (lambda x: func.hessian(lambda v: v)(True), DTypeError, r"hessian: got an argument of dtype .*bool"),
        (lambda x: func.jacrev(lambda v: v, 1)(x), ShapeError, r"jacrev: got argnums 1 for 1 positional arguments"),
        (lambda x: func.jacfwd(lambda v: v, (0, 2))(x), ShapeError, r"jacfwd: got argnums \(0, 2\) for 1 positional"),
        (lambda x: func.jacfwd(lambda v: v, chunk_size=0), ShapeError, r"jacfwd: got chunk_size 0; expected an int from 1 on"),
        (lambda x: func.hessian(lambda v: v, chunk_size="all"), ShapeError, r"hessian: got chunk_size 'all'"),
        (lambda x: func.jacrev(lambda v: None)(x), LevelError, r"jacrev: the function returned a NoneType; expected a Tensor"),
        (lambda x: func.jacfwd(lambda v: (v, "a"))(x), LevelError, r"jacfwd: the function returned a str; expected a Tensor"),
        (lambda x: func.hessian(lambda v: v, has_aux=True)(x), LevelError, r"hessian: with has_aux the function must return"),
        (lambda x: func.jacfwd(_changing([]), chunk_size=1)(x), LevelError,
         r"jacfwd: the function returned the structure \* for one chunk and \[\*\] for another; expected the same for all"),
    ],
)  # fmt: skip
def test_a_mistake_is_a_typed_error(base, run, error, match):
    with pytest.raises(error, match=match):
        run(base.tensor([1.0, 2.0]))


def _changing(runs: list[int]) -> Any:
    return lambda x: (runs.append(1), x if len(runs) == 1 else [x])[1]
