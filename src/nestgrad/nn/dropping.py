"""Dropout: entries set to zero by chance, from an explicit generator.

What is dropped is exactly zero, in value and in every derivative, whatever was there. A generator is one of ``ng.random.generator(seed)``
over the backend of ``x``, and it moves on with each call: the same seed gives the same masks. Inside ``vmap`` one mask is drawn, and all
samples share it; for one each, apply dropout to all of them at once, outside. Inside a trace a draw is an error.
"""

from math import sqrt
from typing import TYPE_CHECKING, Any

from nestgrad.errors import ArgumentError, BackendError, ShapeError
from nestgrad.functions.choose import where
from nestgrad.nn.activations import SELU_ALPHA, SELU_SCALE
from nestgrad.random import Generator, uniform
from nestgrad.tensor.handle import Operand, floating

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout"]

Shape = tuple[int, ...]


def dropout(x: Operand, p: float = 0.5, training: bool = True, generator: Generator | None = None) -> "Tensor":
    """Each entry is 0 with probability ``p``, and otherwise divided by ``1 - p``, so that the mean stays.

    Srivastava et al., "Dropout", JMLR 2014.

    Args:
        x: Any shape.
        p: The probability; with 1 everything is 0.
        training: If not, ``x`` is returned.
        generator: Where the chance comes from; not asked for if nothing is to be drawn.

    Returns:
        The shape of ``x``.

    Raises:
        ArgumentError: If ``p`` is no probability, or there is no generator.
        BackendError: If the generator is of another backend.
        TraceError: In a trace.

    >>> from nestgrad import random, tensor
    >>> dropout(tensor([1.0, 2.0, 3.0, 4.0]), 0.5, generator=random.generator(0)).tolist()
    [2.0, 0.0, 0.0, 0.0]
    """
    x = floating(x)
    return _dropped("dropout", x, p, training, generator, tuple(x.shape))


def dropout1d(x: Operand, p: float = 0.5, training: bool = True, generator: Generator | None = None) -> "Tensor":
    """``dropout`` of whole channels of shape ``(L,)``: ``x`` has shape ``(N, C, L)``."""
    return _channels("dropout1d", x, p, training, generator, 3)


def dropout2d(x: Operand, p: float = 0.5, training: bool = True, generator: Generator | None = None) -> "Tensor":
    """``dropout`` of whole channels of shape ``(H, W)``: ``x`` has shape ``(N, C, H, W)``."""
    return _channels("dropout2d", x, p, training, generator, 4)


def dropout3d(x: Operand, p: float = 0.5, training: bool = True, generator: Generator | None = None) -> "Tensor":
    """``dropout`` of whole channels of shape ``(D, H, W)``: ``x`` has shape ``(N, C, D, H, W)``."""
    return _channels("dropout3d", x, p, training, generator, 5)


_FLOOR = -SELU_SCALE * SELU_ALPHA
"""What ``selu`` goes to far left."""


def alpha_dropout(x: Operand, p: float = 0.5, training: bool = True, generator: Generator | None = None) -> "Tensor":
    """Dropout for ``selu``: entries are set to its limit on the left, then all scaled and shifted to keep mean 0 and variance 1.

    Klambauer et al., "Self-normalizing neural networks", NeurIPS 2017. Arguments and errors are those of ``dropout``; with ``p = 1``
    everything is 0.
    """
    x = floating(x)
    if probability("alpha_dropout", p) in (0.0, 1.0) or not training:
        return _dropped("alpha_dropout", x, p, training, generator, tuple(x.shape))
    scale = 1.0 / sqrt((1.0 - p) * (1.0 + p * _FLOOR**2))
    kept = where(_drawn("alpha_dropout", x, p, generator, tuple(x.shape)), x, _FLOOR)
    return kept * scale - scale * _FLOOR * p


def probability(name: str, p: Any) -> float:
    """``p``, if it is one.

    Raises:
        ArgumentError: If it is not.
    """
    if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0.0 <= p <= 1.0:
        raise ArgumentError(f"{name}: got probability {p!r}; expected a number from 0 to 1")
    return float(p)


def _channels(name: str, x: Operand, p: float, training: bool, generator: Generator | None, rank: int) -> "Tensor":
    x = floating(x)
    if x.ndim != rank:
        raise ShapeError(f"{name}: got x of shape {x.shape}; expected {rank} axes, the first two of samples and channels")
    return _dropped(name, x, p, training, generator, (*x.shape[:2], *(1,) * (rank - 2)))


def _dropped(name: str, x: "Tensor", p: float, training: bool, generator: Generator | None, shape: Shape) -> "Tensor":
    """``x`` with what a mask of ``shape`` says set to zero."""
    if probability(name, p) == 0.0 or not training:
        return x
    return where(p < 1.0 and _drawn(name, x, p, generator, shape), x * (1.0 / (1.0 - p)) if p < 1.0 else x, 0.0)


def _drawn(name: str, x: "Tensor", p: float, generator: Generator | None, shape: Shape) -> "Tensor":
    """Which entries stay."""
    if generator is None:
        raise ArgumentError(f"{name}: got no generator; expected one, since nothing random is hidden. Try generator=ng.random.generator(0)")
    if isinstance(generator, Generator) and generator.base != x.b.base:
        raise BackendError(
            f"{name}: got a generator of {generator.base!r} and x over {x.b.base!r}; expected one backend. "
            "Try ng.random.generator(seed, backend), with the stack that x is made of"
        )
    return uniform(shape, generator) >= p
