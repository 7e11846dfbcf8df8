"""What a program cannot hold is refused, with the way out; nothing of one run is baked in silently."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import X, Y

import nestgrad as ng
from nestgrad import func
from nestgrad.errors import ConversionError, DTypeError, IndexRangeError, LevelError, NestgradError, ShapeError, TraceError

x0, y0 = ng.tensor(X), ng.tensor(Y)
S = ng.Autodiff(ng.NumpyBackend())

NUMBERS = r"^trace: got a traced .* whose numbers must be known here.*expected nothing but functions.*Try ng\.where\(cond, a, b\)"
ENTRIES = r"^trace: got a traced .* whose entries must be known here.*expected shapes and places.*Try ng\.where\(mask, x, 0\.0\)"

LEAVING: dict[str, tuple[Callable[[Any], Any], str]] = {
    "if": (lambda x: x if x.sum() > 0 else -x, NUMBERS),
    "float": (lambda x: x * float(x.sum()), NUMBERS),
    "int": (lambda x: x[int(x.argmax(axis=0))], NUMBERS),
    "slice": (lambda x: x[: x.argmax(axis=0)], NUMBERS),
    "item": (lambda x: x * x[0].item(), NUMBERS),
    "numpy": (lambda x: x * x.numpy(), NUMBERS),
    "asarray": (lambda x: x * np.asarray(x), NUMBERS),
    "tolist": (lambda x: ng.tensor(x.tolist()), NUMBERS),
    "in": (lambda x: x * (1.0 in x), NUMBERS),
    "mask": (lambda x: x[x > 0].sum(), ENTRIES),
    "set by a mask": (lambda x: x.at[x > 0].set(0.0), ENTRIES),
    "set by rows": (lambda x: x.at[(x > 0).astype("int64")].add(1.0), ENTRIES),
    "inside a derivative": (lambda x: func.grad(lambda z: (z[z > 0] ** 2).sum())(x), ENTRIES),
    "under a level": (lambda x: S.tensor(x, requires_grad=True).sum().item() * x, NUMBERS),
}


@pytest.mark.parametrize("name", LEAVING)
def test_leaving_for_python_is_refused(name: str):
    f, text = LEAVING[name]
    with pytest.raises(TraceError, match=text):
        ng.func.trace(f)(x0)


def test_a_trace_error_is_a_runtime_error_of_the_library():
    assert issubclass(TraceError, NestgradError) and issubclass(TraceError, RuntimeError)


def test_what_is_recommended_works():
    program = ng.func.trace(lambda x: ng.where(x > 0, x, 0.0).sum())(x0)
    assert ng.func.call(program, y0).item() == pytest.approx(1.3)
    labels = ng.tensor([2, 0])
    assert ng.func.call(ng.func.trace(lambda x: x[labels])(x0), y0).tolist() == [Y[2], Y[0]]


def test_random_draws_inside_are_refused():
    generator = ng.random.generator(0)
    text = r"got a draw inside a trace.*Try to draw outside, and make the numbers an argument"
    for draw in (ng.random.normal, ng.random.uniform):
        with pytest.raises(TraceError, match=rf"^random\.{draw.__name__}: {text}"):
            ng.func.trace(lambda x, draw=draw: x + draw(3, generator))(x0)
    noise = ng.random.normal(3, generator)  # after a trace that failed
    np.testing.assert_allclose(ng.func.call(ng.func.trace(lambda x, n: x + n)(x0, noise), x0, noise).numpy(), np.array(X) + noise.numpy())


def test_random_draws_while_a_level_records_are_refused():
    generator = ng.random.generator(0)
    T = ng.Traced(ng.NumpyBackend())
    ng.random.normal(3, generator)
    x = T.input(X)
    with pytest.raises(TraceError, match="draw inside a trace"):
        ng.random.normal(3, generator)
    T.program(x * 2.0)
    ng.random.normal(3, generator)
    other = ng.Traced(ng.NumpyBackend())
    other.input(X)
    del other  # nobody can record with it any more
    ng.random.normal(3, generator)


def test_detach_by_level_is_refused_inside():
    for level in (S, 1):
        with pytest.raises(TraceError, match=r"^detach: got level=.* inside a trace, whose program has no levels.*Try detach\(\)"):
            ng.func.trace(lambda x, level=level: x * x.detach(level=level))(x0)


LEAKED = r"got a value that leaked from a trace \(trace\), which has ended.*Try to return it from the traced function"


@pytest.mark.parametrize("use", [
    lambda t: t * 2.0, lambda t: t.sum(), lambda t: t.numpy(), lambda t: t.detach(), lambda t: bool(t[0] > 0), lambda t: x0[t > 0],
    lambda t: func.grad(lambda z: (z * t).sum())(x0), lambda t: ng.func.call(ng.func.trace(lambda z: z * 2.0)(x0), t),
], ids=["mul", "sum", "numpy", "detach", "bool", "mask", "grad", "call"])  # fmt: skip
def test_what_leaks_from_a_trace_is_refused(use: Callable[[Any], Any]):
    leaked = []
    ng.func.trace(lambda x: leaked.append(x.sin()) or x * 2.0)(x0)
    with pytest.raises(TraceError, match=LEAKED):
        use(leaked[0])


def test_what_leaks_from_a_trace_that_failed_is_refused():
    leaked = []
    with pytest.raises(ShapeError):
        ng.func.trace(lambda x: leaked.append(x) or x @ ng.zeros((2, 2)))(x0)
    with pytest.raises(TraceError, match=LEAKED):
        leaked[0].exp()


def test_variables_and_gradients_that_leak_are_refused():
    leaked = []

    def f(x: Any) -> Any:
        x = S.tensor(x, requires_grad=True)
        y = (x**3).sum()
        leaked.extend([x, y.backward()])
        return y

    ng.func.trace(f)(x0)
    with pytest.raises(TraceError, match=LEAKED):
        leaked[0] * 1.0
    with pytest.raises(TraceError, match=LEAKED):
        leaked[1].wrt(leaked[0])


def test_a_leaked_tensor_can_be_looked_at():
    leaked = []
    ng.func.trace(lambda x: leaked.append(x) or x)(x0)
    assert leaked[0].shape == (3,) and "shape (3,)" in repr(leaked[0])


def test_an_argument_is_on_no_level_inside():
    x = S.tensor(X, requires_grad=True)
    with pytest.raises(TraceError, match=r"^backward: inside a trace, .* Try x = S\.tensor\(x, requires_grad=True\) in the traced"):
        ng.func.trace(lambda x: (x**2).sum().wrt(x))(x)


def test_an_argument_comes_in_without_its_levels():
    seen = []
    x = S.tensor(X, requires_grad=True)
    ng.func.trace(lambda x: seen.append((x.tracked_on(), x.level, dict(x.marks))) or x)(x * (x**2).sum().wrt(x))
    assert seen == [((), 0, {})]


def test_a_captured_variable_cannot_be_differentiated_by_inside():
    w = S.tensor(Y, requires_grad=True)

    def f(x: Any, look: Callable[[Any, Any], Any]) -> Any:
        x = S.tensor(x, requires_grad=True)
        return look((x * w).sum().backward(), w)

    for look in (lambda g, w: g.wrt(w), lambda g, w: g.get(w), lambda g, w: x0 * (w in g)):
        with pytest.raises(TraceError, match=r"^grad: got a tensor that is a variable outside of the trace.*Try to make it an argument"):
            ng.func.trace(f)(x0, look=look)


def test_a_level_records_one_program():
    T = ng.Traced(ng.NumpyBackend())
    x = T.input(X)
    T.program(x)
    for late, name in ((lambda: T.input(X), "input"), (lambda: T.program(x), "program")):
        with pytest.raises(TraceError, match=rf"^{name}: Traced\(numpy\) has recorded its program already.*Try a new Traced"):
            late()


def test_what_is_no_tensor_is_no_output():
    with pytest.raises(TraceError, match=r"^trace: the function returned a str as output 1; expected a Tensor over numpy"):
        ng.func.trace(lambda x: (x, "text"))(x0)
    with pytest.raises(TraceError, match=r"^trace: the function returned a Tensor over torch\(float64\) as output 0"):
        ng.func.trace(lambda x: ng.TorchBackend(dtype="float64").tensor(X))(x0)


def test_arguments_of_a_call_must_fit():
    program = ng.func.trace(lambda x, p: x * p[0])(x0, [y0])
    with pytest.raises(ShapeError, match=r"^call: got arguments \(\*\); expected \(\*, \[\*\]\), as those of the trace"):
        ng.func.call(program, x0)
    with pytest.raises(ShapeError, match=r"^call: got shape \(2,\) for input v1: float64\[3\]; expected that shape.*Try trace\(f\)"):
        ng.func.call(program, x0, [ng.zeros(2)])
    with pytest.raises(DTypeError, match=r"^call: got dtype float32 for input v0: float64\[3\]; expected that dtype. Try x\.astype"):
        ng.func.call(program, x0.astype("float32"), [y0])
    with pytest.raises(LevelError, match=r"^call: got a tensor over torch\(float64\) beside one over numpy; expected one base backend"):
        ng.func.call(program, ng.TorchBackend(dtype="float64").tensor(X), [y0])
    with pytest.raises(TraceError, match=r"^call: got a function; expected a program. Try trace\(f\)"):
        ng.func.call(lambda x: x, x0)
    with pytest.raises(TraceError, match=r"^replay: got 1 inputs; expected 2, one for each Tensor"):
        program.replay(ng.NumpyBackend(), [x0.value])


def test_traced_positions_out_of_range_raise_when_the_program_runs():
    program = ng.func.trace(lambda x, rows: x[rows])(x0, ng.tensor([0, -1]))
    for far in (3, -4):
        with pytest.raises(IndexRangeError, match=r"^rows: got shape \(3,\), shape \(2,\)"):
            ng.func.call(program, x0, ng.tensor([0, far]))


def test_arguments_of_a_trace_must_fit():
    with pytest.raises(LevelError, match=r"^trace: got a tensor over torch\(float64\) beside one over numpy; expected one base backend"):
        ng.func.trace(lambda x, y: x)(x0, ng.TorchBackend(dtype="float64").tensor(X))


def test_a_tracked_number_says_first_what_leaving_loses():
    """As everywhere, ``float`` of a tracked Tensor names ``item``, which then tells of the trace."""
    with pytest.raises(ConversionError, match=r"Try x\.item\(\)"):
        ng.func.trace(lambda x: x * float(S.tensor(x, requires_grad=True).sum()))(x0)
