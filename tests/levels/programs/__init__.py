"""Programs that mix values of several levels, each with its right values: see ``case.py``.

A to L: PDE residuals, perturbation confusion, one style inside the other, one level object over many passes, zeros and what is not
connected, detach, broadcasting, two stacks and threads, seeds, freed graphs, several handles on one value.
"""

from programs import confusion, handles, passes, passes_meta, residuals, stacks, styles, zeros
from programs.case import CASES, Case

__all__ = ["CASES", "Case", "confusion", "handles", "passes", "passes_meta", "residuals", "stacks", "styles", "zeros"]
