"""``scipy_callables`` and ``flat``: values worked out elsewhere, PyTorch's Hessian, and SciPy's minimisers on every backend."""

import sys
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import torch

import nestgrad as ng
from nestgrad import func
from nestgrad.backends import TorchBackend
from nestgrad.errors import ConversionError, DTypeError, LevelError, ShapeError
from nestgrad.optimize import flat, scipy_callables

W, B, X = [[0.5, -0.3], [0.8, 0.1]], [0.1, -0.2], [0.4, -0.9]
START = np.array([-1.2, 1.0, 0.7])


def layer(p: Any, x: Any = X) -> Any:
    return ((p["W"] @ np.array(x) + p["b"]).tanh() ** 2).sum()


def rosenbrock(x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def test_one_flat_matrix_for_a_set_of_parameters(base):
    """W row by row, then b: six rows of six entries, to the twelve digits that were worked out elsewhere."""
    c = scipy_callables(layer, {"b": base.tensor(B), "W": base.tensor(W)})
    assert c.x0.tolist() == [0.5, -0.3, 0.8, 0.1, 0.1, -0.2] and c.size == 6
    h = c.hess(c.x0)
    assert h.shape == (6, 6) and h.dtype == np.float64
    rows = {
        0: [0.047757333074, -0.107453999415, 0, 0, 0.119393332684, 0],
        3: [0, 0, -0.717411301909, 1.614175429296, 0, -1.793528254773],
        5: [0, 0, 0.797123668788, -1.793528254773, 0, 1.992809171971],
    }
    for k, row in rows.items():
        np.testing.assert_allclose(h[k], row, atol=1e-12)

    def theirs(x: Any) -> Any:
        return (torch.tanh(x[:4].reshape(2, 2) @ torch.tensor(X, dtype=x.dtype) + x[4:]) ** 2).sum()

    x = torch.tensor(c.x0)
    np.testing.assert_allclose(h, torch.autograd.functional.hessian(theirs, x), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(c.jac(c.x0), torch.autograd.functional.jacobian(theirs, x), rtol=1e-13)
    assert c.fun(c.x0) == pytest.approx(theirs(x).item(), rel=1e-14)
    p = np.arange(6.0) - 2.0
    np.testing.assert_allclose(c.hessp(c.x0, p), h @ p, rtol=1e-13, atol=1e-14)
    for step in (1, 4):
        again = scipy_callables(layer, {"b": base.tensor(B), "W": base.tensor(W)}, chunk_size=step).hess(c.x0)
        np.testing.assert_allclose(again, h, rtol=1e-14, atol=1e-16)


def test_a_hessian_product_and_trust_ncg(base):
    c = scipy_callables(rosenbrock, base.tensor(START))
    assert c.hessp(START, np.array([1.0, -1.0, 0.5])).tolist() == pytest.approx([850.0, -842.0, 500.0], rel=1e-13)
    found = scipy.optimize.minimize(c.fun, c.x0, jac=c.jac, hessp=c.hessp, method="trust-ncg")
    assert found.success and found.nit < 100
    np.testing.assert_allclose(found.x, [1.0, 1.0, 1.0], atol=1e-6)


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "Newton-CG", "trust-exact", "trust-krylov", "Nelder-Mead"])
def test_minimisers_find_the_minimum(method):
    """From a dict: s is the first entry, since its keys come sorted."""
    c = scipy_callables(lambda p: rosenbrock(p["x"]) + 0.1 * p["s"] ** 2, {"x": START[:2], "s": 0.5})
    derivatives = {"Newton-CG": "hessp", "trust-krylov": "hessp", "trust-exact": "hess"}.get(method)
    options: dict[str, Any] = {} if derivatives is None else {derivatives: getattr(c, derivatives)}
    options["jac"] = None if method == "Nelder-Mead" else c.jac
    found = scipy.optimize.minimize(c.fun, c.x0, method=method, **options)
    assert found.success
    np.testing.assert_allclose(found.x, [0.0, 1.0, 1.0], atol=1e-4)  # where their default tolerances let them stop


