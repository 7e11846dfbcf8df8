"""Methods of levels: variables, taking out, differentiating."""

from collections.abc import Iterable, Sequence
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from nestgrad.errors import DTypeError, LevelError, NoLevelLeft, NotTrackedError, TraceError
from nestgrad.levels.base import Coat, Tape, tracing
from nestgrad.levels.coats import bare, constant, transparent, variable, within, without, worn
from nestgrad.levels.level import Level
from nestgrad.levels.marks import NONE, entering, left, opened
from nestgrad.levels.reverse.node import Tracked
from nestgrad.levels.traced.wire import Wire
from nestgrad.tensor.gradients import Gradients
from nestgrad.tensor.handle import Handle, Operand, make

if TYPE_CHECKING:
    from nestgrad.tensor.tensor import Tensor


class Differentiation(Handle):
    """What a Tensor has to do with levels."""

    __slots__ = ()

    @property
    def level(self) -> int:
        """Number of the outermost level that tracks it; 0 of a constant."""
        value, _ = opened(self.value, self.marks)
        return next((coat.tape.number for coat in worn(value) if coat.differentiates), 0)

    @property
    def backend(self) -> Any:
        """The base backend. ``Autodiff(x.backend)`` makes a fresh level over it."""
        return self.b.base

    def tracked_on(self) -> tuple[Tape, ...]:
        """Tapes of the levels that track it, outermost first."""
        value, _ = opened(self.value, self.marks)
        return tuple(coat.tape for coat in worn(value) if isinstance(coat, Tracked))

    def require_grad(self, levels: Sequence[Any] | None = None) -> "Tensor":
        """A new variable, equal to this Tensor, on the levels that track it already, or on the given ones.

        It is a leaf on each level where this Tensor is a constant, and an identity after it where it is tracked: history and marks are
        kept, never cut. Cut with ``detach()``.

        Args:
            levels: ``Autodiff`` levels. ``None``: those that track this Tensor.

        Raises:
            LevelError: No level given, and none tracks it.
            DTypeError: Not a floating dtype.
        """
        tapes = oldest_first(self.tracked_on() if levels is None else [_tape(level) for level in listed(levels)])
        if not tapes:
            raise LevelError(
                "require_grad: this tensor is a constant on every level, so there is none to track it. "
                "Try stack.tensor(x, requires_grad=True), or x.require_grad(levels=[stack])"
            )
        return as_variable(self, tapes)

    def inner(self) -> "Tensor":
        """The value inside the outermost level that tracks it, marked as taken out of that level. A constant is its own inner value."""
        value, marks = opened(self.value, self.marks)
        if isinstance(transparent(value), Tracked):
            value = transparent(value)
        if not isinstance(value, Tracked):
            trace = tracing.get()
            hidden = set() if trace is None else trace.opaque_under(value)
            if hidden or (isinstance(value, Coat) and (value.differentiates or value.hidden)):
                tape = next(iter(hidden), value.tape)
                raise LevelError(f"inner: a value of {tape} cannot leave it this way. Try the level's own way out, or detach()")
            return make(self.b, value, marks)
        return make(self.b, value.value, left(value, [value.tape], marks, f"inner() of {_what(value)}"))

    def detach(self, level: Any = None) -> "Tensor":
        """A constant: on every level, without marks; or on the given level and every one above it.

        Args:
            level: An ``Autodiff`` level, or its number. ``None``: all. Inside a transform, a level made outside is what stands in for it
                there, above the transform; for a value that the transform has nothing to do with, it is itself.

        Raises:
            LevelError: No level, or one that could be either of the two.
            TraceError: A level inside a trace.
        """
        value, marks = opened(self.value, self.marks)
        if level is None:
            return make(self.b, constant(value), NONE)
        trace = tracing.get()
        if trace is None and any(isinstance(coat, Wire) for coat in within(value)):
            raise TraceError(
                f"detach: got level={level!r} inside a trace, whose program has no levels; expected detach() without a level, because the "
                "program may be called on any. Try detach(), or detach by level outside of the traced function"
            )
        tapes = [coat.tape for coat in within(value) if coat.differentiates] + list(marks)
        if isinstance(level, Level):
            meant = level.meant(tapes)
            births = [meant.birth]
            if trace is not None:
                trace.refuse_cut(value, lambda tape: tape.birth >= trace.outside(meant).birth)
        elif isinstance(level, int) and level >= 1:
            births = [tape.birth for tape in tapes if tape.number >= level]
            if trace is not None:
                trace.refuse_cut(value, lambda tape: tape.number >= level)
        else:
            raise LevelError(f"detach: got level {level!r}; expected an Autodiff level or a number from 1 on")
        first = min(births, default=inf)
        off = {tape for tape in tapes if tape.birth >= first}
        value = without(value, off)
        if trace is not None:
            value = trace.cut(value, frozenset(off))
        return make(self.b, value, {t: m for t, m in marks.items() if t not in off} or NONE)

    def backward(
        self,
        gradient: Operand | None = None,
        wrt: Sequence["Tensor"] | None = None,
        retain_graph: bool = True,
        check_independent: bool = False,
    ) -> Gradients:
        """Gradients of this Tensor on the youngest level that recorded something of it. Changes nothing else.

        The root of a backward pass may have any shape. Without ``gradient`` it is seeded with ones, so the result is **the gradient of the
        sum** of its entries.

        Args:
            gradient: Seed of the root's shape: the result is its product with the Jacobian. It may be tracked itself.
            wrt: Tensors to differentiate by at once. The result then knows just those, and lets go of the graph.
            retain_graph: ``False`` frees saved values when the pass has run (for ``wrt``, or else for all variables at once); a later use
                of a freed node raises ``GraphFreedError``.
            check_independent: Verify, at each look-up, with one random row, that row ``i`` of the root depends on row ``i`` of the input
                alone, so that the gradient of the sum is the gradient of each sample.

        Returns:
            ``Gradients``, lazy: a look-up runs only what leads to that tensor.

        Raises:
            NoLevelLeft: The value was taken out of every level that recorded it.
            NotTrackedError: Nothing that it was made of requires gradients.
            ShapeError: ``gradient`` has another shape.
        """
        value, marks = opened(self.value, self.marks)
        root = transparent(value)
        if not isinstance(root, Tracked):
            raise untracked(self, value, marks)
        gradients = Gradients(make(self.b, root, marks), gradient, check_independent)
        if wrt is not None or not retain_graph:
            gradients.run(wrt, retain_graph)
        return gradients

    def grad(self, grads: Gradients) -> "Tensor":
        """The derivative of the root of ``grads`` by this Tensor, of this Tensor's shape.

        It lives on the levels below the one that was differentiated, and is marked as taken out of that one. Zero where the root depends on
        this Tensor with zero derivative.

        Raises:
            NotTrackedError: This Tensor is tracked on no level.
            NotConnectedError: The root does not depend on it: was it created anew, or sliced after the forward pass?
            LevelError: The root depends on it only through a value that was taken out of the level.
        """
        return _gradients("grad", grads).wrt(self)  # type: ignore[arg-type]

    def wrt(self, x: "Tensor") -> "Tensor":
        """``x.grad(self.backward(wrt=[x]))``: so ``u.wrt(x).wrt(t)`` is a cross partial."""
        return self.backward(wrt=[x]).wrt(x)

    def grad_remove(self, grads: Gradients) -> "Tensor":
        """Look the gradient up and drop it from ``grads``. Frees that cotangent, not the graph; see ``grads.close()``."""
        return _gradients("grad_remove", grads).remove(self)  # type: ignore[arg-type]

    def grad_replace(self, grads: Gradients, value: "Tensor") -> None:
        """Let ``grads`` give ``value`` for this Tensor from now on. No other look-up is changed."""
        _gradients("grad_replace", grads).replace(self, value)  # type: ignore[arg-type]


