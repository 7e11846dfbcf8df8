"""Cases A: differential equations and fields. The right values come from sympy, mpmath, jax or a formula worked by hand."""

import random
import tracemalloc

import numpy as np
import pytest
from orders import STYLES, check

import nestgrad as ng
from nestgrad import Autodiff, NumpyBackend, TorchBackend
from nestgrad.errors import CoupledError, NotConnectedError
from nestgrad.func import grad


def test_01_the_cross_partials_of_a_function_of_two_variables_are_equal(stack):
    S = stack(2)
    x, y = (S.tensor(v, requires_grad=True) for v in (1.7, -2.3))
    f = x * x + 3.0 * y + x * y
    grads = f.backward()
    second = [[v.grad(u.grad(grads).backward()) for v in (x, y)] for u in (x, y)]
    assert [[v.item() for v in row] for row in second] == [[2.0, 1.0], [1.0, 0.0]]


def test_01_the_cross_partials_by_transforms_are_equal():
    def f(x, y):
        return x * x + 3.0 * y + x * y

    second = [[grad(grad(f, i), j)(1.7, -2.3).item() for j in (0, 1)] for i in (0, 1)]
    assert second == [[2.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize("x", [1.0, [0.5, -1.0, 0.0, 2.0, 3.0]], ids=["scalar", "vector"])
def test_02_the_second_derivative_of_something_linear_is_zero_and_no_error(orders, x):
    first, second, third = orders(lambda v: (2.0 * v).sum(), x, 3)
    check(first, np.full(np.shape(x), 2.0))
    assert np.array_equal(second, np.zeros(np.shape(x)))
    assert np.array_equal(third, np.zeros(np.shape(x)))


def test_03_a_network_of_linear_layers_has_a_hessian_of_zeros(hessian):
    w = np.linspace(-1.0, 1.0, 12)
    assert np.array_equal(hessian(lambda x: x @ w, np.ones(12)), np.zeros((12, 12)))
    layers = [np.linspace(-1.0, 1.0, 48).reshape(12, 4), np.linspace(0.3, 2.0, 8).reshape(4, 2)]
    assert np.array_equal(hessian(lambda x: (x @ layers[0] @ layers[1] + 1.0).sum(), np.ones(12)), np.zeros((12, 12)))


def test_04_a_space_derivative_that_vanishes_leaves_the_rest_of_the_residual(stack):
    S = stack(4)
    x, t = (S.tensor(v, requires_grad=True) for v in (0.3, 0.8))
    y = x * x * t + t.sin()
    fourth = y.wrt(x).wrt(x).wrt(x).wrt(x)
    assert fourth.item() == 0.0
    check(y.wrt(t).wrt(t) + fourth, -0.7173560908995228)


def test_04_the_same_by_transforms():
    def y(x, t):
        return x * x * t + ng.sin(t)

    fourth = grad(grad(grad(grad(y))))
    assert fourth(0.3, 0.8).item() == 0.0
    check(grad(grad(y, 1), 1)(0.3, 0.8) + fourth(0.3, 0.8), -0.7173560908995228)


POINTS = [[0.3, 0.5, 0.7], [1.0, -0.2, 0.4]]


def _psi(X):
    return (2.0 * X[:, 0]).sin() * (-X[:, 1]).exp() * X[:, 2].cos()


@pytest.mark.parametrize(
    ("column", "right"), [(0, [4.19100443049945, 16.367156379998477]), (1, [0.2619377769062156, 1.0229472737499048])]
)
def test_05_derivatives_by_a_column_come_from_the_whole_input(stack, column, right):
    X = stack(4).tensor(POINTS, requires_grad=True)
    u = _psi(X)
    for _ in range(4):
        u = u.wrt(X)[:, column]
    check(u, right)


@pytest.mark.parametrize("column", [0, 1])
def test_05_columns_that_were_cut_before_the_forward_pass_can_be_differentiated_by(stack, column):
    X = stack(4).tensor(POINTS, requires_grad=True)
    columns = [X[:, k] for k in range(3)]
    u = _psi(ng.stack(columns, axis=1))
    for _ in range(4):
        u = u.wrt(columns[column])
    check(u, [[4.19100443049945, 16.367156379998477], [0.2619377769062156, 1.0229472737499048]][column])


@pytest.mark.parametrize("order", [1, 2, 3])
def test_05_a_slice_made_after_the_forward_pass_is_named_at_every_order(stack, order):
    X = stack(3).tensor(POINTS, requires_grad=True)
    u = _psi(X)
    for _ in range(order - 1):
        u = u.wrt(X)[:, 0]
    late = X[:, 0]
    with pytest.raises(NotConnectedError, match=r"this tensor of shape \(2,\)\. Was it .* sliced after the forward pass"):
        late.grad(u.backward())
    assert u.backward().get(late) is None
    assert late not in u.backward()


W, B, V = [1.5, -0.8, 0.6], [0.1, 0.2, -0.3], [0.7, -1.1, 0.9]
NET = [1.9342619622682564, -1.4043244407947688, -0.27662937551395633, 7.093653775879541, -33.60458193344785, 51.176809547556985]


def _net(base):
    w, b, v = (base.tensor(p) for p in (W, B, V))
    return lambda x: (v * (w * x + b).tanh()).sum()


def test_07_a_net_has_six_right_derivatives(orders, base):
    check(orders(_net(base), 0.5, 6), NET)


@pytest.mark.parametrize("single", [NumpyBackend("float32"), TorchBackend()], ids=["numpy", "torch"])
@pytest.mark.parametrize("style", STYLES)
def test_07_in_single_precision_they_are_right_to_two_millionths(single, style):
    found = STYLES[style](single, _net(single), 0.5, 6)
    assert {g.dtype for g in found} == {np.dtype("float32")}
    check(found, NET, rtol=2e-6)


def test_08_the_mixed_derivative_by_time_and_space(stack):
    S = stack(2)
    x, t = (S.tensor(v, requires_grad=True) for v in (0.4, 1.5))
    u = (-t).exp() * x.sin() + x * t * t
    check(u.wrt(t).wrt(x), 2.7944835129016643)
    check(u.wrt(x).wrt(t), 2.7944835129016643)
    check(grad(grad(lambda x, t: ng.exp(-t) * ng.sin(x) + x * t * t, 1), 0)(0.4, 1.5), 2.7944835129016643)


def test_09_the_laplacian_of_a_vector_field_keeps_its_components_apart(stack):
    X = stack(2).tensor([[0.2, 3.1], [0.9, 3.7]], requires_grad=True)
    x, y = X[:, 0], X[:, 1]
    field = ng.stack([x * x + y * y, x * x - y * y], axis=1)
    laplacian = ng.stack([sum(field[:, k].wrt(X)[:, j].wrt(X)[:, j] for j in (0, 1)) for k in (0, 1)], axis=1)
    check(laplacian, [[4.0, 0.0], [4.0, 0.0]])


def test_10_each_of_two_outputs_has_its_own_derivative_per_sample(stack):
    t = stack(2).tensor([[0.1], [0.5], [2.0]], requires_grad=True)
    y = ng.concat([t.sin(), t**3], axis=1)
    first = [y[:, k].wrt(t) for k in (0, 1)]
    check(ng.concat(first, axis=1), [[0.9950041652780258, 0.03], [0.8775825618903728, 0.75], [-0.4161468365471424, 12.0]])
    second = ng.concat([g.wrt(t) for g in first], axis=1)
    check(second, [[-0.09983341664682815, 0.6], [-0.479425538604203, 3.0], [-0.9092974268256817, 12.0]])


def _running_sum(x):
    return np.tril(np.ones((3, 3))) @ x


def test_11_the_jacobian_of_coupled_samples_has_rows(stack):
    x = stack(1).tensor([1.0, 2.0, 3.0], requires_grad=True)
    f = _running_sum(x) ** 2
    right = [[2.0, 0.0, 0.0], [6.0, 6.0, 0.0], [12.0, 12.0, 12.0]]
    check([f[k].wrt(x).numpy() for k in range(3)], right)
    check([x.grad(f.backward(gradient=np.eye(3)[k])).numpy() for k in range(3)], right)


def test_11_summing_over_coupled_samples_is_found_out(stack):
    """The check seeds one row drawn at random, and the first row of a running sum looks independent: so it is asked several times."""
    random.seed(1)
    x = stack(1).tensor([1.0, 2.0, 3.0], requires_grad=True)
    f = _running_sum(x) ** 2
    with pytest.raises(CoupledError, match="depends on other rows of the input"):
        for _ in range(20):
            x.grad(f.backward(check_independent=True))


def test_11_independent_samples_pass_the_check(stack):
    x = stack(1).tensor([1.0, 2.0, 3.0], requires_grad=True)
    for _ in range(20):
        check(x.grad((x**2).backward(check_independent=True)), [2.0, 4.0, 6.0])


@pytest.mark.parametrize(("k", "right"), [(1, [0.0, 0.0, 0.0]), (2, [0.0, 0.0, 2.0]), (3, [0.0, 0.0, 12.0])])
def test_12_relu_has_no_curvature_and_its_powers_have_their_own(orders, k, right):
    check(orders(lambda x: (x.relu() ** k).sum(), [-1.0, 0.0, 2.0], 2)[1], right)


def _u(x, y, z):
    return ng.sin(x) * ng.exp(y * z) + x**3 * z


DIAGONAL = [1.9771370041748446, 0.26332271398822377, 0.029258079332024865]


def test_13_the_diagonal_of_the_hessian_is_not_a_sum(stack):
    S = stack(2)
    point = [S.tensor(v, requires_grad=True) for v in (0.3, -0.4, 1.2)]
    u = _u(*point)
    check([u.wrt(v).wrt(v).item() for v in point], DIAGONAL)
    check([grad(grad(_u, k), k)(0.3, -0.4, 1.2).item() for k in range(3)], DIAGONAL)


def test_13_the_diagonal_of_a_big_hessian_does_not_take_a_matrix():
    """One look-up per entry, here of each tenth. What they need together stays below a hundredth of the 32 MB of the matrix."""
    n, some = 2000, slice(0, 2000, 10)
    values = np.linspace(-1.0, 1.0, n)
    x = Autodiff(Autodiff(NumpyBackend())).tensor(values, requires_grad=True)
    g = ((x[:-1] * x[1:]).sin()).sum().wrt(x)
    tracemalloc.start()
    diagonal = np.array([g[k].wrt(x)[k].item() for k in range(n)[some]])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    s = -np.sin(values[:-1] * values[1:])
    right = np.append(s * values[1:] ** 2, 0.0) + np.insert(s * values[:-1] ** 2, 0, 0.0)
    check(diagonal, right[some], atol=1e-15)
    assert peak < 8 * n * n / 100
