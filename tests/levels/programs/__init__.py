"""Programs that mix values of several levels, each with its right values: see ``case.py``.

A to L: PDE residuals, perturbation confusion, one style inside the other, one level object over many passes, zeros and what is not
connected, detach, broadcasting, two stacks and threads, seeds, compiled functions, freed graphs, several handles on one value;
M forward mode, N Taylor mode, O batches, P programs that are called.
"""

from programs import (
    batches,
    called,
    confusion,
    forward,
    handles,
    jit,
    passes,
    passes_meta,
    residuals,
    stacks,
    styles,
    taylor,
    zeros,
)
from programs.case import CASES, Case

__all__ = [
    "CASES",
    "Case",
    "batches",
    "called",
    "confusion",
    "forward",
    "handles",
    "jit",
    "passes",
    "passes_meta",
    "residuals",
    "stacks",
    "styles",
    "taylor",
    "zeros",
]
