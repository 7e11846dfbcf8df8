"""Free functions: the methods of ``Tensor`` and more, as functions of Tensors, numbers and arrays.

Each module lists what it has for users in its own ``__all__``, and nothing else does.
"""

from nestgrad.functions import (
    along,
    arranging,
    choose,
    comparisons,
    create,
    diagonals,
    elementwise,
    finding,
    integration,
    interpolation,
    joining,
    numbers,
    picking,
    products,
    reductions,
    scans,
    shaping,
    sorting,
    special,
    splitting,
    statistics,
    windows,
)
from nestgrad.functions.along import *
from nestgrad.functions.arranging import *
from nestgrad.functions.choose import *
from nestgrad.functions.comparisons import *
from nestgrad.functions.create import *
from nestgrad.functions.diagonals import *
from nestgrad.functions.elementwise import *
from nestgrad.functions.finding import *
from nestgrad.functions.integration import *
from nestgrad.functions.interpolation import *
from nestgrad.functions.joining import *
from nestgrad.functions.numbers import *
from nestgrad.functions.picking import *
from nestgrad.functions.products import *
from nestgrad.functions.reductions import *
from nestgrad.functions.scans import *
from nestgrad.functions.shaping import *
from nestgrad.functions.sorting import *
from nestgrad.functions.special import *
from nestgrad.functions.splitting import *
from nestgrad.functions.statistics import *
from nestgrad.functions.windows import *

# Not assigned: mypy would take a list that it cannot read for an empty one.
globals()["__all__"] = [
    *create.__all__, *elementwise.__all__, *numbers.__all__, *special.__all__, *comparisons.__all__, *choose.__all__, *reductions.__all__,
    *shaping.__all__, *products.__all__, *sorting.__all__, *arranging.__all__, *diagonals.__all__, *joining.__all__,
    *splitting.__all__, *along.__all__, *picking.__all__, *finding.__all__, *interpolation.__all__, *scans.__all__,
    *windows.__all__, *statistics.__all__, *integration.__all__,
]  # fmt: skip
