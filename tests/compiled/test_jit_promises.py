"""What the page on jit promises, and no other test asks for."""

import argparse
from collections import UserDict, deque
from collections.abc import Callable
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from likeness import DOUBLE, alike, stacked, var

import nestgrad as ng
from nestgrad import func, jit
from nestgrad.compiled import choice
from nestgrad.compiled.executors import replay
from nestgrad.compiled.function import MOST
from nestgrad.errors import CompileWarning, LevelError, TraceError

BASE = DOUBLE["numpy"]
X = np.array([0.5, -1.5])

# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize("where", ["root", "gradients"])
def test_an_argument_is_not_looked_up_in_gradients_of_what_was_made_outside(where: str):
    x = var(stacked(BASE, 2), X)
    y = (x**3).sum()
    gradients = y.backward()
    looks: dict[str, Callable[[Any], Any]] = {"root": lambda v: y.wrt(v), "gradients": lambda v: v.grad(gradients)}
    g = jit(looks[where])
    for _ in range(2):
        with pytest.raises(LevelError, match="look up in gradients of what was made outside; expected both inside or both outside"):
            g(x)
    assert g.stats().entries == 0
    alike(jit(lambda v, root: root.wrt(v))(x, x), x.wrt(x))  # the way out: both are arguments


def _levels() -> dict[str, tuple[Callable[[Any], Any], Any]]:
    F, T, B = ng.Forward(BASE), ng.Taylor(BASE, order=2), ng.Batched(BASE)
    x = BASE.tensor(X)
    return {
        "tangent": (F.tangent, F.dual(x, x)),
        "terms": (T.terms, T.series(x, x)),
        "unbatch": (B.unbatch, B.batch(BASE.tensor([X, X]))),
    }


@pytest.mark.parametrize("name", _levels())
def test_a_level_that_arguments_live_on_is_taken_apart_outside(name: str):
    apart, x = _levels()[name]
    with pytest.raises(TraceError, match=f"^{name}: inside jit, got a level .* expected it to be taken apart outside"):
        jit(lambda v: apart(v * v))(x)
    alike(apart(jit(lambda v: v * v)(x)), apart(x * x))


# ------------------------------------------------------------------ when it is traced again


def test_derivatives_of_all_orders_are_programs_and_made_once(monkeypatch: pytest.MonkeyPatch):
    programs: list[Any] = []

    def noted(program: Any) -> Any:
        programs.append(program)
        return replay(program)

    monkeypatch.setitem(choice.EXECUTORS, "replay", noted)
    g = jit(lambda x: (x**4).sum(), executor="replay")
    x = var(stacked(BASE, 3), X)
    made = []
    for _ in range(3):
        for k, want in enumerate((4.0 * X**3, 12.0 * X**2, 24.0 * X), start=1):
            out = g(x)
            for _ in range(k):
                out = out.sum().wrt(x)
            np.testing.assert_allclose(out.numpy(), want, rtol=1e-14)
        made.append(len(programs))
    assert made[0] >= 4 and made[1:] == made[:1] * 2 and g.stats().traces == 1


def test_another_run_of_a_transform_finds_the_old_trace():
    g = jit(lambda x: (x**3).sum())
    for transform in (func.grad, lambda h: func.grad(lambda x: func.grad(h)(x).sum()), func.hessian):
        traces = []
        for factor in (1.0, 2.0, 3.0):
            transform(g)(factor * X)
            traces.append(g.stats().traces)
        assert len(set(traces)) == 1, g.stats()


HELD = {"w": 2.0}


class Listed(list[float]):
    """A list with an attribute."""

    w = 2.0


class Held:
    """An object with an attribute of its class."""

    w = 2.0


CHANGES: dict[str, tuple[Any, Callable[[Any], float], Callable[[Any], Any]]] = {
    "a list": ([2.0], lambda held: held[0], lambda held: held.__setitem__(0, 5.0)),
    "a dictionary": ({"w": 2.0}, lambda held: held["w"], lambda held: held.update(w=5.0)),
    "a namespace": (SimpleNamespace(w=2.0), lambda held: held.w, lambda held: setattr(held, "w", 5.0)),
    "options": (argparse.Namespace(w=2.0), lambda held: held.w, lambda held: setattr(held, "w", 5.0)),
    "a dictionary of another class": (UserDict(w=2.0), lambda held: held["w"], lambda held: held.update(w=5.0)),
    "an attribute of a list": (Listed([1.0]), lambda held: held.w, lambda held: setattr(held, "w", 5.0)),
    "an attribute that hides its class's": (Held(), lambda held: held.w, lambda held: setattr(held, "w", 5.0)),
    "a view of a dictionary": (MappingProxyType(HELD), lambda held: held["w"], lambda held: HELD.update(w=5.0)),
    "a deque": (deque([2.0, 3.0]), lambda held: held[0], lambda held: held.popleft()),
    "a set that grows": ({2.0}, max, lambda held: held.add(5.0)),
    "a set with another item": ({2.0}, max, lambda held: (held.add(5.0), held.remove(2.0))),
    "an object in a set": ({np.ones(1).tobytes, max}, len, lambda held: held.pop()),
}


@pytest.mark.parametrize("name", CHANGES)
def test_containers_that_are_closed_over_are_compared(name: str):
    held, read, change = CHANGES[name]
    f = lambda x: x * read(held)
    g = jit(f)
    for k in range(4):
        alike(g(ng.tensor(X)), f(ng.tensor(X)))
        if k == 1:
            change(held)
    assert g.stats().traces == 2


