"""Cases D: backends that lack something, arrays of others, captured parameters, shapes of answers."""

import math

import numpy as np
import pytest
from orders import check

import nestgrad as ng
from nestgrad import Autodiff, NumpyBackend
from nestgrad.backends import Backend, missing
from nestgrad.backends.base import REQUIRED
from nestgrad.errors import ConversionError, DTypeError, MissingOp, NotConnectedError
from nestgrad.func import grad, value_and_grad, vjp


def _minimal(*without):
    """A backend that has the required methods and no others, less ``without``."""
    arrays = NumpyBackend()
    methods = {name: staticmethod(getattr(arrays, name)) for name in REQUIRED if name not in without}
    return type("Minimal", (Backend,), methods | {"name": "minimal", "default_dtype": arrays.default_dtype})()


@pytest.mark.parametrize("levels", [1, 2])
def test_47_a_missing_method_is_named_with_the_rule_and_the_level_that_need_it(levels):
    backend = _minimal("cos")
    stack = backend
    for _ in range(levels):
        stack = Autodiff(stack)
    x = stack.tensor(0.5, requires_grad=True)
    y = x.sin()
    assert y.item() == np.sin(0.5)
    named = rf"(?s)^cos: Minimal lacks .* Add `def cos\(self, x\)`.*the rule of 'sin', in the backward pass of Autodiff level {levels}"
    with pytest.raises(MissingOp, match=named):
        y.wrt(x)
    assert missing(backend) == ["cos"]


def test_47_a_method_that_only_the_second_derivative_needs_is_named_there():
    """log needs div, div needs mul at order two: a wrapped method serves on every level."""
    x = Autodiff(Autodiff(_minimal("mul"))).tensor(0.5, requires_grad=True)
    first = x.log().wrt(x)
    assert first.item() == 2.0
    with pytest.raises(MissingOp, match=r"(?s)^mul: Minimal lacks .*needed by the rule of 'div0', in the backward .* of Autodiff level 1"):
        first.wrt(x)


def test_47_with_the_method_added_every_order_works():
    x = Autodiff(Autodiff(_minimal())).tensor(0.5, requires_grad=True)
    first = x.sin().wrt(x)
    check(first, 0.8775825618903728)
    check(first.wrt(x), -0.479425538604203)


SPELLINGS = {
    r"np\.sin of a Tensor: .* Try ng\.sin\(\.\.\.\) or x\.sin\(\)": np.sin,
    r"np\.arctan of a Tensor: .* Try ng\.atan\(\.\.\.\) or x\.atan\(\)": np.arctan,
    r"np\.linalg\.norm of a Tensor: .* Try ng\.norm\(\.\.\.\) or x\.norm\(\)": np.linalg.norm,
    r"np\.mean of a Tensor: .* Try ng\.mean\(\.\.\.\) or x\.mean\(\)": np.mean,
    r"np\.dot of a Tensor: .* Try ng.dot\(\.\.\.\) or x.dot\(\)": lambda x: np.dot(x, x),
    r"np\.concatenate of a Tensor: .* Try ng\.concatenate": lambda x: np.concatenate([x, x]),
    r"np\.add\.reduce of a Tensor: .* Try x\.sum\(\)": np.add.reduce,
    r"np\.asarray\(x\), or a NumPy function, .* Try x\.numpy\(\)": np.array,
    r"np\.asarray\(x\), .*would silently make a constant": lambda x: np.array([x[0], x[1]]),
    r"float\(x\) of a tensor that depends on variables .* Try x\.item\(\)": lambda x: float(x[0]),
    r"float\(x\) .* Try x\.item\(\)": lambda x: math.exp(x[0]),
    r"Try array = array \+ x": lambda x: np.add(np.zeros(2), x, out=np.zeros(2)),
}


@pytest.mark.parametrize(("words", "function"), SPELLINGS.items(), ids=range(len(SPELLINGS)))
def test_48_a_function_of_numpy_is_refused_with_the_right_spelling(stack, words, function):
    x = stack(2).tensor([3.0, 4.0], requires_grad=True)
    with pytest.raises(ConversionError, match=words):
        function(x)


