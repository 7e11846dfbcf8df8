"""What every backend and every level can make: Tensors. The one place where the lower rooms look up to the front."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nestgrad.levels.dressed import Dressed
    from nestgrad.tensor import Tensor


@cache
def _create() -> Any:
    """The front's module. Imported late, and once: an import statement costs more than three leaves do."""
    from nestgrad.tensor import create

    return create


class Factories:
    """Makes Tensors. Base of all backends and levels."""

    level: int = 0
    inner: Any = None
    watchers: tuple[Any, ...] = ()
    """Of a base backend: who watches all that runs over it; see ``nestgrad.levels.watching``."""
    _dressed: "Dressed | None" = None
    _dressing: tuple[Any, ...] = ()

    @property
    def base(self) -> Any:
        """The backend at the bottom."""
        return self

    @property
    def tapes(self) -> tuple[Any, ...]:
        """Tapes of the levels, innermost first; a base backend has none."""
        return ()

    @property
    def dressed(self) -> "Dressed":
        """The backend over dressed values; one for each base backend object."""
        base = self.base
        if base._dressed is None:
            from nestgrad.levels.dressed import Dressed

            base._dressed = Dressed(base)
        return base._dressed  # type: ignore[no-any-return]

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled and copied: all but the functions that were made for it."""
        return {name: value for name, value in self.__dict__.items() if name != "_dressed"}

    def tensor(self, data: Any, requires_grad: bool = False, levels: Sequence[Any] | None = None, dtype: Any = None) -> "Tensor":
        """A Tensor.

        Args:
            data: Numbers, nested lists or an array, which are copied; or a Tensor, whose history and marks are kept, never cut.
            requires_grad: Make a new variable: a leaf on each level where ``data`` is a constant, an identity node after it where it is
                tracked.
            levels: The levels that track it, by number (1 is innermost) or as objects. ``None``: all of the stack.
            dtype: Dtype or its name. Python floats take the backend's default dtype; arrays keep theirs.

        Raises:
            LevelError: ``requires_grad`` on a base backend, or a Tensor over another base backend.
            DTypeError: Complex data, or integers that are to require gradients.
        """
        made: Tensor = _create().tensor(self, data, requires_grad, levels, dtype)
        return made

    def variable(self, data: Any, levels: Sequence[Any] | None = None, dtype: Any = None) -> "Tensor":
        """A new variable without history: ``tensor(data.detach(), requires_grad=True)``. What one step of a loop hands to the next."""
        made: Tensor = _create().variable(self, data, levels, dtype)
        return made

    def from_numpy(self, array: Any, requires_grad: bool = False, levels: Sequence[Any] | None = None) -> "Tensor":
        """A Tensor that shares the memory of a NumPy array, which becomes read-only.

        Raises:
            BackendError: Not a NumPy array, or another base backend.
            MutatedError: Later, when a graph reads it after the array was made writeable again.
        """
        _create().refuse_share(self.base, "numpy", array)
        made: Tensor = _create().shared(self, array, requires_grad, levels)
        return made

    def from_torch(self, array: Any, requires_grad: bool = False, levels: Sequence[Any] | None = None) -> "Tensor":
        """A Tensor that shares the memory of a torch tensor.

        Raises:
            BackendError: Not a torch tensor, or another base backend.
            MutatedError: Later, when a graph reads it after it was written into.
        """
        _create().refuse_share(self.base, "torch", array)
        made: Tensor = _create().shared(self, array, requires_grad, levels)
        return made
