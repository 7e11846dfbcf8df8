"""Compiled functions on levels of all kinds, inside and outside: what is found is what the function itself finds."""

import inspect
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import programs
import pytest
from cases import FUNCTIONS, U, V, X, Y
from likeness import DOUBLE, alike, outcome, stacked, var
from operators import KINDS, TRANSFORMS
from programs import CASES
from programs.batches import ZS
from programs.case import numbers

import nestgrad as ng
from nestgrad import func, jit
from nestgrad.errors import NestgradError
from nestgrad.levels.base import now, running

# ------------------------------------------------------------------ where the compiled part begins and ends


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("backend", DOUBLE)
def test_derivatives_by_look_ups_of_which_the_first_are_compiled(name: str, backend: str):
    """To third order: the first ``k`` of them inside, the others outside; twice, at different points."""
    f = FUNCTIONS[name]
    base = DOUBLE[backend]
    u, v = base.tensor(U), base.tensor(V)

    def derivatives(first: int, last: int) -> Callable[[Any, Any, Any], Any]:
        def of(y: Any, x: Any, z: Any) -> list[Any]:
            found = []
            for _ in range(first, last):
                grads = y.backward()
                found += [x.grad(grads), z.grad(grads)]
                y = (found[-2] * u).sum() + (found[-1] * v).sum()
            return [*found, y]

        return of

    S = stacked(base, 3)
    connected = lambda x, z: f(x, z) + 0.0 * (x * z).sum()
    for k in range(4):
        inside = jit(lambda x, z, k=k: derivatives(0, k)(connected(x, z), x, z))
        for a, b in ((X, Y), (Y, X)):
            x, z, begun = var(S, a), var(S, b), now()
            got, want = inside(x, z), derivatives(0, k)(connected(x, z), x, z)
            alike(got, want, rtol=1e-10, since=begun)
            alike(derivatives(k, 3)(got[-1], x, z), derivatives(k, 3)(want[-1], x, z), rtol=1e-10, since=begun)


WORDS = ["".join(word) for word in itertools.product("RFBT", repeat=2)]


@pytest.mark.parametrize("name", ["net", "field"])
def test_pairs_of_levels_and_of_transforms_with_the_compiled_part_between_them(name: str):
    """The function is compiled, or the inner derivative, or both: on levels that were made outside, and in transforms."""
    f, base = FUNCTIONS[name], ng.NumpyBackend()
    xs = [base.tensor(X), base.tensor(Y)]
    directions = [[base.tensor(U), base.tensor(V)], [base.tensor(V), base.tensor(U)]]

    def by_levels(word: str, compiled: tuple[int, ...]) -> float:
        levels, stack = [], base
        for letter in word:
            stack = KINDS[letter][0](stack)
            levels.append(stack)
        return nested(word, lambda k: lambda g, ys: KINDS[word[k]][1](levels[k], g, ys, directions[k]), compiled)

    def by_transforms(word: str, compiled: tuple[int, ...]) -> float:
        return nested(word, lambda k: lambda g, ys: TRANSFORMS[word[k]](g, ys, directions[k]), compiled)

    def nested(word: str, step: Any, compiled: tuple[int, ...]) -> float:
        g: Any = f
        for k in range(len(word), -1, -1):
            if k < len(word):
                g = lambda *ys, g=g, k=k: step(k)(g, ys)
            if k in compiled:
                g = jit(g)
        return g(*xs).item()

    for word in WORDS:
        for by in (by_levels, by_transforms):
            want = by(word, ())
            for compiled in ((2,), (1,), (2, 1, 0)):
                got = by(word, compiled)
                assert got == pytest.approx(want, rel=1e-10, abs=1e-11), f"{by.__name__} {word}, compiled at {compiled}"


# ------------------------------------------------------------------ the programs of the level rules


def compiled_inside(transform: Callable[..., Any]) -> Callable[..., Any]:
    """A transform that compiles the function that it gets."""
    return lambda f, *args, **kwargs: transform(jit(f), *args, **kwargs)


def compiled_outside(transform: Callable[..., Any]) -> Callable[..., Any]:
    """A transform that compiles the function that it gives."""
    return lambda f, *args, **kwargs: jit(transform(f, *args, **kwargs))


GIVE_FUNCTIONS = ("grad", "value_and_grad", "vmap", "jacfwd", "jacrev", "hessian")
TAKE_FUNCTIONS = (*GIVE_FUNCTIONS, "vjp", "jvp", "linearize", "taylor")


THOUGH_RIGHT = {"o09_pass_through_samples_to_a_variable_from_outside": ZS}
"""Programs that raise, because a batch is in the way, where a compiled function knows nothing of batches: a derivative for each sample."""


def _run(case: Any) -> str:
    """``"right"``, or ``"error"``; a wrong number fails."""
    try:
        result = case.run()
    except NestgradError:
        return "error"
    except AssertionError as error:  # a program's own check
        if type(error) is not AssertionError:
            raise
        raise AssertionError(f"{case.name} checks itself") from error
    finally:
        assert running.get() is None
    if case.errors:
        assert case.name in THOUGH_RIGHT, f"{case.name}: {result} where an error is right"
        np.testing.assert_allclose(result.numpy(), THOUGH_RIGHT[case.name])
        return "right"
    for got, want in zip(numbers(result), case.right, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12, err_msg=case.name)
    return "right"


