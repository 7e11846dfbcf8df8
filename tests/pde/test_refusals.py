"""What operators refuse: with the class of error that fits, and what to write instead. And what is empty, which they take."""

import inspect
import warnings
from functools import partial

import numpy as np
import pytest
from fields import FIRST, OPERATORS, SECOND

import nestgrad as ng
from nestgrad import pde
from nestgrad.errors import ArgumentError, DTypeError, IndexRangeError, LevelError, OrderError, ShapeError

AT = np.array([[0.3, -0.5], [1.0, 2.0], [0.1, 0.2]])
SQUARES = lambda x: (x**2).sum()

METHODS = {name: FIRST if name in ("gradient", "jacobian", "divergence", "curl") else SECOND for name in OPERATORS}
EACH = [(name, method) for name in OPERATORS for method in METHODS[name]]


@pytest.mark.parametrize("name", OPERATORS)
def test_what_is_asked_for_is_checked_before_there_are_points(name):
    operator = OPERATORS[name]
    known = ", ".join(map(repr, METHODS[name]))
    with pytest.raises(ArgumentError, match=f"^{name}: got method 'finite'; expected one of {known}$"):
        operator(SQUARES, method="finite")
    with pytest.raises(ArgumentError, match=rf"^{name}: got method a ndarray; expected one of {known}\. Try {name}\(f\)\(points\)$"):
        operator(SQUARES, method=AT)
    with pytest.raises(ArgumentError, match=rf"^{name}: got a Tensor; expected a function of one point, .*Try {name}\(f\)\(points\)"):
        operator(ng.tensor(AT))
    with pytest.raises(ShapeError, match=f"^{name}: got chunk_size 0; expected an int from 1 on"):
        operator(SQUARES, chunk_size=0)


@pytest.mark.parametrize("name", OPERATORS)
def test_points_have_two_axes_or_one_and_are_floating(name):
    operator = OPERATORS[name](SQUARES)
    with pytest.raises(ShapeError, match=rf"^{name}: got points of shape \(2, 3, 2\); expected \(n, d\).*Try points.reshape\(-1, d\)"):
        operator(np.zeros((2, 3, 2)))
    with pytest.raises(ShapeError, match=rf"^{name}: got points of shape \(\); expected .*Try x.reshape\(1, 1\)"):
        operator(1.0)
    with pytest.raises(DTypeError, match=f"^{name}: got points of dtype int64; expected a floating one. Try points.astype"):
        operator(np.ones((3, 2), dtype="int64"))
    with pytest.raises(DTypeError, match=f"^{name}: got a list; expected a Tensor"):
        operator([[1.0, 2.0]])


@pytest.mark.parametrize("name, method", EACH)
def test_a_field_returns_one_tensor(name, method):
    operator = partial(OPERATORS[name], method=method)
    with pytest.raises(LevelError, match=rf"^{name}: the function returned a tuple; expected a Tensor. Try ng.stack\(\[...\]\)"):
        operator(lambda x: (x[0], x[1]))(AT)
    with pytest.raises(LevelError, match=f"^{name}: the function returned a NoneType; expected a Tensor$"):
        operator(lambda x: None)(AT)


@pytest.mark.parametrize("name, method", EACH)
def test_a_field_of_whole_numbers_has_no_derivatives(name, method):
    operator = partial(OPERATORS[name], method=method)
    for f in (lambda x: (x > 0.0).sum(), lambda x: np.arange(2)):
        with pytest.raises(DTypeError, match=rf"^{name}: the function returned dtype int64; expected a floating one.*Try .astype\("):
            operator(f)(AT)


@pytest.mark.parametrize("method", FIRST)
def test_a_gradient_is_of_a_number(method):
    with pytest.raises(ShapeError, match=r"^gradient: the function returned shape \(1,\) at a point; expected \(\).*, or f\(x\)\[0\]$"):
        pde.gradient(lambda x: x[:1], method)(AT)
    with pytest.raises(ShapeError, match=r"^gradient: .* shape \(2,\) at a point; expected \(\), one number. Try jacobian"):
        pde.gradient(lambda x: x * x, method)(AT[0])


