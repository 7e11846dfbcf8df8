"""Value, first and second derivatives of one sample: by torch, and by nestgrad on two levels.

The first derivative is the gradient of a weighted sum of all results, the second the gradient of a weighted sum of that. The weights
are drawn by the number of the sample, the same for both.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

import nestgrad as ng

Arrays = list[np.ndarray[Any, Any]]
STEP = 1e-5
"""Of the central differences of torch's gradient, where torch cannot differentiate it."""


class LeftOut(Exception):
    """A sample asks for what nestgrad does not have, on purpose; the text says what."""


@dataclass
class Derivatives:
    """What one library found.

    Attributes:
        values: The results.
        first: For each input that requires gradients, the gradient.
        second: The gradient of that; ``None`` where there is none to be had.
        differences: Whether the second derivative is by differences, with few digits.
    """

    values: Arrays
    first: Arrays = field(default_factory=list)
    second: Arrays | None = None
    differences: bool = False


def leaves(tree: Any) -> Iterator[Any]:
    """The leaves of nested tuples, lists and dictionaries."""
    if isinstance(tree, (tuple, list)) and not isinstance(tree, torch.Size):
        for part in tree:
            yield from leaves(part)
    elif isinstance(tree, dict):
        for part in tree.values():
            yield from leaves(part)
    else:
        yield tree


def mapped(f: Callable[[Any], Any], tree: Any) -> Any:
    """The same tree with ``f`` on each leaf. Tuples of a named class become plain ones."""
    if isinstance(tree, (tuple, list)) and not isinstance(tree, torch.Size):
        return (list if isinstance(tree, list) else tuple)(mapped(f, part) for part in tree)
    if isinstance(tree, dict):
        return {k: mapped(f, part) for k, part in tree.items()}
    return f(tree)


def doubled(x: torch.Tensor) -> torch.Tensor:
    """In double precision, if it is floating: some samples mix in narrower numbers."""
    return x.detach().double() if x.is_floating_point() else x.detach()


def _weights(rng: np.random.Generator, shapes: list[tuple[int, ...]]) -> Arrays:
    return [rng.normal(size=shape) for shape in shapes]


