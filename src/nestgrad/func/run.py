"""The run of a function by a transform: on a new tape, with some of its arguments dressed, and with its outputs checked."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from nestgrad.errors import DTypeError, LevelError, ShapeError
from nestgrad.func.home import home
from nestgrad.func.trees import Structure, flatten, parted, places, shown
from nestgrad.functions.shaping import concat
from nestgrad.levels.base import Coat, Tape, running
from nestgrad.levels.coats import bare, on, tied, variable
from nestgrad.levels.marks import NONE, Marks, entering, left, opened
from nestgrad.levels.mixing import fitted, settle
from nestgrad.tensor import Tensor
from nestgrad.tensor.handle import Handle, constant, is_floating, is_scalar, make, named

ArgNums = int | Sequence[int]
Shape = tuple[int, ...]


class Run:
    """``with Run(name, leaves) as tape``: a tape above all that the leaves wear, on which a transform runs; closed at the end."""

    __slots__ = ("tape", "token")

    def __init__(self, name: str, leaves: Iterable[Tensor], records: bool = False) -> None:
        self.tape = Tape(name, max((x.level for x in leaves), default=0) + 1, records)

    def __enter__(self) -> Tape:
        self.token = running.set(self.tape)
        return self.tape

    def __exit__(self, *error: object) -> None:
        running.reset(self.token)
        self.tape.close()


class Arguments:
    """The arguments of a call. Those that a transform is about are taken apart into leaves, which are Tensors.

    Attributes:
        numbers: Which they are.
        structures: Of each, the structure.
        leaves: Of all of them, in order.
    """

    __slots__ = ("args", "b", "leaves", "name", "numbers", "structures")

    def __init__(self, name: str, f: Callable[..., Any], argnums: ArgNums, args: Sequence[Any], beside: Iterable[Any] = ()) -> None:
        self.name, self.args = name, args
        self.numbers = _chosen(name, argnums, len(args))
        self.b = home(f, [*args, *beside])
        self.leaves: list[Tensor] = []
        self.structures: list[Structure] = []
        for k in self.numbers:
            leaves, structure = flatten(args[k])
            self.structures.append(structure)
            self.leaves += [as_leaf(name, x, self.b) for x in leaves]
        if not self.leaves:
            raise ShapeError(f"{name}: got {_plural(self.numbers)} without any Tensor, array or number to differentiate by")

    def floating(self) -> None:
        """Check that derivatives by all leaves exist.

        Raises:
            DTypeError: If one is not floating.
        """
        for x in self.leaves:
            if not x.b.base.is_floating(bare(x.value)):
                raise DTypeError(
                    f"{self.name}: got an argument of dtype {x.dtype}; expected a floating one. Try a float, or x.astype('float64')"
                )

    def directions(self, what: str, trees: Sequence[Any]) -> list[Tensor]:
        """Leaves of tangents, one for each leaf of the arguments: of its shape, dtype and backend.

        Raises:
            ShapeError: If there are not as many trees as arguments, or structures or shapes differ.
            DTypeError: If dtypes differ.
            LevelError: If base backends do.
        """
        if len(trees) != len(self.structures):
            raise ShapeError(f"{self.name}: got {len(trees)} {what}s for {len(self.structures)} primals; expected one for each")
        leaves: list[Any] = []
        for k, tree, structure in zip(self.numbers, trees, self.structures, strict=True):
            found, other = flatten(tree)
            if other != structure:
                raise ShapeError(
                    f"{self.name}: got a {what} of structure {shown(other)} for argument {k}, of structure {shown(structure)}; "
                    "expected the same nesting. Try zeros where nothing moves"
                )
            leaves += found
        return [self._direction(what, i, x) for i, x in enumerate(leaves)]

    def _direction(self, what: str, i: int, x: Any) -> Tensor:
        primal = self.leaves[i]
        b, shape, dtype = primal.b, primal.shape, primal.dtype
        t = make(b, b.base.full((), float(x), dtype), NONE) if is_scalar(x) else as_leaf(self.name, x, b)
        if t.b is not b and t.b.base != b.base:
            raise LevelError(f"{self.name}: got a {what} over {t.b.base!r} for {self.place(i)} over {b.base!r}; expected one base backend")
        if t.shape != shape:
            raise ShapeError(f"{self.name}: got a {what} of shape {t.shape} for {self.place(i)}, of shape {shape}; expected the same shape")
        if t.dtype != dtype:
            raise DTypeError(
                f"{self.name}: got a {what} of dtype {t.dtype} for {self.place(i)}, of dtype {dtype}; expected the same dtype. "
                f"Try {what}.astype({str(dtype).removeprefix('torch.')!r})"
            )
        return t

    def trees(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """Other leaves, one tree for each of the arguments."""
        return parted(self.structures, leaves)

    def with_leaves(self, leaves: Sequence[Any]) -> list[Any]:
        """All arguments of the call, with other leaves."""
        args = list(self.args)
        for k, tree in zip(self.numbers, self.trees(leaves), strict=True):
            args[k] = tree
        return args

    def place(self, i: int) -> str:
        """Where leaf ``i`` stands, for people: ``"argument 1['w']"``."""
        names = [f"argument {k}{place}" for k, s in zip(self.numbers, self.structures, strict=True) for place in places(s)]
        return names[i]


def as_leaf(name: str, x: Any, b: Any) -> Tensor:
    """An argument as a Tensor; a number or an array is copied to ``b``."""
    if isinstance(x, Handle):
        return x  # type: ignore[return-value]
    value = constant(b, x, name)
    return make(b, b.base.asarray(value) if is_scalar(value) else value, NONE)


def renewed(x: Tensor, tapes: tuple[Tape, ...] = ()) -> tuple[Any, Marks]:
    """Value and marks of an argument, as a variable of its own: on ``tapes``, and on all that track it."""
    value, marks = entering(*opened(x.value, x.marks))
    return variable(value, tapes, tuple(x.shape)), marks


class Outputs:
    """What a function returned.

    Attributes:
        leaves: As Tensors.
        aux: Auxiliary data, as they were returned.
    """

    __slots__ = ("aux", "leaves", "name", "structure")

    def __init__(self, name: str, f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], has_aux: bool, like: Tensor) -> None:
        result = f(*args, **kwargs)
        self.name = name
        self.aux: Any
        out, self.aux = _pair(name, result) if has_aux else (result, None)
        leaves, self.structure = flatten(out)
        if not leaves:
            raise _no_tensor(name, out, like)
        self.leaves = [_output(name, x, like) for x in leaves]

    def shapes(self) -> list[Shape]:
        """The shapes of the leaves."""
        return [x.shape for x in self.leaves]


def differentiable(name: str, leaves: Sequence[Tensor], structure: Structure) -> None:
    """Check that the leaves of an output can have derivatives.

    Raises:
        DTypeError: If one holds whole numbers or booleans.
    """
    for i, x in enumerate(leaves):
        if not is_floating(x):
            raise DTypeError(
                f"{name}: the function returned dtype {x.dtype} as its output{places(structure)[i]}, and whole numbers and booleans "
                "are not differentiable; expected floating ones. Try x.astype('float64') where zeros are meant"
            )


def same_outputs(name: str, first: tuple[Structure, Sequence[Shape]], other: tuple[Structure, Sequence[Shape]]) -> None:
    """Check that two chunks gave outputs of one structure and of the same shapes.

    Raises:
        LevelError: If they did not.
    """
    if other[0] != first[0]:
        raise LevelError(
            f"{name}: the function returned the structure {shown(first[0])} for one chunk and {shown(other[0])} for another; expected the "
            "same for all. Does it depend on something that changes from run to run?"
        )
    for i, (x, y) in enumerate(zip(first[1], other[1], strict=True)):
        if x != y:
            raise LevelError(
                f"{name}: the function returned shape {x} for one chunk and {y} for another as its output"
                f"{places(first[0])[i]}; expected the same for all. Does it depend on something that changes from run to run?"
            )


def _pair(name: str, result: Any) -> tuple[Any, Any]:
    if not isinstance(result, tuple) or len(result) != 2:
        raise LevelError(f"{name}: with has_aux the function must return (output, aux), got {type(result).__name__}")
    return result[0], result[1]


def _output(name: str, out: Any, like: Tensor) -> Tensor:
    if isinstance(out, Handle):
        return out  # type: ignore[return-value]
    if is_scalar(out) or like.b.base.accepts(out):
        return make(like.b, like.b.base.asarray(out), like.marks)
    raise _no_tensor(name, out, like)


def _no_tensor(name: str, out: Any, like: Tensor) -> LevelError:
    if hasattr(out, "__array__"):
        hint = f" over {like.b.base!r}. Try arguments of that library too, or tensor(x.numpy()) for a constant"
    else:
        hint = ". Does it end without a return?" if out is None else ""
    return LevelError(f"{name}: the function returned {named(out)}; expected a Tensor{hint}")


def inside(name: str, out: Tensor, tape: Tape) -> Tensor | None:
    """An output on the transform's level, with that level's coat outermost, or ``None`` if it does not depend on the arguments."""
    value, marks = opened(out.value, out.marks)
    if tape in marks:
        raise LevelError(
            f"{name}: the output was taken out of the level of this {name} ({marks[tape].story}), so its derivative here would be lost. "
            "Make a variable inside, S.tensor(x, requires_grad=True), and differentiate by that; or detach() what is meant as a constant"
        )
    if on(value, tape) is None:
        return None
    while isinstance(value, Coat) and value.tape is not tape:
        marks = left(value, [value.tape], marks, "a level made inside the transform")
        value = value.off()
    return make(out.b, value, marks)


def joined(parts: Sequence[Tensor]) -> Tensor | None:
    """Several Tensors as one: a single one as it is, else all entries end to end; ``None`` for none."""
    return concat([part.ravel() for part in parts]) if len(parts) > 1 else parts[0] if parts else None


def outside(x: Tensor) -> Tensor:
    """A Tensor without what ended transforms left on it."""
    value, marks = opened(x.value, x.marks)
    return x if value is x.value and marks is x.marks else make(x.b, value, marks)


def derivative(g: Any, value: Any, marks: Marks, like: Tensor) -> Tensor:
    """``g`` as the derivative of an output, which was ``value`` with ``marks``: connected to whatever the output was."""
    g, marks = fitted(tied(g, value, like.shape), marks)
    return make(like.b, g, marks)


def zeros(like: Tensor, shape: tuple[int, ...], to: Sequence[Tensor]) -> Tensor:
    """A derivative that is zero, over the backend and of the dtype of ``like``, connected to all that it would depend on."""
    b, base = like.b, like.b.base
    dtype = like.dtype if base.is_floating(bare(like.value)) else base.default_dtype
    values, marks = settle([t.value for t in to], [t.marks for t in to])
    made = base.full(shape, 0.0, dtype)
    for value in values:
        made = tied(made, value, shape)
    return make(b, made, marks)


def _chosen(name: str, argnums: ArgNums, n: int) -> list[int]:
    if type(argnums) is int and -n <= argnums < n:
        return [argnums % n]
    chosen: list[Any] = list(argnums) if isinstance(argnums, (list, tuple)) else [argnums]
    if any(type(k) is not int or not -n <= k < n for k in chosen) or not chosen:
        raise ShapeError(f"{name}: got argnums {argnums!r} for {n} positional arguments; expected the numbers of some of them")
    numbers = [k % n for k in chosen]
    if len(set(numbers)) < len(numbers):
        raise ShapeError(f"{name}: got argnums {argnums!r} for {n} positional arguments; expected each of them once at most")
    return numbers


def _plural(numbers: list[int]) -> str:
    return f"argument {numbers[0]}" if len(numbers) == 1 else f"arguments {', '.join(map(str, numbers))}"
