"""What a compiled function cannot be is refused, with the place and the way out; and errors of the function itself come through."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from likeness import alike, outcome, stacked, var

import nestgrad as ng
from nestgrad import func, jit
from nestgrad.errors import (
    BackendError,
    ConversionError,
    DTypeError,
    LevelError,
    NestgradError,
    NotConnectedError,
    NotTrackedError,
    ShapeError,
    TraceError,
)

X, Y = [0.3, -0.7, 1.1], [0.9, 0.4, -0.2]


def x() -> ng.Tensor:
    return ng.tensor(X)


# ------------------------------------------------------------------ leaving for Python

LEAVING: dict[str, Callable[[Any], Any]] = {
    "if": lambda x: x if x.sum() > 0 else -x,
    "while": lambda x: x * next(k for k in range(9) if x.sum() < k),
    "float": lambda x: x * float(x.sum()),
    "int": lambda x: x[int(x.argmax(axis=0))],
    "slice": lambda x: x[: x.argmax(axis=0)],
    "item": lambda x: x * x[0].item(),
    "numpy": lambda x: x * x.numpy(),
    "asarray": lambda x: x * np.asarray(x),
    "tolist": lambda x: ng.tensor(x.tolist()),
    "in": lambda x: x * (1.0 in x),
    "mask": lambda x: x[x > 0].sum(),
    "set by a mask": lambda x: x.at[x > 0].set(0.0),
    "in a derivative": lambda x: func.grad(lambda z: (z[z > 0] ** 2).sum())(x),
    "format": lambda x: x * len(f"{x[0]:.3f}"),
    "range": lambda x: x * sum(range(x.argmax(axis=0))),
    "compare and choose": lambda x: max(x[0], x[1]) * x,
}


@pytest.mark.parametrize("levels", [0, 2])
@pytest.mark.parametrize("name", LEAVING)
def test_leaving_for_python_is_refused(name: str, levels: int):
    """Of data and of variables; at every call, since nothing of a failed trace is kept."""
    f = LEAVING[name]
    g = jit(f)
    z = x() if not levels else var(stacked(ng.NumpyBackend(), levels), X)
    for _ in range(2):
        with pytest.raises((TraceError, ConversionError, TypeError)) as caught:
            g(z)
        assert isinstance(caught.value, NestgradError) or name == "format"
    assert g.stats().entries == 0


def test_the_message_tells_the_line_and_the_way_out():
    def f(x: Any) -> Any:
        y = x * 2.0
        if y.sum() > 0:
            y = -y
        return y

    lines, first = inspect.getsourcelines(f)
    line = first + next(k for k, text in enumerate(lines) if "if y.sum()" in text)
    with pytest.raises(TraceError, match=rf"(?s)test_jit_errors\.py.*{line}.*") as caught:
        jit(f)(x())
    assert "ng.where(cond, a, b)" in str(caught.value)
    assert "static_argnames" in str(caught.value)


def test_closed_over_tensors_may_be_read():
    """They are the same at the next call, or it is another trace: so a branch on them is fine."""
    w = ng.tensor(2.0)
    flag = True
    f = lambda z: z * w if w > 1.0 and flag else z - w * w.item()
    g = jit(f)
    alike(g(x()), f(x()))
    w = ng.tensor(0.5)
    alike(g(x()), f(x()))
    w = ng.tensor(3.0)
    alike(g(x()), f(x()))
    flag = False
    alike(g(x()), f(x()))


def test_closed_over_variables_that_are_read_are_never_stale():
    S = stacked(ng.NumpyBackend(), 1)
    held = {"w": var(S, 2.0)}
    f = lambda z: z * held["w"] if held["w"].item() > 1.0 else -z
    g = jit(f)
    for value in (2.0, 0.5, 3.0):
        held["w"] = var(S, value)
        got, want = outcome(g, x()), f(x())
        if isinstance(got, TraceError):
            continue
        alike(got, want)


def test_random_draws_inside_are_refused():
    generator = ng.random.generator(0)
    g = jit(lambda x: x + ng.random.normal(3, generator))
    for _ in range(2):
        with pytest.raises(TraceError, match=r"draw.*Try to draw outside, and make the numbers an argument"):
            g(x())


# ------------------------------------------------------------------ errors of the function itself


@pytest.mark.parametrize("f", [
    lambda x, y: x @ ng.zeros((2, 2)),
    lambda x, y: x[7],
    lambda x, y: (x * y).sum().wrt(ng.zeros(3)),
    lambda x, y: (x * 2.0).sum().wrt(y),
    lambda x, y: x.detach().sum().wrt(x),
    lambda x, y: (x * y).backward(gradient=ng.ones(2)).wrt(x),
    lambda x, y: x.sum().wrt(x).sum().wrt(x).sum().wrt(x),
    lambda x, y: (x * x).sum().inner().wrt(x).sum().wrt(x),
    lambda x, y: (x.sum().wrt(x) * y).sum().wrt(y).sum().wrt(y).sum().wrt(y),
    lambda x, y: ng.tensor([1, 2], dtype="int64").require_grad(),
    lambda x, y: func.grad(lambda z: z)(x),
    lambda x, y: x.reshape(2, 2),
    lambda x, y: 1 / 0,
    lambda x, y: x.no_such_method(),
    lambda x, y: {}["key"],
], ids=range(15))  # fmt: skip
def test_an_error_of_the_function_comes_through(f: Callable[..., Any]):
    """The same class, and the same text up to where it is."""
    S = stacked(ng.NumpyBackend(), 2)
    g = jit(f)
    for _ in range(2):
        with pytest.raises(Exception) as want:
            f(var(S, X), var(S, Y))
        with pytest.raises(type(want.value)) as got:
            g(var(S, X), var(S, Y))
        if isinstance(want.value, NestgradError):
            assert str(got.value).split(":")[0] == str(want.value).split(":")[0]
    assert g.stats().entries == 0


def test_one_order_too_many_outside():
    S = stacked(ng.NumpyBackend(), 1)
    v = var(S, X)
    f = lambda x: (x**3).sum().wrt(x)
    alike(outcome(lambda: jit(f)(v).sum().wrt(v)), outcome(lambda: f(v).sum().wrt(v)))


# ------------------------------------------------------------------ what leaks

LEAKED = r"leaked from a trace"


@pytest.mark.parametrize("use", [
    lambda t: t * 2.0, lambda t: t.sum(), lambda t: t.numpy(), lambda t: t.detach(), lambda t: bool(t[0] > 0),
    lambda t: func.grad(lambda z: (z * t).sum())(x()), lambda t: jit(lambda z: z * 2.0)(t), lambda t: jit(lambda z: z * t)(x()),
    lambda t: t.wrt(t),
], ids=["mul", "sum", "numpy", "detach", "bool", "grad", "argument", "closure", "look up"])  # fmt: skip
@pytest.mark.parametrize("levels", [0, 1])
def test_what_leaks_is_refused(use: Callable[[Any], Any], levels: int):
    leaked: list[Any] = []
    z = x() if not levels else var(stacked(ng.NumpyBackend(), 1), X)
    jit(lambda x: leaked.append(x.sin()) or x * 2.0)(z)
    with pytest.raises((TraceError, NotTrackedError)) as caught:
        use(leaked[0])
    assert isinstance(caught.value, TraceError) or not levels


def test_gradients_that_leak_are_refused():
    S = stacked(ng.NumpyBackend(), 1)
    leaked: list[Any] = []
    v = var(S, X)

    def f(x: Any) -> Any:
        leaked.append((x, (x * x).sum().backward()))
        return x * 1.0

    jit(f)(v)
    inside, grads = leaked[0]
    for t in (v, inside):
        with pytest.raises((TraceError, LevelError)):
            grads.wrt(t)


def test_a_leak_of_a_failed_trace_is_refused():
    leaked: list[Any] = []
    with pytest.raises(ShapeError):
        jit(lambda x: leaked.append(x) or x @ ng.zeros((2, 2)))(x())
    with pytest.raises(TraceError, match=LEAKED):
        leaked[0].exp()


def test_a_leaked_tensor_in_a_result_of_the_next_call():
    """A function that returns what it kept of the call before."""
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append(x * 2.0)
        return kept[-2] if len(kept) > 1 else kept[-1]

    g = jit(f)
    first = g(x())
    assert first.tolist() == [2.0 * v for v in X]
    second = outcome(g, ng.tensor(Y))
    assert isinstance(second, TraceError) or second.tolist() == first.tolist()


# ------------------------------------------------------------------ variables and levels


def test_a_variable_made_inside_may_not_escape_tracked():
    """One that was made of an argument that is tracked is a place after it, and comes out as any value."""
    S = stacked(ng.NumpyBackend(), 2)
    of_the_argument: list[Callable[[Any], Any]] = [
        lambda x: S.tensor(x, requires_grad=True),
        lambda x: S.tensor(x, requires_grad=True) * 2.0,
        lambda x: [x, {"v": S.tensor(x * 2.0, requires_grad=True)}],
    ]
    anew: list[Callable[[Any], Any]] = [
        lambda x: S.variable(x),
        lambda x: (x * 2.0, S.variable(x) * x),
        lambda x: S.tensor(np.ones(3), requires_grad=True) * x,
        lambda x: (lambda v: (v**2).sum().wrt(v))(S.variable(x)),
    ]
    tracked = var(S, X)
    for make, z in [*((make, x()) for make in of_the_argument), *((make, z) for make in anew for z in (x(), tracked))]:
        g = jit(make)
        for _ in range(2):
            with pytest.raises(LevelError, match=r"depends on a variable that was made inside.*detach\(\)"):
                g(z)
    for make in of_the_argument:
        alike(jit(make)(tracked), make(tracked))


def test_a_variable_made_inside_may_be_used_up_there():
    S = stacked(ng.NumpyBackend(), 2)

    def f(x: Any) -> Any:
        v = S.tensor(x, requires_grad=True)
        return (v**3).sum().wrt(v).sum().wrt(v)

    g = jit(f)
    alike(g(x()), f(x()))


def test_an_argument_with_a_history_beside_one_that_is_looked_up():
    S = stacked(ng.NumpyBackend(), 2)
    v = var(S, 1.2)
    g = jit(lambda x, u: (x * u).wrt(x))
    for _ in range(2):
        with pytest.raises(LevelError, match=r"history"):
            g(v, v * v)
    h = jit(lambda x: (x * (v * v)).wrt(x))  # closed over
    got = outcome(h, v)
    want = (v * (v * v)).wrt(v)
    if isinstance(got, NestgradError):
        assert isinstance(got, LevelError)
    else:
        alike(got, want)


def test_other_base_backends():
    torch = ng.TorchBackend(dtype="float64")
    t = torch.tensor(X)
    with pytest.raises(LevelError, match="base backend"):
        jit(lambda a, b: a)(x(), t)
    with pytest.raises(LevelError, match="base backend"):
        jit(lambda a: a * t)(x())
    with pytest.raises(LevelError, match=r"returned a Tensor over torch\(float64\) as output 1; expected Tensors over numpy"):
        jit(lambda a: (a * 2.0, t * 2.0))(x())


# ------------------------------------------------------------------ what jit is given


def test_what_is_no_function():
    with pytest.raises(NestgradError, match=r"^jit: got .*int.*expected a function"):
        jit(3)


def test_unknown_executors():
    with pytest.raises((BackendError, NestgradError), match=r"^jit: .*'fast'.*'auto'.*'replay'.*'numpy'.*'torch\.compile'"):
        jit(lambda x: x, executor="fast")


def test_an_executor_that_the_backend_does_not_offer():
    with pytest.raises(NestgradError, match=r"numpy.*torch"):
        jit(lambda x: x * 2.0, executor="numpy")(ng.TorchBackend(dtype="float64").tensor(X))
    with pytest.raises(NestgradError, match=r"torch\.compile.*numpy"):
        jit(lambda x: x * 2.0, executor="torch.compile")(x())


def test_static_arguments_must_be_known_and_hashable():
    with pytest.raises(NestgradError, match=r"^jit: .*static_argnames.*'missing'"):
        jit(lambda x, n: x * n, static_argnames=("missing",))
    with pytest.raises(NestgradError, match=r"^jit: .*'n'.*hash"):
        jit(lambda x, n: x * n[0], static_argnames=("n",))(x(), [2.0])


def test_arguments_that_are_nothing_to_compute_with():
    for bad in (np.array(["a"]), np.array([1j]), np.array([None])):
        with pytest.raises(DTypeError, match=r"^jit: "):
            jit(lambda x, mode: x)(x(), bad)


def test_results_that_are_no_tensors():
    got = outcome(jit(lambda x: (x, "text")), x())
    assert isinstance(got, TraceError) or got[1] == "text"
    with pytest.raises(TraceError, match=r"function"):
        jit(lambda x: lambda: x)(x())


def test_generators():
    def generator(x: Any) -> Any:
        yield x * 2.0

    with pytest.raises(TraceError, match=r"returned a generator"):
        jit(generator)(x())


def test_not_connected_outside_is_what_it_is_without():
    S = stacked(ng.NumpyBackend(), 2)
    v, w = var(S, X), var(S, Y)
    f = lambda a, b: ((a * a).sum(), (a * b).sum(), a.detach() * b)
    got, want = jit(f)(v, w), f(v, w)
    for one, two in zip(got, want, strict=True):
        for by in (v, w):
            alike(outcome(lambda: one.wrt(by)), outcome(lambda: two.wrt(by)))  # noqa: B023
    with pytest.raises(NotConnectedError):
        got[0].wrt(w)
