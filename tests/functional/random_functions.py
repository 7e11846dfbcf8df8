"""Random functions of several arrays of random shapes, in words that nestgrad, PyTorch and JAX have in common.

A function is a list of steps. Each names an operation and the places of its arguments among all that there is before it: the inputs, data,
and the results of earlier steps; so a value is used never, once, or several times.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import HealthCheck, seed, settings, strategies as st

import nestgrad as ng

sys.path.insert(0, str(Path(__file__).parents[1] / "func"))

from random_compositions import Compositions, N

SHAPES = ((), (1,), (2,), (N,), (2, 1), (1, N), (2, N), (2, 2), (N, N))
EMPTY = ((0,), (0, N), (2, 0))
MIXED = ("float32", "float64")
"""Dtypes of inputs, of which both occur."""


class Library(NamedTuple):
    """What is spelled in other ways elsewhere.

    Attributes:
        words: Its functions.
        data: A constant of an array.
        cast: A value in the dtype of another.
        still: A value as a constant.
        composed: The function of parameters and a vector that ``random_compositions`` draws from a seed; none for JAX.
        sort: Along the last axis, equal entries in their order.
        softmax: Along the last axis.
    """

    words: Any
    data: Callable[[np.ndarray], Any]
    cast: Callable[[Any, Any], Any]
    still: Callable[[Any], Any]
    composed: Callable[[int], Any] | None
    sort: Callable[[Any], Any]
    softmax: Callable[[Any], Any]


def of_nestgrad(base: Any) -> Library:
    composed = lambda seed: Compositions(seed, ng.Autodiff(ng.Autodiff(base))).draw(1)[0]
    softmax = lambda x: x.softmax(-1)
    return Library(ng, base.tensor, lambda x, like: x.astype(like.dtype), lambda x: x.detach(), composed, ng.sort, softmax)


def of_torch() -> Library:
    import torch

    sort = lambda x: torch.sort(x, dim=-1, stable=True)[0]
    composed = lambda seed: Compositions(seed, None).draw(1)[1]
    softmax = lambda x: x.softmax(-1)
    return Library(torch, torch.tensor, lambda x, like: x.to(like.dtype), lambda x: x.detach(), composed, sort, softmax)


def of_jax() -> Library:
    import jax
    from jax import numpy

    sort = lambda x: numpy.sort(x, -1)
    return Library(numpy, numpy.asarray, lambda x, like: x.astype(like.dtype), jax.lax.stop_gradient, None, sort, jax.nn.softmax)


UNARY: dict[str, Callable[[Any, Any], Any]] = {
    "sin": lambda lib, x: lib.words.sin(x),
    "tanh": lambda lib, x: lib.words.tanh(x),
    "exp": lambda lib, x: lib.words.exp(0.3 * x),
    "log": lambda lib, x: lib.words.log(1.5 + x * x),
    "root": lambda lib, x: lib.words.sqrt(x * x + 0.5),
    "square": lambda lib, x: x**2,
    "cube": lambda lib, x: 0.5 * x**3,
    "fraction": lambda lib, x: x / (1.0 + x * x),
    "twice": lambda lib, x: 2 * x,
    "minus": lambda lib, x: 1 - x,
    "branches": lambda lib, x: lib.words.where(x > 0.1, x * x, 0.5 * x),
    "mask": lambda lib, x: lib.cast(x > 0.2, x) * x,
    "still": lambda lib, x: lib.still(x) * x,
    "constant": lambda lib, x: lib.still(x),
    "size": lambda lib, x: lib.words.abs(x),
    "flat": lambda lib, x: x.reshape(-1),
    "row": lambda lib, x: x.reshape((1, *x.shape)),
    "all": lambda lib, x: x.sum(),
    "product of all": lambda lib, x: x.reshape(-1).prod(0),
}
"""Of anything."""

OF_AXES: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda lib, x: x.sum(0),
    "sum of rows": lambda lib, x: lib.words.sum(x, -1, keepdims=True),
    "product": lambda lib, x: lib.words.prod(x, -1, keepdims=True),
    "running sum": lambda lib, x: lib.words.cumsum(x, 0),
    "turned": lambda lib, x: lib.words.flip(x, (0,)),
    "swapped": lambda lib, x: x.T if x.ndim == 2 else x,
    "sort": lambda lib, x: lib.sort(x),
    "all but one": lambda lib, x: x[1:],
    "every other": lambda lib, x: x[..., ::2],
    "copies": lambda lib, x: lib.words.stack([x, 2.0 * x], -1),
    "joined": lambda lib, x: lib.words.concat([x, x * x], axis=0),
}
"""Of what has axes."""

OF_ENTRIES: dict[str, Callable[[Any, Any], Any]] = {
    "first": lambda lib, x: x[0],
    "last": lambda lib, x: x[..., -1],
    "picked": lambda lib, x: x[lib.data(np.array([x.shape[0] - 1, 0, 0]))],
    "mean": lambda lib, x: x.mean(-1),
    "softmax": lambda lib, x: lib.softmax(x),
    "spread": lambda lib, x: x - x.mean(),
    "chosen": lambda lib, x: x.reshape(-1)[lib.words.argmax(x)],
}
"""Of what has axes, and entries along each of them."""

BINARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "plus": lambda lib, x, y: x + y,
    "less": lambda lib, x, y: x - y,
    "times": lambda lib, x, y: x * y,
}
"""Of two that broadcast, of which one may hold whole numbers."""

OF_FLOATS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "by": lambda lib, x, y: x / (2.0 + lib.words.sin(y)),
    "power": lambda lib, x, y: (0.5 + x * x) ** lib.words.sin(y),
    "angle": lambda lib, x, y: lib.words.atan2(x, 1.5 + y * y),
    "either": lambda lib, x, y: lib.words.where(x < y, x * y, lib.words.sin(x)),
}
"""Of two that broadcast and hold no whole numbers, whose sines are of a dtype of each library's own."""