def test_value_and_gradient_at_once(base):
    c = scipy_callables(rosenbrock, base.tensor(START))
    value, g = c.fun_and_jac(START)
    assert value == c.fun(START) and g.tolist() == c.jac(START).tolist()
    found = scipy.optimize.minimize(c.fun_and_jac, c.x0, jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10})
    np.testing.assert_allclose(found.x, [1.0, 1.0, 1.0], atol=1e-6)


def test_gradient_penalty():
    """P = (|grad_x D| - 1)^2 for D = v . tanh(W x): the function takes a gradient itself."""
    v, x = np.array([1.2, -0.7]), np.array(X)
    penalty = lambda w: ((func.grad(lambda x: (v * (w @ x).tanh()).sum())(x) ** 2).sum().sqrt() - 1.0) ** 2
    c = scipy_callables(penalty, ng.tensor(W))
    want = [0.26166616597461756, 1.0022284965956294, -0.0787699849061804, -0.9127136284257968]
    assert c.jac(c.x0).tolist() == pytest.approx(want, rel=1e-13)


def test_gradient_through_a_gradient_step():
    """L(q - 0.05 L'(q)) with L = q^4 - 2 q; without the second derivative in it, 1.5456."""
    loss = lambda q: q**4 - 2.0 * q
    c = scipy_callables(lambda q: loss(q - 0.05 * func.grad(loss)(q)), 1.3)
    assert c.jac(c.x0).tolist() == pytest.approx([-0.021638171352896366], rel=1e-12)


def test_runs_are_shared_between_value_and_gradient_at_one_point():
    runs: list[int] = []
    c = scipy_callables(lambda x: (runs.append(1), rosenbrock(x))[1], START)
    value = c.fun(START)
    g = c.jac(START.copy())
    assert len(runs) == 1
    c.jac(START)
    assert len(runs) == 2, "a run serves one gradient"
    c.fun(START)
    assert c.jac(START + 1.0).tolist() != g.tolist() and len(runs) == 4
    c.fun(START + 1.0)
    assert c.fun(START) == value and c.jac(START).tolist() == g.tolist() and len(runs) == 6
    runs.clear()
    found = scipy.optimize.minimize(c.fun, c.x0, jac=c.jac, method="BFGS")
    assert len(runs) == found.nfev == found.njev


def test_what_the_function_closes_over_may_change_from_run_to_run():
    """Of a penalty method: each minimisation begins where the last one ended, with another weight."""
    weight = [1.0]
    c = scipy_callables(lambda x: (x**2).sum() * weight[0] + (x - 1.0).square().sum(), np.zeros(2))
    x = c.x0
    for w in (1.0, 3.0, 9.0):
        weight[0] = w
        x = scipy.optimize.minimize(c.fun, x, jac=c.jac, method="BFGS", options={"gtol": 1e-9}).x
        np.testing.assert_allclose(x, 1.0 / (1.0 + w), rtol=1e-8)


def test_further_arguments(base):
    f = lambda p, a, b: (a * p["x"] ** 2).sum() * b
    c = scipy_callables(f, {"x": base.tensor([1.0, 2.0])})
    a = np.array([3.0, 5.0])
    assert c.fun(c.x0, a, 2.0) == 46.0
    assert c.jac(c.x0, a, 1.0).tolist() == [6.0, 20.0]  # another b than that of the run before
    assert c.fun_and_jac(c.x0, a, 2.0)[1].tolist() == [12.0, 40.0]
    assert c.hess(c.x0, a, 2.0).tolist() == [[12.0, 0.0], [0.0, 20.0]] and c.hessp(c.x0, [1.0, 1.0], a, 2.0).tolist() == [12.0, 20.0]
    found = scipy.optimize.minimize(c.fun, c.x0, (a, 2.0), jac=c.jac, hessp=c.hessp, method="trust-ncg")
    np.testing.assert_allclose(found.x, [0.0, 0.0], atol=1e-8)


