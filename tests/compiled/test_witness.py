"""What is not finite is what the function itself gives: a program with rearranged arithmetic may overflow where the function does not."""

import warnings
from math import inf, nan

import numpy as np
import pytest

import nestgrad as ng
from nestgrad.func import grad

LARGE = [1e300, -1e300, 1e160, 1e-300, 40.0, 800.0, 0.0, inf, -inf, nan]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("executor", ["replay", "numpy"])
@pytest.mark.parametrize("name", ["erf", "atan", "tanh", "sigmoid", "gelu", "log1p", "asinh"])
def test_derivatives_far_out_are_those_of_the_function(name, executor):
    f = getattr(ng, name, None) or getattr(ng.nn, name)
    h = grad(grad(grad(f)))
    compiled = ng.jit(h, executor=executor)
    for x in LARGE:
        np.testing.assert_allclose(compiled(ng.tensor(x)).numpy(), h(ng.tensor(x)).numpy(), rtol=1e-10, atol=1e-300, err_msg=str(x))


def test_one_bad_entry_of_many_does_not_spoil_the_others():
    h = ng.func.vmap(grad(grad(grad(ng.erf))))
    x = np.concatenate([np.linspace(-3, 3, 100), [1e300]])
    np.testing.assert_allclose(ng.jit(h)(x).numpy(), h(x).numpy(), rtol=1e-9, atol=1e-14)
    assert np.isfinite(ng.jit(h)(x).numpy()).all()


def test_no_warning_is_given_for_what_is_thrown_away():
    h = grad(grad(grad(ng.erf)))
    told = []
    for f in (h, ng.jit(h)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert f(ng.tensor(1e300)).item() == 0.0
        told.append({str(warning.message) for warning in caught})
    assert told[1] <= told[0]


def test_a_sum_of_results_that_overflows_costs_time_and_nothing_else():
    f = lambda x: (x * 1.5 + x * 0.25) * 1e308
    x = ng.tensor(np.linspace(0.1, 1.0, 50))
    np.testing.assert_allclose(ng.jit(f)(x).numpy(), f(x).numpy(), rtol=1e-14)