PRODUCTS = {"matmul": lambda lib, x, y: lib.words.matmul(x, y), "outer": lambda lib, x, y: x.reshape(-1)[:, None] * y.reshape(-1)}


class Step(NamedTuple):
    """An operation on earlier values; or transforms within transforms, which a seed stands for, of parameters and a vector."""

    name: str
    places: tuple[int, ...]
    run: Callable[..., Any] | None = None
    seed: int = 0

    def __call__(self, lib: Library, *args: Any) -> Any:
        if self.run is not None:
            return self.run(lib, *args)
        assert lib.composed is not None
        w, x = args
        return lib.composed(self.seed)(w)(x)


class RandomFunction(NamedTuple):
    """A function, and where to differentiate it.

    Attributes:
        inputs: NumPy arrays.
        data: Floating and whole numbers that it uses beside them.
        steps: What it does.
        outs: The places of what it returns.
        several: Whether it returns a tuple.
        scalar: The shape of the one number that it makes of its outputs, if it is to return a number.
    """

    inputs: tuple[np.ndarray, ...]
    data: tuple[np.ndarray, ...]
    steps: tuple[Step, ...]
    outs: tuple[int, ...]
    several: bool
    scalar: tuple[int, ...] | None

    def __repr__(self) -> str:
        lines = [f"{k + len(self.inputs) + len(self.data)} = {s.name} {s.places}" for k, s in enumerate(self.steps)]
        shapes = [(a.shape, a.dtype.name) for a in (*self.inputs, *self.data)]
        end = f"to number {self.scalar}" if self.scalar is not None else "tuple" if self.several else "alone"
        return f"inputs {shapes[: len(self.inputs)]} data {shapes[len(self.inputs) :]}; {'; '.join(lines)}; outs {self.outs} {end}"

    @property
    def composed(self) -> bool:
        """Whether transforms stand within it, which JAX's words do not have."""
        return any(step.run is None for step in self.steps)

    def over(self, lib: Library) -> Callable[..., Any]:
        """As a function in the words of a library."""

        def f(*xs: Any) -> Any:
            values = [*xs, *(lib.data(a) for a in self.data)]
            for step in self.steps:
                values.append(step(lib, *(values[k] for k in step.places)))
            outs = [values[k] for k in self.outs]
            if self.scalar is not None:
                return sum(lib.words.sin(y).sum() for y in outs).reshape(self.scalar)
            return tuple(outs) if self.several else outs[0]

        return f


