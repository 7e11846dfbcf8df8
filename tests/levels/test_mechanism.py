"""What the rules rest on, tested on coats and marks directly: joining, taking off, opening, settling, fitting, tying."""

import itertools
from collections import Counter
from math import inf
from typing import Any

import numpy as np
import pytest
from fuzz.pool import LATEST
from fuzz.program import Program
from programs.case import d, stack, var

from nestgrad import Tensor, func
from nestgrad.levels.base import Tape, running
from nestgrad.levels.coats import bare, oldest, on, tied, variable, without, worn
from nestgrad.levels.marks import NONE, Moment, join, left, opened
from nestgrad.levels.mixing import fitted, settle
from nestgrad.levels.reverse.node import Tracked


def tapes(p: Any) -> list[Tape]:
    """Tapes of the coats, outermost first."""
    return [coat.tape for coat in worn(p)]


def on_tapes(*which: Tape, value: Any = 1.0) -> Any:
    """A new variable on these tapes, oldest first."""
    return variable(np.asarray(value), which, ())


@pytest.fixture
def old() -> Tape:
    return Tape("Autodiff", 1)


@pytest.fixture
def young(old: Tape) -> Tape:
    return Tape("Autodiff", 2)


# ---------------------------------------------------------------- the invariant
@pytest.mark.parametrize("seed", range(40))
def test_what_a_tensor_has_recorded_on_a_tape_is_younger_than_its_mark_of_that_tape(seed: int):
    """Of every value of random programs; coats stand youngest outermost, parents are older than children, lo is the oldest variable."""
    program = Program(seed, Counter())
    program.run(25)
    for value in program.pool:
        x = value.tensor
        births = [tape.birth for tape in tapes(x.value)]
        assert births == sorted(births, reverse=True)
        for tape, moment in x.marks.items():
            assert oldest(x.value, tape) > min(moment, LATEST)
        for coat in (c for c in worn(x.value) if isinstance(c, Tracked)):
            parents = [parent for parent, _, _ in coat.node.edges or ()]
            assert all(parent.age < coat.node.age for parent in parents)
            assert coat.oldest == coat.node.lo <= coat.node.age == coat.moment
            assert coat.node.edges is None or coat.node.lo == min((parent.lo for parent in parents), default=coat.node.age)


# ---------------------------------------------------------------- marks
def test_join_keeps_the_latest_moment_of_each_tape(old: Tape, young: Tape):
    a, b = {old: Moment(3, "a"), young: Moment(9, "a")}, {old: Moment(5, "b")}
    assert join(a, b) == join(b, a) == {old: 5, young: 9}
    assert join(a, b)[old].story == "b"
    assert a[old] == 3


def test_join_with_nothing_makes_no_new_object(old: Tape):
    a = {old: Moment(3, "a")}
    assert join(a, NONE) is a
    assert join(NONE, a) is a
    assert join(a, a) is a


def test_join_forgets_tapes_that_have_ended(old: Tape, young: Tape):
    young.close()
    assert join({young: Moment(9, "a")}, {old: Moment(5, "b")}) == {old: 5}
    assert join({young: Moment(9, "a")}, {young: Moment(5, "b")}) is NONE


def test_left_marks_the_outermost_with_its_age_and_what_is_under_it_with_now(old: Tape, young: Tape):
    p = on_tapes(old, young)
    inner, outer = on(p, old), on(p, young)
    assert left(p, [young], NONE, "out") == {young: outer.node.age}
    marks = left(p, [old], NONE, "off")
    assert marks[old] > max(inner.node.age, outer.node.age)
    assert marks[old].story == "off"
    assert left(p, [Tape("Autodiff", 1)], NONE, "not worn") is NONE


# ---------------------------------------------------------------- opening
def test_coats_and_marks_of_ended_tapes_are_transparent(old: Tape, young: Tape):
    middle = Tape("grad", 2)
    youngest = Tape("Autodiff", 3)
    p = on_tapes(old, young, middle, youngest)
    marks = {middle: Moment(1, "a"), old: Moment(0, "b")}
    middle.close()
    value, still = opened(p, marks)
    assert tapes(value) == [youngest, young, old]
    assert still == {old: 0}
    assert on(value, youngest).node is on(p, youngest).node


def test_what_is_open_is_given_back_as_it_is(old: Tape):
    p, marks = on_tapes(old), {old: Moment(0, "b")}
    value, still = opened(p, marks)
    assert value is p
    assert still is marks


def test_closing_closes_what_stands_in(old: Tape):
    transform = Tape("grad", 1)
    stand_ins = transform.above((old, Tape("Autodiff", 2)))
    assert [tape.number for tape in stand_ins] == [2, 3]
    assert transform.above((old,)) == stand_ins[:1]
    transform.close()
    assert all(tape.closed for tape in stand_ins)
    assert not old.closed
    assert not transform.stand_ins


