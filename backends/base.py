"""The contract of a backend: an object with one method per operation, over arrays.

To write one, subclass ``Backend`` and define the methods named in ``REQUIRED``; ``nestgrad.backends.primitives`` says
what they mean. Every other operation has a default in terms of these (``nestgrad.backends.derived``), and everything
below, which the front uses to make arrays, has one too.
"""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from nestgrad.backends.derived import Derived
from nestgrad.backends.factories import Factories
from nestgrad.backends.memory import Memory
from nestgrad.backends.primitives import REQUIRED, Index, Value, lacking, missing
from nestgrad.backends.recorded import Graphs, Recorded
from nestgrad.backends.spreading import spread
from nestgrad.errors import BackendError, DTypeError

__all__ = ["REQUIRED", "Backend", "Index", "Value", "freeze", "frozen", "lacking", "missing", "no_complex"]


class Backend(Factories, Derived):
    """Where numbers live.

    Two backends are equal if their ``key()`` is: what distinguishes them beside the class, such as dtype and device.
    """

    name = "custom"
    default_dtype: Any = None
    """The dtype of Python floats, native to the backend. It is not called ``dtype``, which is the operation."""

    @property
    def memory(self) -> Memory | None:
        """How ops write into arrays that are there already; ``None``: they make new ones."""
        return None

    def key(self) -> tuple[Any, ...]:
        """What equality and hash go by."""
        return (type(self), self.name, str(self.default_dtype))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Backend) and self.key() == other.key())

    def __hash__(self) -> int:
        return hash(self.key())

    def __repr__(self) -> str:
        return self.name

    # dtypes

    def resolve_dtype(self, dtype: Any = None) -> Any:
        """The native dtype for a name, a foreign dtype, ``float``, ``int`` or ``bool``; None gives the default."""
        if dtype is None or dtype is float:
            return self.default_dtype
        return self.dtype(self.asarray(dtype(0))) if dtype is int or dtype is bool else dtype

    def kind(self, x: Value) -> str:
        """``"bool"``, ``"int"`` or ``"float"``."""
        name = str(self.dtype(x))
        return "bool" if "bool" in name else "int" if "int" in name else "float"

    def is_floating(self, x: Value) -> bool:
        """Whether ``x`` holds floating-point numbers and can be differentiated."""
        dtype = self.dtype(x)
        return bool(dtype == self.default_dtype) or "float" in str(dtype)

    # arrays from elsewhere

    def accepts(self, data: Any) -> bool:
        """Whether ``data`` is an array, of this backend or of NumPy, that may stand as an operand as it is."""
        return hasattr(data, "__array_interface__")

    def share(self, data: Any) -> tuple[Value, Any]:
        """An array over the memory of ``data``, and a token for ``changed``. Where memory cannot be shared, a copy."""
        return self.asarray(data), None

    def changed(self, value: Value, token: Any) -> bool:
        """Whether memory that was shared may have been written to since."""
        return False

    def stamp(self, value: Value) -> Any:
        """A token for ``changed``, of an array that is shared as it is."""
        return None

    def overlaps(self, x: Value, y: Value) -> bool:
        """Whether ``x`` may be a view of the memory of ``y``, or of the same as ``y`` is."""
        return x is y

    def owner(self, x: Value) -> Any:
        """What is equal for arrays that are views of the same memory, and differs for others; hashable. It is good while they live."""
        return id(x)

    def index(self, data: Any) -> Value:
        """A native int64 array to be used in an ``index``."""
        array = self.asarray(data)
        if self.is_floating(array) and 0 not in self.shape(array):
            raise DTypeError(f"index: positions must be integers, got {self.dtype(array)}")
        return self.cast(array, self.resolve_dtype(int))

    def nonzero(self, mask: Value) -> tuple[Value, ...]:
        """Where ``mask`` is True: one int64 array per axis, last axis fastest."""
        return tuple(self.index(where) for where in self.to_numpy(mask).nonzero())

    # facts about arrays

    def nbytes(self, x: Value) -> int:
        """How much memory the elements of ``x`` take."""
        return int(self.to_numpy(x).nbytes)

    def device(self, x: Value) -> str:
        """The name of the device that holds ``x``."""
        return "cpu"

    def wait(self) -> None:
        """Return when all arrays that have been asked for are computed. A backend that computes at once has nothing to do."""

    def quietly(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """``f`` without the library's warnings about infinities and the like, where it gives any."""
        return f

    # graphs

    @property
    def graphs(self) -> Graphs | None:
        """How graphs that the array library records are adopted as ops; ``None`` if it records none."""
        return None

    def recorded(self, data: Any) -> tuple[Recorded, ...]:
        """The graph under ``data``, an array that the array library itself differentiates, node by node.

        Raises:
            BackendError: If the library records none, or none that nestgrad can read.
        """
        raise BackendError(
            f"recorded: {self!r} knows of no graph under a {type(data).__name__}; expected a Tensor, or a torch.Tensor that requires "
            "gradients, because nothing else is recorded. Try stack.tensor(x, requires_grad=True), or x.requires_grad_(), before it is used"
        )

    # compiling

    def uncompilable(self) -> str:
        """Why ``compiled`` is not offered here, in a sentence without a full stop; empty if it is."""
        return f"{self!r} has no compiler"

    @property
    def at_hand(self) -> int | None:
        """How many numbers of an array ``compiled`` functions had better not exceed, since more lie farther from the processor; ``None``:
        the more at once the better.
        """
        return None

    def compiled(
        self, write: Callable[[Any], Callable[..., tuple[Value, ...]]], inputs: Sequence[tuple[tuple[int, ...], Any]]
    ) -> Callable[..., tuple[Value, ...] | None]:
        """A function of raw arrays by the compiler of the array library.

        Args:
            write: From a backend with the same ops to the function, which calls them. That backend has a method more, ``opaque(f, shape,
                dtype)``, which makes of a function of arrays a step that is called as it is, and not looked into.
            inputs: The shape and the dtype of each argument.

        Returns:
            A function of such arrays. It gives ``None`` for arrays that what was compiled is not right for: then ``write(self)`` tells.

        Raises:
            BackendError: If there is no compiler.
        """
        raise BackendError(f"compiled: {self.uncompilable()}; expected a backend with a compiler. Try TorchBackend")

    # new arrays

    def full(self, shape: tuple[int, ...], value: float, dtype: Any = None) -> Value:
        """An array filled with one Python number."""
        return self.broadcast_to(self.asarray(value, dtype), shape)

    def arange(self, start: float, stop: float, step: float = 1, dtype: Any = None) -> Value:
        """``start``, ``start + step``, ... up to but without ``stop``; integers if all three are."""
        n = max(0, math.ceil((stop - start) / step))
        return self.asarray([start + k * step for k in range(n)] if n else self.asarray([], dtype), dtype)

    def spread(self, x: Value, along: tuple[int, ...]) -> Value:
        """Zeros with the entries of ``x`` where axes that run along the same axis of ``x`` have equal positions.

        It may be a view of ``x`` where nothing is to be spread.

        Args:
            along: For each axis of the answer, which axis of ``x`` it runs along. Each axis of ``x`` is in it, once or more.
        """
        return spread(self, x, along)

    def generator(self, seed: int | None = None) -> Any:
        """A source of random numbers for ``uniform`` and ``normal``; the same seed gives the same numbers."""
        return random.Random(seed)

    def uniform(self, shape: tuple[int, ...], generator: Any, dtype: Any = None) -> Value:
        """Independent numbers uniform on [0, 1)."""
        return self.reshape(self.asarray([generator.random() for _ in range(math.prod(shape))], dtype), shape)

    def normal(self, shape: tuple[int, ...], generator: Any, dtype: Any = None) -> Value:
        """Independent standard normal numbers."""
        return self.reshape(self.asarray([generator.gauss(0.0, 1.0) for _ in range(math.prod(shape))], dtype), shape)

    # ---- Tensor factories: tensor, variable, from_numpy, ... ----


def no_complex(dtype: Any) -> DTypeError:
    """The error for complex numbers."""
    return DTypeError(
        f"got complex numbers ({dtype}); expected real ones, since conventions for derivatives by complex numbers differ. "
        "Try real and imaginary parts as two tensors, as functions of (re, im)"
    )


def no_masked(data: Any) -> None:
    """Refuse an array some entries of which are masked.

    Raises:
        DTypeError: If it is one: the mask would get lost, and masked entries count.
    """
    if hasattr(data, "filled") and data.mask.any():
        raise DTypeError(
            f"got a {type(data).__name__} with {int(data.mask.sum())} masked of {data.size} entries; expected a plain array, because the "
            "mask would get lost. Try data.filled(0.0), or data.compressed(); and ng.where(mask, ...) for what is to be left out"
        )


def freeze(array: Any) -> tuple[Any, ...]:
    """Makes a NumPy array and all that it views read-only; returns them, to be asked by ``frozen``.

    Another writeable view that was taken before stays writeable, and NumPy offers no way to find it.
    """
    chain = []
    while hasattr(array, "setflags"):
        array.setflags(write=False)
        chain.append(array)
        array = array.base
    return tuple(chain)


def frozen(chain: tuple[Any, ...]) -> bool:
    """Whether all arrays that ``freeze`` went through are read-only still."""
    return not any(array.flags.writeable for array in chain)
