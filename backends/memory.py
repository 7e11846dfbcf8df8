"""The contract of memory: how a backend's ops write their answers into arrays that are there already.

A backend whose ``memory`` is one of these lets programs use the arrays of values that nobody reads any more for what comes next. What it
says it says of the backend's own methods: one that a subclass overrides is not among them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nestgrad.backends.primitives import Value

Layout = tuple[int, ...]
"""The axes of an array without gaps, those with the longest strides first; ``(0, 1)`` of a matrix whose rows stand one after the other."""


@dataclass(frozen=True, slots=True)
class Writer:
    """An op that writes into an array.

    Attributes:
        call: ``(*arrays, *params, out=out)``. The numbers in ``out``, which has the answer's shape, dtype and layout, are then those of
            the answer, to the last bit.
        overwrites: Positions of the arrays that ``out`` may be, itself, if it is of that shape and dtype. It overlaps with no other.
        uniform: Whether all operands must be arrays of the dtype of the answer, and none a Python number. Otherwise it is a function of
            single entries.
    """

    call: Callable[..., Any]
    overwrites: frozenset[int]
    uniform: bool


class Memory(ABC):
    """What a backend says of its ops and of its arrays."""

    @abstractmethod
    def writer(self, name: str) -> Writer | None:
        """How the op ``name`` writes; ``None`` if it only makes new arrays."""

    @abstractmethod
    def expands(self, name: str) -> bool:
        """Whether the op ``name`` gives, to the last bit, what the default of backends makes of other ops of this backend."""

    @abstractmethod
    def fresh(self, name: str) -> bool:
        """Whether the answer of the op ``name`` never shares memory with an argument."""

    @abstractmethod
    def layout(self, x: Value) -> Layout | None:
        """How ``x`` lies in memory; ``None`` if it has gaps, or is nothing that can be written into."""

    @abstractmethod
    def nbytes(self, shape: tuple[int, ...], dtype: Any) -> int:
        """How many bytes an array takes."""

    @abstractmethod
    def room(self, nbytes: int) -> Any:
        """Memory, whatever is in it, which begins where a line of the cache does."""

    @abstractmethod
    def placed(self, room: Any, start: int, shape: tuple[int, ...], dtype: Any, layout: Layout) -> Value:
        """An array in that memory, from a byte on."""