@pytest.mark.parametrize("method", FIRST)
def test_a_divergence_is_of_a_field_with_a_component_for_each_coordinate(method):
    for f, shape in [(SQUARES, r"\(\)"), (lambda x: x[:1], r"\(1,\)"), (lambda x: ng.outer(x, ng.ones(3)), r"\(2, 3\)")]:
        with pytest.raises(ShapeError, match=rf"^divergence: the function returned shape {shape} at a point of 2 coordinates; expected"):
            pde.divergence(f, method)(AT)


@pytest.mark.parametrize("method", FIRST)
def test_a_curl_is_in_three_dimensions_or_two(method):
    for d in (1, 4):
        with pytest.raises(ShapeError, match=rf"^curl: got points of {d} coordinates?; expected 3, or 2. Try jacobian"):
            pde.curl(lambda x: x * x, method)(np.ones((2, d)))
    for f, shape in [(SQUARES, r"\(\)"), (lambda x: ng.stack([x[0]] * 3), r"\(3,\)"), (lambda x: ng.outer(x, x), r"\(2, 2\)")]:
        with pytest.raises(ShapeError, match=rf"^curl: the function returned shape {shape} at a point.*expected \(2,\)"):
            pde.curl(f, method)(AT)


def test_orders_and_directions():
    for order in (0, -1, 1.5, True, "2"):
        with pytest.raises(OrderError, match=r"^directional: got order .*expected an int from 1 on"):
            pde.directional(SQUARES, 0, order)
    for coordinate in (2, -3):
        with pytest.raises(IndexRangeError, match=rf"^directional: got coordinate {coordinate} for points of 2 coord.*-2 to 1"):
            pde.directional(SQUARES, coordinate)(AT)
    expected = r"for points of shape \(3, 2\); expected \(2,\), one for all, or \(3, 2\), one for each$"
    for direction in (np.ones(3), np.ones((2, 2)), 1.0, True):
        with pytest.raises(ShapeError, match=rf"^directional: got a direction of shape \(.*\) {expected}"):
            pde.directional(SQUARES, direction)(AT)
    with pytest.raises(ShapeError, match=r"^directional: .* of shape \(3, 2\) for points of shape \(2,\); expected \(2,\), one for all$"):
        pde.directional(SQUARES, AT)(AT[0])
    with pytest.raises(DTypeError, match=r"directional: got a direction of dtype float32 for points of dtype float64"):
        pde.directional(SQUARES, np.ones(2, dtype="float32"))(AT)


@pytest.mark.parametrize("name, method", EACH)
@pytest.mark.parametrize("n, d", [(0, 2), (2, 0), (0, 0)])
def test_no_points_and_no_coordinates_give_nothing_of_the_right_shape(base, name, method, n, d):
    if (name == "curl" and d == 0) or (name == "directional" and d == 0):
        return
    vector = name in ("divergence", "curl")
    found = OPERATORS[name](lambda x: x * x if vector else (x * x).sum(), method=method)(base.tensor(np.ones((n, d))))
    tail = {"gradient": (d,), "jacobian": (d,), "hessian_diag": (d,)}.get(name, ())
    shapes = [x.shape for x in found] if isinstance(found, tuple) else found.shape
    assert shapes == ([(n,), (n, d), (n,)] if isinstance(found, tuple) else (n, *tail))
    assert not any((x != 0).any().item() for x in (found[1:] if isinstance(found, tuple) else [found]))


@pytest.mark.parametrize("name, method", EACH)
def test_a_constant_field_has_zero_derivatives(base, name, method):
    constant = base.tensor([1.0, 2.0]) if name in ("divergence", "curl") else 3.0
    found = OPERATORS[name](lambda x: constant, method=method)(base.tensor(AT))
    for part in found[1:] if isinstance(found, tuple) else [found]:
        assert part.shape[0] == 3 and not (part != 0).any().item()


