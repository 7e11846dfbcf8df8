"""Parameters as one vector, and back: ``flat``."""

from collections.abc import Callable, Sequence
from typing import Any

from nestgrad.errors import ShapeError
from nestgrad.func.run import Arguments, joined
from nestgrad.func.trees import Structure, places, unflatten
from nestgrad.levels.marks import NONE
from nestgrad.tensor import Tensor
from nestgrad.tensor.handle import Handle, make

__all__ = ["flat"]

Array = Any
"""A NumPy array of float64."""


def flat(params: Any) -> tuple[Array, Callable[[Any], Any]]:
    """Parameters as one vector for SciPy, and the way back.

    Args:
        params: A floating Tensor, array or number, or a nested structure of them.

    Returns:
        ``(x, unflatten)``: all entries in one NumPy vector of float64, leaf by leaf, each in row-major order; and the function that makes
        of such a vector parameters of the old structure, shapes, dtypes and backend, as constants. The leaves of a dict come in the order
        of its sorted keys.

    Raises:
        DTypeError: If one is not floating.
        ShapeError: If there is nothing in ``params``. From ``unflatten``, if the vector is of another length.

    >>> x, unflatten = flat({"w": [1.0, 2.0], "b": 3.0})
    >>> x.tolist(), unflatten(2 * x)["b"].item()
    ([3.0, 1.0, 2.0], 6.0)
    """
    vectors = Parameters("flat", params)
    return vectors.start, vectors.unflatten


class Vectors:
    """The vectors of one length, over one backend and of one dtype there, and of float64 outside.

    Attributes:
        name: Of the public function that makes them, for messages.
        size: Their length.
        like: Any Tensor of the backend and dtype.
    """

    __slots__ = ("like", "name", "size")

    def __init__(self, name: str, like: Tensor, size: int) -> None:
        self.name, self.like, self.size = name, like, size

    def taken(self, what: str, x: Any, *columns: int) -> Tensor:
        """A vector, or a matrix with so many columns, from outside.

        Raises:
            ShapeError: If it is of another shape.
            DTypeError: If it does not hold real numbers.
            ConversionError: If it is a tracked Tensor.
        """
        base = self.like.b.base
        data = x.__array__() if isinstance(x, Handle) else x  # type: ignore[attr-defined]
        found = make(self.like.b, base.cast(base.asarray(data), self.like.dtype), NONE)
        if found.shape != (self.size, *columns):
            raise ShapeError(f"{self.name}: got {what} of shape {found.shape}; expected {self.expected(*columns)}")
        return found

    def expected(self, *columns: int) -> str:
        """What a vector has to be, for people."""
        return f"shape {(self.size, *columns)}"


class Parameters(Vectors):
    """The vectors that stand for parameters of one structure, shapes and dtypes.

    Attributes:
        leaves: The parameters as constants.
    """

    __slots__ = ("_structure", "leaves")

    def __init__(self, name: str, params: Any, f: Callable[..., Any] | None = None, args: Sequence[Any] = ()) -> None:
        arguments = Arguments(name, f or (lambda _: None), 0, (params, *args))
        arguments.floating()
        self._structure = arguments.structures[0]
        self.leaves = [x.detach() for x in arguments.leaves]
        first = self.leaves[0]
        like = first if all(x.dtype == first.dtype for x in self.leaves) else first.astype("float64")
        super().__init__(name, like, sum(x.size for x in self.leaves))

    @property
    def start(self) -> Array:
        """The parameters that these are made of, as a vector outside."""
        return outside(self.begin)

    @property
    def begin(self) -> Tensor:
        """The parameters that these are made of, as a vector."""
        found = joined([x.ravel().astype(self.like.dtype) for x in self.leaves])
        assert found is not None
        return found.ravel()

    def tree(self, vector: Tensor) -> Any:
        """The parameters that a vector stands for, differentiably."""
        return tree(vector, self.leaves, self._structure)

    def unflatten(self, x: Any) -> Any:
        """Parameters of the structure, shapes, dtypes and backend of those that were given, with the entries of a vector from outside.

        Raises:
            ShapeError: If the vector is of another length.
        """
        return self.tree(self.taken("a vector", x))

    def expected(self, *columns: int) -> str:
        """What a vector has to be, for people: with the parameters that it holds."""
        parts = [f"{place} {x.shape}".strip() for place, x in zip(places(self._structure), self.leaves, strict=True)]
        return f"{super().expected(*columns)}, the entries of {', '.join(parts[:6])}{', ...' * (len(parts) > 6)} end to end"


def tree(vector: Tensor, like: Sequence[Tensor], structure: Structure) -> Any:
    """The entries of a vector in a structure of leaves, of the shapes and dtypes of others, differentiably."""
    found, start = [], 0
    for x in like:
        part = vector if x.size == vector.size else vector[start : start + x.size]
        found.append(part.reshape(x.shape).astype(x.dtype))
        start += x.size
    return unflatten(structure, found)


def outside(x: Tensor) -> Array:
    """The values as a NumPy array of float64, on no level."""
    return x.detach().numpy().astype("float64")
