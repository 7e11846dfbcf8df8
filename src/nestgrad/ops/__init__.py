"""The op table. Importing this package fills it."""

from nestgrad.ops import (
    activations as activations,
    along as along,
    arranging as arranging,
    attention as attention,
    constants as constants,
    contractions as contractions,
    convolution as convolution,
    elementwise as elementwise,
    halving as halving,
    linalg as linalg,
    normalization as normalization,
    numbers as numbers,
    padding as padding,
    placing as placing,
    pooling as pooling,
    reductions as reductions,
    scans as scans,
    shaping as shaping,
    sorting as sorting,
    special as special,
    splitting as splitting,
    statistics as statistics,
    vectors as vectors,
    windows as windows,
)
from nestgrad.ops.table import TABLE as TABLE, Kind as Kind, Op as Op, Rule as Rule, define as define
