"""Derivatives of a function of one number, in every way that there is to nest modes."""

from collections.abc import Callable
from itertools import product
from math import factorial
from typing import Any

import nestgrad as ng
from nestgrad import func

MODES = {"r": lambda f: func.grad(f), "f": lambda f: lambda t: func.jvp(f, (t,), (1.0,))[1]}


def nested(f: Callable[[Any], Any], x: float, modes: str) -> float:
    """The derivative of the order that ``modes`` has letters: ``r`` reverse, ``f`` forward, the first letter innermost."""
    for mode in modes:
        f = MODES[mode](f)
    return f(ng.tensor(x)).item()


def imperative(f: Callable[[Any], Any], x: float, order: int) -> list[float]:
    """Value and derivatives by look-ups on the levels of one stack."""
    stack: Any = ng.NumpyBackend()
    for _ in range(order):
        stack = ng.Autodiff(stack)
    variable = stack.tensor(x, requires_grad=True)
    y = f(variable)
    found = [y.item()]
    for _ in range(order):
        y = y.wrt(variable)
        found.append(y.item())
    return found


def everywhere(f: Callable[[Any], Any], x: float, order: int) -> dict[str, list[float]]:
    """Derivatives 1 to ``order``, by all ways."""
    ways = {"".join(w): [nested(f, x, "".join(w)[:k]) for k in range(1, order + 1)] for w in product("rf", repeat=order)}
    ways["levels"] = imperative(f, x, order)[1:]
    ways["taylor"] = [factorial(k) * c.item() for k, c in enumerate(func.taylor(f, ng.tensor(x), 1.0, order))][1:]
    program = ng.func.trace(f)(x + 0.125)  # another point: nothing of it may be left in the program
    ways["program, rr"] = [nested(lambda t: ng.func.call(program, t), x, "r" * k) for k in range(1, order + 1)]
    ways["program, ff"] = [nested(lambda t: ng.func.call(program, t), x, "f" * k) for k in range(1, order + 1)]
    samples = ng.tensor([x, x + 0.125])
    ways["batch, rr"] = [func.vmap(_powered(f, "r" * k))(samples)[0].item() for k in range(1, order + 1)]
    ways["batch inside"] = [nested(lambda t: func.vmap(f)(t + samples * 0.0)[1], x, "r" * k) for k in range(1, order + 1)]
    return ways


def _powered(f: Callable[[Any], Any], modes: str) -> Callable[[Any], Any]:
    for mode in modes:
        f = MODES[mode](f)
    return f
