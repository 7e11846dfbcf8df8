"""``Gradients``: what ``backward`` returns, looked up by tensor."""

import random
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from nestgrad.errors import CoupledError, LevelError, NotConnectedError, NotTrackedError, ShapeError
from nestgrad.levels.base import Coat, Tape, tracing
from nestgrad.levels.coats import alike, tied, worn
from nestgrad.levels.marks import NONE, Moment, join, left
from nestgrad.levels.mixing import fitted, settle
from nestgrad.levels.reverse.backward import Pass
from nestgrad.levels.reverse.node import Node, Tracked
from nestgrad.levels.traced.wire import Wire
from nestgrad.tensor.handle import Handle, Operand, as_tensor, make

if TYPE_CHECKING:
    from nestgrad.tensor.tensor import Tensor


class Gradients:
    """Derivatives of one root, on demand.

    A look-up happens at the youngest level on which the root and the tensor are both tracked, and runs only the part of the backward pass
    that leads to the tensor. Looking up everything, in any order, costs one full pass. Look-ups may come from several threads.

    ``grads[x]``, ``grads.wrt(x)`` and ``x.grad(grads)`` are the same.
    """

    def __init__(self, root: "Tensor", seed: Operand | None, check_independent: bool) -> None:
        self._root: Tensor | None = root
        self._level: int = root.value.tape.number
        self._tapes = _tracked_on(root.value)
        self._seed = checked_seed(root, seed)
        self._check = check_independent
        self._passes: dict[Tape, _OnTape] = {}
        self._given: dict[int, Tensor] = {}  # by the age of the node: a node would keep the tensor's own history alive
        self._lock = threading.RLock()

    @property
    def level(self) -> int:
        """Number of the youngest level that recorded the root."""
        return self._level

    def wrt(self, x: "Tensor") -> "Tensor":
        """The derivative of the root by ``x``; see ``Tensor.grad``."""
        with self._lock:
            given = self._replacement(x) if self._given else None
            return self._look(x) if given is None else given

    __getitem__ = wrt

    def get(self, x: "Tensor", default: Any = None) -> Any:
        """The derivative by ``x``, or ``default`` where the root does not depend on ``x``."""
        try:
            return self.wrt(x)
        except NotConnectedError:
            return default

    def __contains__(self, x: "Tensor") -> bool:
        """Whether the root depends on ``x``."""
        with self._lock:
            if self._replacement(x) is not None:
                return True
            if self._root is None:
                return False
            coat = self._common(x)
            if coat is None or _batch_above(x, coat) is not None:
                return False
            passing = self._on(coat.tape).passing
            if coat.tape.trace is not None:
                coat.tape.trace.check_history(coat.node, passing.reaches)
            return passing.reaches(coat.node)

    def remove(self, x: "Tensor") -> "Tensor":
        """The derivative by ``x``, which this object then forgets; it is computed again if asked for again."""
        with self._lock:
            result = self.wrt(x)
            coat = self._place(x)
            if coat is not None:
                self._given.pop(coat.node.age, None)
                if coat.tape in self._passes:
                    self._passes[coat.tape].passing.forget(coat.node)
            return result

    def replace(self, x: "Tensor", value: "Tensor") -> None:
        """Give ``value`` for ``x`` from now on; no other look-up is changed.

        Raises:
            ShapeError: If ``value`` has another shape than ``x``.
            NotTrackedError: If ``x`` is tracked on no level.
        """
        value = as_tensor(value)
        if tuple(value.shape) != tuple(_tensor(x).shape):
            raise ShapeError(f"replace: got a value of shape {value.shape}; expected the tensor's, {x.shape}")
        coat = self._place(x)
        if coat is None:
            raise _not_tracked(x)
        with self._lock:
            self._given[coat.node.age] = value

    def close(self) -> None:
        """Let go of the graph. What has been looked up with ``wrt=`` or replaced stays."""
        with self._lock:
            self._root = None
            self._passes = {}

    def run(self, wrt: Iterable["Tensor"] | None, retain_graph: bool) -> None:
        """Run the pass at once: for ``wrt``, after which only those are known, or for all variables."""
        with self._lock:
            assert self._root is not None
            if wrt is None:
                passing = self._on(self._root.value.tape).passing
                passing.run(passing.leaves(), free=True)
                return
            wanted = _tensors(wrt)
            coats = self.ahead(wanted, free=not retain_graph)
            for x, coat in zip(wanted, coats, strict=True):
                result = self._look(x)
                if coat is not None:
                    self._given[coat.node.age] = result
            self.close()

    def ahead(self, xs: "Iterable[Tensor]", free: bool = False) -> list[Tracked | None]:
        """One run of the pass for what several look-ups will ask for. ``free`` forgets what the graph has saved.

        Gives the coats that will be looked up.
        """
        with self._lock:
            coats = [self._common(x) for x in xs]
            for tape in dict.fromkeys([coat.tape for coat in coats if coat is not None]):
                passing = self._on(tape).passing
                nodes = [coat.node for coat in coats if coat is not None and coat.tape is tape]
                passing.run([n for n in nodes if passing.reaches(n)], free=free)
            return coats

    def _replacement(self, x: "Tensor") -> "Tensor | None":
        """What was computed with ``wrt=``, or replaced, for ``x``: for the very node that a look-up of ``x`` goes to."""
        if not self._given:
            return None
        coat = self._place(x)
        return None if coat is None else self._given.get(coat.node.age)

    def _place(self, x: "Tensor") -> Tracked | None:
        """The coat of ``x`` on the youngest tape that tracks both it and the root; its outermost one if there is no such tape."""
        coats = [coat for coat in worn(self._seen(x)) if isinstance(coat, Tracked)]
        return next((coat for coat in coats if coat.tape in self._tapes), coats[0] if coats else None)

    def _seen(self, x: "Tensor") -> Any:
        """The value of ``x``; where a trace with levels is running and the root is inside, as it is inside."""
        value, trace = _tensor(x).value, tracing.get()
        if trace is None or any(coat.tape in self._tapes for coat in worn(value)):
            return value
        trace.refuse_outer(value, self._tapes)
        return trace.bring(value)

    def _common(self, x: "Tensor") -> Tracked | None:
        """The coat of ``x`` on the youngest tape that tracks both it and the root."""
        coat, tapes = self._seen(x), self._tapes
        while isinstance(coat, Coat):
            if coat.tape in tapes and isinstance(coat, Tracked):
                return coat
            coat = coat.value
        if self._root is not None and (wire := next((c for c in worn(self._root.value) if isinstance(c, Wire)), None)) is not None:
            wire.refuse_captured(x.value)
        return None

    def _on(self, tape: Tape) -> "_OnTape":
        found = self._passes.get(tape)
        if found is None:
            assert self._root is not None
            found = self._passes[tape] = _OnTape(self._root, tape, self._seed)
        return found

    def _look(self, x: "Tensor") -> "Tensor":
        if self._root is None and isinstance(x, Handle):
            raise NotTrackedError(
                f"grad: these gradients were computed with wrt=[...] or closed, and do not know this tensor of shape {x.shape}. "
                "Try to add it to wrt, or backward() without wrt"
            )
        coat = self._common(x)
        if coat is None:
            raise self._unreached(x, None)
        if (batch := _batch_above(x, coat)) is not None:
            raise LevelError(
                f"grad: this tensor of shape {x.shape} holds samples of {batch.tape}, and {coat.tape} is under that level: "
                "a derivative there would be one for each sample. Try the tensor that was batched, or a variable of a level around that one"
            )
        at = self._on(coat.tape)
        if coat.tape.trace is not None:
            coat.tape.trace.check_history(coat.node, at.passing.reaches)
        if not at.passing.reaches(coat.node):
            raise self._unreached(x, coat.tape)
        result = at.result(x, at.passing.cotangent(coat.node))
        if self._check:
            self._independent(x, coat.tape, coat.node)
        return result

    def _unreached(self, x: "Tensor", tape: Tape | None) -> Exception:
        """Why the root does not reach ``x``: on ``tape``, the youngest that tracks both, or on none at all."""
        assert self._root is not None
        for wire in (c for c in worn(x.value) if isinstance(c, Wire)):
            wire.recording.check("grad")
        coats = [c for c in worn(self._seen(x)) if isinstance(c, Tracked) and (c.tape in self._tapes or not c.tape.closed)]
        if not coats:
            return _not_tracked(x)
        for coat in coats:
            moment = self._root.marks.get(coat.tape)
            if tape in (None, coat.tape) and moment is not None and moment >= coat.node.age:
                return LevelError(
                    f"grad: the result depends on this tensor of shape {x.shape} only through a value that was taken out of {coat.tape} "
                    f"({moment.story}). Try to differentiate on a level further in (one more Autodiff), or detach() it if it is a constant"
                )
        return NotConnectedError(
            f"grad: the result (level {self._level}) does not depend on this tensor of shape {x.shape}. "
            "Was it created anew, or sliced after the forward pass? Try grads.get(x), which gives None, if that can be"
        )

    def _independent(self, x: "Tensor", tape: Tape, node: Node) -> None:
        """One more pass, seeded with one random row: all other rows of the gradient must be zero."""
        at, root = self._on(tape), self._root
        assert root is not None
        shape, have = tuple(root.shape), tuple(x.shape)
        if not shape or not have or shape[0] != have[0]:
            raise ShapeError(f"check_independent: got a root of shape {shape} and an input of shape {have}; expected as many rows in both")
        row = random.randrange(shape[0]) if shape[0] else 0
        base = root.b.base
        seed = base.index_set(base.full(shape, 0.0, root.dtype), base.full((), 1.0, root.dtype), (row,))
        g = Pass(at.passing.b, at.passing.root, seed, tape).cotangent(node)
        if g is None:
            return
        found = root.b.read(g)
        others = base.index_set(found, base.full((), 0.0, base.dtype(found)), (row,))
        if bool(base.to_numpy(base.ne(others, 0.0)).any()):
            raise CoupledError(
                f"check_independent: row {row} of the result depends on other rows of the input of shape {have}, "
                "so the gradient of the sum is not the gradient of each sample. Try one backward(gradient=...) per row"
            )


