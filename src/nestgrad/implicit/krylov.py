"""Linear systems without a matrix: GMRES, restarted, on constants.

Saad & Schultz, "GMRES: a generalized minimal residual algorithm for solving nonsymmetric linear systems", SIAM J. Sci. Stat. Comput. 7
(1986), 856-869. Vectors are Tensors, the small triangular system is one of Python floats; each restart works on what is left of the right
side, so the accuracy is that of the backend's numbers.
"""

from collections.abc import Callable
from math import hypot, sqrt

from nestgrad.errors import ConvergenceError
from nestgrad.tensor import Tensor

Matvec = Callable[[Tensor], Tensor]

LENGTH = 64
"""At most so many vectors are kept between restarts."""

CYCLES = 32
"""At most so many restarts."""


def gmres(matvec: Matvec, rhs: Tensor, accuracy: float) -> Tensor:
    """The solution ``y`` of ``matvec(y) = rhs``.

    Args:
        matvec: Linear and invertible, from rhs's shape to that shape.
        rhs: A constant.
        accuracy: How much of ``rhs`` may be left over, as a part of its norm. Iterations go on while they help, beyond that.

    Raises:
        ConvergenceError: If the map is singular, or more is left over.

    Cost: in exact arithmetic, with ``n`` entries, ``n`` products at most; ``min(n, 64)`` vectors are kept.
    """
    whole = norm(rhs)
    y, left, size = rhs * 0.0, rhs, whole
    for _ in range(CYCLES):
        if size == 0.0:
            return y
        step = _cycle(matvec, left, size)
        if step is None:
            break
        new = y + step
        rest = rhs - matvec(new)
        now = norm(rest)
        if not now < size:
            break
        y, left, size, before = new, rest, now, size
        if now > 0.5 * before and now <= accuracy * whole:
            break
    if not size <= accuracy * whole:
        raise ConvergenceError(
            f"implicit: the linear system with dF/dx (or its transpose) was not solved: of a right side of norm {whole:.3g}, {size:.3g} is "
            "left over; expected an invertible dF/dx at the solution. Is it a double root, or does F not depend on an entry of x? "
            "For a large or badly conditioned system try linear_solver=..., one of your own"
        )
    return y


def norm(x: Tensor) -> float:
    """Euclidean norm of all entries, on the scale of the largest."""
    if not x.size:
        return 0.0
    largest = float(abs(x).max().item())
    if not 0.0 < largest < float("inf"):
        return largest
    return largest * sqrt(float((x / largest).square().sum().item()))


def _cycle(matvec: Matvec, left: Tensor, size: float) -> Tensor | None:
    """The best step within a Krylov space; ``None`` if there is none."""
    basis = [left / size]
    columns: list[list[float]] = []  # of the triangular factor of the Hessenberg matrix
    turns: list[tuple[float, float]] = []
    tail = [size]
    for k in range(min(LENGTH, left.size)):
        w = matvec(basis[k])
        length, column = norm(w), [0.0] * (k + 1)
        for _ in range(2):  # once more, against the loss of orthogonality
            for j, v in enumerate(basis):
                h = float((v * w).sum().item())
                column[j] += h
                w = w - v * h
        more = norm(w)
        for j, (c, s) in enumerate(turns):
            above, below = column[j], column[j + 1]
            column[j], column[j + 1] = c * above + s * below, c * below - s * above
        radius = hypot(column[k], more)
        if not radius > 1e-14 * length:  # this direction leads nowhere
            break
        turns.append((column[k] / radius, more / radius))
        column[k] = radius
        columns.append(column)
        tail += [-turns[k][1] * tail[k]]
        tail[k] *= turns[k][0]
        if not more > 1e-14 * length or abs(tail[k + 1]) <= 1e-17 * size:
            break
        basis.append(w / more)
    if not columns:
        return None
    weights = [0.0] * len(columns)
    for k in reversed(range(len(columns))):
        weights[k] = (tail[k] - sum(columns[j][k] * weights[j] for j in range(k + 1, len(columns)))) / columns[k][k]
    step = basis[0] * weights[0]
    for v, weight in zip(basis[1:], weights[1:], strict=False):
        step = step + v * weight
    return step
