"""What the six functions are given: as Tensors, and the way back to what came in."""

from collections.abc import Callable, Sequence
from typing import Any

from nestgrad.errors import ConversionError, DTypeError, FunctionalError, FunctionalTypeError
from nestgrad.func.home import home
from nestgrad.func.run import as_leaf
from nestgrad.levels.coats import bare
from nestgrad.levels.marks import NONE
from nestgrad.tensor import Tensor
from nestgrad.tensor.handle import Handle, default_backend, is_floating, make

_NESTED = "nestgrad.func, whose transforms take nested structures"

_TENSOR = "nestgrad"
"""The library of our own Tensors, beside those of arrays."""


class Inputs:
    """The inputs of one call.

    Attributes:
        name: The function that was called.
        create_graph: Whether results stay on the levels of the inputs, and of what the function closes over.
        several: Whether they came as a tuple.
        tensors: As Tensors: without history, unless ``create_graph``.
    """

    __slots__ = ("b", "create_graph", "name", "origin", "several", "tensors")

    def __init__(self, name: str, func: Callable[..., Any], inputs: Any, create_graph: bool) -> None:
        self.name, self.create_graph = name, create_graph
        self.several, given = listed("inputs", name, inputs)
        self.origin = _common(name, given)
        self.b = home(func, given)
        self.tensors = tuple(self._tensor(x) for x in given)
        for k, x in enumerate(self.tensors):
            if not is_floating(x):
                raise DTypeError(
                    f"only Tensors of floating point dtype can require gradients, and input {k} given to {name} has dtype {x.dtype}, "
                    "because whole numbers and truth values have no derivative. Try x.astype('float64'), or x.double() of torch"
                )

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of all inputs."""
        return tuple(range(len(self.tensors)))

    def _tensor(self, x: Any) -> Tensor:
        """One array or Tensor as a Tensor, which shares no memory with it."""
        if isinstance(x, Handle):
            tensor: Tensor = x  # type: ignore[assignment]
            return tensor if self.create_graph else tensor.detach()
        if getattr(x, "requires_grad", False):
            if self.create_graph:
                raise ConversionError(
                    f"{self.name}: got a torch tensor that requires_grad with create_graph=True, and torch's graph cannot go on through "
                    "nestgrad's levels. Try x.detach() for its values; or a Tensor, "
                    "ng.Autodiff(ng.TorchBackend()).tensor(x.detach(), requires_grad=True), and derivatives by that"
                )
            x = x.detach()
        return as_leaf(self.name, x, self.b)

    def vector(self, v: Any, like: Sequence[Tensor], several: bool) -> tuple[Tensor, ...]:
        """``v`` as Tensors of the shapes and dtypes of ``like``, which was a tuple if ``several``.

        Raises:
            FunctionalTypeError: If it is neither an array nor a tuple of them, or a cast would lose precision.
            FunctionalError: If there are not as many, or a shape differs.
        """
        _, given = listed("v", self.name, v)
        if len(given) != len(like):
            if several:
                raise FunctionalError(
                    f"v is a tuple of invalid length: should be {len(like)} but got {len(given)}. {self.name} needs one for each. "
                    "Try zeros for those that do not count"
                )
            raise FunctionalError(f"The given v should contain a single Tensor. {self.name} got {len(given)}. Try v, or (v,)")
        tensors = [self._tensor(x) for x in given]
        for k, (t, x) in enumerate(zip(tensors, like, strict=True)):
            if t.shape != x.shape:
                place = f"Entry {k} in " if several else ""
                raise FunctionalError(
                    f"{place}v has invalid size: should be {x.shape} but got {t.shape}. {self.name} does not broadcast it. "
                    f"Try v.broadcast_to({x.shape}), or v.reshape({x.shape})"
                )
        return tuple(self._cast(t, x) for t, x in zip(tensors, like, strict=True))

    def _cast(self, t: Tensor, like: Tensor) -> Tensor:
        """``t`` in the dtype of ``like``, if that holds all that it may be: of integers what they are, of floats what their dtype has."""
        if t.dtype == like.dtype:
            return t
        base = like.b.base
        if is_floating(t):
            safe = base.dtype(base.add(base.full((), 0.0, t.dtype), base.full((), 0.0, like.dtype))) == like.dtype
        else:
            raw = bare(t.value)
            safe = not base.to_numpy(base.ne(base.cast(base.cast(raw, like.dtype), base.dtype(raw)), raw)).any()
        if not safe:
            raise FunctionalTypeError(
                f"{self.name}: got v of dtype {t.dtype}, and {like.dtype}, the dtype of what it stands for, would lose precision. "
                f"Try v.astype({str(like.dtype).removeprefix('torch.')!r}) if that is meant, or inputs of the other dtype"
            )
        return t.astype(like.dtype)

    def ones(self, like: Tensor) -> tuple[Tensor, ...]:
        """The one vector of one entry."""
        return (make(like.b, like.b.base.full(like.shape, 1.0, like.dtype), NONE),)

    def nested(self, results: Sequence[Any]) -> Any:
        """Results, one for each input, as the inputs came."""
        return tuple(results) if self.several else results[0]

    def back(self, x: Tensor) -> Any:
        """A result as what came in.

        Raises:
            ConversionError: If it is tracked, and what came in was an array.
        """
        x = x if self.create_graph else x.detach()
        if self.origin == _TENSOR:
            return x
        if x.level or x.marks:
            raise ConversionError(
                f"{self.name}: the result is to depend on variables, since create_graph=True and the function closes over some, and a "
                f"{self.origin} array cannot carry levels. Try Tensors as inputs, ng.tensor(x), or create_graph=False"
            )
        return x.numpy() if self.origin == "numpy" else x.b.base.asarray(x.b.read(x.value))


def listed(what: str, name: str, given: Any, arrays: bool = True) -> tuple[bool, tuple[Any, ...]]:
    """Whether it was a tuple, and all that is in it.

    Raises:
        FunctionalTypeError: If one of it is no Tensor, and no array where those may stand, too.
    """
    several = isinstance(given, tuple)
    parts = given if several else (given,)
    if not parts and what != "v":
        raise FunctionalTypeError(
            f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the given {what} are an empty tuple. "
            "Nothing is there to differentiate. Try (x,)"
        )
    for k, x in enumerate(parts):
        if not isinstance(x, Handle) and not (arrays and _library(x)):
            found = f"the value at index {k}" if several else f"the given {what}"
            raise FunctionalTypeError(
                f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but {found} has type {type(x)}. "
                f"{_way(name, x, arrays)}"
            )
    return several, parts


def _way(name: str, x: Any, arrays: bool) -> str:
    if not arrays:
        way = "tuple(...)" if isinstance(x, list) else _NESTED if isinstance(x, dict) else "operations of nestgrad in it"
        return f"The function is given Tensors of nestgrad, and what it returns must be made of them. Try {way}"
    if isinstance(x, dict):
        return f"Try {_NESTED}"
    if callable(x):
        return f"The function comes first. Try {name}(func, inputs)"
    if hasattr(x, "__array__"):
        return "Try np.asarray(x)"
    return "Try ng.tensor(...), or tuple(...) for several; transforms of nestgrad.func take numbers and nested structures, too"


def _library(x: Any) -> str:
    """The library that a Tensor or array is of; ``""`` for what is neither."""
    if isinstance(x, Handle):
        return _TENSOR
    if not (hasattr(x, "dtype") and hasattr(x, "shape")):
        return ""
    backend = default_backend(x)
    return backend.name if backend.accepts(x) else ""


def _common(name: str, given: Sequence[Any]) -> str:
    """The library of results: that of all inputs, or our own where one is a Tensor.

    Raises:
        FunctionalTypeError: For arrays of several libraries.
    """
    libraries = list(dict.fromkeys(_library(x) for x in given))
    if _TENSOR in libraries:
        return _TENSOR
    if len(libraries) > 1:
        raise FunctionalTypeError(
            f"{name}: got inputs of {' and of '.join(libraries)}; expected arrays of one library, so that results can be of it, too. "
            "Try torch.from_numpy(x), or Tensors"
        )
    return libraries[0]
