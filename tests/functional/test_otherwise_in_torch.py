"""What torch does where nestgrad does something else: its column in the table of ``docs/functional.md``.

What nestgrad does is tested beside each subject; forward mode, and ``strict`` with ``vectorize``, stand in ``tests/comparison``.
"""

import numpy as np
import pytest
import torch
from torch.autograd import functional as theirs

import nestgrad as ng
from nestgrad import functional

X = torch.tensor([1.0, 2.0])


def square(x):
    return (x * x).sum()


def test_the_dtype_of_a_block_is_that_of_the_second_input():
    y = X.to(torch.float64)
    single, double = torch.float32, torch.float64
    func = lambda x, y: (x * x * y).sum()
    assert [[block.dtype for block in row] for row in theirs.hessian(func, (X, y))] == [[single, double]] * 2
    assert [[block.dtype for block in row] for row in functional.hessian(func, (X, y))] == [[single] * 2, [double] * 2]


@pytest.mark.filterwarnings("ignore:`torch.jit.script`:DeprecationWarning")  # by torch, of itself
def test_a_hessian_in_forward_mode_requires_grad():
    options = {"outer_jacobian_strategy": "forward-mode", "vectorize": True}
    assert theirs.hessian(square, X, **options).requires_grad
    assert not functional.hessian(square, X, **options).requires_grad


def test_a_hessian_of_no_entries_raises():
    empty = torch.zeros(0)
    with pytest.raises(RuntimeError, match="non-empty"):
        theirs.hessian(square, empty)
    assert functional.hessian(square, empty).shape == (0, 0)


def test_outputs_of_whole_numbers_are_zeros_or_an_error_about_gradients():
    assert theirs.jacobian(lambda x: x.long(), X).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    with pytest.raises(RuntimeError, match="can require gradients"):
        theirs.jvp(lambda x: x.long(), X, X)


def test_inputs_of_whole_numbers_are_an_error_without_their_dtype():
    with pytest.raises(RuntimeError, match="floating point") as error:
        theirs.jacobian(square, torch.tensor([1, 2]))
    assert "int64" not in str(error.value)


def test_a_vector_is_cast_though_digits_are_lost():
    third = torch.tensor([1.0 / 3.0, 1.0], dtype=torch.float64)
    product = theirs.vjp(lambda x: 1.0 * x, X, third)[1]
    assert product.dtype == torch.float32 and product[0].item() != third[0].item()


def test_an_unknown_strategy_is_an_assertion():
    with pytest.raises(AssertionError, match="strategy"):
        theirs.jacobian(square, X, strategy="sideways")


def test_sizes_in_messages():
    with pytest.raises(RuntimeError, match=r"torch.Size\(\[2\]\) but got torch.Size\(\[3\]\)"):
        theirs.hvp(square, X, torch.ones(3))


def test_strict_asks_how_a_constant_hessian_is_written():
    options = {"strict": True, "create_graph": True}
    with pytest.raises(RuntimeError, match="independent of input 0"):
        theirs.hessian(square, X, **options)
    assert theirs.hessian(lambda x: x.pow(2).sum(), X, **options).tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert theirs.hessian(lambda x: torch.relu(x).sum(), X, strict=True).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_a_maximum_along_an_axis_is_a_pair():
    values, positions = X.max(dim=0)
    assert (values.item(), positions.item()) == (2.0, 1)
    with pytest.raises(ng.errors.ArgumentError, match=r"amax\(dim="):
        ng.tensor(np.ones(2)).max(dim=0)
