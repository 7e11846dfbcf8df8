"""What functions of matrices ask of their arguments."""

from typing import TYPE_CHECKING

from nestgrad.errors import ShapeError
from nestgrad.tensor.handle import Operand, floating

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor


def matrices(name: str, a: Operand) -> "Tensor":
    """Square matrices of floating-point numbers.

    Raises:
        ShapeError: If they are not square.
    """
    x = floating(a)
    square(name, x.shape)
    return x


def square(name: str, shape: tuple[int, ...]) -> int:
    """How many rows and columns the matrices have.

    Raises:
        ShapeError: If these are two numbers.
    """
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ShapeError(f"{name}: got shape {tuple(shape)}; expected square matrices in the last two axes, (..., n, n)")
    return shape[-1]
