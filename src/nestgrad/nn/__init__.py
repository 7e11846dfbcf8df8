"""Functions of neural networks: ``ng.nn.gelu``, ``ng.nn.conv2d``. Each module lists what it has for users in its own ``__all__``."""

from nestgrad.nn import (
    activations,
    attention,
    averaging,
    classification,
    convolution,
    ctc,
    distances,
    dropping,
    folding,
    layers,
    losses,
    normalization,
    padding,
    pooling,
    resizing,
    scaling,
)
from nestgrad.nn.activations import *
from nestgrad.nn.attention import *
from nestgrad.nn.averaging import *
from nestgrad.nn.classification import *
from nestgrad.nn.convolution import *
from nestgrad.nn.ctc import *
from nestgrad.nn.distances import *
from nestgrad.nn.dropping import *
from nestgrad.nn.folding import *
from nestgrad.nn.layers import *
from nestgrad.nn.losses import *
from nestgrad.nn.normalization import *
from nestgrad.nn.padding import *
from nestgrad.nn.pooling import *
from nestgrad.nn.resizing import *
from nestgrad.nn.scaling import *

# Not assigned: mypy would take a list that it cannot read for an empty one.
globals()["__all__"] = [
    *activations.__all__,
    *attention.__all__,
    *averaging.__all__,
    *classification.__all__,
    *convolution.__all__,
    *ctc.__all__,
    *distances.__all__,
    *dropping.__all__,
    *folding.__all__,
    *layers.__all__,
    *losses.__all__,
    *normalization.__all__,
    *padding.__all__,
    *pooling.__all__,
    *resizing.__all__,
    *scaling.__all__,
]  # fmt: skip
