"""Operators: values as in NumPy with any operand on either side, derivatives in each position, what is refused."""

import operator

import numpy as np
import pytest

import nestgrad as ng
from nestgrad.errors import ConversionError, DTypeError, ImmutableError, LevelError, ShapeError

X = np.array([[0.5, 1.5, 2.5], [0.75, 1.25, 3.0]])
Y = np.array([1.25, 0.5, 2.0])

ARITHMETIC = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv, "pow": operator.pow,
}  # fmt: skip
COMPARISONS = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
NUMBERS = [2, 2.0, 0.5, -1.5, True, np.float64(0.5), np.float32(0.5), np.int64(3)]


@pytest.mark.parametrize("op", ARITHMETIC.values(), ids=ARITHMETIC)
def test_two_tensors_broadcast_and_differentiate_as_arrays_do(op, check_derivatives):
    check_derivatives(op, op, X, Y)
    check_derivatives(op, op, Y, X)
    check_derivatives(op, op, X[:, :1], Y)
    check_derivatives(op, op, np.float64(1.5), X)


@pytest.mark.parametrize("number", NUMBERS, ids=lambda v: f"{type(v).__name__}-{v}")
@pytest.mark.parametrize("op", ARITHMETIC.values(), ids=ARITHMETIC)
def test_numbers_stand_on_either_side(op, number, check_derivatives):
    plain = number.item() if isinstance(number, np.generic) else number
    check_derivatives(lambda x: op(x, number), lambda x: op(x, plain), X)
    if not (op is operator.pow and plain < 0):  # a negative base with fractions as exponents has no real power
        check_derivatives(lambda x: op(number, x), lambda x: op(plain, x), X)


@pytest.mark.parametrize("op", ARITHMETIC.values(), ids=ARITHMETIC)
def test_arrays_of_numpy_stand_on_either_side(op, check_derivatives):
    check_derivatives(lambda x: op(x, Y), lambda x: op(x, Y), X)
    check_derivatives(lambda x: op(Y, x), lambda x: op(Y, x), X)


@pytest.mark.parametrize("op", ARITHMETIC.values(), ids=ARITHMETIC)
def test_native_arrays_stand_on_either_side(op, native, check_derivatives):
    check_derivatives(lambda x: op(x, native(Y)), lambda x: op(x, Y), X)
    check_derivatives(lambda x: op(native(Y), x), lambda x: op(Y, x), X)


def test_matrix_products_take_arrays_on_either_side(native, check_derivatives):
    w = np.arange(6.0).reshape(3, 2)
    check_derivatives(lambda x: x @ w, lambda x: x @ w, X)
    check_derivatives(lambda x: w @ x, lambda x: w @ x, X)
    check_derivatives(lambda x: native(w) @ x, lambda x: w @ x, X)


def test_unary_operators(check_derivatives):
    check_derivatives(operator.neg, operator.neg, X)
    check_derivatives(operator.pos, operator.pos, X)
    check_derivatives(abs, abs, X - 1.3)
    check_derivatives(lambda x: x.T, lambda x: x.T, X)
    check_derivatives(lambda x: x.mT, lambda x: np.swapaxes(x, -1, -2), np.arange(12.0).reshape(2, 3, 2))


@pytest.mark.parametrize("op", COMPARISONS.values(), ids=COMPARISONS)
def test_comparisons_are_constants_in_bool(op, stack, native):
    y = np.where(X > 1.3, X, 1.0)
    x = stack.tensor(X, requires_grad=True)
    for other, plain in ((stack.tensor(y), y), (y, y), (native(y), y), (1.25, 1.25), (np.float64(1.25), 1.25), (3, 3)):
        for got, want in ((op(x, other), op(X, plain)), (op(other, x), op(plain, X))):
            assert got.level == 0 and not got.marks
            np.testing.assert_array_equal(got.numpy(), want)


def test_comparison_with_what_is_no_number_is_python_s(stack):
    x = stack.tensor(1.0)
    assert (x == "one") is False and (x != None) is True  # noqa: E711
    with pytest.raises(TypeError):
        x < "one"  # noqa: B015


def test_logic_on_booleans(base):
    a, c = np.array([True, True, False]), np.array([True, False, False])
    x, y = base.tensor(a), base.tensor(c)
    for op in (operator.and_, operator.or_, operator.xor):
        for left, right in ((x, y), (a, y), (x, c), (x, True), (False, y)):
            plain = [v.numpy() if isinstance(v, ng.Tensor) else v for v in (left, right)]
            np.testing.assert_array_equal(op(left, right).numpy(), op(*plain))
    np.testing.assert_array_equal((~x).numpy(), ~a)


@pytest.mark.parametrize("op", [operator.and_, operator.or_, operator.xor], ids=["and", "or", "xor"])
def test_bits_are_refused(op, base):
    """NumPy's ``&`` of integers works on bits; logic instead would be a silently different number."""
    x = base.tensor([1, 2])
    with pytest.raises(DTypeError, match=r"expected booleans.*ng\.logical_and"):
        op(x, 2)
    with pytest.raises(DTypeError, match="expected booleans"):
        op(np.array([1, 2]), base.tensor([True, False]))
    with pytest.raises(DTypeError, match="expected booleans"):
        ~x  # noqa: B018


def test_booleans_have_no_minus(base):
    x = base.tensor([True, False])
    with pytest.raises(DTypeError, match="sub"):
        x - x
    with pytest.raises(DTypeError, match="neg"):
        -x  # noqa: B018


