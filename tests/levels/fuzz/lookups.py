"""Derivatives in the imperative style, in all their spellings, at once and late."""

from collections.abc import Callable
from typing import Any

from fuzz.ledger import merged, taken_out
from fuzz.pool import EXPECTED, Value, Wrong
from fuzz.steps import Steps
from fuzz.truth import Array, gradient
from nestgrad import Tensor
from nestgrad.errors import NotConnectedError, NotTrackedError, TraceError
from nestgrad.levels.coats import worn
from nestgrad.levels.marks import opened
from nestgrad.levels.reverse.node import Tracked
from nestgrad.levels.traced.wire import Wire


class LookUps(Steps):
    """Steps that differentiate. Abstract."""

    def differentiate(self, root: Value | None = None) -> Value | None:
        """A derivative, in one of its spellings."""
        root = root or self.some()
        x = self.some_variable(root)
        seed = self.seed_for(root) if self.chance(0.12) else None
        if seed is not None and not seed.small():
            return None
        args = "" if seed is None else f"gradient={seed.name}"
        how = self.random.choice(("x.grad", "x.grad", "wrt", "[]", "wrt=", "get", "remove", "in", "u.wrt"))
        if how == "u.wrt" and seed is None:
            return self.derived(f"{root.name}.wrt({x.name})", root, x, None, lambda: root.tensor.wrt(x.tensor))
        if how == "wrt=":
            return self.at_once(args, root, x, seed)
        try:
            grads = root.tensor.backward(gradient=None if seed is None else seed.tensor)
        except EXPECTED as error:
            self.raised(f"{root.name}.backward({args})", self.fits(root, x), error)
            raise
        g = f"{root.name}.backward({args})"
        if self.chance(0.4):
            g, old = self.fresh("G"), g
            self.line(f"{g} = {old}")
            self.namespace[g] = grads
            if seed is None:
                self.kept.append((g, grads, root, root.tensor.tracked_on(), None))
        looks: dict[str, tuple[str, Callable[[], Any]]] = {
            "x.grad": (f"{x.name}.grad({g})", lambda: x.tensor.grad(grads)),
            "wrt": (f"{g}.wrt({x.name})", lambda: grads.wrt(x.tensor)),
            "get": (f"{g}.get({x.name})", lambda: self.got(grads, x)),
            "remove": (f"{x.name}.grad_remove({g})", lambda: x.tensor.grad_remove(grads)),
            "in": (f"{g}[{x.name}]", lambda: self.asked(grads, x)),
        }
        code, look = looks.get(how, (f"{g}[{x.name}]", lambda: grads[x.tensor]))
        return self.derived(code, root, x, seed, look)

    def at_once(self, args: str, root: Value, x: Value, seed: Value | None) -> Value | None:
        """``backward(wrt=[...])``; looked up later by others too, which must not be given what was computed for these."""
        others = [x, self.some_variable(root)] if self.chance(0.5) else [x]
        free = self.chance(0.05)
        self.freed |= free
        code = f"{root.name}.backward({args or None}, wrt=[{', '.join(v.name for v in others)}], retain_graph={not free})"
        try:
            grads = root.tensor.backward(None if seed is None else seed.tensor, [v.tensor for v in others], not free)
        except EXPECTED as error:
            self.raised(code, min(self.fits(root, v) for v in others), error)
            raise
        g = self.fresh("G")
        self.line(f"{g} = {code}")
        self.namespace[g] = grads
        if seed is None:
            self.kept.append((g, grads, root, root.tensor.tracked_on(), {v.number for v in others if v.number is not None}))
        return self.derived(f"{x.name}.grad({g})", root, x, seed, lambda: x.tensor.grad(grads))

    def got(self, grads: Any, x: Value) -> Any:
        """``get``, and that it agrees with ``in``."""
        found = grads.get(x.tensor)
        assert (found is not None) == (x.tensor in grads)
        if found is None:
            raise NotConnectedError("get gave None")
        return found

    def asked(self, grads: Any, x: Value) -> Any:
        """``in`` tells whether there will be a derivative."""
        known = x.tensor in grads
        try:
            result = grads[x.tensor]
        except TraceError:  # what the pass reads has leaked
            raise
        except EXPECTED:
            assert not known
            raise
        assert known
        return result

    def fits(self, root: Value, x: Value, known: tuple[Any, ...] = ()) -> int:
        """The tapes on which the dependence of ``root`` on ``x`` is all recorded: open ones, and those that old gradients know."""
        assert x.number is not None
        tapes = self.tapes.mask(known) | (self.reachable(root) & self.tapes.open())
        return root.ledger.get(x.number, (0, 0))[0] & tapes

    def reachable(self, root: Value) -> int:
        """The tapes on which a pass from ``root`` can run: of levels that record, if one is outermost, and none under a batch or a wire."""
        tensor = root.tensor
        value, _ = opened(tensor.value, tensor.marks)
        if not isinstance(value, Tracked):
            return 0
        floors = [coat.tape.birth for coat in worn(value) if coat.hidden or isinstance(coat, Wire)]
        return self.tapes.since(max(floors, default=0.0)) & ~self.without_pass

    def derived(
        self, code: str, root: Value, x: Value, seed: Value | None, look: Callable[[], Tensor], tapes: tuple[Any, ...] | None = None
    ) -> Value:
        """Look a derivative up, count it, and put it into the pool."""
        fits = self.fits(root, x, tapes or ())
        tapes = root.tensor.tracked_on() if tapes is None else tapes
        its = [coat.tape for coat in worn(x.tensor.value) if isinstance(coat, Tracked)]
        tape = next((tape for tape in its if tape in tapes), its[0] if its else None)
        true = gradient(root.entries, x.nodes, None if seed is None else seed.entries, 0.0 if tape is None else tape.birth)
        try:
            result = look()
        except EXPECTED as error:
            self.raised(code, fits, error)
            if isinstance(error, NotConnectedError) and not self.zero(true):
                raise Wrong(f"{code}: NotConnectedError, but the derivative is {[e.value() for e in true]}") from error
            raise
        self.told(fits, true)
        assert fits or self.zero(true), f"{code}: nothing is left according to the ledger"
        best: Any = self.tapes.youngest(fits) if fits else tape
        # on a younger one still, if the root is only tied there: it is zero then
        ledger = taken_out(root.ledger, self.tapes.since(best.birth if tape is None else max(best.birth, tape.birth)))
        if seed is not None:
            ledger = merged(ledger, seed.ledger)
        return self.put(code, result, true, ledger)

    def told(self, fits: int, true: Array) -> None:
        """Count a derivative."""
        self.counts["derivatives"] += 1
        self.counts["derivatives not zero"] += not self.zero(true)
        self.counts["derivatives that fit"] += bool(fits)

    def zero(self, entries: Array) -> bool:
        """Whether all are zero, up to rounding."""
        return all(abs(e.value()) <= 1e-12 for e in entries)

    def raised(self, code: str, fits: int, error: Exception) -> None:
        """Count a derivative that raised."""
        if fits:
            self.line(f"# raised although it fits: {code}")
            self.counts["derivatives that fit"] += 1
            self.counts["raised although they fit"] += 1
            self.counts[f"raised although it fits: {type(error).__name__}{' (in a transform)' if self.depth else ''}"] += 1

    def late(self) -> Value | None:
        """A look-up long after the backward pass was asked for."""
        if not self.kept:
            return None
        g, grads, root, tapes, known = self.random.choice(self.kept)
        x = self.some_variable(root)
        if known is not None and x.number not in known:
            return self.unknown(g, grads, root, x, tapes)
        return self.derived(f"{x.name}.grad({g})", root, x, None, lambda: x.tensor.grad(grads), tapes)

    def unknown(self, g: str, grads: Any, root: Value, x: Value, tapes: tuple[Any, ...]) -> Value | None:
        """Ask gradients that were computed for others: an error, or right."""
        if x.tensor not in grads:
            try:
                grads.wrt(x.tensor)
            except NotTrackedError:
                return None
            raise AssertionError(f"{g}.wrt({x.name}) although {x.name} is not in {g}")
        return self.derived(f"{x.name}.grad({g})", root, x, None, lambda: x.tensor.grad(grads), tapes)
