"""Parts of a program as text."""

from typing import Any

from nestgrad.levels.base import Coat


def shown(value: Any) -> str:
    """A parameter as text; index arrays as lists, dtypes by their names."""
    if isinstance(value, tuple):
        return f"({', '.join(map(shown, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, slice):
        return ":".join("" if part is None else str(part) for part in (value.start, value.stop, value.step)).removesuffix(":") or ":"
    if hasattr(value, "tolist") and hasattr(value, "shape"):
        return str(value.tolist())
    return str(value).removeprefix("torch.") if not isinstance(value, (str, float)) else repr(value)


def typed(dtype: Any, shape: tuple[int, ...]) -> str:
    """``"float64[2, 3]"``."""
    return f"{str(dtype).removeprefix('torch.')}[{', '.join(map(str, shape))}]"


def array(base: Any, value: Any) -> str:
    """A constant as text: its numbers where they are few."""
    if isinstance(value, Coat):
        return "constant"
    array = base.to_numpy(value)
    return f"constant {array.tolist()}" if array.size <= 8 else f"constant of {array.size} numbers"
