"""A backend that counts the ops it is asked for."""

from collections import Counter
from typing import Any

from nestgrad.backends import NumpyBackend
from nestgrad.ops import TABLE


class CountingBackend(NumpyBackend):
    """NumPy, with a list of what ran: ``counts`` by name of the op, and the ``shapes`` of the results.

    What an op of this backend calls to do its work is not counted.
    """

    def __init__(self, dtype: Any = "float64") -> None:
        super().__init__(dtype)
        self.counts: Counter[str] = Counter()
        self.shapes: list[tuple[int, ...]] = []
        self._depth = 0
        for name in TABLE:
            method = getattr(self, name, None)
            if method is not None:
                setattr(self, name, self._counted(name, method))

    def _counted(self, name: str, method: Any) -> Any:
        def op(*args: Any, **params: Any) -> Any:
            self._depth += 1
            try:
                out = method(*args, **params)
            finally:
                self._depth -= 1
            if self._depth == 0:
                self.counts[name] += 1
                self.shapes.append(out.shape)
            return out

        return op

    @property
    def total(self) -> int:
        """How many ops ran."""
        return self.counts.total()

    def restart(self) -> None:
        """Count from zero."""
        self.counts.clear()
        self.shapes.clear()
