"""Derivatives at once: a function and its inputs go in, numbers come out, as with ``torch.autograd.functional``.

Inputs are Tensors, NumPy arrays or torch tensors, one or a tuple of them; the function always gets Tensors, and results come back as what
came in. All is computed by the transforms of ``nestgrad.func``, which are the better choice where derivatives are nested.
"""

from nestgrad.functional.jacobians import hessian, jacobian
from nestgrad.functional.products import hvp, jvp, vhp, vjp

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
