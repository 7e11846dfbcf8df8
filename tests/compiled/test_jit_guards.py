"""What a compiled function closes over: a change of it is seen at the next call, and nothing stale is ever returned."""

import random
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest
from likeness import alike, stacked, var

import nestgrad as ng
from nestgrad import func, jit
from nestgrad.errors import NestgradError, TraceError

X = [0.3, -0.7, 1.1]
FACTOR: Any = 2.0
SETTINGS: dict[str, Any] = {"factor": 2.0, "parts": [1.0, np.array([1.0, 2.0, 3.0])]}


def x() -> ng.Tensor:
    return ng.tensor(X)


def agree(f: Callable[..., Any], g: Callable[..., Any], *args: Any) -> None:
    """The compiled function gives what the function gives now: in value, or it says why it cannot."""
    alike(g(*args), f(*args))


# ------------------------------------------------------------------ rebinding


def test_a_closed_over_variable_of_the_enclosing_function():
    factor: Any = 2.0

    def f(x: Any) -> Any:
        return x * factor

    g = jit(f)
    for factor in (2.0, 3.0, 2, True, np.array([1.0, 2.0, 3.0]), ng.tensor([3.0, 2.0, 1.0]), np.float64(4.0), 2.0):  # noqa: B007
        agree(f, g, x())
        agree(f, g, x())


def test_a_global(monkeypatch: pytest.MonkeyPatch):
    def f(x: Any) -> Any:
        return x * FACTOR

    g = jit(f)
    for value in (2.0, 3.0, np.array([1.0, 2.0, 3.0]), ng.tensor([3.0, 2.0, 1.0])):
        monkeypatch.setitem(globals(), "FACTOR", value)
        agree(f, g, x())


def test_items_of_global_dicts_and_lists(monkeypatch: pytest.MonkeyPatch):
    def f(x: Any) -> Any:
        return x * SETTINGS["factor"] + SETTINGS["parts"][0] * SETTINGS["parts"][1]

    g = jit(f)
    agree(f, g, x())
    monkeypatch.setitem(SETTINGS, "factor", 5.0)
    agree(f, g, x())
    monkeypatch.setitem(SETTINGS, "parts", [3.0, ng.tensor([1.0, 1.0, 2.0])])
    agree(f, g, x())
    SETTINGS["parts"][0] = 4.0
    agree(f, g, x())
    SETTINGS["parts"].reverse()
    agree(f, g, x())


@dataclass
class Model:
    """What people write."""

    weight: Any
    scale: float = 1.0
    layers: list[Any] = field(default_factory=list)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return (x * self.weight).tanh() * self.scale

    def __call__(self, x: Any) -> Any:
        return self.forward(x)


@pytest.mark.parametrize("how", ["closure", "method", "object", "partial", "nested function"])
def test_attributes_of_objects(how: str):
    model = Model(ng.tensor([1.0, 2.0, 3.0]))
    helper = lambda x: model.forward(x)
    f: Any = {
        "closure": lambda x: model.forward(x),
        "method": model.forward,
        "object": model,
        "partial": partial(Model.forward, model),
        "nested function": lambda x: helper(x) * 1.0,
    }[how]
    g = jit(f)
    agree(f, g, x())
    model.weight = model.weight * 2.0
    agree(f, g, x())
    model.scale = 0.5
    agree(f, g, x())
    model.layers.append(lambda x: x + 1.0)
    agree(f, g, x())
    model.layers[0] = lambda x: x - 1.0
    agree(f, g, x())
    model.layers.append(Model(np.ones(3)))
    agree(f, g, x())
    model.layers[-1].weight = np.full(3, 2.0)
    agree(f, g, x())
    model.layers[-1].scale = 3.0
    agree(f, g, x())


def test_attributes_of_classes_and_modules():
    class Holder:
        factor: Any = 2.0

    module = types.ModuleType("constants")
    module.factor = 3.0  # type: ignore[attr-defined]

    def f(x: Any) -> Any:
        return x * Holder.factor * module.factor  # type: ignore[attr-defined]

    g = jit(f)
    agree(f, g, x())
    Holder.factor = 5.0
    agree(f, g, x())
    module.factor = ng.tensor([1.0, 2.0, 3.0])  # type: ignore[attr-defined]
    agree(f, g, x())


def test_default_values_and_partial_arguments():
    def f(x: Any, *, factor: Any = 2.0) -> Any:
        return x * factor

    g = jit(f)
    agree(f, g, x())
    f.__kwdefaults__["factor"] = 7.0
    agree(f, g, x())
    held = np.array([1.0, 2.0, 3.0])
    h = jit(partial(lambda held, x: x * held, held))
    alike(h(x()), x() * held)
    held[0] = 9.0
    alike(h(x()), x() * held)


