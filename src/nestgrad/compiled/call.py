"""``Call``: the arguments of one call of a jitted function, taken apart into inputs and what is part of the signature."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from nestgrad.compiled.signature import FLAT, Pattern
from nestgrad.errors import LevelError, TraceError
from nestgrad.func.trees import Structure, unflatten
from nestgrad.levels.base import Coat
from nestgrad.levels.coats import bare
from nestgrad.levels.marks import Marks, opened
from nestgrad.tensor.handle import real_only


class Held:
    """A static argument: one leaf, whatever it is, and its name."""

    __slots__ = ("name", "value")

    def __init__(self, value: Any, name: str) -> None:
        self.value, self.name = value, name


def exact(x: Any) -> Any:
    """What tells values apart that are equal: 0.0 and -0.0, 1 and 1.0 in a tuple; and makes NaN equal to itself."""
    if isinstance(x, float):
        return repr(x)
    return (x.__class__, *map(exact, x)) if isinstance(x, tuple) else x.__class__


@lru_cache(maxsize=64)
def _alike(one: Any, other: Any) -> bool:
    """Whether two dressed backends are over the same base, which takes the time of an op or two to find out."""
    return bool(one.base == other.base)


class Call:
    """The arguments of one call.

    Attributes:
        b: The backend over dressed values.
        structure: Of positional and named arguments; how many there are, if all are positional Tensors.
        values: Of the leaves that are inputs.
        marks: Theirs.
        key: For each leaf what it is: shape, dtype and device, ``float``, or the value itself.
        static: The leaves that are no inputs, by position.
        count: How many leaves there are.
        scalar: The dtype that Python floats have as inputs, if there are any.
        flat: Whether no value wears a coat or is marked.
        pattern: How the values live on levels.
    """

    __slots__ = ("b", "count", "flat", "key", "marks", "pattern", "scalar", "static", "structure", "values")

    def __init__(self, b: Any, structure: Structure, count: int) -> None:
        self.b, self.structure, self.count = b, structure, count
        self.values: list[Any] = []
        self.marks: list[Marks] = []
        self.key: list[Any] = []
        self.static: dict[int, Any] = {}
        self.scalar: Any = None
        self.flat = True
        self.pattern: Pattern = FLAT

    def add(self, key: Any, value: Any, marks: Marks) -> None:
        """One more input."""
        self.key.append(key)
        self.values.append(value)
        self.marks.append(marks)

    def array(self, x: Any) -> None:
        """One more input, a Tensor.

        Raises:
            LevelError: If it is over another base backend.
        """
        b = self.b
        if x.b is not b and not _alike(x.b, b):
            raise LevelError(f"jit: got a tensor over {x.b.base!r} beside one over {b.base!r}; expected one base backend")
        value, marks = x.value, x.marks
        if isinstance(value, Coat) or marks:
            value, marks = opened(value, marks)
        if isinstance(value, Coat):
            self.flat = False
            self.add((tuple(b.shape(value)), b.dtype(value), b.base.device(bare(value))), value, marks)
        else:
            base = b.base
            self.flat = self.flat and not marks
            self.add((tuple(base.shape(value)), base.dtype(value), base.device(value)), value, marks)

    def fix(self, k: int, x: Any, name: str = "") -> None:
        """Leaf ``k`` as part of the signature.

        Raises:
            TraceError: If it cannot be compared.
        """
        real_only("jit", x)
        try:
            hash(x)
        except TypeError:
            raise TraceError(
                f"jit: got a {type(x).__name__} as an argument{name}, which cannot be part of a signature, since it has no hash; expected "
                "Tensors, arrays, numbers, nested structures of them, and what can be compared. Try to close over it"
            ) from None
        self.static[k] = x
        self.key.append((x.__class__, x, exact(x)))

    def unweak(self, floats: Sequence[int], leaves: Sequence[Any]) -> None:
        """The leaves ``floats`` as part of the signature, in place of inputs."""
        kept = [i for i, p in enumerate(self.values) if p is not None]
        self.values, self.marks = [self.values[i] for i in kept], [self.marks[i] for i in kept]
        for k in floats:
            self.static[k] = leaves[k]
            self.key[k] = float, repr(float(leaves[k]))  # by the text: NaN is equal to itself, and 0.0 is not -0.0

    def arguments(self, inputs: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and named arguments, with other leaves for the inputs."""
        if isinstance(self.structure, int):
            return tuple(inputs), {}
        rest = iter(inputs)
        made = [self.static[k] if k in self.static else next(rest) for k in range(self.count)]
        args, kwargs = unflatten(self.structure, made)
        return args, kwargs
