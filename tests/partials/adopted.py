"""Derivatives of an adopted graph of PyTorch beside those that torch's own nested backward passes find.

The graph becomes a program, and levels run over it: Taylor mode, reverse mode, and reverse over forward mode. Nothing may read what the
graph did not keep.
"""

from collections.abc import Callable, Sequence
from math import factorial
from typing import Any

import nested_oracle
import torch
from nested_oracle import change, gradient

import nestgrad as ng
from nestgrad.backends.torch.graph import adopt, index
from nestgrad.levels.base import Tape
from nestgrad.levels.forward import dual, split
from nestgrad.levels.reverse.backward import Pass
from nestgrad.levels.reverse.node import Tracked, leaves
from nestgrad.levels.taylor import coefficients, series
from nestgrad.levels.traced.program import Program
from nestgrad.levels.traced.recording import recorded
from nestgrad.partials.graph import Graph
from nestgrad.partials.known import unpinned

Tensor = torch.Tensor


def reals(*shape: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> Tensor:
    """Numbers of double precision that require gradients."""
    made = torch.rand(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return (made * (high - low) + low).requires_grad_()


def compare(
    f: Callable[..., Any], *arguments: Any, orders: int = 3, tolerance: float = 1e-9, oracle: Callable[..., Any] | None = None
) -> None:
    """Assert that derivatives of the adopted graph of ``f(*arguments)`` are torch's.

    Args:
        f: Gives a tensor, or several: then each is compared.
        arguments: Those that require gradients are the variables.
        orders: Up to which order.
        tolerance: Relative to the greatest entry.
        oracle: A function with the same values of which torch knows all derivatives, where it does not know those of ``f``.
    """
    outs, truths = _several(f(*arguments)), _several((oracle or f)(*arguments))
    variables = [x for x in arguments if isinstance(x, Tensor) and x.requires_grad]
    for k, (out, truth) in enumerate(zip(outs, truths, strict=True)):
        if out.requires_grad:
            _compare(out, truth, variables, orders, tolerance, seed=k)


def compare_all(f: Callable[..., Any], *arguments: Any, **how: Any) -> None:
    """``compare`` where all variables are tracked, where one is, and where they are made inside of the graph, and the answer goes on."""
    numbers = [k for k, x in enumerate(arguments) if isinstance(x, Tensor) and x.requires_grad]
    compare(f, *arguments, **how)
    for k in numbers if len(numbers) > 1 else ():
        compare(f, *[x.detach() if j in numbers and j != k else x for j, x in enumerate(arguments)], **how)

    def inside(g: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            found = g(*[torch.sin(x) + 0.5 * x if k in numbers else x for k, x in enumerate(given)])
            return torch.sin(found) if isinstance(found, Tensor) else [torch.sin(x) for x in found if x.is_floating_point()]

        return run

    oracle = how.pop("oracle", None)
    compare(inside(f), *arguments, oracle=oracle and inside(oracle), **how)


def _several(found: Any) -> list[Tensor]:
    return [found] if isinstance(found, Tensor) else [x for x in found if x.is_floating_point()]


def _compare(out: Tensor, truth: Tensor, variables: Sequence[Tensor], orders: int, tolerance: float, seed: int) -> None:
    numbers = torch.Generator().manual_seed(100 + seed)

    def like(x: Tensor) -> Tensor:
        return torch.randn(x.shape, dtype=x.dtype, generator=numbers)

    weights, along = like(truth), [like(x) for x in variables]
    run = Run(out, variables)
    known = set(range(len(run.values))) - run.unknown
    assert not any(bool(torch.isnan(run.values[k]).any()) for k in known), "values of the graph are NaN"
    total = (truth * weights).sum()
    ours = [_scalar(weights, term) for term in run.curve(along, orders)]
    for order, (got, expected) in enumerate(zip(ours, nested_oracle.along(total, variables, along, orders), strict=True), 1):
        _close(got, expected, tolerance, f"order {order} in one direction")
    for got, expected in zip(run.gradient(weights), gradient(total, variables), strict=True):
        _close(got, expected, tolerance, "gradient")
    if orders > 1:
        for got, expected in zip(run.gradient(weights, along), gradient(change(total, variables, along), variables), strict=True):
            _close(got, expected, tolerance, "product of the Hessian and a vector")


def _scalar(weights: Tensor, term: Tensor | None) -> Tensor:
    return torch.zeros((), dtype=weights.dtype) if term is None else (term * weights).sum()


def _close(got: Tensor, expected: Tensor, tolerance: float, what: str) -> None:
    assert got.shape == expected.shape, f"{what}: shape {tuple(got.shape)}, not {tuple(expected.shape)}"
    assert got.dtype == expected.dtype, f"{what}: {got.dtype}, not {expected.dtype}"
    scale = 1.0 + float(expected.detach().abs().amax()) if expected.numel() else 1.0
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance * scale, msg=lambda text: f"{what}: {text}")


# ours


class Run:
    """The program of a graph.

    Attributes:
        program: Its ops.
        values: Of its inputs.
        places: Positions of the variables among the inputs, ``None`` where the graph does not lead to one.
    """

    def __init__(self, out: Tensor, variables: Sequence[Tensor]) -> None:
        self.base = ng.TorchBackend()
        graph = Graph(self.base)
        root = adopt(graph, out, index())
        self.program: Program = graph.program(root)
        self.values, self.unknown = graph.values, graph.unknown
        self.variables = variables
        self.places = [graph.leaves.get(x) for x in variables]

    def curve(self, along: Sequence[Tensor], orders: int) -> list[Tensor | None]:
        """The derivatives from order 1 on along a line."""

        def lifted(values: list[Any]) -> list[Any]:
            tape = Tape("curve", 0, records=False)
            given = list(values)
            for place, v in zip(self.places, along, strict=True):
                if place is not None:
                    given[place] = series(tape, given[place], [v], orders)
            terms = coefficients(self.program.run(self.base.dressed, given)[0], tape)
            return [terms[k] if k < len(terms) else None for k in range(1, orders + 1)]

        found = self._read(lifted)
        return [None if term is None else term * factorial(k) for k, term in enumerate(found, start=1)]

    def gradient(self, weights: Tensor, along: Sequence[Tensor] | None = None) -> list[Tensor]:
        """The gradient, or its change along a line."""

        def lifted(values: list[Any]) -> list[Any]:
            forward, reverse = Tape("forward", 0, records=False), Tape("reverse", 0)
            given = list(values)
            for k, place in enumerate(self.places):
                if place is not None:
                    p = given[place] if along is None else dual(forward, given[place], along[k])
                    given[place] = leaves((reverse,), p, tuple(self.variables[k].shape))
            out = self.program.run(self.base.dressed, given)[0]
            if not (isinstance(out, Tracked) and out.tape is reverse):
                return [None for _ in self.places]
            passing = Pass(self.base.dressed, out.node, weights, reverse)
            nodes = [None if place is None else given[place].node for place in self.places]
            reached = [node for node in nodes if node is not None and passing.reaches(node)]
            passing.run(reached)
            found = [passing.cotangents.get(node) if node in reached else None for node in nodes]
            return found if along is None else [None if g is None else split(g, forward)[1] for g in found]

        found = self._read(lifted)
        return [torch.zeros_like(x) if g is None else g for g, x in zip(found, self.variables, strict=True)]

    def _read(self, lifted: Callable[[list[Any]], list[Any]]) -> list[Any]:
        """What levels make of the program, for which nothing unknown may be read."""
        there: list[bool] = []

        def flat(values: list[Any]) -> list[Any]:
            found = lifted(values)
            there[:] = [p is not None for p in found]
            return [p for p in found if p is not None]

        derived = unpinned(recorded(self.base, "derivative", self.values, flat))
        inputs = {v: k for k, v in enumerate(derived.inputs)}
        read = {inputs[a] for step in derived.instructions for a in step.operands if a in inputs}
        read |= {inputs[v] for v in derived.outputs if v in inputs}
        assert not read & self.unknown, f"a derivative reads what is unknown:\n{derived.pretty()}"
        found = iter(derived.run(self.base, self.values))
        return [next(found) if here else None for here in there]