def test_a_function_that_is_rebound():
    def inner(x: Any) -> Any:
        return x.sin()

    def f(x: Any) -> Any:
        return inner(x)

    g = jit(f)
    agree(f, g, x())

    def inner(x: Any) -> Any:  # type: ignore[no-redef]  # noqa: F811
        return x.cos()

    agree(f, g, x())


def test_what_a_function_that_is_called_closes_over():
    def maker() -> tuple[Callable[..., Any], Callable[..., Any]]:
        state: Any = 2.0

        def inner(x: Any) -> Any:
            return x * state

        def change(to: Any) -> None:
            nonlocal state
            state = to

        return inner, change

    inner, change = maker()
    f = lambda x: inner(x) + 1.0
    for g in (jit(f), jit(func.vmap(f)), jit(jit(f))):
        for value in (2.0, 5.0, np.array(0.5), ng.tensor(0.25)):
            change(value)
            alike(g(x()), f(x()))


# ------------------------------------------------------------------ writing


def test_writing_into_a_closed_over_array():
    held = np.array([1.0, 2.0, 3.0])
    f = lambda x: x * held
    g = jit(f)
    agree(f, g, x())
    held[1] = -5.0
    agree(f, g, x())
    held *= 2.0
    agree(f, g, x())
    agree(f, g, x())


def test_writing_into_a_view_of_it():
    base = np.zeros((2, 3))
    held = base[1]
    f = lambda x: x * held
    g = jit(f)
    agree(f, g, x())
    base[:] = 4.0
    agree(f, g, x())
    held[0] = 1.0
    agree(f, g, x())


def test_writing_into_a_large_array_anywhere():
    """Wherever the one changed number is."""
    rng = random.Random(3)
    held = np.random.default_rng(3).normal(size=(300, 301))
    f = lambda x: (x[0] * held).sum() + held[7, 5]
    g = jit(f)
    agree(f, g, x())
    for _ in range(20):
        held[rng.randrange(300), rng.randrange(301)] += 1.0
        alike(g(x()), f(x()), rtol=1e-11)


def test_writing_into_a_closed_over_torch_tensor():
    torch = pytest.importorskip("torch")
    held = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    f = lambda x: x * held
    g = jit(f)
    z = ng.TorchBackend(dtype="float64").tensor(X)
    agree(f, g, z)
    held[1] = -5.0
    agree(f, g, z)
    held.data[0] = 8.0
    agree(f, g, z)
    with torch.no_grad():
        held.mul_(2.0)
    agree(f, g, z)


def test_writing_into_memory_that_a_tensor_shares():
    """``from_numpy`` hands the memory over: what the owner writes later is refused, or seen."""
    held = np.array([1.0, 2.0, 3.0])
    shared = ng.from_numpy(held)
    f = lambda x: x * shared
    g = jit(f)
    agree(f, g, x())
    held.setflags(write=True)
    held[0] = 100.0
    try:
        want = f(x())
    except NestgradError as error:
        with pytest.raises(type(error)):
            g(x())
    else:
        alike(g(x()), want)


def test_writing_inside_the_function():
    """A captured array that the function writes into: refused, or every call does it."""
    held = np.zeros(3)

    def f(x: Any) -> Any:
        held[0] += 1.0
        return x * held

    g = jit(f)
    try:
        for k in range(1, 4):
            alike(g(x()), x() * np.array([float(k), 0.0, 0.0]))
    except TraceError:
        pass


def test_counting_inside_the_function():
    """A number that the function itself changes is another one at each call: never a stale result."""
    calls = [0]

    def f(x: Any) -> Any:
        calls[0] += 1
        return x * calls[0]

    g = jit(f)
    try:
        for k in range(1, 5):
            alike(g(x()), x() * k)
    except TraceError:
        pass


# ------------------------------------------------------------------ Tensors that are closed over


def test_tracked_tensors_are_inputs_and_listed():
    S = stacked(ng.NumpyBackend(), 2)
    w, unused = var(S, 2.0), var(S, 3.0)

    @jit
    def g(z: Any) -> Any:
        _ = unused
        return (w * z).sum()

    z = x()
    for _ in range(2):
        y = g(z)
        alike(y.wrt(w), (w * z).sum().wrt(w))
    assert [t.value is w.value for t in g.captured] == [True]
    assert g.stats().traces == 1


def test_a_tracked_tensor_that_is_rebound_is_another_input():
    S = stacked(ng.NumpyBackend(), 2)
    w = var(S, 2.0)

    def f(z: Any) -> Any:
        return w * z * z.sum()

    g = jit(f)
    for k in range(4):
        w = var(S, 2.0 + k)
        z = var(S, X)
        got, want = g(z).sum(), f(z).sum()
        alike([got, got.wrt(w), got.wrt(z), got.wrt(w).wrt(w)], [want, want.wrt(w), want.wrt(z), want.wrt(w).wrt(w)])