def test_an_attribute_that_the_function_makes_is_compared_from_then_on():
    class Net:
        def __call__(self, x: Any) -> Any:
            if not hasattr(self, "w"):
                self.w = 2.0
            return x * self.w

    net = Net()
    g = jit(net)
    for _ in range(3):
        alike(g(ng.tensor(X)), ng.tensor(2.0 * X))
    assert g.stats().traces <= 2
    net.w = 5.0
    alike(g(ng.tensor(X)), ng.tensor(5.0 * X))


def test_what_is_no_array_and_no_float_is_told_apart_by_value():
    g = jit(lambda x, n, flag, word: x * n if flag else x + len(word))
    calls = [(n, flag, word) for n in (1, 2) for flag in (True, False) for word in ("a", "bc")]
    for _ in range(2):
        for n, flag, word in calls:
            alike(g(ng.tensor(X), n, flag, word), ng.tensor(X) * n if flag else ng.tensor(X) + len(word))
    assert g.stats().traces == len(calls)


def test_a_float_beside_several_floating_dtypes_is_part_of_the_signature():
    f = lambda a, b, c: (a * c, b * c)
    g = jit(f)
    a, b = ng.tensor(X), ng.tensor(X, dtype="float32")
    for c in (2.0, 3.0, 2.0):
        alike(g(a, b, c), f(a, b, c))
    assert g.stats().traces == 2
    one = jit(f)
    for c in (2.0, 3.0):
        one(a, a, c)
    assert one.stats().traces == 1


def test_the_oldest_trace_goes_first():
    g = jit(lambda x: x * 2.0)
    for n in range(MOST + 1):
        g(ng.ones(n))
    assert MOST == 64 == g.stats().entries
    traces = g.stats().traces
    g(ng.ones(1)), g(ng.ones(MOST))  # the second one and the last one are there
    assert g.stats().traces == traces
    g(ng.ones(0))
    assert g.stats().traces == traces + 1


def test_reasons_name_each_argument_by_its_place():
    g = jit(lambda x, n, m=0, *, tree=None: x * n)
    x = ng.tensor(X)
    for args, named in (((x, 1), {}), ((x, 2), {}), ((x, 2, 3), {}), ((x, 2, 4), {}), ((x, 2), {"tree": {"w": [x]}}),
                        ((x, 2), {"tree": {"w": [x.sum()]}})):  # fmt: skip
        g(*args, **named)
    reasons = g.stats().reasons
    assert reasons[1] == "argument 1: 1 became 2" and reasons[3] == "argument 2: 3 became 4"
    assert reasons[5] == "argument 'tree'['w'][0]: float64[2] became float64[]"


# ------------------------------------------------------------------ the program


def test_a_jitted_function_inside_becomes_a_part_of_the_program():
    inner = jit(lambda x: x.sin())
    outer = jit(lambda x: inner(x) * x)
    alike(outer(ng.tensor(X)), ng.tensor(X).sin() * X)
    traced, _ = outer.program(ng.tensor(X))
    assert [step.op.name for step in traced.instructions] == ["sin", "mul"]
    assert inner.stats().calls == inner.stats().traces == 0


def test_an_operation_of_ones_own_is_neither_merged_nor_moved():
    """Each of two equal calls runs, in the order in which they were written."""
    ran: list[str] = []

    def noted(name: str) -> Any:
        return ng.define(f"{name}(x)", "linear", lambda b, g: g, kernels={"numpy": lambda x: ran.append(name) or x * 1.0})

    one, two = noted("promised_one"), noted("promised_two")
    for executor in ("replay", "numpy"):
        g = jit(lambda x: one(x) + two(x) + one(x) + one(ng.broadcast_to(x, (3, 2))).sum(axis=0), executor=executor)
        g(ng.tensor(X))
        ran.clear()
        alike(g(ng.tensor(X)), ng.tensor(X) * 6.0)
        assert ran == ["promised_one", "promised_two", "promised_one", "promised_one"]


# ------------------------------------------------------------------ who runs it


def test_auto_is_memory_that_is_used_again_where_it_is_offered_and_never_a_compiler(monkeypatch: pytest.MonkeyPatch):
    class Plain(ng.NumpyBackend):
        memory = None

    monkeypatch.setattr(ng.TorchBackend, "compiled", lambda *_: pytest.fail("nobody asked for it by name"))
    for base, name in ((BASE, "numpy"), (DOUBLE["torch"], "replay"), (Plain(), "replay")):
        g = jit(lambda x: x * x.sin())
        assert g.executor is None
        alike(g(base.tensor(X)), base.tensor(X) * base.tensor(X).sin())
        assert g.executor == g.stats().executor == name


def test_a_compiler_that_fails_is_told_of_once_and_the_call_works(monkeypatch: pytest.MonkeyPatch):
    def fails(*_: Any) -> Any:
        raise RuntimeError("no room")

    monkeypatch.setattr(ng.TorchBackend, "compiled", fails)
    g = jit(lambda x: x.sin() * x, executor="torch.compile")
    x = DOUBLE["torch"].tensor(X)
    with pytest.warns(CompileWarning, match="RuntimeError: no room") as told:
        for _ in range(3):
            alike(g(x), x.sin() * x)
    assert len(told) == 1
