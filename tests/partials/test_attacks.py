"""Partial derivatives at points where a rule may go wrong though the function is smooth: each beside a closed form."""

import itertools

import numpy as np
import pytest
import torch

import nestgrad as ng


@pytest.mark.parametrize("exponent", [-1.0, 0.0, 1.0, 2.5])
def test_powers_of_one_have_finite_partials_of_all_orders(exponent):
    """By x j times, ``x^y`` is ``y (y-1) ... (y-j+1) x^(y-j)``; of the last factor, all derivatives by y are 0 at x = 1."""
    base = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    power = torch.tensor(exponent, dtype=torch.float64, requires_grad=True)
    controller = ng.backward(base**power, 4, crossings=True)
    for j, m in itertools.product(range(5), range(5)):
        if 1 <= j + m <= 4:
            falling = np.polynomial.Polynomial.fromroots(range(j)) if j else np.polynomial.Polynomial([1.0])
            got, _ = controller.fetch_hgrad((base,) * j + (power,) * m)
            assert got.item() == pytest.approx(falling.deriv(m)(exponent), abs=1e-12)


def test_x_to_the_x_at_one():
    x = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    ng.backward(x**x, 5)
    # 1, 1, 2, 3, 8, 10: the numbers of OEIS A005727
    assert [h.item() for h in x.hgrad] == pytest.approx([1.0, 2.0, 3.0, 8.0, 10.0])