# ---------------------------------------------------------------- settling
def test_settle_takes_a_tape_off_everybody_when_one_is_tracked_by_what_is_older_than_the_mark(old: Tape, young: Tape):
    x, y = on_tapes(old, young), on_tapes(young)
    moment = Moment(on(x, young).node.age, "taken out")
    values, marks = settle([x, y, np.asarray(1.0)], [NONE, NONE, {young: moment}])
    assert [tapes(v) for v in values] == [[old], [], []]
    assert marks[young] >= on(y, young).node.age


def test_settle_leaves_a_tape_on_that_is_tracked_by_younger_variables_alone(old: Tape):
    mark = {old: Moment(on(on_tapes(old), old).node.age, "taken out")}
    y = on_tapes(old)
    values, marks = settle([y, np.asarray(1.0)], [NONE, mark])
    assert values[0] is y
    assert marks is mark


def test_settle_looks_at_the_oldest_variable_not_at_the_value_itself():
    s = stack(2)
    x = var(s, 1.2)
    ux = d(x**3, x)
    late = x * var(s, 0.5)  # younger than the mark, but it depends on x
    assert (late * ux).tracked_on() == (s.inner.tape,)


def test_fitted_takes_off_what_is_as_old_as_the_mark(old: Tape, young: Tape):
    p = on_tapes(old, young)
    age = on(p, young).node.age
    value, marks = fitted(p, {young: Moment(age, "m")})
    assert tapes(value) == [old]
    assert marks[young] == age
    value, _ = fitted(p, {young: Moment(age - 1, "m")})
    assert value is p


def test_taking_off_keeps_the_other_coats_nodes(old: Tape, young: Tape):
    middle = Tape("Autodiff", 2)
    p = on_tapes(old, young, middle)
    q = without(p, {young})
    assert tapes(q) == [middle, old]
    assert [coat.node for coat in worn(q)] == [on(p, middle).node, on(p, old).node]
    assert without(p, ()) is p
    assert bare(p) is bare(q)


# ---------------------------------------------------------------- tying
def wears(*which: Tape) -> Any:
    """A value with a leaf on each of these tapes."""
    return variable(np.asarray(0.0), sorted(which, key=lambda tape: tape.birth), ())


@pytest.mark.parametrize(("mine", "its"), list(itertools.product(["", "0", "1", "2", "01", "02", "12", "012"], repeat=2)))
def test_tied_connects_on_every_level_of_the_root_and_keeps_what_was_there(mine: str, its: str):
    all_tapes = [Tape("Autodiff", k + 1) for k in range(3)]
    g, root = (wears(*(all_tapes[int(k)] for k in which)) for which in (mine, its))
    t = tied(g, root, ())
    assert tapes(t) == [all_tapes[k] for k in (2, 1, 0) if str(k) in mine + its]
    for coat in worn(t):
        own, roots = on(g, coat.tape), on(root, coat.tape)
        parents = [parent for parent, _, _ in coat.node.edges]
        if roots is None:
            assert coat.node is own.node
        else:
            assert parents == ([] if own is None else [own.node]) + [roots.node]
            assert coat.node.edges[-1][1] is None  # passes nothing
            assert coat.node.lo == min(parent.lo for parent in parents)


def test_variables_are_leaves_and_identities():
    low, mid, high = (Tape("Autodiff", k) for k in (1, 2, 3))
    p = wears(low, high)
    q = variable(p, (mid,), ())
    assert tapes(q) == [high, mid, low]
    assert on(q, mid).node.edges == ()
    for tape in (low, high):
        ((parent, _, _),) = on(q, tape).node.edges
        assert parent is on(p, tape).node
        assert on(q, tape).node.lo == parent.lo
        assert on(q, tape).node is not parent


def test_a_constant_is_as_old_as_nothing(old: Tape):
    assert oldest(np.asarray(1.0), old) == inf
    assert on(np.asarray(1.0), old) is None
    assert oldest(on_tapes(old), old) < inf


def test_untracked_results_record_nothing():
    s = stack(2)
    x = s.tensor(np.ones(3))
    y = ((x * 2.0).sin() @ x).exp()
    assert isinstance(y.value, np.ndarray | np.floating)
    assert y.tracked_on() == ()


def test_running_is_restored_when_a_transform_fails():
    def fail(x: Tensor) -> Tensor:
        raise KeyError("inside")

    with pytest.raises(KeyError):
        func.grad(fail)(1.0)
    assert running.get() is None
