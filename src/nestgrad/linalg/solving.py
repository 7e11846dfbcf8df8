"""Linear equations and inverses."""

from typing import TYPE_CHECKING

from nestgrad.errors import ShapeError
from nestgrad.linalg.matrices import matrices, square
from nestgrad.tensor.handle import Operand, apply, arrays, make, reals

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["inv", "solve"]


def solve(a: Operand, b: Operand) -> "Tensor":
    """The ``x`` of ``a @ x = b``, as ``np.linalg.solve``.

    Args:
        a: Shape ``(..., n, n)``, none of them singular.
        b: Shape ``(n,)``, one vector, or ``(..., n, k)``, of which the columns are right sides; leading axes broadcast. For a stack of
            vectors, give them a last axis: ``solve(a, b[..., None])[..., 0]``.

    Returns:
        The shape of ``b``, with the leading axes that both have. Every derivative is a solution with the same matrix, or its transpose:
        one factorisation each.

    Raises:
        ShapeError: If the shapes do not fit.
        SingularMatrixError: If a matrix has no inverse. One that is nearly singular gives large numbers, as in NumPy.

    >>> from nestgrad import tensor
    >>> solve(tensor([[2.0, 0.0], [0.0, 4.0]]), tensor([1.0, 1.0])).tolist()
    [0.5, 0.25]
    """
    over, values, marks = arrays("solve", a, b)
    x, y = reals(over, values)
    shapes = tuple(over.shape(x)), tuple(over.shape(y))
    n = square("solve", shapes[0])
    vector = len(shapes[1]) == 1
    if not shapes[1] or shapes[1][0 if vector else -2] != n:
        raise ShapeError(
            f"solve: got a of shape {shapes[0]} and b of shape {shapes[1]}; expected b of shape ({n},), or (..., {n}, k) with a right side "
            "in each column. Try b[..., None] for a stack of vectors"
        )
    out = over.solve(x, over.reshape(y, (n, 1)) if vector else y)
    return make(over, over.reshape(out, tuple(over.shape(out))[:-1]) if vector else out, marks)


def inv(a: Operand) -> "Tensor":
    """The inverse, as ``np.linalg.inv``. For ``inv(a) @ b`` prefer ``solve(a, b)``, which is quicker and loses fewer digits.

    Args:
        a: Shape ``(..., n, n)``, none of them singular.

    Returns:
        The same shape. Derivatives are products with the inverse, so that nothing is factorised again.

    Raises:
        ShapeError: If the matrices are not square.
        SingularMatrixError: If a matrix has no inverse.

    >>> from nestgrad import tensor
    >>> inv(tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return apply("inv", matrices("inv", a))
