"""Entries of an array repeated around it, in terms of the required operations."""

from nestgrad.backends.derived.along import Along
from nestgrad.backends.primitives import Index, Value
from nestgrad.backends.repeating import Widths, inside


class Padding(Along):
    """Padding by the array's own entries, and its transpose."""

    def extend(self, x: Value, widths: Widths, mode: str) -> Value:
        """``x`` with entries of its own around; ``widths`` holds, for each axis, how many come before and after.

        Modes are NumPy's: ``"reflect"``, ``"symmetric"``, ``"edge"``, ``"wrap"``.
        """
        for axis, (n, (before, after)) in enumerate(zip(self.shape(x), widths, strict=True)):
            if before or after:
                x = self.getitem(x, self._repeated(axis, n, before, after, mode))
        return x

    def gather_in(self, x: Value, widths: Widths, mode: str) -> Value:
        """Entries around added to those that they repeat: the transpose of ``extend``."""
        for axis, (before, after) in enumerate(widths):
            if before or after:
                shape = self.shape(x)
                n = shape[axis] - before - after
                x = self.put(x, self._repeated(axis, n, before, after, mode), (*shape[:axis], n, *shape[axis + 1 :]))
        return x

    def _repeated(self, axis: int, n: int, before: int, after: int, mode: str) -> Index:
        return (*(slice(None),) * axis, self.asarray([inside(k, n, mode) for k in range(-before, n + after)]))
