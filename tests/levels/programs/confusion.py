"""B. Perturbation confusion: an inner derivative of a function that closes over the variable of an outer one."""

import math
from collections.abc import Callable
from typing import Any

from nestgrad import func
from programs.case import NO_LEVEL_LEFT, raises, right, stack, var

Derivative = Callable[[Callable[[Any], Any], Any], Any]


def _sine() -> float:
    """The derivative of x (y sin(x y))_y at y = x^2, which is x (sin c + c cos c) with c = x^3."""
    x = 1.2
    c = x**3
    return math.sin(c) + c * math.cos(c) + 3 * c * (2 * math.cos(c) - c * math.sin(c))


FOUR = (1.0, 8.0, _sine(), 1.0)


def four(derivative: Derivative) -> list[Any]:
    """Each has one derivative inside another."""
    return [
        derivative(lambda x: x * derivative(lambda y: x + y, 1.0), 1.0),
        derivative(lambda x: x * derivative(lambda y: x * y, 1.0), 4.0),
        derivative(lambda x: x * derivative(lambda y: y * (x * y).sin(), x**2), 1.2),
        derivative(lambda x: derivative(lambda y: x * y, x), 3.0),
    ]


def three_deep(derivative: Derivative) -> Any:
    """b (a b c^2)_c at c = b is 2 a b^3, by b 6 a b^2, at b = a 6 a^3; a times that is 6 a^4, and by a 24 a^3."""
    return derivative(lambda a: a * derivative(lambda b: b * derivative(lambda c: a * b * c**2, b), a), 1.1)


THREE = 24 * 1.1**3


def imperative(s: Any) -> Derivative:
    """The derivative on one shared stack."""

    def derivative(f: Callable[[Any], Any], x: Any) -> Any:
        t = var(s, x)
        return t.grad(f(t).backward())

    return derivative


def functional(f: Callable[[Any], Any], x: Any) -> Any:
    """The derivative as a transform."""
    return func.grad(f)(x)


@right(*FOUR, THREE, 1.0)
def b01_confusion_functional():
    return [*four(functional), three_deep(functional), functional(lambda x: functional(lambda y: x, 2.0 * x) + x, 1.5)]


@right(*FOUR)
def b05_confusion_imperative_one_shared_stack():
    return four(imperative(stack(2)))


@right(THREE)
def b07_three_deep_imperative_one_stack():
    return three_deep(imperative(stack(3)))


@right(THREE, may_raise=NO_LEVEL_LEFT)
def b08_three_deep_but_two_levels():
    return three_deep(imperative(stack(2)))


@right(*FOUR)
def b10_functional_inner_imperative_outer():
    outer, depth = imperative(stack(1)), [0]

    def derivative(f: Callable[[Any], Any], x: Any) -> Any:
        depth[0] += 1
        try:
            return (functional if depth[0] == 2 else outer)(f, x)
        finally:
            depth[0] -= 1

    return four(derivative)


@raises(TypeError, match="returned a function; expected a Tensor")
def b11_transform_of_a_function_that_returns_a_closure():
    return func.grad(lambda u: lambda z: z + u)(0.0)
