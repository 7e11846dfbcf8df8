"""Linear operators: against PyTorch's dense matrices, the law of the transpose, and in SciPy's solvers."""

import sys
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse.linalg
import torch

import nestgrad as ng
from nestgrad import func
from nestgrad.backends import TorchBackend
from nestgrad.errors import BackendError, ConversionError, DTypeError, LevelError, ShapeError
from nestgrad.optimize import flat, gauss_newton_operator, hessian_operator, jacobian_operator

RNG = np.random.default_rng(3)
PARAMS = {"W": RNG.normal(size=(4, 3)), "b": (RNG.normal(size=4), RNG.normal())}
N, M = 17, 9
POINTS = RNG.normal(size=(2, 3))


def net(p: Any, points: Any, lib: Any) -> Any:
    """Outputs of 2 x 4 and 1 entries, of 12, 4 and 1 parameters."""
    y = lib.tanh(points @ p["W"].T + p["b"][0]) * p["b"][1]
    return {"y": y, "size": [(p["W"] ** 2).sum()]}


def ours(p: Any, points: Any = POINTS) -> Any:
    return net(p, points, ng)


def theirs(x: Any) -> Any:
    """The same of one vector, for PyTorch; the structure's order is y after size."""
    p = {"W": x[:12].reshape(4, 3), "b": (x[12:16], x[16])}
    out = net(p, torch.tensor(POINTS), torch)
    return torch.cat([out["size"][0].reshape(1), out["y"].reshape(-1)])


def entropy(out: Any, lib: Any = ng) -> Any:
    """A convex loss of the outputs of the net: cross entropy with the first class, and a square."""
    rows = out["y"]
    return (lib.log(lib.exp(rows).sum(1)) - rows[:, 0]).sum() + out["size"][0] ** 2


def params(base: Any) -> Any:
    return {"W": base.tensor(PARAMS["W"]), "b": (base.tensor(PARAMS["b"][0]), PARAMS["b"][1])}


def dense(f: Any) -> Any:
    return f(torch.tensor(flat(PARAMS)[0]))


MATRICES: dict[str, tuple[Any, Any]] = {
    "jacobian": (lambda p, **k: jacobian_operator(ours, p, **k), lambda x: torch.autograd.functional.jacobian(theirs, x)),
    "hessian": (
        lambda p, **k: hessian_operator(lambda p: entropy(ours(p)), p, **k),
        lambda x: torch.autograd.functional.hessian(lambda x: _loss(theirs(x)), x),
    ),
    "gauss_newton": (
        lambda p, **k: gauss_newton_operator(ours, p, **k),
        lambda x: (lambda j: j.T @ j)(torch.autograd.functional.jacobian(theirs, x)),
    ),
    "gauss_newton with a loss": (
        lambda p, **k: gauss_newton_operator(ours, p, loss=entropy, **k),
        lambda x: (lambda j: j.T @ torch.autograd.functional.hessian(_loss, theirs(x)) @ j)(torch.autograd.functional.jacobian(theirs, x)),
    ),
}


def _loss(y: Any) -> Any:
    return entropy({"y": y[1:].reshape(2, 4), "size": [y[0]]}, torch)


@pytest.mark.parametrize("chunk_size", [None, 1, 4])
@pytest.mark.parametrize("kind", MATRICES)
def test_all_products_are_those_of_the_dense_matrix(base, kind, chunk_size):
    made, wanted = MATRICES[kind]
    op, want = made(params(base), chunk_size=chunk_size), dense(wanted).numpy()
    assert op.shape == want.shape == ((M, N) if kind == "jacobian" else (N, N)) and op.dtype == np.float64
    assert isinstance(op, scipy.sparse.linalg.LinearOperator)
    x, y = RNG.normal(size=(op.shape[1], 5)), RNG.normal(size=(op.shape[0], 5))
    near = lambda found, want: np.testing.assert_allclose(found, want, rtol=1e-11, atol=1e-11)
    near(op @ np.eye(op.shape[1]), want)
    near(op.matmat(x), want @ x)
    near(op.rmatmat(y), want.T @ y)
    near(op.matvec(x[:, 0]), want @ x[:, 0])
    near(op.rmatvec(y[:, 0]), want.T @ y[:, 0])
    near(op @ x[:, :1], want @ x[:, :1])
    near(op.T @ y[:, 1], want.T @ y[:, 1])
    near(op.H @ y, want.T @ y)
    near((2.0 * op + op) @ x[:, 1], 3.0 * want @ x[:, 1])
    for found in (op.matvec(x[:, 0]), op.rmatvec(y[:, 0]), op @ x):
        assert type(found) is np.ndarray and found.dtype == np.float64


