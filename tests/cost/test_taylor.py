"""What Taylor mode costs: operations grow with the square of the order."""

import pytest
from counting import CountingBackend

import nestgrad as ng

HOT = {
    "exp": lambda x: x.exp(),
    "sin": lambda x: x.sin(),
    "tanh": lambda x: x.tanh(),
    "sigmoid": lambda x: x.sigmoid(),
    "softplus": lambda x: x.softplus(),
    "log": lambda x: x.log(),
    "sqrt": lambda x: x.sqrt(),
    "erf": lambda x: x.erf(),
    "atan": lambda x: x.atan(),
    "product": lambda x: x * x * x,
    "quotient": lambda x: x.sin() / (1 + x * x),
    "softmax": lambda x: ng.stack([x, x * x]).softmax(0),
    "norm": lambda x: ng.stack([x, x * x]).norm(),
}


def operations(f, order):
    backend = CountingBackend()
    x = ng.Taylor(backend, order).series(0.7, 1.0)
    backend.restart()
    f(x)
    return backend.total


@pytest.mark.parametrize("name", HOT)
def test_twice_the_order_costs_four_times_the_operations_at_most(name):
    assert operations(HOT[name], 20) <= 4 * operations(HOT[name], 10)


@pytest.mark.parametrize("name", ["power of itself", "seventh power", "real power"])
def test_no_function_costs_exponentially(name):
    """Twice the order costs 2^4 times the operations at most: a polynomial of degree 4."""
    f = {"power of itself": lambda x: x**x, "seventh power": lambda x: x**7, "real power": lambda x: x**2.5}[name]
    assert operations(f, 12) <= 16 * operations(f, 6)