def test_a_tracked_tensor_becomes_data_and_back():
    S = stacked(ng.NumpyBackend(), 2)
    held: dict[str, Any] = {"w": var(S, 2.0)}
    f = lambda z: held["w"] * z
    g = jit(f)
    for w in (var(S, 2.0), ng.tensor(2.0), var(S, 2.0, levels=[1]), 2.0, np.array(2.0), var(S, 2.0), var(S, 2.0) * 1.0):
        held["w"] = w
        alike(g(x()), f(x()))


def test_a_training_loop_over_closed_over_parameters():
    """The parameters are rebound at each step. The results are those without ``jit``, and ``stats()`` tells why each step is a trace."""

    def train(compile: Callable[..., Any]) -> tuple[Any, Any]:
        S = stacked(ng.NumpyBackend(), 3)
        params = [var(S, [[0.5, -0.2, 0.3]]), var(S, [0.1, 0.2, 0.0]), var(S, [[0.4], [0.2], [-0.3]])]

        def loss(x: Any) -> Any:
            u = (x @ params[0] + params[1]).tanh() @ params[2]
            u_x = u.sum().wrt(x)
            u_xx = u_x.sum().wrt(x)
            return ((u_xx + u * u_x - 1.0) ** 2).mean()

        compiled = compile(loss)
        for _ in range(5):
            grads = compiled(var(S, np.linspace(-1.0, 1.0, 7)[:, None])).backward()
            for k, p in enumerate(params):
                params[k] = S.variable(p - 0.1 * p.grad(grads))
        return compiled, [p.detach() for p in params]

    g, got = train(jit)
    _, want = train(lambda f: f)
    alike(got, want, rtol=1e-10)
    assert g.stats().reasons == ("the first call", *["params[0] is another object"] * 4)


def test_a_training_loop_with_parameters_as_arguments_is_traced_once():
    S = stacked(ng.NumpyBackend(), 3)

    def loss(params: Any, x: Any) -> Any:
        u = (x @ params[0] + params[1]).tanh() @ params[2]
        u_x = u.sum().wrt(x)
        u_xx = u_x.sum().wrt(x)
        return ((u_xx + u * u_x - 1.0) ** 2).mean()

    def train(loss: Callable[..., Any]) -> Any:
        params = [var(S, [[0.5, -0.2, 0.3]]), var(S, [0.1, 0.2, 0.0]), var(S, [[0.4], [0.2], [-0.3]])]
        for _ in range(5):
            grads = loss(params, var(S, np.linspace(-1.0, 1.0, 7)[:, None])).backward()
            params = [S.variable(p - 0.1 * p.grad(grads)) for p in params]
        return [p.detach() for p in params]

    g = jit(loss)
    alike(train(g), train(loss), rtol=1e-10)
    assert g.stats().traces == 1, g.stats()


# ------------------------------------------------------------------ at random


def test_random_changes_are_always_seen():
    """Objects, lists, arrays, numbers and Tensors that change at random between calls."""
    rng = random.Random(7)
    S = stacked(ng.NumpyBackend(), 1)

    class Box:
        pass

    box = Box()
    box.number, box.array, box.tensor = 1.0, np.ones(3), ng.ones(3)
    box.inner = Box()
    box.inner.items = [1.0, np.ones(3), {"k": 2.0}]
    free: Any = 1.0

    def f(x: Any) -> Any:
        y = x * box.number + box.array * box.tensor
        for part in box.inner.items[:2]:
            y = y * part
        return y * box.inner.items[2]["k"] * free

    def value() -> Any:
        a = [rng.uniform(0.5, 1.5) for _ in range(3)]
        return rng.choice([a[0], np.array(a), ng.tensor(a), var(S, a), var(S, a[0]), 2, np.float64(a[1])])

    g = jit(f)
    for _ in range(150):
        k = rng.randrange(9)
        if k == 0:
            box.number = value()
        elif k == 1:
            box.array[rng.randrange(3)] += 0.1
        elif k == 2:
            box.tensor = ng.tensor([rng.random() for _ in range(3)])
        elif k == 3:
            box.inner.items[0] = value()
        elif k == 4:
            box.inner.items[2]["k"] = value()
        elif k == 5:
            free = value()
        elif k == 6:
            old = box.inner
            box.inner = Box()
            box.inner.items = list(old.items)
        elif k == 7:
            box.inner.items[1] = np.array([rng.random() for _ in range(3)])
        agree(f, g, var(S, X) if rng.random() < 0.5 else x())