@pytest.mark.parametrize("kind", MATRICES)
def test_an_operator_is_the_transpose_of_its_adjoint(base, kind):
    op = MATRICES[kind][0](params(base))
    for _ in range(5):
        u, v = RNG.normal(size=op.shape[0]), RNG.normal(size=op.shape[1])
        assert u @ op.matvec(v) == pytest.approx(op.rmatvec(u) @ v, rel=1e-12)


@pytest.mark.parametrize("kind", MATRICES)
def test_the_function_runs_once(kind, monkeypatch):
    runs: list[int] = []
    monkeypatch.setattr(sys.modules[__name__], "ours", lambda p: (runs.append(1), net(p, POINTS, ng))[1])
    op = MATRICES[kind][0](PARAMS)
    for _ in range(3):
        op.matvec(np.ones(op.shape[1]))
        op.rmatmat(np.ones((op.shape[0], 2)))
    assert len(runs) == 1


@pytest.mark.parametrize("kind", MATRICES)
def test_a_graph_lives_as_long_as_its_operator(kind, nodes):
    MATRICES[kind][0](PARAMS)
    before = nodes()
    op = MATRICES[kind][0](PARAMS)
    made = nodes()
    for _ in range(3):
        op.matvec(np.ones(op.shape[1]))
        op.rmatmat(np.ones((op.shape[0], 2)))
    assert nodes() == made > before, "a product records nothing"
    del op
    assert nodes() == before


def curve(p: Any, t: Any, y: Any) -> Any:
    return p[0] * (p[1] * t).exp() - y


def test_gauss_newton_by_lsmr(base):
    """A step is the least squares solution of J s = -r; the iteration finds the curve that made the data."""
    t = np.linspace(0.0, 1.0, 20)
    y = 2.0 * np.exp(-1.5 * t)
    p = np.array([1.0, -1.0])
    for k in range(8):
        x = base.tensor(p)
        op, r = jacobian_operator(curve, x, t, y), curve(x, t, y).numpy()
        step = scipy.sparse.linalg.lsmr(op, -r, atol=1e-14, btol=1e-14)[0]
        if k == 0:
            j = np.stack([np.exp(p[1] * t), p[0] * t * np.exp(p[1] * t)], 1)
            np.testing.assert_allclose(step, np.linalg.lstsq(j, -r)[0], rtol=1e-10)
        p = p + step
    np.testing.assert_allclose(p, [2.0, -1.5], rtol=1e-12)


def test_least_squares_takes_it():
    t = np.linspace(0.0, 1.0, 20)
    y = 2.0 * np.exp(-1.5 * t)
    found = scipy.optimize.least_squares(
        lambda p: curve(ng.tensor(p), t, y).numpy(), [1.0, -1.0], jac=lambda p: jacobian_operator(curve, p, t, y), tr_solver="lsmr"
    )
    np.testing.assert_allclose(found.x, [2.0, -1.5], rtol=1e-8)