def test_a_number_is_a_field_of_the_dtype_of_the_points(base):
    for dtype in ("float32", "float64"):
        for part in pde.value_gradient_laplacian(lambda x: 2)(base.tensor(AT.astype(dtype))):
            assert str(part.dtype).endswith(dtype)


RELU = lambda x: ng.nn.relu(3.0 * x[0] - x[1]) + ng.nn.relu(x[1])
CURVED = ["laplacian", "hessian_diag", "value_gradient_laplacian", "biharmonic", "directional"]


@pytest.mark.parametrize("name", CURVED)
def test_a_net_with_relu_has_no_curvature_and_that_is_said(base, name):
    with pytest.warns(pde.PiecewiseLinearWarning, match=rf"^{name}: all second derivatives are exactly zero, .*smooth") as caught:
        found = OPERATORS[name](RELU)(base.tensor(AT))
    assert [w.filename for w in caught] == [__file__]
    assert not (found[-1] != 0).any().item()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pde.PiecewiseLinearWarning)
        OPERATORS[name](RELU)(base.tensor(AT))


def test_where_the_warning_is_ignored_nothing_more_is_run():
    runs = []
    f = lambda x: runs.append(1) or RELU(x)
    with pytest.warns(pde.PiecewiseLinearWarning):
        pde.laplacian(f)(AT)
    assert len(runs) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        pde.laplacian(f)(AT)
    assert len(runs) == 3
    pde.laplacian(lambda x: runs.append(1) or x.sin().sum())(AT)
    assert len(runs) == 4


@pytest.mark.parametrize("k, want", [(1, [0.0, 0.0, 0.0]), (2, [0.0, 0.0, 2.0]), (3, [0.0, 0.0, 12.0])])
@pytest.mark.parametrize("method", SECOND)
def test_powers_of_relu(base, k, want, method):
    x = base.tensor([[-1.0], [0.0], [2.0]])
    u = pde.laplacian(lambda x: ng.nn.relu(x[0]) ** k, method)
    if k > 1:
        assert u(x).tolist() == want
    else:
        with pytest.warns(pde.PiecewiseLinearWarning):
            assert u(x).tolist() == want


@pytest.mark.parametrize("name", CURVED)
def test_no_warning_without_a_kink(base, name):
    """Warnings are errors in this suite: of what is linear, constant, of steps, harmonic, or smooth with zeros by accident."""
    weights = base.tensor(np.random.default_rng(0).normal(size=(40, 2)))
    fields = {
        "linear": lambda x: (weights.T @ (weights @ x)).sum() + 1.0,
        "constant": lambda x: 2.0,
        "steps": lambda x: x[0].floor(),
        "harmonic": lambda x: x[0] * x[1],
        "cubic": lambda x: x[1] ** 3 + x[0],
        "saturated": lambda x: (1e4 * (x[0] + 7.0)).tanh(),
    }
    for f in fields.values():
        OPERATORS[name](f)(base.tensor(AT))


def test_no_warning_where_numbers_cannot_be_read(base):
    """In transforms and traces, at one point, and on levels whose values are no plain numbers."""
    at = base.tensor(AT)
    total = lambda at: pde.laplacian(RELU)(at).sum()
    assert not (ng.func.grad(total)(at) != 0).any().item()
    assert ng.func.call(ng.func.trace(total)(at), at).item() == 0.0
    assert pde.laplacian(RELU)(at[0]).item() == 0.0
    many = ng.Batched(base)
    found = many.unbatch(pde.laplacian(RELU)(many.batch(ng.stack([at, at]))), size=2)
    assert found.tolist() == [[0.0] * 3] * 2
    traced = ng.Traced(base)
    assert traced.program(pde.laplacian(RELU)(traced.input(at))) is not None


@pytest.mark.parametrize("name", pde.__all__)
def test_every_operator_is_documented_with_an_example(name):
    value = getattr(pde, name)
    text = inspect.getdoc(value)
    assert text and len(set(pde.__all__)) == len(pde.__all__)
    if inspect.isfunction(value):
        assert ">>>" in text and all(word in text for word in ("Args:", "Returns:", "Raises:")) and "return" in value.__annotations__
