"""The clauses of the level rules, each with a way to break it: what the tests of this folder must notice.

A mutant patches the mechanism. ``seen_by`` names the hand-written programs that must fail then (there may be more); ``fuzz`` tells how many
random programs, from number 0 on, are enough to see it (0: more than a test may take); ``law`` is a law of its own.

Three are not here, since others do their work as well. A seed is tested against the root; so is the result that it leads to, which is tied
to both. What comes off from under a level is marked with now; the age of its own coat would do, since a value depends on nothing younger.
What leaves a level that does not record is marked with always; any moment would do, since its coats are as old as can be.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import pytest

from nestgrad import func
from nestgrad.func import run
from nestgrad.levels import coats, level, marks, mixing
from nestgrad.levels.base import Coat, Tape
from nestgrad.levels.batched import Batch
from nestgrad.levels.reverse import backward, node
from nestgrad.levels.traced.wire import Wire
from nestgrad.tensor import Gradients, Tensor, create, differentiation, doors, gradients, handle

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Mutant:
    """A clause that is broken."""

    name: str
    patch: Callable[[Patch], None]
    seen_by: tuple[str, ...]
    fuzz: int
    law: Callable[[], bool] | None


MUTANTS: list[Mutant] = []


def mutant(*seen_by: str, fuzz: int = 0, law: Callable[[], bool] | None = None) -> Callable[[Callable[[Patch], None]], None]:
    """Add a mutant; programs are named by their first three letters."""

    def add(patch: Callable[[Patch], None]) -> None:
        MUTANTS.append(Mutant(patch.__name__, patch, seen_by, fuzz, law))

    return add


def everywhere(patch: Patch, function: Any, value: Any) -> None:
    """Patch a function in every module that has imported it."""
    for module in [m for name, m in sys.modules.items() if name.startswith("nestgrad")]:
        for name, found in list(vars(module).items()):
            if found is function:
                patch.setattr(module, name, value)


def tracked(x: Tensor) -> list[Any]:
    """Coats of levels that record, outermost first."""
    return [coat for coat in coats.worn(x.value) if isinstance(coat, node.Tracked)]


def leaf(tape: Tape, value: Any, shape: Any) -> Any:
    """``value`` as a new variable on one tape, whatever it wears."""
    return coats.variable(0.0, (tape,), shape).over(value)


@mutant("a01", "b05", "d14", "l13", fuzz=20)
def no_level_is_ever_taken_off(patch: Patch) -> None:
    patch.setattr(mixing, "_clash", lambda values, m: [])


@mutant("a19", "d17", "d18", fuzz=30)
def operands_on_the_same_levels_are_not_tested(patch: Patch) -> None:
    clash = mixing._clash

    def lenient(values: Any, m: Any) -> Any:
        return clash(values, m) if len({tuple(coat.tape for coat in coats.worn(p)) for p in values}) > 1 else []

    patch.setattr(mixing, "_clash", lenient)


@mutant("d11", "d21")
def the_earliest_moment_of_two_marks_counts(patch: Patch) -> None:
    def join(a: Any, b: Any) -> Any:
        return {t: min(x[t] for x in (a, b) if t in x) for t in {**a, **b} if not t.closed} or marks.NONE

    everywhere(patch, marks.join, join)


@mutant("a01", "d14", "l12", fuzz=20)
def a_value_is_as_old_as_itself(patch: Patch) -> None:
    patch.setattr(node.Tracked, "oldest", property(lambda coat: coat.node.age))


@mutant("b05", "b07", "l02", fuzz=60)
def a_new_variable_is_the_old_node(patch: Patch) -> None:
    patch.setattr(coats, "identity", lambda tape, value, before: before.over(value))


@mutant("b01", "b05", "c17", "d20", fuzz=20)
def a_new_variable_forgets_the_old_node(patch: Patch) -> None:
    patch.setattr(coats, "identity", lambda tape, value, before: leaf(tape, value, before.node.shape))


@mutant("a19", "c30", "h04", fuzz=100)
def a_new_variable_forgets_marks(patch: Patch) -> None:
    as_variable = differentiation.as_variable

    def forgetful(x: Any, tapes: Any) -> Any:
        made = as_variable(x, tapes)
        return handle.make(made.b, made.value, marks.NONE)

    patch.setattr(differentiation, "as_variable", forgetful)
    patch.setattr(create, "as_variable", forgetful)


@mutant("a01", "b05", "c11", "d14", fuzz=20)
def a_look_up_leaves_no_mark(patch: Patch) -> None:
    patch.setattr(gradients, "join", lambda a, b: a)


@mutant("l11", "l13")
def inner_leaves_no_mark(patch: Patch) -> None:
    patch.setattr(differentiation, "left", lambda p, tapes, m, *story: m)


@mutant("a14", "e02", "e06", "e14", "l05")
def derivatives_are_not_tied_to_their_root(patch: Patch) -> None:
    everywhere(patch, coats.tied, lambda g, root, shape: g)


@mutant("l12")
def zero_edges_do_not_make_a_value_older(patch: Patch) -> None:
    connection = coats.connection

    def young(value: Any, g: Any, root: Any, shape: Any) -> Any:
        made = connection(value, g, root, shape)
        made.node.lo = made.node.age if g is None else g.node.lo
        return made

    patch.setattr(coats, "connection", young)


@mutant("c30", fuzz=30)
def results_are_not_brought_under_the_invariant(patch: Patch) -> None:
    everywhere(patch, mixing.fitted, lambda p, m: (p, m))


@mutant("c10", "c11", fuzz=20)
def a_transforms_output_may_have_left_its_level(patch: Patch) -> None:
    inside = run.inside

    def lenient(name: str, out: Any, tape: Tape) -> Any:
        return inside(name, handle.make(out.b, out.value, {t: m for t, m in out.marks.items() if t is not tape}), tape)

    everywhere(patch, inside, lenient)


@mutant("l01", fuzz=80)
def an_argument_of_a_transform_is_the_old_node_on_older_levels(patch: Patch) -> None:
    everywhere(patch, run.renewed, lambda x, tapes=(): (leaf(tapes[0], x.value, x.shape) if tapes else x.value, x.marks))


@mutant(law=lambda: not func.grad(lambda x: x * x)(2.0).marks)
def tapes_of_transforms_do_not_close(patch: Patch) -> None:
    patch.setattr(Tape, "close", lambda tape: None)


@mutant("c01", "c29", "l07")
def stacks_do_not_stand_above_a_running_transform(patch: Patch) -> None:
    patch.setattr(level.Level, "tapes", property(lambda stack: stack._tapes))


@mutant("a01", "c16", "e02", "f02")
def a_look_up_takes_any_tape(patch: Patch) -> None:
    def oldest_common(self: Gradients, x: Tensor) -> Any:
        return next((coat for coat in reversed(tracked(x)) if coat.tape in self._tapes), None)

    patch.setattr(Gradients, "_common", oldest_common)


@mutant("l04")
def what_was_computed_for_one_is_given_to_another(patch: Patch) -> None:
    def replacement(self: Gradients, x: Tensor) -> Any:
        return next((self._given[coat.node.age] for coat in tracked(x) if coat.node.age in self._given), None)

    patch.setattr(Gradients, "_replacement", replacement)


@mutant("l03")
def a_removed_cotangent_does_not_go_on(patch: Patch) -> None:
    def forget(self: Any, n: Any) -> None:
        if n in self.asked and n is not self.root:
            self.asked.discard(n)
            self.cotangents.pop(n, None)
            self.dropped.add(n)

    patch.setattr(backward.Pass, "forget", forget)


@mutant("d05", "d09", "f04")
def detach_keeps_marks(patch: Patch) -> None:
    detach = Tensor.detach

    def kept(self: Tensor, level: Any = None) -> Tensor:
        made = detach(self, level)
        return handle.make(made.b, made.value, self.marks)

    patch.setattr(Tensor, "detach", kept)


# ---------------------------------------------------------------- coats with several parts, and those that do not record
@mutant("m10", "n07", fuzz=60)
def only_the_value_of_a_coat_is_asked_how_old_it_is(patch: Patch) -> None:
    everywhere(patch, coats.oldest, lambda p, tape: next((c.oldest for c in coats.worn(p) if c.tape is tape), inf))


@mutant("m10", "n07", fuzz=20)
def coats_come_off_the_value_alone(patch: Patch) -> None:
    def without(p: Any, tapes: Any) -> Any:
        if not isinstance(p, Coat):
            return p
        return without(p.off(), tapes) if p.tape in tapes else p.over(without(p.value, tapes))

    everywhere(patch, coats.without, without)


@mutant("m11", "n08")
def what_does_not_record_is_as_old_as_nothing(patch: Patch) -> None:
    patch.setattr(Coat, "oldest", property(lambda coat: inf))


@mutant("m11", "m13", "m14", "n08", "n09", fuzz=60)
def what_leaves_a_level_that_does_not_record_has_no_mark(patch: Patch) -> None:
    left = marks.left

    def lenient(p: Any, tapes: Any, m: Any, story: str) -> Any:
        return left(p, [t for t in tapes if t.records], m, story)

    everywhere(patch, left, lenient)


@mutant("m11", "n08")
def a_door_takes_what_has_left_the_level_for_a_constant(patch: Patch) -> None:
    leave = doors.leave
    patch.setattr(doors, "leave", lambda level, name, y, take, whole=True: leave(level, name, y, take, False))


@mutant("m19", "n12", "o16")
def a_derivative_is_tied_to_a_tracked_root_only(patch: Patch) -> None:
    tied = coats.tied
    everywhere(patch, tied, lambda g, root, shape: tied(g, root, shape) if isinstance(root, node.Tracked) else g)


@mutant("m19", "n12")
def a_derivative_is_not_tied_to_the_tangent_of_its_root(patch: Patch) -> None:
    tied = coats.tied

    def to_value(g: Any, root: Any, shape: Any) -> Any:
        return tied(g, root.over(root.value) if isinstance(root, node.Tracked) else getattr(root, "value", root), shape)

    everywhere(patch, tied, to_value)


@mutant("o09", fuzz=20)
def a_batch_can_leave(patch: Patch) -> None:
    patch.setattr(Batch, "off", lambda coat: coat.value)


@mutant("o10")
def a_derivative_by_samples_may_have_their_axis(patch: Patch) -> None:
    patch.setattr(gradients, "_batch_above", lambda x, coat: None)


@mutant("o15")
def detach_takes_samples_apart(patch: Patch) -> None:
    def constant(p: Any) -> Any:
        return coats.bare(p)

    everywhere(patch, coats.constant, constant)


@mutant("p03")
def detach_is_no_op_of_a_program(patch: Patch) -> None:
    patch.setattr(Wire, "detached", lambda coat, inner: coat.over(inner))