def _count(cases: list[Any]) -> int:
    return sum(_run(case) == "right" for case in cases)


def _using(*names: str) -> list[Any]:
    """The programs that use one of these functions of ``func``, and compile nothing yet."""
    found = []
    for case in CASES:
        source = inspect.getsource(case.run)
        if not case.name.startswith("j") and any(f"func.{name}(" in source for name in names):
            found.append(case)
    return found


@pytest.mark.parametrize("how", [compiled_inside, compiled_outside])
def test_programs_of_the_level_rules_with_compiled_functions_in_transforms(how: Any, monkeypatch: pytest.MonkeyPatch):
    """Right, or an error; an error where the program itself is right only where Python reads numbers, or values are stashed."""
    names = TAKE_FUNCTIONS if how is compiled_inside else GIVE_FUNCTIONS
    for name in names:
        monkeypatch.setattr(func, name, how(getattr(func, name)))
    cases = _using(*names)
    assert _count(cases) >= 0.6 * len(cases)


def test_programs_of_the_level_rules_as_one_compiled_function():
    """Numbers are constants then, and levels are made inside."""
    right, cases = 0, [case for case in CASES if case.right and not case.name.startswith("j")]
    for case in cases:
        try:
            result = jit(lambda case=case: [x.detach() if isinstance(x, ng.Tensor) else x for x in _listed(case.run())])()
        except NestgradError:
            continue
        for got, want in zip(numbers(result), case.right, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12, err_msg=case.name)
        right += 1
    assert right >= 0.8 * len(cases)


def _listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (list, tuple)) else [result]


def test_programs_of_the_level_rules_with_compiled_look_ups(monkeypatch: pytest.MonkeyPatch):
    """Each derivative of a root that was made outside, in a compiled function that closes over both: right, or an error."""
    plain = programs.case.d

    def compiled(y: Any, x: Any) -> Any:
        return jit(lambda: plain(y, x))()

    for name in programs.__all__:
        module = getattr(programs, name)
        if getattr(module, "d", None) is plain:
            monkeypatch.setattr(module, "d", compiled)
    for case in CASES:
        if not case.name.startswith("j") and "thread" not in case.name:
            _run(case)


# ------------------------------------------------------------------ on which levels results live


def test_results_live_on_the_levels_where_the_function_puts_them():
    S = stacked(ng.NumpyBackend(), 2)
    F = ng.Forward(ng.NumpyBackend())

    def f(x: Any, y: Any, recorded: bool) -> dict[str, Any]:
        return {
            "product": x * y,
            "first": x * 2.0,
            "constant": ng.ones(3),
            "detached": x.detach() * y.detach(),
            "one level": x.detach(level=2) * y if recorded else None,
            "inner": x.inner() if recorded else None,
            "sign": x.sign(),
            "greater": x > y,
            "numbers": (1.0, 2, True, None),
            "itself": x,
            "both": [y, y],
        }

    kinds: dict[str, Callable[[list[float]], Any]] = {
        "two": lambda a: var(S, a),
        "one": lambda a: var(S, a, levels=[1]),
        "upper": lambda a: var(S, a, levels=[2]),
        "history": lambda a: var(S, a) * 2.0,
        "derivative": lambda a: (lambda t: (t**3).sum().wrt(t))(var(S, a)),
        "detached": lambda a: var(S, a).detach(level=2),
        "data": lambda a: S.tensor(a),
        "array": lambda a: np.array(a),
        "dual": lambda a: F.dual(ng.tensor(a), ng.ones(3)),
        "dual of tracked": lambda a: ng.Forward(S).dual(var(S, a), ng.ones(3)),
    }
    g = jit(f)
    for one, two in itertools.product(kinds, repeat=2):
        for _ in range(2):
            x, y = kinds[one](X), kinds[two](Y)
            x, y = (ng.tensor(v) if isinstance(v, np.ndarray) else v for v in (x, y))
            recorded = not {one, two} & {"dual", "dual of tracked"}
            alike(outcome(g, x, y, recorded), outcome(f, x, y, recorded), where=f"{one}, {two}")


def test_arrays_and_numbers_become_tensors_that_are_on_no_level():
    made = jit(lambda x, c: x * c)(np.array(X), 2.0)
    assert isinstance(made, ng.Tensor) and (made.level, made.tracked_on(), dict(made.marks)) == (0, (), {})