def test_trust_constr_takes_a_hessian():
    f = lambda x: (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()
    c = ng.optimize.scipy_callables(f, np.array([-1.2, 1.0, 0.7]))
    found = scipy.optimize.minimize(c.fun, c.x0, jac=c.jac, hess=lambda x: hessian_operator(f, c.unflatten(x)), method="trust-constr")
    np.testing.assert_allclose(found.x, [1.0, 1.0, 1.0], atol=1e-6)


def test_the_largest_eigenvalues_of_a_hessian():
    op = MATRICES["hessian"][0](PARAMS)
    want = np.linalg.eigvalsh(dense(MATRICES["hessian"][1]))[-3:]
    start = np.ones(N)
    np.testing.assert_allclose(np.sort(scipy.sparse.linalg.eigsh(op, 3, v0=start)[0]), want, rtol=1e-9)


def test_a_gauss_newton_matrix_has_no_negative_curvature():
    """The Hessian has; both losses are convex."""
    assert np.linalg.eigvalsh(dense(MATRICES["hessian"][1])).min() < -0.01
    for kind in ("gauss_newton", "gauss_newton with a loss"):
        assert np.linalg.eigvalsh(MATRICES[kind][0](PARAMS) @ np.eye(N)).min() > -1e-12


def test_float64_outside_whatever_is_inside():
    single = TorchBackend(dtype="float32")
    x = single.tensor([1.0, 2.0])
    op = jacobian_operator(lambda x: [x**2, x.sum().astype("float64")], x)
    found = op @ np.array([1.0, 10.0])
    assert found.dtype == np.float64 and found.tolist() == [2.0, 40.0, 11.0] and op.rmatvec([1.0, 1.0, 1.0]).tolist() == [3.0, 5.0]
    assert (hessian_operator(lambda x: (x**3).sum(), x) @ [1, 1]).tolist() == [6.0, 12.0]


def test_single_numbers_empty_outputs_and_constants():
    op = jacobian_operator(lambda x: x**2, 3.0)
    assert op.shape == (1, 1) and (op @ [2.0]).tolist() == [12.0]
    op = jacobian_operator(lambda x: x[:0] * 2.0, np.ones(2))
    assert op.shape == (0, 2) and (op @ np.ones(2)).shape == (0,) and op.rmatvec(np.ones(0)).tolist() == [0.0, 0.0]
    op = jacobian_operator(lambda x: (np.array([5.0, 6.0]), x, 7.0), np.ones(2))
    assert (op @ [1.0, 2.0]).tolist() == [0.0, 0.0, 1.0, 2.0, 0.0] and op.rmatvec([9.0, 9.0, 1.0, 2.0, 9.0]).tolist() == [1.0, 2.0]
    assert (hessian_operator(lambda x: 3.0 * x.sum(), np.ones(2)) @ [1.0, 2.0]).tolist() == [0.0, 0.0]
    assert (jacobian_operator(lambda x: np.array([1.0]), np.ones(2)) @ [1.0, 2.0]).tolist() == [0.0]


def test_what_is_tracked_outside_and_derivatives_inside():
    s = ng.Autodiff(ng.NumpyBackend())
    w = s.tensor([2.0, 3.0], requires_grad=True)
    op = jacobian_operator(lambda x: func.grad(lambda z: (w * z**3).sum())(x), s.tensor([1.0, 1.0], requires_grad=True))
    assert (op @ w.numpy()).tolist() == (op @ ng.tensor([2.0, 3.0])).tolist() == [24.0, 54.0]
    with pytest.raises(ConversionError, match=r"would silently make a constant of it"):
        op @ w
    op = hessian_operator(lambda x: ((s.tensor(x, requires_grad=True) ** 2) * w).sum(), np.ones(2))
    assert (op @ [1.0, 1.0]).tolist() == [4.0, 6.0]


@pytest.mark.parametrize("kind", MATRICES)
def test_without_scipy_it_says_what_to_install(monkeypatch, kind):
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(BackendError, match=r"_operator needs scipy, which is not installed\. Try pip install nestgrad\[scipy\]"):
        MATRICES[kind][0](PARAMS)


X2 = np.array([1.0, 2.0])


@pytest.mark.parametrize(
    ("run", "error", "match"),
    [
        (lambda: jacobian_operator(lambda x: x, X2).matvec(np.ones(3)), ValueError, r"dimension mismatch"),  # SciPy's own
        (lambda: jacobian_operator(lambda x: x, X2) @ np.ones((3, 1)), ValueError, r"dimension mismatch"),
        (lambda: jacobian_operator(lambda x: x, X2) @ np.array([1j, 0.0]), DTypeError, r"complex"),
        (lambda: jacobian_operator(lambda x: x.argmax(), X2), DTypeError, r"jacobian_operator: the function returned dtype int64"),
        (lambda: jacobian_operator(lambda x: [x, "text"], X2), DTypeError, r"jacobian_operator: got a str; expected a Tensor"),
        (lambda: jacobian_operator(lambda x: [], X2), LevelError, r"jacobian_operator: the function returned nothing; expected a Tensor"),
        (lambda: jacobian_operator(lambda x: x, np.array([1, 2])), DTypeError, r"jacobian_operator: got an argument of dtype int64"),
        (lambda: jacobian_operator(lambda x: x, []), ShapeError, r"jacobian_operator: got argument 0 without any Tensor"),
        (lambda: jacobian_operator(lambda x: x, X2, chunk_size=-1), ShapeError, r"jacobian_operator: got chunk_size -1"),
        (lambda: hessian_operator(lambda x: x, X2), ShapeError,
         r"hessian_operator: the function returned shape \(2,\); expected a 0-dimensional tensor"),
        (lambda: gauss_newton_operator(lambda x: x, X2, loss=lambda y: y), ShapeError,
         r"gauss_newton_operator: the function returned shape \(2,\)"),
        (lambda: gauss_newton_operator(lambda x: x, X2, loss=lambda y: None), LevelError,
         r"gauss_newton_operator: the function returned a NoneType"),
    ],
)  # fmt: skip
def test_a_mistake_is_a_typed_error(run, error, match):
    with pytest.raises(error, match=match):
        run()
