"""Defaults for every operation that is not required, so that a backend written today runs the nestgrad of tomorrow.

They are written for accuracy first, in the arithmetic of the backend: no constant is shorter than its dtype, which is
why pi is ``4 atan 1`` here. A backend overrides what it has a kernel for.
"""

from nestgrad.backends.derived.activations import Activations
from nestgrad.backends.derived.gamma import Gamma
from nestgrad.backends.derived.linalg import Linalg
from nestgrad.backends.derived.normalization import Normalization
from nestgrad.backends.derived.numbers import Numbers
from nestgrad.backends.derived.padding import Padding
from nestgrad.backends.derived.placing import Placing
from nestgrad.backends.derived.pooling import Pooling
from nestgrad.backends.derived.scans import Scans
from nestgrad.backends.derived.sorting import Sorting
from nestgrad.backends.derived.special import Special
from nestgrad.backends.derived.statistics import Statistics

__all__ = ["Derived"]


class Derived(Numbers, Activations, Special, Gamma, Padding, Placing, Pooling, Normalization, Scans, Linalg, Sorting, Statistics):
    """Every operation that is not required, family by family."""
