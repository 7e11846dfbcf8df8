"""What products with a Hessian cost, in operations, as the page on SciPy's solvers says. They are counted: no bound is wide for noise."""

import numpy as np
import pytest
from counting import CountingBackend

from nestgrad.optimize import hessian_operator, scipy_callables

RNG = np.random.default_rng(0)
WEIGHTS = [RNG.normal(size=(6, 6)) for _ in range(5)]


def net(x):
    for w in WEIGHTS:
        x = (w @ x).tanh()
    return (x**2).sum()


FUNCTIONS = {
    "net": net,
    "rosenbrock": lambda x: (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum(),
    "matrices": lambda x: ((x.reshape(2, 3) @ x.reshape(3, 2)).tanh() ** 2).sum(),
}


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_product_is_about_two_gradients_and_half_of_that_for_an_operator(f):
    base = CountingBackend()
    start = base.tensor(np.linspace(0.1, 1.0, 6))
    c, operator = scipy_callables(f, start), hessian_operator(f, start)

    def ops(run):
        base.counts.clear()
        run(c.x0)
        return base.counts.total()

    gradient, product, again = ops(c.jac), ops(lambda x: c.hessp(x, x)), ops(operator.matvec)
    assert product < 2.5 * gradient and again < 0.6 * product
