"""The Tensor and its Gradients."""

from nestgrad.tensor.gradients import Gradients
from nestgrad.tensor.tensor import Tensor

__all__ = ["Gradients", "Tensor"]
