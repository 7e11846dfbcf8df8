"""Free functions: the methods of ``Tensor`` and more, as functions of Tensors, numbers and arrays.

Each module lists what it has for users in its own ``__all__``, and nothing else does.
"""

from nestgrad.functions import choose, create, elementwise, products, reductions, shaping, sorting
from nestgrad.functions.choose import *
from nestgrad.functions.create import *
from nestgrad.functions.elementwise import *
from nestgrad.functions.products import *
from nestgrad.functions.reductions import *
from nestgrad.functions.shaping import *
from nestgrad.functions.sorting import *

# Not assigned: mypy would take a list that it cannot read for an empty one.
globals()["__all__"] = [
    *create.__all__, *elementwise.__all__, *choose.__all__, *reductions.__all__, *shaping.__all__, *products.__all__,
    *sorting.__all__,
]  # fmt: skip
