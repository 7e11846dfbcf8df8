"""The Tensor: the user's immutable handle on a value."""

from typing import Any

from nestgrad.errors import ConversionError
from nestgrad.tensor.arithmetic import Arithmetic
from nestgrad.tensor.arranging import Arranging
from nestgrad.tensor.attached import Attached
from nestgrad.tensor.conversion import Conversion
from nestgrad.tensor.differentiation import Differentiation
from nestgrad.tensor.elementwise import Elementwise
from nestgrad.tensor.foreign import Foreign
from nestgrad.tensor.handle import final
from nestgrad.tensor.padding import Padding
from nestgrad.tensor.picking import Picking
from nestgrad.tensor.reductions import Reductions
from nestgrad.tensor.rounding import Rounding
from nestgrad.tensor.scans import Scans
from nestgrad.tensor.shaping import Shaping
from nestgrad.tensor.special import Special
from nestgrad.tensor.windows import Windows


@final
class Tensor(
    Arithmetic, Rounding, Elementwise, Special, Reductions, Scans, Shaping, Padding, Windows, Arranging, Picking, Differentiation,
    Attached, Conversion, Foreign,
):  # fmt: skip
    """An array on some levels. Immutable; equality compares entries, the hash is by identity.

    Made by ``stack.tensor(data)``, by ``ng.tensor(data)`` and by operations, never by its class.

    Attributes:
        b: The backend over dressed values that its operations run on.
        value: A raw array of the base backend, in a coat for each level that tracks it.
        marks: The tapes that it was taken out of.
    """

    __slots__ = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise ConversionError("Tensor: got a call of the class; expected one of a factory. Try stack.tensor(data), or ng.tensor(data)")
