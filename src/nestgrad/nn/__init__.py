"""Functions of neural networks: ``ng.nn.gelu``, ``ng.nn.conv2d``. Each module lists what it has for users in its own ``__all__``."""

from nestgrad.nn import activations, ctc, normalization
from nestgrad.nn.activations import *
from nestgrad.nn.ctc import *
from nestgrad.nn.normalization import *

# Not assigned: mypy would take a list that it cannot read for an empty one.
globals()["__all__"] = [
    *activations.__all__,
    *ctc.__all__,
    *normalization.__all__,
]  # fmt: skip
