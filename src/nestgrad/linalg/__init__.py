"""Linear algebra: ``ng.linalg.solve``, ``ng.linalg.det``. Matrices stand in the last two axes; axes before them are stacks of such."""

from nestgrad.linalg.determinants import det as det, slogdet as slogdet
from nestgrad.linalg.solving import inv as inv, solve as solve

__all__ = ["det", "inv", "slogdet", "solve"]