@st.composite
def functions(
    draw: Any, scalar: bool = False, empty: bool = False, composed: bool = False, dtypes: tuple[str, ...] = ("float64",), most: int = 8
) -> RandomFunction:
    """Draws a function.

    Args:
        draw: Hypothesis's.
        scalar: Whether it gives one number.
        empty: Whether an input may have no entries.
        composed: Whether transforms may stand within it.
        dtypes: Of inputs.
        most: How many steps at most.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    shapes = st.sampled_from(SHAPES + EMPTY if empty else SHAPES)
    inputs = tuple(rng.uniform(-1.2, 1.2, draw(shapes)).astype(draw(st.sampled_from(dtypes))) for _ in range(draw(st.integers(1, 3))))
    dtype = dtypes[0]
    data = (rng.uniform(-1.2, 1.2, draw(st.sampled_from(SHAPES))).astype(dtype), rng.integers(-2, 3, draw(st.sampled_from(SHAPES))))
    values: list[np.ndarray] = [*inputs, *data]
    lib = _numpy()
    steps = []
    for _ in range(draw(st.integers(1, most))):
        step = _step(draw, values, composed, len(dtypes) == 1)
        values.append(np.asarray(step(lib, *(values[k] for k in step.places))) if step.run else values[step.places[1]])
        steps.append(step)
    floating = [k for k, v in enumerate(values) if v.dtype.kind == "f"]
    late = st.sampled_from(floating[-3:]) if draw(st.booleans()) else st.sampled_from(floating)
    outs = tuple(draw(late) for _ in range(draw(st.integers(1, 3))))
    number = draw(st.sampled_from(((), (1,), (1, 1)))) if scalar else None
    return RandomFunction(inputs, data, tuple(steps), outs, len(outs) > 1 or draw(st.booleans()), number)


def _step(draw: Any, values: list[np.ndarray], composed: bool, products: bool) -> Step:
    small = [k for k, v in enumerate(values) if v.size <= 40 and v.ndim <= 3]
    floating = [k for k in small if values[k].dtype.kind == "f"]
    vectors = [k for k in floating if values[k].shape == (N,)]
    if composed and vectors and draw(st.integers(0, 3)) == 0:
        return Step("transforms", (draw(st.sampled_from(vectors)), draw(st.sampled_from(vectors))), None, draw(st.integers(0, 2**16)))
    k = draw(st.sampled_from(floating[-4:] if draw(st.booleans()) else floating))
    x = values[k]
    choices: dict[str, tuple[Any, list[int]]] = {name: (f, []) for name, f in UNARY.items()}
    if x.ndim:
        choices |= {name: (f, []) for name, f in OF_AXES.items()}
    if x.ndim and x.size:
        choices |= {name: (f, []) for name, f in OF_ENTRIES.items()}
    pairs = [(j, values[j]) for j in small]
    fitting = [(j, y) for j, y in pairs if _broadcasts(x, y)]
    others = {name: [j for j, _ in fitting] for name in BINARY}
    others |= {name: [j for j, y in fitting if y.dtype.kind == "f"] for name in OF_FLOATS}
    others["outer"] = [j for j, y in pairs if x.dtype == y.dtype and x.size * y.size <= 40]
    if products:  # PyTorch has no matrix products of two dtypes, and says in its own way which dtype a result has
        others["matmul"] = [j for j, y in pairs if x.dtype == y.dtype and x.ndim == 2 and y.ndim in (1, 2) and y.shape[0] == x.shape[1]]
    if draw(st.booleans()):
        choices = {name: ((BINARY | OF_FLOATS | PRODUCTS)[name], found) for name, found in others.items() if found}
    name = draw(st.sampled_from(sorted(choices)))
    f, found = choices[name]
    return Step(name, (k, draw(st.sampled_from(found))) if found else (k,), f)


def _broadcasts(a: np.ndarray, b: np.ndarray) -> bool:
    try:
        return int(np.prod(np.broadcast_shapes(a.shape, b.shape))) <= 40
    except ValueError:
        return False


def _numpy() -> Library:
    """To know shapes and dtypes while a function is drawn."""

    class Words:
        def __getattr__(self, name: str) -> Any:
            return {"atan2": np.arctan2, "concat": np.concatenate}.get(name) or getattr(np, name)

    softmax = lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    return Library(Words(), np.asarray, lambda x, like: x.astype(like.dtype), lambda x: x, None, lambda x: np.sort(x, -1), softmax)


def runs(examples: int, long: bool = False) -> Any:
    """Settings. A long run takes as many programs as ``make fuzz`` is asked for, up to a limit, from the number that it is asked for."""
    if not long:
        return settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    number = min(examples, int(os.environ.get("NESTGRAD_FUZZ_PROGRAMS", "2000")))
    made = settings(max_examples=number, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    return lambda test: seed(int(os.environ.get("NESTGRAD_FUZZ_SEED", "0")))(made(test))