def test_float64_outside_whatever_is_inside():
    """Single precision inside, PyTorch inside, and both dtypes side by side."""
    single = TorchBackend(dtype="float32")
    seen: list[Any] = []

    def f(p: Any) -> Any:
        seen.append((p["a"].dtype, p["b"].dtype))
        return (p["a"] ** 2).sum() * p["b"].astype(p["a"].dtype).sum()

    for a, b in (
        (single.tensor([1.0, 2.0]), single.tensor([0.5])),
        (single.tensor([1.0, 2.0]), single.tensor([0.5], dtype="float64")),
        (np.array([1.0, 2.0], dtype=np.float32), np.array([0.5])),
    ):
        c = scipy_callables(f, {"a": a, "b": b})
        value, g = c.fun_and_jac(c.x0)
        assert type(value) is float and value == 2.5 and g.tolist() == [1.0, 2.0, 5.0]
        h, hv = c.hess(c.x0), c.hessp(c.x0, [1, 0, 0])
        assert h.tolist() == [[1.0, 0.0, 2.0], [0.0, 1.0, 4.0], [2.0, 4.0, 0.0]] and hv.tolist() == h[0].tolist()
        for out in (c.x0, g, h, hv):
            assert type(out) is np.ndarray and out.dtype == np.float64 and out.flags.writeable
        assert {a for a, _ in seen} == {seen[0][0]} and seen[-1][1] == c.unflatten(c.x0)["b"].dtype
        seen.clear()
    c = scipy_callables(rosenbrock, single.tensor(START.astype("float32")))
    found = scipy.optimize.minimize(c.fun, c.x0, jac=c.jac, hessp=c.hessp, method="trust-ncg", options={"gtol": 1e-3})
    np.testing.assert_allclose(found.x, [1.0, 1.0, 1.0], atol=1e-2)


def test_what_is_tracked_outside_comes_in_as_it_is_and_goes_out_as_a_constant():
    s = ng.Autodiff(ng.NumpyBackend())
    w, start = s.tensor([2.0, 3.0], requires_grad=True), s.tensor([1.0, 1.0], requires_grad=True)
    c = scipy_callables(lambda x: (w * x**2).sum(), start)
    assert c.fun(c.x0) == 5.0 and c.jac(c.x0).tolist() == [4.0, 6.0] and c.hess(c.x0).tolist() == [[4.0, 0.0], [0.0, 6.0]]
    assert c.hessp(c.x0, ng.tensor([1.0, 1.0])).tolist() == [4.0, 6.0] and not c.unflatten(c.x0).tracked_on()
    for run in (lambda: c.fun(start), lambda: c.hessp(c.x0, start), lambda: c.unflatten(start * 2.0)):
        with pytest.raises(ConversionError, match=r"would silently make a constant of it"):
            run()


def test_the_imperative_style_inside():
    s = ng.Autodiff(ng.NumpyBackend())

    def f(x: Any) -> Any:
        y = s.tensor(x, requires_grad=True)
        return ((y**3).sum().wrt(y) ** 2).sum()

    c = scipy_callables(f, np.array([1.0, 2.0]))
    assert c.fun(c.x0) == 9.0 + 144.0 and c.jac(c.x0).tolist() == [36.0, 288.0]
    assert c.hess(c.x0).tolist() == [[108.0, 0.0], [0.0, 432.0]]


def test_infinite_values_and_nan_pass_through():
    c = scipy_callables(lambda x: x.log().sum(), np.array([1.0, 2.0]))
    with np.errstate(all="ignore"):
        assert c.fun([0.0, 1.0]) == -np.inf and np.isnan(c.fun([-1.0, 1.0])) and c.jac([0.0, 1.0]).tolist() == [np.inf, 1.0]


def test_a_constant_function_has_no_slope():
    c = scipy_callables(lambda x: 3.0, np.ones(2))
    assert c.fun(c.x0) == 3.0 and c.jac(c.x0).tolist() == [0.0, 0.0] and c.hess(c.x0).tolist() == [[0.0, 0.0]] * 2
    assert c.hessp(c.x0, c.x0).tolist() == [0.0, 0.0]


def test_parameters_are_a_vector_and_back(base):
    params = OrderedDict(z=base.tensor([[1.0, 2.0], [3.0, 4.0]]), a=(5.0, None, [base.tensor([6.0], dtype="float32")]))
    x, unflatten = flat(params)
    assert x.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0] and x.dtype == np.float64
    back = unflatten(-x)
    assert isinstance(back, OrderedDict) and back["z"].tolist() == [[-1.0, -2.0], [-3.0, -4.0]]
    assert back["a"][0].item() == -5.0 and back["a"][1] is None
    assert back["a"][2][0].tolist() == [-6.0] and back["a"][2][0].dtype == params["a"][2][0].dtype
    assert repr(back["z"].backend) == repr(base)
    assert flat({"b": 2.0, "a": 1.0})[0].tolist() == [1.0, 2.0]