def test_in_place_operators_rebind(stack):
    x = stack.tensor(X, requires_grad=True)
    y = x
    y += 1
    y *= x
    assert y is not x
    np.testing.assert_array_equal(x.numpy(), X)
    np.testing.assert_array_equal(y.wrt(x).numpy(), 2 * X + 1)


def test_in_place_operators_of_an_array_are_refused(stack):
    a = np.ones(3)
    with pytest.raises(ConversionError, match=r"array = array \+ x"):
        a += stack.tensor(Y)
    np.testing.assert_array_equal(a, np.ones(3))


def test_nothing_of_a_tensor_can_be_set(stack):
    x = stack.tensor(Y)
    with pytest.raises(ImmutableError, match=r"x\.at\[index\]\.set"):
        x[0] = 1.0
    with pytest.raises(AttributeError):
        del x[0]
    for name in ("shape", "T", "dtype", "new", "grad"):
        with pytest.raises(AttributeError):
            setattr(x, name, 1.0)


def test_shapes_that_do_not_fit_are_named(base):
    with pytest.raises(ShapeError, match=r"add: got shape \(2, 3\), shape \(2,\).*do not broadcast"):
        base.tensor(X) + base.tensor([1.0, 2.0])
    with pytest.raises(ShapeError, match=r"mul.*\(2, 3\).*\(2,\)"):
        np.ones((2, 3)) * base.tensor([1.0, 2.0])
    with pytest.raises(ShapeError, match=r"mT.*two axes"):
        base.tensor(Y).mT  # noqa: B018


@pytest.mark.parametrize("other", [1j, np.array([1j, 0, 0]), np.complex64(1j)], ids=["python", "array", "scalar"])
def test_complex_numbers_are_refused(other, stack):
    x = stack.tensor(Y, requires_grad=True)
    for op in ARITHMETIC.values():
        with pytest.raises(DTypeError, match="complex"):
            op(x, other)
        with pytest.raises(DTypeError, match="complex"):
            op(other, x)


def test_lists_beside_a_tensor_are_refused(stack):
    x = stack.tensor(Y)
    with pytest.raises(DTypeError, match=r"got a list.*tensor\(\[\.\.\.\]\)"):
        x + [1.0, 2.0, 3.0]
    with pytest.raises(DTypeError, match="got a list"):
        [1.0, 2.0, 3.0] * x


def test_strings_and_none_leave_it_to_python(stack):
    for other in ("a", None, object()):
        with pytest.raises(TypeError, match="unsupported operand"):
            stack.tensor(Y) + other
        with pytest.raises(TypeError):
            other * stack.tensor(Y)


def test_two_libraries_do_not_mix():
    torch = pytest.importorskip("torch")
    with pytest.raises(LevelError, match=r"numpy and torch|torch and numpy"):
        ng.tensor([1.0]) * ng.tensor(torch.ones(1))


def test_whole_exponents_are_exact_everywhere(stack):
    """At 0 and for negative bases, at every order, whatever kind of integer the exponent is."""
    for two in (2, 2.0, np.int64(2), np.int8(2), np.array(2), np.float64(2.0), True + 1):
        x = stack.tensor([0.0, -3.0], requires_grad=True)
        first = (x**two).wrt(x)
        np.testing.assert_array_equal(first.numpy(), [0.0, -6.0])
        np.testing.assert_array_equal(first.wrt(x).numpy(), [2.0, 2.0])
    x = stack.tensor([0.0, -3.0], requires_grad=True)
    zero = (x**0).wrt(x)
    np.testing.assert_array_equal(zero.numpy(), [0.0, 0.0])
    np.testing.assert_array_equal(zero.wrt(x).numpy(), [0.0, 0.0])


def test_a_number_as_base_has_all_derivatives(stack):
    for two in (2, 2.0, np.float64(2.0), np.float32(2.0), np.array(2.0)):
        x = stack.tensor([0.5, -1.0], requires_grad=True)
        first = (two**x).wrt(x)
        want = np.log(2.0) * 2.0 ** np.array([0.5, -1.0])
        np.testing.assert_allclose(first.numpy(), want, rtol=1e-15)
        np.testing.assert_allclose(first.wrt(x).numpy(), np.log(2.0) * want, rtol=1e-15)


def test_zero_to_a_tensor_is_as_in_numpy(stack):
    x = stack.tensor([2.0, 0.5], requires_grad=True)
    y = 0.0**x
    np.testing.assert_array_equal(y.numpy(), [0.0, 0.0])
    np.testing.assert_array_equal(y.wrt(x).numpy(), [0.0, 0.0])


def test_python_containers_work_by_identity(stack):
    x, y = stack.tensor(Y), stack.tensor(Y)
    assert len({x, y, x}) == 2
    assert {x: "x"}[x] == "x"


def test_membership_is_by_entry(base):
    x = base.tensor(X)
    assert 2.5 in x and 7.0 not in x
    assert base.tensor(2.5) in x


def test_an_array_of_torch_with_a_graph_of_its_own_is_refused():
    torch = pytest.importorskip("torch")
    x = ng.tensor(torch.ones(2))
    with pytest.raises(ConversionError, match="requires_grad"):
        x * torch.ones(2, requires_grad=True)
    assert (x * torch.ones(2, requires_grad=True).detach()).tolist() == [1.0, 1.0]
