"""Making Tensors from data."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from nestgrad.errors import BackendError, ConversionError, LevelError
from nestgrad.levels.base import Tape
from nestgrad.levels.coats import put_on
from nestgrad.levels.level import Level
from nestgrad.levels.marks import NONE
from nestgrad.levels.shared import share
from nestgrad.tensor.differentiation import as_variable, listed, oldest_first
from nestgrad.tensor.handle import Handle, make, real_only, untracked_only

if TYPE_CHECKING:
    from nestgrad.tensor.tensor import Tensor


def tensor(stack: Any, data: Any, requires_grad: bool = False, levels: Sequence[Any] | None = None, dtype: Any = None) -> "Tensor":
    """A Tensor over a stack; see ``Factories.tensor``."""
    if requires_grad and levels is dtype is None and isinstance(data, Handle) and data.b.base is stack.base and not stack._dressing:
        return as_variable(data, chosen(stack, None))  # the short way
    made = _lifted(stack, data, dtype) if isinstance(data, Handle) else make(stack.base.dressed, raw(stack.base, data, dtype), NONE)
    for level in stack._dressing:
        tape = level.tapes[-1]
        made = make(made.b, put_on(made.value, tape, partial(level.dress, tape)), made.marks)
    if not requires_grad:
        if levels is not None:
            raise LevelError("tensor: got levels without requires_grad=True; a constant is one on every level")
        return made
    return as_variable(made, chosen(stack, levels))


def variable(stack: Any, data: Any, levels: Sequence[Any] | None = None, dtype: Any = None) -> "Tensor":
    """A new variable without history; see ``Factories.variable``."""
    return tensor(stack, data.detach() if isinstance(data, Handle) else data, True, levels, dtype)  # type: ignore[attr-defined]


def shared(stack: Any, array: Any, requires_grad: bool = False, levels: Sequence[Any] | None = None) -> "Tensor":
    """A Tensor over memory that stays its owner's; see ``Factories.share_memory``."""
    base = stack.base
    untracked_only("from_torch", array)
    value, token = base.share(array)
    made = make(base.dressed, share(base, value, token), NONE)
    return as_variable(made, chosen(stack, levels)) if requires_grad else made


def chosen(stack: Any, levels: Sequence[Any] | None) -> tuple[Tape, ...]:
    """The tapes of a stack that ``levels`` (numbers from 1, or Autodiff levels) name, oldest first; all of them for ``None``."""
    tapes: tuple[Tape, ...] = stack.tapes
    recording = tuple([tape for tape in tapes if tape.records])
    if not recording:
        what = "has no level that records" if tapes else "is a base backend and tracks nothing"
        raise LevelError(f"requires_grad: {stack!r} {what}. Try Autodiff({stack!r}).tensor(...)")
    if levels is None:
        return recording
    picked = []
    for level in listed(levels):
        if isinstance(level, Level):
            picked.append(level.tapes[-1])
        elif isinstance(level, int) and 1 <= level <= len(tapes):
            picked.append(tapes[level - 1])
        else:
            raise LevelError(f"levels: got {level!r}; expected numbers from 1 (innermost) to {len(tapes)}, or Autodiff levels")
    if strange := [tape for tape in picked if not tape.records]:
        raise LevelError(f"levels: got {strange[0]}, which records nothing; expected Autodiff levels")
    if not picked:
        raise LevelError("levels: got none; expected at least one level that is to track the variable")
    return oldest_first(picked)


def raw(base: Any, data: Any, dtype: Any) -> Any:
    """Data as a raw array of its own."""
    _no_tensors(data)
    untracked_only("tensor", data)
    real_only("tensor", data)
    return base.asarray(data, None if dtype is None else base.resolve_dtype(dtype))


def _no_tensors(data: Any) -> None:
    if isinstance(data, (list, tuple)):
        for part in data:
            if isinstance(part, Handle):
                raise ConversionError("tensor: got a list with Tensors in it, whose levels would be lost. Try ng.stack([...]) or ng.concat")
            _no_tensors(part)


def _lifted(stack: Any, x: Any, dtype: Any) -> "Tensor":
    base = stack.base
    if x.b.base is not base and x.b.base != base:
        raise LevelError(
            f"tensor: got a Tensor over {x.b.base!r} for {stack!r}; different base backends cannot share a graph. "
            "Try stack.tensor(x.numpy())"
        )
    made: Tensor = x if dtype is None else x.astype(dtype)
    return made


def refuse_share(base: Any, kind: str, array: Any) -> None:
    """Check that ``array`` is of the library that the name says.

    Raises:
        BackendError: If it is not.
    """
    library = type(array).__module__.partition(".")[0]
    if library != kind:
        raise BackendError(f"from_{kind}: got a {type(array).__name__}; expected an array of {kind}. Try tensor(data), which copies")
    if base.name != kind:
        raise BackendError(f"from_{kind}: {base!r} cannot share memory with {kind}. Try tensor(data), which copies")
