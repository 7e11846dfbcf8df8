"""What a Tensor tells about itself, and the ways out: to NumPy and to Python numbers."""

from typing import TYPE_CHECKING, Any

from nestgrad.errors import ConversionError, MutatedError, NestgradError, ShapeError
from nestgrad.levels.base import Coat
from nestgrad.levels.coats import bare, within, worn
from nestgrad.levels.marks import NONE, opened
from nestgrad.tensor.handle import Handle, make

if TYPE_CHECKING:
    from nestgrad.tensor.tensor import Tensor


class Conversion(Handle):
    """Shape and dtype, ``repr``, NumPy, Python numbers, copies."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return tuple(self.b.shape(self.value))

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.b.shape(self.value))

    @property
    def size(self) -> int:
        """Number of entries."""
        total = 1
        for n in self.b.shape(self.value):
            total *= n
        return total

    @property
    def dtype(self) -> Any:
        """The base backend's dtype."""
        return self.b.dtype(self.value)

    @property
    def device(self) -> Any:
        """Where the base backend keeps it."""
        return self.b.base.device(bare(self.value))

    def numpy(self) -> Any:
        """A NumPy copy of the value: a constant, on no level. Writing into it changes nothing here."""
        return self.b.base.to_numpy(self.b.read(self.value))

    def item(self) -> Any:
        """The one entry as a Python number: a constant, on no level.

        Raises:
            ShapeError: If there is not exactly one entry.
        """
        if self.size != 1:
            raise ShapeError(f"item: got shape {self.shape}; expected exactly one entry")
        return self.numpy().reshape(-1).tolist()[0]

    def tolist(self) -> Any:
        """The entries as nested lists of Python numbers."""
        return self.numpy().tolist()

    def _leave(self, spelling: str, way: str) -> None:
        """Refuse to drop levels silently."""
        value, marks = opened(self.value, self.marks)
        tapes = dict.fromkeys(repr(c.tape) for c in within(value) if c.differentiates) if isinstance(value, Coat) else {}
        if tapes or marks:
            raise ConversionError(
                f"{spelling} of a tensor that depends on variables ({', '.join(tapes) or 'taken out'}) "
                f"would silently make a constant of it. Try {way}"
            )

    def __float__(self) -> float:
        """The one entry of a constant. A tracked one must say ``.item()``."""
        self._leave("float(x)", "x.item() for the number, or stay with x")
        return float(self.item())

    def __int__(self) -> int:
        """The one entry of a constant, as an int."""
        self._leave("int(x)", "x.item() for the number")
        return int(self.item())

    def __index__(self) -> int:
        """The one entry of an integer Tensor."""
        if self.b.base.kind(bare(self.value)) != "int":
            raise ConversionError(f"index: got dtype {self.dtype}; expected integers")
        return int(self.item())

    def __bool__(self) -> bool:
        """Truth of the one entry; a comparison is a constant, so ``if x > 0:`` works.

        Raises:
            ShapeError: If there is not exactly one entry.
        """
        if self.size != 1:
            raise ShapeError(f"bool(x), as in `if x:`: got shape {self.shape}; expected exactly one entry. Try x.any() or x.all()")
        return bool(self.item())

    def __complex__(self) -> complex:
        """Refused like ``float`` on tracked ones."""
        self._leave("complex(x)", "x.item()")
        return complex(self.item())

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """A copy for NumPy, of a constant. NumPy functions on a tracked Tensor would lose its levels, so they raise."""
        self._leave("np.asarray(x), or a NumPy function,", "x.numpy() for the values, or the same function here: ng.sin(x), x.norm()")
        if copy is False:
            raise ValueError("np.asarray(x, copy=False) of a Tensor: it gives a copy only, so that nobody writes into it. Try copy=None")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __repr__(self) -> str:
        """Value, dtype, levels worn and marks."""
        try:
            shown = _text(self.b.base.to_numpy(self.b.read(self.value)))
        except MutatedError:
            shown = f"<shape {self.shape}, whose shared memory was written into>"
        except NestgradError:  # of a level from which no plain numbers can be had
            shown = f"<shape {self.shape}>"
        parts = [shown, f"dtype={str(self.dtype).removeprefix('torch.')}"]
        levels = [c.tape.number for c in worn(self.value) if c.differentiates and not c.tape.closed]
        if levels:
            parts.append(f"levels={sorted(levels)}")
        if marks := [tape.number for tape in self.marks if not tape.closed]:
            parts.append(f"taken_out_of={sorted(marks)}")
        return f"Tensor({', '.join(parts)})"

    def __format__(self, spec: str) -> str:
        """One entry with a format spec, as a number; without one, ``repr``."""
        return format(self.item(), spec) if spec else repr(self)

    def __copy__(self) -> "Tensor":
        """Itself: it is immutable."""
        return self  # type: ignore[return-value]

    def __deepcopy__(self, memo: Any) -> "Tensor":
        """Itself: it is immutable, and its levels stay."""
        return self  # type: ignore[return-value]

    def __reduce__(self) -> Any:
        """Pickle the value; history and marks are dropped."""
        return _restored, (self.b.base, self.numpy(), str(self.dtype).removeprefix("torch."))


def _restored(base: Any, array: Any, dtype: str) -> "Tensor":
    return make(base.dressed, base.asarray(array, dtype), NONE)


def _text(array: Any) -> str:
    lines = str(array.tolist() if array.size <= 16 else array).splitlines()
    return "\n       ".join(lines)
