"""Activations: functions of each entry by itself, and those along an axis that end a network."""

from nestgrad.functions.elementwise import relu, sigmoid, softplus, tanh
from nestgrad.functions.reductions import log_softmax, softmax

__all__ = [
    "relu", "sigmoid", "tanh", "softplus", "softmax", "log_softmax",
]  # fmt: skip
