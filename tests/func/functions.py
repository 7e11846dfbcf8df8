"""Functions that are written the same for Tensors of ours and of PyTorch, with points to differentiate them at."""

from collections.abc import Callable
from typing import Any

import numpy as np

RNG = np.random.default_rng(11)
W1, W2, M = RNG.normal(size=(4, 3)), RNG.normal(size=(2, 4)), RNG.normal(size=(3, 3))
X, Y = RNG.normal(size=3), RNG.normal(size=3)
BATCH = RNG.normal(size=(5, 3))

FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "net": (lambda x, a, b: ((x @ a.T).tanh() @ b.T).exp(), (BATCH, W1, W2)),
    "sum of squares": (lambda x: (x * x).sum(), (X,)),
    "mean of a sine": (lambda x: (x.sin() * x).mean(), (BATCH,)),
    "row maxima": (lambda x: x.amax(1) if hasattr(x, "amax") else x.max(1), (BATCH,)),
    "softmax": (lambda x: x.softmax(-1)[:, 1], (BATCH,)),
    "quotient": (lambda x, y: x / (1.0 + y * y), (X, Y)),
    "outer": (lambda x, y: x[:, None] * y[None, :] + x.prod(), (X, Y)),
    "power": (lambda x, y: (x * x + 0.1) ** y, (X, Y)),
    "indexing": (lambda x: x[1:, :2].reshape(-1)[::2] * x[0, 0], (BATCH,)),
    "matrix": (lambda m: (m @ m @ m).sum(0), (M,)),
    "scalar of two": (lambda x, y: (x * y).sum().cos() * y[0], (X, Y)),
    "structure": (lambda p: {"a": (p["x"] * p["y"][0]).sin(), "b": [p["x"].sum(), p["y"][0] * 2.0]}, ({"x": X, "y": [Y]},)),
    "number out": (lambda x: (x.exp(), 1.0 * x[0]), (X,)),
    "first of two": (lambda x, y: x * 3.0, (X, Y)),
}


def tree_map(f: Callable[[Any], Any], tree: Any) -> Any:
    """``f`` on each leaf of dicts, lists and tuples."""
    if isinstance(tree, dict):
        return {key: tree_map(f, value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(tree_map(f, value) for value in tree)
    return f(tree)


def alike(tree: Any, seed: int) -> Any:
    """Random arrays of the structure and shapes of ``tree``."""
    rng = np.random.default_rng(seed)
    return tree_map(lambda x: rng.normal(size=tuple(getattr(x, "shape", ()))), tree)


def leaves(tree: Any) -> list[Any]:
    """The leaves as NumPy arrays."""
    found: list[Any] = []
    tree_map(lambda x: found.append(x.detach().numpy() if hasattr(x, "detach") else np.asarray(x)), tree)
    return found


def close(found: Any, want: Any, rtol: float = 1e-12, atol: float = 1e-13) -> None:
    """The leaves agree, in shape and value; the tolerance allows for some hundred roundings in another order."""
    found, want = leaves(found), leaves(want)
    assert [np.shape(f) for f in found] == [np.shape(w) for w in want]
    for f, w in zip(found, want, strict=True):
        np.testing.assert_allclose(f, w, rtol=rtol, atol=atol)
