"""Programs that mix values of several levels, each with its right values: see ``case.py``.

A to K: PDE residuals, perturbation confusion, one style inside the other, one level object over many passes, zeros and what is not
connected, detach, broadcasting, two stacks and threads, seeds, freed graphs.
"""

from programs import confusion, passes, passes_meta, residuals, stacks, styles, zeros
from programs.case import CASES, Case

__all__ = ["CASES", "Case", "confusion", "passes", "passes_meta", "residuals", "stacks", "styles", "zeros"]
