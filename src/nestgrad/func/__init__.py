"""Transforms: function in, function out. They nest with each other and with the imperative style.

Each run makes a tape of its own, the youngest of all while it runs: stacks made before slide under it, so closing over tracked tensors,
plain arrays and literals just works. Inside, ``S.tensor(v, requires_grad=True)`` of a stack made outside makes a variable on tapes that
stand in for the stack's, above the transform. When the run ends, all these tapes close.

Arguments and outputs may be nested tuples, lists, dicts and namedtuples. Their leaves are Tensors, arrays and numbers; arrays and numbers
go to the backend of the Tensors beside them, or else of those that the function closes over.
"""

from nestgrad.func.diagonal import hessian_diag
from nestgrad.func.forward import jvp, linearize
from nestgrad.func.jacobians import hessian, jacfwd, jacrev
from nestgrad.func.jets import jets
from nestgrad.func.mapping import vmap
from nestgrad.func.partial import derivative
from nestgrad.func.reverse import grad, value_and_grad, vjp
from nestgrad.func.series import taylor
from nestgrad.func.stop import stop_gradient
from nestgrad.func.tracing import call, trace

__all__ = [
    "grad", "value_and_grad", "vjp", "jvp", "linearize", "vmap", "jacfwd", "jacrev", "hessian", "hessian_diag", "taylor", "jets",
    "derivative", "stop_gradient", "trace", "call",
]  # fmt: skip
