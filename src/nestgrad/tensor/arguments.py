"""Arguments that are numbers: whole ones and real ones, which are read before an op is called."""

from operator import index
from typing import Any, NoReturn

from nestgrad.errors import ArgumentError, ConversionError

MOST = 2**31 - 1
"""The greatest size, shift or step that all backends can count with."""


def whole_number(name: str, what: str, given: Any, least: int = -MOST) -> int:
    """``given`` as an int from ``least`` on; a Python or NumPy one, or an array of one without axes.

    Raises:
        ArgumentError: If it is something else.
    """
    if given.__class__ is int and least <= given <= MOST:
        return int(given)
    try:
        found = index(given)
    except TypeError:
        found = least - 1
    if not least <= found <= MOST:
        bounds = "of at most 31 bits" if least == -MOST else f"from {least} on, of at most 31 bits"
        raise ArgumentError(f"{name}: got {what}={given!r:.60}; expected an int {bounds}. Try {what}={max(least, 1)}, or int(...)")
    return found


def number(name: str, what: str, given: Any) -> float:
    """``given`` as a Python number. It is a parameter, by which nothing is differentiated.

    Raises:
        ArgumentError: If it is no real number.
        ConversionError: A Tensor that depends on variables.
    """
    if given.__class__ is float:
        return given
    if isinstance(given, (str, bytes)) or getattr(given, "shape", ()) != ():
        _no_number(name, what, given)
    try:
        return float(given)
    except ConversionError:
        raise
    except (TypeError, ValueError, OverflowError):
        _no_number(name, what, given)


def _no_number(name: str, what: str, given: Any) -> NoReturn:
    raise ArgumentError(f"{name}: got {what}={given!r:.60}; expected a real number, a parameter by which nothing is differentiated. "
                        "Try a float")  # fmt: skip