def as_variable(x: Handle, tapes: Sequence[Tape]) -> "Tensor":
    """``x`` as a new variable on ``tapes``, oldest first (design rule 5).

    Raises:
        DTypeError: Not a floating dtype.
    """
    value, marks = x.value, x.marks
    if isinstance(value, Coat) or marks:
        value, marks = entering(*opened(value, marks))
    if not x.b.base.is_floating(bare(value) if isinstance(value, Coat) else value):
        raise DTypeError(
            f"requires_grad: got dtype {x.b.dtype(value)}; expected a floating one, since integers and booleans have no derivative. "
            "Try dtype='float64', or x.astype('float64')"
        )
    return make(x.b, variable(value, tapes, tuple(x.b.shape(value))), marks)


def oldest_first(tapes: Iterable[Tape]) -> tuple[Tape, ...]:
    """Each tape once, by birth: the order in which coats are put on. The tapes of a stack are in it already."""
    return tuple(sorted(set(tapes), key=attrgetter("birth")))


def _gradients(name: str, grads: Any) -> Gradients:
    if not isinstance(grads, Gradients):
        raise LevelError(f"{name}: got a {type(grads).__name__}; expected the Gradients of a backward pass. Try x.{name}(y.backward())")
    return grads


def listed(levels: Any) -> Sequence[Any]:
    """Levels as a list.

    Raises:
        LevelError: If it is none.
    """
    if not isinstance(levels, (list, tuple)):
        raise LevelError(f"levels: got {levels!r}; expected a list. Try levels=[{levels!r}]")
    return levels


def _tape(level: Any) -> Tape:
    if not isinstance(level, Level):
        raise LevelError(f"levels: got {level!r}; expected Autodiff levels")
    tape: Tape = level.tapes[-1]
    return tape


def _what(value: Tracked) -> str:
    return f"a {value.node.name!r} of shape {tuple(value.node.shape)}"


def untracked(x: Handle, value: Any, marks: Any) -> Exception:
    """The error for a root on which nothing is recorded."""
    what = f"a value of shape {tuple(x.b.shape(value))}"
    if (trace := tracing.get()) is not None and trace.opaque and not marks:
        return LevelError(
            f"backward: inside jit, {what} is recorded by no level that is seen there; arguments live outside on levels without a backward "
            f"pass ({', '.join(sorted(map(repr, trace.opaque)))}), above all levels that recorded them. "
            "Try func.grad inside, as in vmap(grad(f)), or a variable made inside the function, S.tensor(x, requires_grad=True)"
        )
    if isinstance(value, Wire) and trace is None:
        return TraceError(
            f"backward: inside a trace, {what} is on no level, whatever levels the arguments have outside; expected a variable "
            "made inside. Try x = S.tensor(x, requires_grad=True) in the traced function, or func.grad"
        )
    if isinstance(value, Coat) and (value.differentiates or value.hidden):
        return LevelError(
            f"backward: {what} lives on {value.tape}, which has no backward pass, above all levels that recorded it. "
            "Try func.grad inside, as in vmap(grad(f)), or a variable made inside the function, S.tensor(x, requires_grad=True)"
        )
    if marks:
        story = "; ".join(f"{tape}: {moment.story}" for tape, moment in marks.items())
        return NoLevelLeft(
            f"backward: no level is left that recorded {what}. What it depends on was taken out of {story}. "
            "Try detach() on what is meant as a constant, or one more Autodiff around the backend if it is not"
        )
    return NotTrackedError(
        f"backward: {what} depends on nothing that requires gradients. "
        "Try stack.tensor(data, requires_grad=True) for what you differentiate by; was it detached, or made by a comparison?"
    )
