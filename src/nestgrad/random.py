"""Random Tensors, from an explicit generator: the same seed gives the same numbers, and nothing is hidden.

>>> g = generator(0)
>>> normal((2, 3), g).shape
(2, 3)
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nestgrad.errors import BackendError, TraceError
from nestgrad.functions.create import base_of, sizes_of
from nestgrad.levels.marks import NONE
from nestgrad.levels.traced.recording import recording_now
from nestgrad.tensor.handle import Operand, make

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["Generator", "generator", "normal", "uniform"]


class Generator:
    """A source of random numbers of one backend.

    Attributes:
        base: The backend.
        native: The backend's own generator.
    """

    __slots__ = ("base", "native")

    def __init__(self, base: Any, native: Any) -> None:
        self.base, self.native = base, native

    def __repr__(self) -> str:
        return f"Generator({self.base!r})"


def generator(seed: int | None = None, backend: Any = None, device: Any = None) -> Generator:
    """A generator for ``backend`` (default NumPy); without a seed it starts anywhere."""
    base = base_of(backend, device)
    return Generator(base, base.generator(seed))


def normal(shape: int | Sequence[int], generator: Generator, dtype: Any = None) -> "Tensor":
    """Independent standard normal numbers, on the generator's backend; a constant.

    Args:
        shape: An int or a sequence of ints.
        generator: From ``generator(seed)``. It moves on with each call.
        dtype: A floating dtype; the default is the backend's.
    """
    base = _checked("normal", generator)
    return make(base.dressed, base.normal(sizes_of("normal", shape), generator.native, dtype), NONE)


def uniform(shape: int | Sequence[int], generator: Generator, low: Operand = 0.0, high: Operand = 1.0, dtype: Any = None) -> "Tensor":
    """Independent numbers uniform on ``[low, high)``, on the generator's backend.

    Args:
        shape: An int or a sequence of ints.
        generator: From ``generator(seed)``. It moves on with each call.
        low, high: Numbers, or Tensors that broadcast; on these the result depends.
        dtype: A floating dtype; the default is the backend's.
    """
    base = _checked("uniform", generator)
    unit: Tensor = make(base.dressed, base.uniform(sizes_of("uniform", shape), generator.native, dtype), NONE)
    return unit if isinstance(low, float) and isinstance(high, float) and (low, high) == (0.0, 1.0) else low + unit * (high - low)


def _checked(name: str, given: Any) -> Any:
    if not isinstance(given, Generator):
        raise BackendError(f"{name}: got {given!r:.60} as the generator; expected one of ng.random.generator(seed)")
    if recording_now():
        raise TraceError(
            f"random.{name}: got a draw inside a trace; expected none, because a program has no generators and would give the same "
            "numbers each time. Try to draw outside, and make the numbers an argument of the traced function"
        )
    return given.base