def by_torch(info: Any, sample: Any, seed: int, compared: tuple[int, ...] | None = None) -> Derivatives:
    """What torch says. ``compared`` are the results that count; ``None``: all."""
    inputs: list[torch.Tensor] = []

    def fresh(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        made = doubled(leaf).clone().requires_grad_(leaf.requires_grad)
        if leaf.requires_grad:
            inputs.append(made)
        return made

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        args, kwargs = mapped(fresh, (sample.input, *sample.args)), mapped(fresh, sample.kwargs)
        run = lambda args, kwargs: _chosen(info.op(*args, **kwargs), compared)
        results = run(args, kwargs)
        if any(r.is_complex() for r in results):
            raise LeftOut("complex numbers")
        found = Derivatives([r.detach().numpy(force=True) for r in results])
        if not inputs:
            return found
        rng = np.random.default_rng(seed)
        weights = _weights(rng, [tuple(r.shape) for r in results])
        directions = _weights(rng, [tuple(x.shape) for x in inputs])
        first = _gradient(_total(results, weights), inputs)
        found.first = [_array(g, x) for g, x in zip(first, inputs, strict=True)]
        try:
            second = _gradient(_total(first, directions), inputs)
            found.second = [_array(h, x) for h, x in zip(second, inputs, strict=True)]
        except RuntimeError:  # torch cannot differentiate this derivative
            found.second, found.differences = _difference(run, args, kwargs, inputs, weights, directions), True
    return found


def _chosen(answer: Any, compared: tuple[int, ...] | None) -> list[Any]:
    results = [r if isinstance(r, torch.Tensor) else torch.as_tensor(r) for r in leaves(answer)]
    return results if compared is None else [results[k] for k in compared]


def _total(results: list[Any], weights: Arrays) -> torch.Tensor | None:
    pairs = [(r, w) for r, w in zip(results, weights, strict=True) if r is not None and r.requires_grad]
    terms = [(r * torch.from_numpy(w).to(r.dtype)).sum() for r, w in pairs]
    return sum(terms[1:], terms[0]) if terms else None


def _gradient(total: torch.Tensor | None, inputs: list[torch.Tensor]) -> list[Any]:
    if total is None:
        return [None] * len(inputs)
    return list(torch.autograd.grad(total, inputs, create_graph=True, allow_unused=True))


def _array(g: torch.Tensor | None, x: torch.Tensor) -> np.ndarray[Any, Any]:
    return np.zeros(tuple(x.shape)) if g is None else g.numpy(force=True)  # which may be one of torch's zeros without memory


def _difference(run: Callable[..., Any], args: Any, kwargs: Any, inputs: list[torch.Tensor], weights: Arrays, directions: Arrays) -> Arrays:
    """The product of the Hessian and the directions, by central differences of torch's gradient."""
    ends = []
    for step in (STEP, -STEP):
        moved = {id(x): (x.detach() + step * torch.from_numpy(v)).requires_grad_() for x, v in zip(inputs, directions, strict=True)}
        there = lambda leaf, moved=moved: moved.get(id(leaf), leaf)
        results = run(mapped(there, args), mapped(there, kwargs))
        gradient = _gradient(_total(results, weights), list(moved.values()))
        ends.append([_array(g, x) for g, x in zip(gradient, inputs, strict=True)])
    return [(after - before) / (2 * STEP) for after, before in zip(*ends, strict=True)]


def by_nestgrad(call: Callable[..., Any], backend: Any, sample: Any, seed: int) -> Derivatives:
    """What we say, on two levels over ``backend``.

    Raises:
        LeftOut: If the sample asks for what we do not have.
    """
    results, inputs = results_of(call, ng.Autodiff(ng.Autodiff(backend)), sample)
    found = Derivatives([np.asarray(r.numpy() if isinstance(r, ng.Tensor) else r) for r in results])
    if not inputs:
        return found
    rng = np.random.default_rng(seed)
    weights = _weights(rng, [v.shape for v in found.values])
    directions = _weights(rng, [x.shape for x in inputs])
    first = _by(results, weights, inputs)
    found.first = [np.zeros(x.shape) if g is None else g.numpy() for g, x in zip(first, inputs, strict=True)]
    second = _by(first, directions, inputs)
    found.second = [np.zeros(x.shape) if h is None else h.numpy() for h, x in zip(second, inputs, strict=True)]
    return found


def results_of(call: Callable[..., Any], stack: Any, sample: Any) -> tuple[list[Any], list[ng.Tensor]]:
    """What we give for a sample, and the inputs that require gradients."""
    inputs: list[ng.Tensor] = []

    def made(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            if leaf.is_complex() or leaf.layout != torch.strided:
                raise LeftOut("complex numbers" if leaf.is_complex() else "sparse arrays")
            x = stack.tensor(doubled(leaf).numpy(), requires_grad=leaf.requires_grad)
            if leaf.requires_grad:
                inputs.append(x)
            return x
        if isinstance(leaf, complex) or (isinstance(leaf, torch.dtype) and leaf.is_complex):
            raise LeftOut("complex numbers")
        if isinstance(leaf, torch.dtype):
            return str(leaf).removeprefix("torch.")
        return tuple(leaf) if isinstance(leaf, torch.Size) else leaf

    args, kwargs = mapped(made, (sample.input, *sample.args)), mapped(made, sample.kwargs)
    return list(leaves(call(*args, **kwargs))), inputs


def _by(results: list[Any], weights: Arrays, inputs: list[ng.Tensor]) -> list[Any]:
    """The gradient of a weighted sum; ``None`` for what it does not depend on."""
    terms = [
        (r * r.b.base.asarray(w, r.dtype)).sum()
        for r, w in zip(results, weights, strict=True)
        if isinstance(r, ng.Tensor) and "float" in str(r.dtype) and r.level
    ]
    if not terms:
        return [None] * len(inputs)
    total = sum(terms[1:], terms[0])
    grads = total.backward()
    return [grads.get(x) for x in inputs]