def test_48_the_right_spellings_have_the_right_derivatives(orders, stack):
    check(orders(lambda x: x.sin(), 0.5, 2)[1], -0.479425538604203)
    check(orders(ng.sin, 0.5, 2)[1], -0.479425538604203)
    x = stack(1).tensor([3.0, 4.0], requires_grad=True)
    check(x.norm().wrt(x), [0.6, 0.8])
    check(ng.norm(x).wrt(x), [0.6, 0.8])


def test_48_operators_with_numpy_on_the_left_stay_on_their_levels(stack):
    x = stack(2).tensor([3.0, 4.0], requires_grad=True)
    a = np.array([2.0, 5.0])
    for y, right in (
        (a * x, [2.0, 5.0]),
        (np.float64(2.0) * x, [2.0, 2.0]),
        (np.float32(2.0) - x, [-1.0, -1.0]),
        (a @ x, [2.0, 5.0]),
        (np.multiply(a, x), [2.0, 5.0]),
        (a / x, [-2.0 / 9.0, -5.0 / 16.0]),
    ):
        check(y.wrt(x), right)


W, X = [[0.1, 0.2, -0.3], [0.4, 0.0, 0.5]], [0.5, -1.0, 2.0]


def test_49_numbers_as_arguments_go_to_the_backend_of_the_tensors_beside_them(base):
    a = base.tensor([1.0, 2.0])
    check(grad(lambda x, a: (x * x * a).sum())(3.0, a), 18.0)
    check(vjp(lambda x: x * x, base.tensor(3.0))[1](2.0)[0], 12.0)


def _cross_entropy(w):
    z = w @ np.array(X)
    return z.logsumexp() - z[1]


def test_49_the_hessian_of_a_cross_entropy_by_its_weights(hessian):
    z = np.exp(np.array(W) @ np.array(X))
    p = z / z.sum()
    right = np.einsum("ab,c,d->acbd", np.diag(p) - np.outer(p, p), X, X)
    assert abs(right[0, 0, 0, 0] - 0.02725995478791339) < 1e-16
    check(hessian(_cross_entropy, W), right)


def test_49_weights_made_anew_are_not_what_the_loss_depends_on(stack):
    """The imperative style cannot ask for a derivative by what was not used: an error at order one and at order two."""
    S = stack(2)
    captured, given = (S.tensor(W, requires_grad=True) for _ in range(2))
    loss = _cross_entropy(captured)
    with pytest.raises(NotConnectedError, match="Was it created anew"):
        loss.wrt(given)
    with pytest.raises(NotConnectedError, match="Was it created anew"):
        loss.wrt(captured)[0, 0].wrt(given)


@pytest.mark.parametrize("captured", ["array", "variable"])
def test_49_strict_transforms_refuse_a_function_that_ignores_its_argument(base, stack, captured):
    """A function that does not depend on its argument has derivative zero, so zeros are the answer unless one asks to be told."""
    outside = base.tensor(W) if captured == "array" else stack(1).tensor(W, requires_grad=True)
    f = lambda w: _cross_entropy(outside)
    words = r"the output does not depend on argument 0, of shape \(2, 3\), .* Did the function capture a tensor from outside"
    for call in (lambda: grad(f, strict=True)(outside), lambda: value_and_grad(f, strict=True)(outside)):
        with pytest.raises(NotConnectedError, match=f"^grad: {words}"):
            call()
    with pytest.raises(NotConnectedError, match=f"^vjp: {words}"):
        vjp(f, outside, strict=True)[1](1.0)
    assert np.array_equal(grad(f)(outside).numpy(), np.zeros((2, 3)))
    check(grad(_cross_entropy, strict=True)(outside), grad(_cross_entropy)(outside))
    assert grad(grad(lambda v: 3.0 * v, strict=True), strict=True)(2.0).item() == 0.0


def test_50_the_hessian_of_several_parameters_is_one_flat_matrix(stack):
    S = stack(2)
    w, b = S.tensor([[0.5, -0.3], [0.8, 0.1]], requires_grad=True), S.tensor([0.1, -0.2], requires_grad=True)
    loss = ((w @ np.array([0.4, -0.9]) + b).tanh() ** 2).sum()
    g = ng.concat([w.grad(loss.backward()).reshape(4), b.grad(loss.backward())])
    rows = [g[k].backward() for k in range(6)]
    matrix = np.stack([np.append(w.grad(r).numpy().reshape(4), b.grad(r).numpy()) for r in rows])
    right = {
        0: [0.047757333074, -0.107453999415, 0, 0, 0.119393332684, 0],
        3: [0, 0, -0.717411301909, 1.614175429296, 0, -1.793528254773],
        5: [0, 0, 0.797123668788, -1.793528254773, 0, 1.992809171971],
    }
    for k, row in right.items():  # printed to twelve decimal places
        check(matrix[k], np.array(row, float), rtol=0, atol=1e-12)
    check(matrix, matrix.T, atol=1e-15)


