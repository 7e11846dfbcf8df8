"""``check_grads`` passes what is right, and tells what is wrong: function, argument, order, entry, both values."""

import re
import subprocess
import sys

import numpy as np
import pytest
import torch

from nestgrad.backends import NumpyBackend, TorchBackend
from nestgrad.errors import DTypeError, LevelError, WrongDerivativeError
from nestgrad.levels.autodiff import Autodiff
from nestgrad.testing import check_grads
from nestgrad.testing.differences import along, precision

NUMPY = NumpyBackend()


# what is right


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_right_derivatives_pass(order):
    check_grads(lambda x, y: (x * y).sin() / (y.exp() + 1.0), ([0.3, -1.2, 0.8], [[0.5], [1.1]]), order)


def test_arguments_may_be_tensors_arrays_lists_and_numbers():
    check_grads(lambda a, b, c, d: (a * b).sum() * c + d.exp(), (NUMPY.tensor([1.0, 2.0]), np.array([0.5, 0.25]), 0.7, [0.1, 0.2]))


def test_whole_numbers_are_handed_on():
    check_grads(lambda x, n, rows: (x**n)[rows], ([0.5, 1.5], 3, np.array([1, 0, 1])))


def test_of_nothing():
    check_grads(lambda x, y: x.exp() * y, (np.zeros((0, 3)), 2.0))


def test_a_function_that_ignores_an_argument_has_zero_derivatives():
    check_grads(lambda x, y: x.sin(), ([0.5], [0.1, 0.2]))
    check_grads(lambda x: NUMPY.tensor([1.0, 2.0]), ([0.5],))
    check_grads(lambda x: x * 2.0, ([0.5],), 4)


@pytest.mark.parametrize("backend", [TorchBackend(), NumpyBackend("float32")], ids=repr)
def test_single_precision_is_checked_by_differences_in_double(backend):
    check_grads(lambda x, y: (x / y).tanh() * x.log(), (backend.tensor([0.3, 1.2]), backend.tensor([0.5, 2.0])))


def test_torch_tensors_stay_on_torch():
    seen = []
    check_grads(lambda x: seen.append(x.backend.name) or x.sin(), (torch.tensor([0.5], dtype=torch.float64),), 1)
    assert set(seen) == {"torch"}


def test_levels_may_be_given():
    check_grads(lambda x: x.exp(), ([0.5],), 2, stack=Autodiff(Autodiff(Autodiff(NUMPY))))


# what is wrong; detach() makes derivatives that no rule would make


def told(f, args, order=3, **options):
    with pytest.raises(WrongDerivativeError) as caught:
        check_grads(f, args, order, **options)
    return str(caught.value)


def test_a_wrong_first_derivative_is_told():
    message = told(lambda x, y: x * y * y.detach(), ([1.0, 2.0], [3.0, 4.0]), name="half")
    assert re.search(r"^half: derivative of order 1 .* by argument 1 \(shape \(2,\)\), entry \(\d,\): got -?\d", message)
    assert re.search(r"expected .* \(tolerance .*\) by finite differences of order 0", message)


def test_got_and_expected_are_the_values():
    message = told(lambda x: x * x.detach(), (3.0,))
    got, expected = map(float, re.search(r"entry \(\): got (\S+), expected (\S+) ", message).groups())
    assert expected == pytest.approx(2 * got, rel=1e-9)  # the weight of the sum is in both


def test_a_wrong_second_derivative_is_told_at_order_2():
    def square(x):
        d = x.detach()
        return 2.0 * d * x - d * d  # value x*x, first derivative 2x, second 0

    check_grads(square, ([1.0, 2.0],), 1)
    assert re.search(r"order 2 .*argument 0.*got 0\.0, expected", told(square, ([1.0, 2.0],)))


def test_a_wrong_third_derivative_is_told_at_order_3():
    def cube(x):
        d = x.detach()
        return d**3 + 3.0 * d**2 * (x - d) + 3.0 * d * (x - d) ** 2

    check_grads(cube, ([1.0, 2.0],), 2)
    assert "order 3" in told(cube, ([1.0, 2.0],))


def test_a_wrong_mixed_derivative_is_told():
    def product(x, y):
        return x * y.detach() + x.detach() * y - (x * y).detach()  # gradients y and x, but no cross derivative

    check_grads(product, (1.5, 2.5), 1)
    assert "order 2" in told(product, (1.5, 2.5))


@pytest.mark.parametrize("place", [(0, 0), (3, 2), (6, 4)])
def test_the_entry_is_found(place):
    mask = np.zeros((7, 5))
    mask[place] = 1.0

    def wrong(x):
        return x.sin() * (1.0 - mask) + (x.detach().cos() * x * 1.001) * mask + (x.sin() - x.detach().cos() * x * 1.001).detach() * mask

    message = told(wrong, (np.linspace(-1, 1, 35).reshape(7, 5),), 1)
    assert f"entry {place}" in message


def test_a_derivative_that_is_not_finite_is_told():
    message = told(lambda x: (x - x.detach()).abs().sqrt() + x, ([1.0, 2.0],), 1)
    assert re.search(r"got (nan|inf|-inf), expected", message)


@pytest.mark.parametrize("backend, error", [(NUMPY, 1e-5), (TorchBackend(dtype="float64"), 1e-5), (TorchBackend(), 1e-2)], ids=repr)
def test_small_errors_are_seen(backend, error):
    def slightly_wrong(x):
        return x.sin() + error * (x.sin() - x.sin().detach())

    told(slightly_wrong, (backend.tensor([0.3, 0.9]),), 1)


def test_a_kink_is_told_as_one():
    assert "kink" in told(lambda x: x.abs(), ([0.001],), 1)


# what cannot be checked


def test_too_few_levels():
    with pytest.raises(LevelError, match=r"check_grads: got Autodiff\(numpy\), which has 1 levels; expected at least 2"):
        check_grads(lambda x: x.sin(), ([0.5],), 2, stack=Autodiff(NUMPY))


def test_nothing_to_differentiate_by():
    with pytest.raises(DTypeError, match="no floating argument"):
        check_grads(lambda n: n, (3,))


def test_a_result_that_is_no_floating_tensor():
    with pytest.raises(DTypeError, match="returned a tuple; expected a floating Tensor"):
        check_grads(lambda x: (x, x), ([0.5],))
    with pytest.raises(DTypeError, match="returned a Tensor of dtype bool"):
        check_grads(lambda x: x > 0.0, ([0.5],))


# finite differences


@pytest.mark.parametrize("backend", [NUMPY, TorchBackend(dtype="float64")], ids=repr)
def test_differences_have_eleven_digits(backend):
    # next singularity of 1/x at a distance of 0.1, ten steps away
    found = along(lambda t: 1.0 / (backend.tensor(0.1) + t), precision(backend))
    assert found.value == pytest.approx(-100.0, rel=1e-8)
    found = along(lambda t: (backend.tensor(1.0) + t).exp(), precision(backend))
    assert found.value == pytest.approx(np.e, rel=1e-11)
    assert abs(found.value - np.e) <= 1e-11 and found.doubt < 1e-10


def test_precision_is_the_spacing_next_to_1():
    assert precision(NUMPY) == np.finfo(float).eps
    assert precision(NUMPY, "float32") == np.finfo(np.float32).eps
    assert precision(TorchBackend(dtype="bfloat16")) == torch.finfo(torch.bfloat16).eps


def test_the_kit_does_not_import_pytest():
    program = "import sys, nestgrad.testing as t; assert 'pytest' not in sys.modules; t.BackendConformance; assert 'pytest' in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
