"""Functions that run on nestgrad's Tensors and on torch's alike, and inputs for them."""

from typing import Any

import numpy as np
import torch

import nestgrad as ng

SECOND = ("hessian", "hvp", "vhp")
ALL = ("jacobian", "jvp", "vjp", *SECOND)


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    """Positive numbers of order one."""
    return np.random.default_rng(seed).uniform(0.3, 1.5, shape)


SCALAR = {
    "pow_reducer": (lambda x: x.pow(3).sum(), ((2, 2),)),
    "one number": (lambda x: x.exp() * x, ((),)),
    "one entry, one axis": (lambda x: (x.sin() * x.sum()).sum().reshape(1), ((3,),)),
    "one entry, two axes": (lambda x, y: (x * y.exp()).sum().reshape(1, 1), ((3,), (3,))),
    "two inputs": (lambda x, y: (x.exp() * y.pow(2)).sum() + (x.sum() * y.sum()).sin(), ((2,), (2,))),
    "inputs of other shapes": (lambda x, y: (x @ y).exp().sum() + x.pow(3).sum(), ((2, 3), (3,))),
    "one input unused": (lambda x, y: x.pow(3).sum(), ((2,), (3,))),
    "linear": (lambda x, y: (2 * x + 3 * y).sum(), ((2,), (2,))),
}
"""Functions with one number, and the shapes of their inputs."""

TUPLE_OF_ONE = {"a tuple of one": (lambda x: (x.exp() * x.sum(),), ((3,),))}

VECTOR = {
    "exp_reducer": (lambda x: x.exp().sum(dim=1), ((2, 3),)),
    "adder": (lambda x, y: 2 * x + 3 * y, ((2,), (2,))),
    "entries mix": (lambda x: x.sum() * x.sin(), ((3,),)),
    "outputs of other shapes": (lambda x, y: ((x @ y).sin(), x.sum() * y, (x * x).sum()), ((2, 3), (3,))),
    "an output that depends on one input": (lambda x, y: (x.exp(), y.exp() * x.sum()), ((2,), (3,))),
    "an output that is constant": (lambda x: (x.pow(3), x.detach()), ((2,),)),
    **TUPLE_OF_ONE,
    **SCALAR,
}
"""Functions with any outputs."""


def inputs(shapes: tuple[tuple[int, ...], ...], several: bool | None = None) -> Any:
    """NumPy arrays: a tuple if there are several, or if asked for."""
    made = tuple(numbers(*shape, seed=k) for k, shape in enumerate(shapes))
    return made if several or len(made) > 1 else made[0]


def mapped(convert: Any, tree: Any) -> Any:
    """``convert`` on everything in nested tuples."""
    return tuple(mapped(convert, part) for part in tree) if isinstance(tree, tuple) else convert(tree)


def leaves(tree: Any) -> list[Any]:
    """All that there is in nested tuples."""
    return [x for part in tree for x in leaves(part)] if isinstance(tree, tuple) else [tree]


def tensors(tree: Any) -> Any:
    """As Tensors."""
    return mapped(ng.tensor, tree)


def torched(tree: Any) -> Any:
    """As torch tensors."""
    return mapped(torch.tensor, tree)


def constant(values: Any, like: Any) -> Any:
    """A constant over the library of ``like``."""
    return torch.tensor(values, dtype=torch.float64) if isinstance(like, torch.Tensor) else ng.tensor(values)


def theirs(name: str, func: Any, given: Any, *args: Any, **kwargs: Any) -> Any:
    """What torch.autograd.functional gives."""
    return getattr(torch.autograd.functional, name)(func, torched(given), *(torched(a) for a in args), **kwargs)


def same(found: Any, expected: Any, rtol: float = 1e-12) -> None:
    """Assert that nestings, shapes and numbers agree."""
    if isinstance(expected, tuple):
        assert isinstance(found, tuple) and len(found) == len(expected)
        for part, other in zip(found, expected, strict=True):
            same(part, other, rtol)
        return
    assert not isinstance(found, tuple)
    a, b = (np.asarray(x.detach().numpy() if hasattr(x, "detach") else x) for x in (found, expected))
    assert a.shape == b.shape, (a.shape, b.shape)
    np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-13)


def vector_for(name: str, func: Any, given: Any) -> Any:
    """A vector of the shapes of the inputs, or for ``vjp`` of the outputs."""
    like = mapped(lambda x: tuple(x.shape), func(*torched(given if isinstance(given, tuple) else (given,))) if name == "vjp" else given)

    def made(shapes: Any, seed: int) -> Any:
        if isinstance(shapes, tuple) and shapes and isinstance(shapes[0], tuple):
            return tuple(numbers(*shape, seed=seed + k) - 0.8 for k, shape in enumerate(shapes))
        return numbers(*shapes, seed=seed) - 0.8

    return made(like, 100)
