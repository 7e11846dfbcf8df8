"""Stacks of levels."""

import pytest

import nestgrad as ng


@pytest.fixture
def levels():
    """``levels(n)``: a stack of ``n`` reverse levels over NumPy."""

    def made(n):
        stack = ng.NumpyBackend()
        for _ in range(n):
            stack = ng.Autodiff(stack)
        return stack

    return made