def test_51_a_function_of_real_and_imaginary_part_has_its_hessian(hessian):
    check(hessian(lambda z: (z[0] ** 2 + z[1] ** 2) ** 2, [1.0, 2.0]), [[28.0, 16.0], [16.0, 52.0]])


COMPLEX = {
    "number": lambda S, x: S.tensor(1 + 2j),
    "list": lambda S, x: S.tensor([1 + 2j, 0.0]),
    "array": lambda S, x: S.tensor(np.array([1 + 2j])),
    "dtype": lambda S, x: S.tensor([1.0], dtype="complex128"),
    "cast": lambda S, x: x.astype("complex64"),
    "operand": lambda S, x: x * (1 + 2j),
    "reflected operand": lambda S, x: (1 + 2j) * x,
    "array operand": lambda S, x: np.array([1 + 2j, 1.0]) * x,
    "comparison": lambda S, x: x == 1 + 2j,
    "power": lambda S, x: x**1j,
    "written": lambda S, x: x.at[0].set(np.complex128(1j)),
    "seed": lambda S, x: x.backward(gradient=np.array([1j, 2.0])),
    "argument": lambda S, x: grad(lambda v: v * v)(1 + 2j),
    "array argument": lambda S, x: grad(lambda v: (v * v).sum())(np.array([1j])),
    "cotangent": lambda S, x: vjp(lambda v: v * v, x)[1](np.array([1j, 2.0])),
    "zeros": lambda S, x: ng.zeros(2, dtype="complex64", backend=S),
}


@pytest.mark.parametrize("enter", COMPLEX.values(), ids=COMPLEX)
def test_51_complex_numbers_are_refused_with_the_way_out(stack, enter):
    S = stack(1)
    x = S.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(DTypeError, match=r"complex.*expected (a )?real .*Try real and imaginary parts as two tensors"):
        enter(S, x)


def _chain(x):
    """Neighbours coupled in a ring cut open: a tridiagonal Hessian."""
    return (x**4).sum() + (x[:-1] * x[1:]).sin().sum()


def test_53_three_products_recover_a_tridiagonal_hessian(stack):
    n = 50
    point = np.linspace(-1.0, 2.0, n)
    x = stack(2).tensor(point, requires_grad=True)
    g = _chain(x).wrt(x)
    found = np.zeros((n, n))
    for colour in range(3):
        v = (np.arange(n) % 3 == colour).astype(float)
        product = (g @ v).wrt(x).numpy()
        for i in range(n):
            (j,) = (k for k in (i - 1, i, i + 1) if k % 3 == colour)
            if 0 <= j < n:
                found[i, j] = product[i]
    u = point[:-1] * point[1:]
    beside = np.cos(u) - u * np.sin(u)
    right = np.diag(beside, 1) + np.diag(beside, -1)
    right += np.diag(12.0 * point**2 - np.append(np.sin(u) * point[1:] ** 2, 0.0) - np.insert(np.sin(u) * point[:-1] ** 2, 0, 0.0))
    check(found, right, rtol=1e-12, atol=1e-13)
    assert np.count_nonzero(found) == 148


def test_54_the_eighth_derivative_by_nesting(orders):
    check(orders(lambda x: x.sin().exp(), 0.0, 8)[7], 217.0)


@pytest.mark.parametrize(
    ("f", "n", "right"),
    [(lambda x: 1.0 / (1.0 - x), 20, 2432902008176640000.0), (lambda x: x.sin().exp(), 8, 217.0), (lambda x: x.sin().exp(), 12, 5973.0)],
    ids=["1/(1-x)", "exp sin, 8", "exp sin, 12"],
)
def test_54_high_orders_cost_a_polynomial_not_a_factorial(base, f, n, right):
    check(math.factorial(n) * ng.func.taylor(f, base.tensor(0.0), 1.0, n)[n].item(), right)
