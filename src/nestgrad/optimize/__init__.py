"""Functions of nested parameters for SciPy: vectors of float64 in and out, over any backend.

SciPy's solvers know one flat NumPy vector of float64. Here it is the entries of the parameters, end to end, in the order of their
structure, each in row-major order. What comes out are constants: the solver leaves all levels.
"""

from nestgrad.optimize.callables import ScipyCallables, scipy_callables
from nestgrad.optimize.flat import flat
from nestgrad.optimize.operators import gauss_newton_operator, hessian_operator, jacobian_operator

__all__ = ["scipy_callables", "ScipyCallables", "hessian_operator", "gauss_newton_operator", "jacobian_operator", "flat"]
