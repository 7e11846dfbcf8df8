"""What ``nestgrad.jit`` saves: a function with and without it, called by turns. Other examples tell theirs by ``--jit``.

Each operation on levels costs some microseconds before a number is touched. Jitted, a function is the operations on numbers that it comes
down to: without levels, without what would be computed twice or for nothing, and in memory that is used again. Run as a program, it shows
what that saves for the product of a Hessian, Rosenbrock's function's, with a vector.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import nestgrad as ng
from nestgrad.compiled import Jitted
from nestgrad.func import grad, jvp

Array = NDArray[np.float64]


def option(parser: argparse.ArgumentParser) -> None:
    """``--jit``."""
    parser.add_argument("--jit", action="store_true", help="run what is called again and again as a program, and tell what that saves")


def seconds(f: Callable[..., Any], *args: Any) -> float:
    """That a call takes, with what it takes to throw away its result."""
    began = time.perf_counter()
    f(*args)
    return time.perf_counter() - began


def tell(what: str, plain: Callable[..., Any], jitted: Jitted, *args: Any, calls: int = 5) -> None:
    """Print how much faster ``jitted`` is than ``plain``: the best of some calls of each, by turns.

    The first call, which traces, is timed with a function that is jitted anew; the traces told are those of ``jitted`` so far.
    """
    first = seconds(ng.jit(plain), *args)
    jitted(*args)
    before, after = map(min, zip(*((seconds(plain, *args), seconds(jitted, *args)) for _ in range(calls)), strict=True))
    print(f"jit: {what} in {1e3 * after:.3g} ms in place of {1e3 * before:.3g} ms, {before / after:.1f} times as fast; "
          f"the first call took {first:.2f} s, traces: {jitted.stats().traces}")  # fmt: skip


def rosenbrock(x: ng.Tensor) -> ng.Tensor:
    """A curved valley; each coordinate is coupled to the next."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def product(x: ng.Tensor, v: ng.Tensor) -> ng.Tensor:
    """The Hessian at ``x`` times ``v``, by forward mode over reverse mode."""
    found: ng.Tensor = jvp(grad(rosenbrock), (x,), (v,))[1]
    return found


def product_by_hand(x: Array, v: Array) -> Array:
    """The Hessian has three diagonals."""
    found = np.zeros_like(x)
    found[:-1] = (1200 * x[:-1] ** 2 - 400 * x[1:] + 2) * v[:-1] - 400 * x[:-1] * v[1:]
    found[1:] += 200 * v[1:] - 400 * x[:-1] * v[:-1]
    return found


def main() -> None:
    """Few numbers and many."""
    rng, jitted = np.random.default_rng(0), ng.jit(product)
    for n in (10, 1_000, 100_000):
        x, v = map(ng.tensor, rng.normal(size=(2, n)))
        found, right = jitted(x, v).numpy(), product_by_hand(x.numpy(), v.numpy())
        assert np.allclose(found, right, rtol=1e-12, atol=1e-12 * abs(right).max())
        tell(f"a Hessian's product with {n} numbers", product, jitted, x, v, calls=20)


if __name__ == "__main__":
    main()