def test_scipy_itself_is_not_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    c = scipy_callables(rosenbrock, START)
    assert c.hess(c.x0).shape == (3, 3)


@pytest.mark.parametrize(
    ("run", "error", "match"),
    [
        (lambda c: c.fun(np.ones(5)), ShapeError,
         r"scipy_callables: got x of shape \(5,\); expected shape \(6,\), the entries of \['W'\] \(2, 2\), \['b'\] \(2,\) end to end"),
        (lambda c: c.jac(np.ones((2, 3))), ShapeError, r"got x of shape \(2, 3\); expected shape \(6,\)"),
        (lambda c: c.hess(1.0), ShapeError, r"got x of shape \(\); expected shape \(6,\)"),
        (lambda c: c.hessp(c.x0, np.ones(7)), ShapeError, r"got p of shape \(7,\); expected shape \(6,\)"),
        (lambda c: c.unflatten(np.ones(7)), ShapeError, r"got a vector of shape \(7,\); expected shape \(6,\)"),
        (lambda c: c.fun(np.ones(6) * 1j), DTypeError, r"complex"),
        (lambda c: c.fun(["a"] * 6), DTypeError, r"expected numbers"),
        (lambda c: scipy_callables(lambda x: x, np.ones(2)).fun([1.0, 2.0]), ShapeError,
         r"scipy_callables: the function returned shape \(2,\); expected a 0-dimensional tensor\. Try \.sum\(\), or jacobian_operator"),
        (lambda c: scipy_callables(lambda x: x, np.ones(2)).hess([1.0, 2.0]), ShapeError, r"scipy_callables: the function returned shape"),
        (lambda c: scipy_callables(lambda x: x.argmax(), np.ones(2)).fun([1.0, 2.0]), DTypeError,
         r"scipy_callables: the function returned dtype int64 as its output, and whole numbers and booleans are not differentiable"),
        (lambda c: scipy_callables(lambda x: [x.sum()], np.ones(2)).jac([1.0, 2.0]), LevelError,
         r"scipy_callables: the function returned a list; expected a 0-dimensional Tensor"),
        (lambda c: scipy_callables(lambda x: None, np.ones(2)).fun([1.0, 2.0]), LevelError, r"returned a NoneType"),
        (lambda c: scipy_callables(lambda x: x.sum(), np.array([1, 2])), DTypeError,
         r"scipy_callables: got an argument of dtype int64; expected a floating one"),
        (lambda c: scipy_callables(lambda x: x.sum(), {}), ShapeError, r"scipy_callables: got argument 0 without any Tensor"),
        (lambda c: scipy_callables(lambda x: x.sum(), 1.0, chunk_size=0), ShapeError, r"got chunk_size 0; expected an int from 1 on"),
        (lambda c: flat([]), ShapeError, r"flat: got argument 0 without any Tensor"),
        (lambda c: flat([1.0])[1]([1.0, 2.0]), ShapeError, r"flat: got a vector of shape \(2,\); expected shape \(1,\), the entries"),
        (lambda c: func.vmap(lambda w: scipy_callables(lambda x: (w * x).sum(), 1.0).fun([2.0]))(np.ones(3)), LevelError, r"3 samples"),
    ],
)  # fmt: skip
def test_a_mistake_is_a_typed_error(run, error, match):
    with pytest.raises(error, match=match):
        run(scipy_callables(layer, {"W": np.array(W), "b": np.array(B)}))


def test_one_run_is_kept_and_no_more(nodes):
    """The graph of the last value, until its gradient is asked for."""
    c = scipy_callables(rosenbrock, START)
    c.jac(c.x0)
    before = nodes()
    for k in range(5):
        c.fun(c.x0 + k)
    one = nodes() - before
    assert one > 0
    c.fun(c.x0)
    assert nodes() - before == one
    c.jac(c.x0), c.hess(c.x0), c.hessp(c.x0, c.x0)
    assert nodes() == before
    c.fun(c.x0)
    del c
    assert nodes() == before
