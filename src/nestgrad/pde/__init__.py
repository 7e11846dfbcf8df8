"""Differential operators on fields, at many points at once.

A field is a function of ONE point, of shape ``(d,)``. An operator makes of it a function of points, of shape ``(n, d)``: what
comes out has the axis of the points in front, and nothing was summed over points or components. Of a single point it is a function of one
point again, so that operators compose: ``divergence(lambda x: k(x) * gradient(u)(x))``.
"""

from nestgrad.pde.curvatures import hessian_diag, laplacian, value_gradient_laplacian
from nestgrad.pde.kinks import PiecewiseLinearWarning
from nestgrad.pde.orders import biharmonic, directional
from nestgrad.pde.slopes import curl, divergence, gradient, jacobian

__all__ = [
    "gradient", "jacobian", "divergence", "curl", "laplacian", "value_gradient_laplacian", "hessian_diag", "biharmonic", "directional",
    "PiecewiseLinearWarning",
]  # fmt: skip
