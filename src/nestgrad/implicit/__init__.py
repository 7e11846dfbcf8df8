"""Derivatives of what a solver finds, by the implicit function theorem.

If ``F(x, p) = 0``, then ``dx/dp = -(dF/dx)^-1 dF/dp``: the derivative does not ask how ``x`` was found. So the solver is a black box: it
may branch, iterate, and call NumPy or SciPy. The linear system is solved without its matrix, and that solution is differentiated in the
same way, so derivatives of any order follow, on every level.
"""

from nestgrad.implicit.solution import fixed_point, root

__all__ = ["fixed_point", "root"]