class _OnTape:
    """The pass on one tape: the root taken down to it, its seed, and the marks of what is looked up."""

    __slots__ = ("b", "inner", "marks", "passing", "seed")

    def __init__(self, root: "Tensor", tape: Tape, seed: "Tensor | None") -> None:
        value, marks = root.value, root.marks
        while value.tape is not tape:
            marks = left(value, [value.tape], marks, "a derivative on a level further in")
            value = value.off()
        node = value.node
        marks = join(marks, {tape: Moment(node.age, "a derivative of a", node.name, "of shape", node.shape)})
        inner, b = value.value, root.b
        if seed is None:
            g = alike(b.base.full(tuple(node.shape), 1.0, b.dtype(inner)), inner)
        else:
            (inner, g), marks = settle([inner, seed.value], [marks, seed.marks])
        self.b, self.inner, self.marks = b, inner, marks
        self.seed = None if seed is None else g
        self.passing = Pass(b, node, g, tape)

    def result(self, x: "Tensor", g: Any) -> "Tensor":
        """What was looked up, as a Tensor of x's shape and dtype: tied to root and seed, and under the invariant of marks."""
        b = self.b
        if g is None:
            g = tied(_zeros(b, tuple(x.shape), x.value), self.seed, tuple(x.shape))
        elif b.dtype(g) != b.dtype(x.value):
            g = b.cast(g, b.dtype(x.value))
        if isinstance(self.inner, Coat):
            g = tied(g, self.inner, tuple(x.shape))
        value, marks = fitted(g, self.marks)
        return make(b, value, marks)


