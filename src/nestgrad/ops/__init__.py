"""The op table. Importing this package fills it."""

from nestgrad.ops import constants, contractions, elementwise, reductions, shaping
from nestgrad.ops.table import TABLE, Kind, Op, Rule, define

__all__ = ["TABLE", "Kind", "Op", "Rule", "constants", "contractions", "define", "elementwise", "reductions", "shaping"]
