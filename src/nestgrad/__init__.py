"""nestgrad: derivatives of any order from backend decorators."""

from nestgrad.tensor import Gradients, Tensor

__all__ = ["Gradients", "Tensor"]