def _zeros(b: Any, shape: tuple[int, ...], like: Any) -> Any:
    """A raw array of zeros, of the dtype of ``like``: in the memory of one number, where the backend can."""
    zero = b.base.full((), 0.0, b.dtype(like))
    return b.base.broadcast_to(zero, shape) if shape else zero


def _batch_above(x: "Tensor", coat: Tracked) -> Coat | None:
    """The batch that ``x`` wears above ``coat``, if any: a derivative there is one for each sample, and not of x's shape."""
    if x.value is coat:
        return None
    return next((c for c in worn(x.value) if c.hidden and c.tape.birth > coat.tape.birth), None)


def _tracked_on(p: Any) -> list[Tape]:
    """Tapes that track a value, outermost first."""
    tapes = []
    while isinstance(p, Coat):
        if isinstance(p, Tracked):
            tapes.append(p.tape)
        p = p.value
    return tapes


def _tensor(x: Any) -> "Tensor":
    if not isinstance(x, Handle):
        raise NotTrackedError(f"grad: got a {type(x).__name__}, which is tracked on no level; expected a Tensor")
    return x  # type: ignore[return-value]


def _tensors(wrt: Any) -> "list[Tensor]":
    """``wrt`` as a list; one Tensor may stand for a list of it."""
    if isinstance(wrt, Handle) or not hasattr(wrt, "__iter__"):
        return [_tensor(wrt)]
    return [_tensor(x) for x in wrt]


def _not_tracked(x: "Tensor") -> NotTrackedError:
    ended = any(coat.tape.closed for coat in worn(x.value))
    return NotTrackedError(
        f"grad: this tensor of shape {x.shape} is tracked on no level{' any more, since its transform ended' if ended else ''}. "
        "Try stack.tensor(data, requires_grad=True); require_grad() and operators return new tensors, so keep what they return"
    )


def checked_seed(root: "Tensor", seed: Operand | None) -> "Tensor | None":
    """A seed for the backward pass of ``root``, as a Tensor.

    Raises:
        LevelError: If it is over another base backend.
        ShapeError: If its shape is not the root's.
    """
    if seed is None:
        return None
    if not isinstance(seed, Handle):
        seed = make(root.b, root.b.base.asarray(seed), NONE)
    if seed.b is not root.b and seed.b.base != root.b.base:
        raise LevelError(f"backward: got a gradient over {seed.b.base!r} for a root over {root.b.base!r}; expected one base backend")
    if tuple(seed.shape) != tuple(root.shape):  # type: ignore[attr-defined]
        raise ShapeError(
            f"backward: got a gradient of shape {seed.shape} for a root of shape {root.shape}; expected the same shape"  # type: ignore[attr-defined]
        )
    return seed  # type: ignore[return-value]

