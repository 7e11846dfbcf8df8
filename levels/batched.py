"""``Batched``: many samples at once, as a backend decorator.

The inner value has one more axis, in front, that the outside does not see: code written for one sample runs on all of them. Where an
argument wears no coat of the level, it is the same for all samples.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from nestgrad.errors import LevelError, ShapeError
from nestgrad.levels.base import Coat, Tape
from nestgrad.levels.coats import on
from nestgrad.levels.explain import explained
from nestgrad.levels.level import Level
from nestgrad.ops.batching import aligned, pair, repeated
from nestgrad.ops.table import Kind, Op

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

_Way = Callable[[Any, int, Sequence[Any], Sequence[bool], tuple[Any, ...]], Any]

SHIFTS: dict[str, Callable[[int, Any], Any]] = {
    "axis": lambda n, axis: axis + 1,
    "axes": lambda n, axes: tuple(k + 1 for k in axes),
    "shape": lambda n, shape: (n, *shape),
    "widths": lambda n, widths: ((0, 0), *widths),
}
"""What a parameter of that name becomes where there is one more axis in front. Parameters of other names stay as they are."""


class Batch(Coat):
    """A value for each of ``size`` samples, along axis 0 of the inner value."""

    __slots__ = ("size",)
    differentiates: ClassVar[bool] = False
    hidden: ClassVar[int] = 1
    size: int

    def over(self, inner: Any) -> "Batch":
        """Another inner value, of as many samples."""
        return batched(self.tape, inner, self.size)

    def under(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The inner value's shape: one axis more."""
        return (self.size, *shape)

    def off(self) -> Any:
        """Refused: the inner value has another shape than the outside sees.

        Raises:
            LevelError: Always.
        """
        self._alive()
        raise LevelError(
            f"a value that holds {self.size} samples of {self.tape} would have to leave that level, as for a derivative by a tensor "
            "from outside; expected the level's own way out. Try func.grad inside, as in vmap(grad(f)), which takes the tensor as an "
            "argument; or differentiate outside, what has come out of the level"
        )

    def read(self) -> Any:
        """Refused: there are as many numbers as samples.

        Raises:
            LevelError: Always.
        """
        self._alive()
        raise LevelError(
            f"this tensor holds {self.size} samples of {self.tape}, so it is no plain number or array for bool(x), `if x > 0:`, float(x), "
            "x.item() or x.numpy(). Try ng.where(condition, a, b) instead of a branch; or leave the level first"
        )

    def _alive(self) -> None:
        if self.tape.closed:
            raise LevelError(
                f"a value that holds {self.size} samples of {self.tape}, which has ended, is used outside of it; "
                "expected what the function returned. Try to return it from the function, too"
            )

    def apply(self, b: Any, op: Op, args: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
        """The op on all samples at once."""
        tape, n = self.tape, self.size
        values, here = [], []
        for a in args:
            on_tape = a.__class__ is Batch and a.tape is tape
            if on_tape and a.size != n:
                raise ShapeError(f"{op.name}: got {a.size} and {n} samples on {tape}; expected as many in all operands")
            values.append(a.value if on_tape else a)
            here.append(on_tape)
        try:
            out = _way(op)(b, n, values, here, params)
        except ShapeError as error:
            if type(error) is not ShapeError:
                raise
            told = ValueError(f"in front, there is an axis of {n} samples: {error}")
            raise explained(told, op, args, params, b.shape) from error
        return tuple(batched(tape, v, n) for v in out) if op.results else batched(tape, out, n)


@cache
def _way(op: Op) -> _Way:
    """How an op runs on all samples: by its entry's own rule, by broadcasting, or by the names of its parameters."""
    name = op.name
    if op.batched is not None:
        rule = op.batched
        return lambda b, n, xs, here, params: rule(b, n, xs, here, *params)
    if op.broadcasts or (op.kind is Kind.CONSTANT and len(op.arguments) > 1):
        if len(op.arguments) == 2:
            return lambda b, n, xs, here, params: op.of(b)(*pair(b, *xs, *here), *params)
        return lambda b, n, xs, here, params: op.of(b)(*aligned(b, xs, here), *params)
    if op.variadic or len(op.arguments) > 1:
        raise LevelError(f"{name}: got samples of a batch, and the table does not say what it does with them. Try batched= in its entry")
    shifts = [SHIFTS.get(p) for p in op.params]
    if not any(shifts):
        return lambda b, n, xs, here, params: op.of(b)(xs[0], *params)
    return lambda b, n, xs, here, params: op.of(b)(
        xs[0], *(p if shift is None else shift(n, p) for shift, p in zip(shifts, params, strict=True))
    )


class Batched(Level):
    """Many samples at once: an axis of arrays that ops do not see.

    Args:
        inner: A backend, or a level.

    >>> from nestgrad.backends import NumpyBackend
    >>> B = Batched(NumpyBackend())
    >>> x = B.batch([[3.0, 4.0], [6.0, 8.0]])
    >>> x.shape, B.unbatch((x * x).sum().sqrt()).tolist()
    ((2,), [5.0, 10.0])
    """

    name = "batched"

    def batch(self, x: Any, axis: int = 0) -> "Tensor":
        """The samples of ``x`` along ``axis``, as one Tensor without that axis.

        Args:
            x: A Tensor, array or list of numbers, on any levels that are older than this one.
            axis: Which axis the samples are along.

        Raises:
            LevelError: If ``x`` is on this level already, or on a younger one.
            ShapeError: If ``x`` has no such axis.
        """
        made: Tensor = self.enter("batch", x, dress=lambda b, tape, value: batch(b, tape, value, axis), floating=False)
        return made

    def unbatch(self, y: "Tensor", axis: int = 0, size: int | None = None) -> "Tensor":
        """All samples of ``y``, with their axis at ``axis`` of the result. Levels above this one are taken off.

        Args:
            y: A Tensor. If it is the same for all samples, ``size`` must say how many there are.
            axis: Where the axis goes.
            size: Number of samples.

        Raises:
            LevelError: If ``y`` holds no samples of this level and ``size`` is not given.
            ShapeError: If ``axis`` is none of the result, or ``size`` another number than there are.
        """

        def take(coat: Batch | None, inner: Any) -> list[Any]:
            n = size if coat is None else coat.size
            if n is None:
                raise LevelError(
                    f"unbatch: got a tensor of shape {y.shape} that holds no samples of {self.tape}; expected some, or their number. "
                    "Does it not depend on what was batched? Try unbatch(y, size=n), which repeats it"
                )
            if coat is None:
                return [unbatch(y.b, inner, self.tape, n, axis)]
            return [unbatch(y.b, coat, coat.tape, n if size is None else size, axis)]

        made: Tensor = self.leave("unbatch", y, take)[0]
        return made


def batch(b: Any, tape: Tape, value: Any, axis: int) -> Batch:
    """``value`` with the samples along ``axis``, in a coat.

    Args:
        b: The backend over dressed values.
        tape: The level.
        value: A value that wears coats of older tapes only.
        axis: An axis of it.

    Raises:
        LevelError: If the value is on the tape already, or on a younger one, which would have recorded another shape.
        ShapeError: If it has no such axis.
    """
    if isinstance(value, Coat) and value.tape.birth >= tape.birth:
        if value.tape is tape:
            raise LevelError(f"batch: got a tensor that holds samples of {tape} already. Try another level around it for a second axis")
        raise LevelError(
            f"batch: got a tensor on {value.tape}, which is younger than {tape} and has recorded its shape with the axis. "
            "Try to batch it first, and make a variable of it then; or a level made later"
        )
    shape = tuple(b.shape(value))
    k = _axis("batch", axis, len(shape), shape)
    if k:
        value = b.permute(value, (k, *(i for i in range(len(shape)) if i != k)))
    return batched(tape, value, shape[k])


def unbatch(b: Any, p: Any, tape: Tape, size: int, axis: int) -> Any:
    """The inner value, with the samples along ``axis``.

    Args:
        b: The backend over dressed values.
        p: A value; one that wears no coat of the tape is repeated.
        tape: The level.
        size: How many samples there are.
        axis: Where their axis goes.

    Raises:
        LevelError: If the value wears a coat of a younger tape over the samples.
        ShapeError: If there is no such axis, or another number of samples.
    """
    coat = on(p, tape)
    if coat is None:
        inner = repeated(b, p, size)
    elif coat is not p:
        raise LevelError(f"unbatch: got a tensor on {p.tape}, above the samples of {tape}; expected none above. Try to leave it first")
    elif coat.size != size:
        raise ShapeError(f"unbatch: got {coat.size} samples on {tape}; expected {size}")
    else:
        inner = coat.value
    shape = tuple(b.shape(inner))
    k = _axis("unbatch", axis, len(shape), shape)
    return b.permute(inner, (*range(1, k + 1), 0, *range(k + 1, len(shape)))) if k else inner


def _axis(name: str, axis: int, rank: int, shape: tuple[int, ...]) -> int:
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise ShapeError(f"{name}: got axis {axis!r} for shape {shape}; expected an int from {-rank} to {rank - 1}")
    return axis % rank


def batched(tape: Tape, value: Any, size: int) -> Batch:
    """A coat; the value wears coats of older tapes only, and its axis 0 has ``size`` entries."""
    coat = Batch()
    coat.tape, coat.value, coat.size = tape, value, size
    return coat
