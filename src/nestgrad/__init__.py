"""nestgrad: derivatives of any order from backend decorators.

>>> import nestgrad as ng
>>> S = ng.Autodiff(ng.Autodiff(ng.NumpyBackend()))
>>> x = S.tensor(2.0, requires_grad=True)
>>> y = x**3
>>> y.wrt(x).wrt(x).item()
12.0
"""

from typing import TYPE_CHECKING, Any

from nestgrad import (
    errors as errors,
    func as func,
    functional as functional,
    functions as functions,
    implicit as implicit,
    linalg as linalg,
    nn as nn,
    optimize as optimize,
    partials as partials,
    pde as pde,
    random as random,
    sparse as sparse,
)
from nestgrad.backends import NumpyBackend as NumpyBackend, get_backend as get_backend
from nestgrad.compiled import jit as jit
from nestgrad.custom import custom_jvp as custom_jvp, custom_vjp as custom_vjp, define as define
from nestgrad.diagnostics import Profiled as Profiled, detect_anomaly as detect_anomaly, profile as profile
from nestgrad.functions import *
from nestgrad.levels import (
    Autodiff as Autodiff,
    Balanced as Balanced,
    Batched as Batched,
    Forward as Forward,
    Taylor as Taylor,
    Traced as Traced,
)
from nestgrad.partials import Controller as Controller, backward as backward
from nestgrad.recomputing import checkpoint as checkpoint
from nestgrad.tensor import Gradients as Gradients, Tensor as Tensor

if TYPE_CHECKING:
    from nestgrad.backends import TorchBackend as TorchBackend

__version__ = "0.1.0"

# TorchBackend is public but not in the list: a star import must not load torch.
_OWN = [
    "Tensor", "Gradients", "Autodiff", "Balanced", "Batched", "Forward", "Taylor", "Traced", "NumpyBackend", "get_backend",
    "errors", "func", "functional", "implicit", "linalg", "nn", "optimize", "partials", "pde", "random", "sparse", "checkpoint", "jit",
    "backward", "Controller", "define", "custom_vjp", "custom_jvp", "detect_anomaly", "profile", "Profiled",
]
globals()["__all__"] = _OWN + vars(functions)["__all__"]  # not assigned: mypy would take a sum that it cannot read for an empty list

if not TYPE_CHECKING:  # a type checker would take every unknown name for one that this function knows

    def __getattr__(name: str) -> Any:
        if name == "TorchBackend":
            from nestgrad import backends

            return backends.TorchBackend
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