def test_levels_that_do_not_record_are_entered_and_left_outside():
    base = ng.NumpyBackend()
    f = lambda x: (x.sin() * x).sum()
    g = jit(f)
    x, u = base.tensor(X), base.tensor(U)
    for _ in range(2):
        F, T, B = ng.Forward(base), ng.Taylor(base, order=3), ng.Batched(base)
        alike(F.tangent(g(F.dual(x, u))), F.tangent(f(F.dual(x, u))))
        alike(T.terms(g(T.series(x, u))), T.terms(f(T.series(x, u))))
        alike(B.unbatch(g(B.batch(ng.stack([x, u])))), B.unbatch(f(B.batch(ng.stack([x, u])))))
        S = ng.Autodiff(F)
        z = S.tensor(F.dual(x, u), requires_grad=True)
        alike(F.tangent(g(z).wrt(z)), F.tangent(f(z).wrt(z)))


def test_levels_that_do_not_record_are_entered_and_left_inside():
    base = ng.NumpyBackend()

    def f(x: Any, u: Any) -> list[Any]:
        F, T, B = ng.Forward(base), ng.Taylor(base, order=2), ng.Batched(base)
        g = lambda z: (z.sin() * x * z).sum()
        return [F.tangent(g(F.dual(x, u))), T.terms(g(T.series(x, u)))[2], B.unbatch(g(B.batch(ng.stack([x, u]))))]

    g = jit(f)
    x, u = base.tensor(X), base.tensor(U)
    S = stacked(base, 2)
    for _ in range(2):
        y, begun = var(S, X), now()
        alike(g(x, u), f(x, u), since=begun)
        alike([part.sum().wrt(y) for part in g(y, u)], [part.sum().wrt(y) for part in f(y, u)], since=begun)
        x, u = u, x


def test_a_look_up_inside_by_the_variable_of_a_transform_outside():
    """A running transform's own argument is looked up inside: what the function itself says."""
    f = lambda x: (x**3).sum().wrt(x)
    g = jit(f)
    for transform in (lambda h: func.grad(lambda x: h(x).sum()), lambda h: func.jacrev(h), lambda h: func.vmap(h)):
        alike(outcome(transform(g), ng.tensor(X)), outcome(transform(f), ng.tensor(X)))


# ------------------------------------------------------------------ the rooms of the library

FIELD = {"f": lambda x: (x[0] * x[1]).sin() * x[2] ** 3}


def _rooms() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    w = np.array([[0.5, -0.2, 0.3], [0.1, 0.8, -0.6], [-0.4, 0.2, 0.7]])
    field = FIELD["f"]
    square = ng.custom_vjp(lambda x: x * x)
    square.defvjp(lambda x: (x * x, x), lambda x, g: (3.0 * g * x,))  # 3, to tell it from the true rule
    return {
        "laplacian": (lambda x: ng.pde.laplacian(field)(x), (X,)),
        "gradient": (lambda x: ng.pde.gradient(field)(x), (X,)),
        "curl": (lambda x: ng.pde.curl(lambda z: z * z[::-1] ** 2)(x), (X,)),
        "hessian": (lambda x: func.hessian(field)(x), (X,)),
        "derivative": (lambda x: func.derivative(field, (0, 2, 2))(x), (X,)),
        "jets": (lambda x, u: func.jets(field, x, ng.stack([u, x])), (X, U)),
        "hessian_diag": (lambda x: func.hessian_diag(field)(x), (X,)),
        "functional": (lambda x: ng.functional.hvp(lambda z: field(z), x, x, create_graph=True)[1], (X,)),
        "linear solve": (lambda a, x: ng.linalg.solve(a, x), (w, X)),
        "layers": (lambda a, x: ng.nn.gelu(ng.nn.linear(x, a)).sum() + ng.logsumexp(x), (w, X)),
        "checkpoint": (lambda x, y: ng.checkpoint(lambda a, b: (a * b).sin().sum())(x, y), (X, Y)),
        "custom rule": (lambda x: square(x).sum(), (X,)),
        "root": (lambda x: ng.implicit.root(lambda z: z.exp(), lambda y, z: y.log() - z)(x), (X,)),
        "sort": (lambda x: ng.sort(x) * x[ng.argsort(x)], (X,)),
        "traced": (lambda x: func.call(func.trace(lambda z: z.sin() * z)(x), x), (X,)),
    }


@pytest.mark.parametrize("name", _rooms())
def test_what_the_library_offers_is_compiled_or_refused(name: str):
    """Inside; and then differentiated outside. What must read numbers, as iterations do, is refused by a TraceError."""
    f, data = _rooms()[name]
    g = jit(f)
    S = stacked(ng.NumpyBackend(), 2)

    def everything(f: Any, factor: float) -> list[Any]:
        xs = [var(S, np.array(d) * factor) for d in data]
        out = f(*xs)
        total = sum((part * (k + 1.0)).sum() for k, part in enumerate(_listed(out)))
        first = total.wrt(xs[-1])
        return [out, first, (first * first).sum().wrt(xs[-1])]

    begun = now()
    for factor in (1.0, 0.7):
        got = outcome(everything, g, factor)
        if isinstance(got, ng.errors.TraceError):
            assert name in ("root", "hessian_diag"), got
            return
        want = everything(f, factor)
        for a, b in zip(_flat(got), _flat(want), strict=True):
            alike(a, b, rtol=1e-9, since=begun)


def _flat(parts: list[Any]) -> list[Any]:
    return [x for part in parts for x in _listed(part)]
