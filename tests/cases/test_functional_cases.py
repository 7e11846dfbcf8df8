"""Results of the six functions, as figures that were computed elsewhere, for every combination of options, at every level.

``functional_cases.json`` tells which of SymPy, PyTorch and JAX agreed on each. The derivative of a result, which the options
``create_graph`` promise, is compared with PyTorch's.
"""

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nestgrad as ng
from nestgrad import func, functional

torch = pytest.importorskip("torch", reason="derivatives of the results are compared with PyTorch's")

CASES: dict[str, dict[str, Any]] = {
    case["name"]: case for case in json.loads((Path(__file__).parent / "functional_cases.json").read_text())["cases"]
}
HIGH = [name for name, case in CASES.items() if case["what"] == "nth_derivative_tensor"]
SIX = [name for name in CASES if name not in HIGH]

OURS = SimpleNamespace(**{name: getattr(ng, name) for name in "exp matmul mean prod reshape sin sqrt sum tanh".split()})
OURS.det, OURS.solve = ng.linalg.det, ng.linalg.solve
THEIRS = SimpleNamespace(**{name: getattr(torch, name) for name in (*vars(OURS),) if name != "solve"}, solve=torch.linalg.solve)
"""The words of the cases, ours and PyTorch's."""

STRATEGIES = ("reverse-mode", "forward-mode")
OPTIONS = {
    "jacobian": {"strategy": STRATEGIES, "vectorize": (False, True)},
    "hessian": {"outer_jacobian_strategy": STRATEGIES, "vectorize": (False, True)},
    "jvp": {"mode": ("forward", "reversed")},
    "vjp": {}, "hvp": {}, "vhp": {},
}  # fmt: skip

LINEAR = {"linear_hessian_zero"}
"""Where ``strict`` is an error, as the note of the case says."""


def combinations(what: str, **more: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    """All combinations of the options of a function."""
    options = OPTIONS[what] | more
    return (dict(zip(options, values, strict=True)) for values in itertools.product(*options.values()))


def mapped(convert: Callable[..., Any], tree: Any, *trees: Any) -> Any:
    """``convert`` on everything in nested tuples."""
    return tuple(mapped(convert, *parts) for parts in zip(tree, *trees, strict=True)) if isinstance(tree, tuple) else convert(tree, *trees)


def leaves(tree: Any) -> list[Any]:
    return [x for part in tree for x in leaves(part)] if isinstance(tree, tuple) else [tree]


class Case:
    """A case, whose numbers are NumPy arrays.

    Attributes:
        given: The inputs, as a tuple if the case says so; and then the vector, if there is one.
        expected: What comes out, in nested tuples.
    """

    def __init__(self, name: str) -> None:
        found = CASES[name]
        self.what, self.text, self.rtol = found["what"], found["function"], found["rtol"]
        several = found["input_is_tuple"]
        as_given = lambda parts, several: tuple(map(np.array, parts)) if several else np.array(parts[0])
        self.given = [as_given(found["inputs"], several)]
        blocks = lambda tree, depth: tuple(blocks(x, depth - 1) for x in tree) if several and depth else np.array(tree)
        self.expected = blocks(found["expected"], 2 if self.what == "hessian" else 1)
        if "v" in found:
            values = found["value"]
            outs = self.what == "vjp" and name.startswith("two_in_two_out")
            self.given.append(as_given(found["v"], several))
            self.expected = (tuple(map(np.array, values)) if outs else np.array(values), self.expected)

    def call(self, **options: Any) -> Callable[..., Any]:
        """Our function, of the inputs and the vector."""
        f = eval(self.text, {"xp": OURS})
        return lambda *args: getattr(functional, self.what)(f, *args, **options)

    def check(self, found: Any) -> None:
        """Assert that nesting, shapes and numbers are right."""
        mapped(lambda x, y: _same(x, y, self.rtol), self.expected, found)

    def slopes(self) -> list[list[Any]]:
        """The gradient of a weighted sum of all that comes out by each input, and that of a weighted sum of it, from PyTorch."""
        f = eval(self.text, {"xp": THEIRS})
        tensors = [mapped(lambda x: torch.tensor(x, requires_grad=True), tree) for tree in self.given]
        out = getattr(torch.autograd.functional, self.what)(f, *tensors, create_graph=True)
        found = []
        for _ in range(2):
            total = sum((y * torch.tensor(weights(y.shape))).sum() for y in leaves(out))
            xs = leaves(tensors[0])
            grads = torch.autograd.grad(total, xs, create_graph=True, allow_unused=True) if total.requires_grad else [None] * len(xs)
            out = tuple(torch.zeros_like(x) if g is None else g for g, x in zip(grads, xs, strict=True))
            found.append([g.detach().numpy() for g in out])
        return found


def _same(expected: Any, found: Any, rtol: float) -> None:
    assert not isinstance(found, tuple)
    assert expected.shape == tuple(found.shape) and str(found.dtype).endswith("float64")
    np.testing.assert_allclose(found if isinstance(found, np.ndarray) else found.numpy(), expected, rtol=rtol, atol=1e-14)


def weights(shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of order one."""
    return np.cos(1.0 + np.arange(int(np.prod(shape, dtype=int)))).reshape(shape)


def weighted(tree: Any) -> Any:
    """The sum of all entries, times weights."""
    return sum((y * weights(y.shape)).sum() for y in leaves(tree))


def stacked(base: Any, levels: int) -> Any:
    made = base
    for _ in range(levels):
        made = ng.Autodiff(made)
    return made


def close(found: Any, expected: Any) -> None:
    """Derivatives of results, to some thousand roundings."""
    for x, y in zip(found, expected, strict=True):
        assert x.shape == y.shape
        np.testing.assert_allclose(x.numpy(), y, rtol=1e-9, atol=1e-12)


def test_all_cases_are_there():
    assert (len(SIX), len(HIGH)) == (16, 2)
    assert {CASES[name]["what"] for name in SIX} == {*OPTIONS} and {CASES[name]["dtype"] for name in CASES} == {"float64"}


@pytest.fixture(params=SIX)
def name(request: pytest.FixtureRequest) -> str:
    """A case of the six functions."""
    return str(request.param)


@pytest.fixture
def case(name: str) -> Case:
    return Case(name)


def allowed(name: str) -> dict[str, tuple[bool, ...]]:
    """Without ``strict`` where it is an error."""
    return {"strict": (False,) if name in LINEAR else (False, True)}


@pytest.mark.parametrize("kind", ["arrays", "tensors"])
def test_of_constants(name, case, base, kind):
    convert = base.tensor if kind == "tensors" else base.asarray
    for options in combinations(case.what, create_graph=(False, True), **allowed(name)):
        found = case.call(**options)(*(mapped(convert, tree) for tree in case.given))
        assert {type(x) for x in leaves(found)} == {ng.Tensor if kind == "tensors" else type(base.asarray(np.zeros(1)))}
        case.check(found)


@pytest.mark.parametrize("levels", [1, 2])
def test_of_tracked_tensors_without_create_graph(name, case, base, levels):
    """Constants come out, also of a tracked vector."""
    S = stacked(base, levels)
    for options in combinations(case.what, **allowed(name)):
        found = case.call(**options)(*(mapped(lambda x: S.tensor(x, requires_grad=True), tree) for tree in case.given))
        assert {x.level for x in leaves(found)} == {0} and not any(x.marks for x in leaves(found))
        case.check(found)


@pytest.mark.parametrize("levels", [1, 2])
def test_of_tracked_tensors_with_create_graph(name, case, base, levels):
    """The result is differentiated by the inputs, and on two levels the derivative once more."""
    S, slopes = stacked(base, levels), case.slopes()
    for options in combinations(case.what, **allowed(name)):
        xs, *vs = (mapped(lambda x: S.tensor(x, requires_grad=True), tree) for tree in case.given)
        found = case.call(create_graph=True, **options)(xs, *vs)
        case.check(found)
        grads = weighted(found).backward()
        first = [x.grad(grads) for x in leaves(xs)]
        close(first, slopes[0])
        assert {g.level for g in first} == {levels - 1}
        if levels == 2:
            again = weighted(tuple(first)).backward()
            close([x.grad(again) for x in leaves(xs)], slopes[1])


@pytest.mark.parametrize("outer", ["grad", "jacrev", "jacfwd", "jvp", "vmap"])
def test_inside_a_transform(name, case, base, outer):
    """Of the inputs times a number, by that number: the sum of slopes times inputs."""
    xs, *vs = (mapped(base.tensor, tree) for tree in case.given)
    along = sum((g * x).sum() for g, x in zip(case.slopes()[0], leaves(case.given[0]), strict=True))
    for options in combinations(case.what, **allowed(name)):
        call = case.call(create_graph=True, **options)
        at = lambda s, call=call: call(mapped(lambda x: s * x, xs), *vs)
        total, one = lambda s, at=at: weighted(at(s)), base.tensor(1.0)
        if outer == "vmap":
            found = func.vmap(at)(base.tensor([0.7, 1.0]))
            case.check(mapped(lambda x: x[1], found))
            mapped(lambda x, y: _same(x[0].numpy(), y, 1e-12), found, at(0.7))
            continue
        found = func.jvp(total, (one,), (one,))[1] if outer == "jvp" else getattr(func, outer)(total)(one)
        np.testing.assert_allclose(found.item(), along, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", sorted(LINEAR))
def test_strict_refuses_something_linear(name, base):
    case = Case(name)
    for levels, options in itertools.product((0, 1, 2), combinations(case.what, create_graph=(False, True))):
        x = stacked(base, levels).tensor(case.given[0], requires_grad=levels > 0)
        with pytest.raises(RuntimeError, match="jacobian of the user-provided function with respect to input 0 is independent"):
            case.call(strict=True, **options)(x)


INDEPENDENT = {
    "jacobian": r"Output 0 of the user-provided function is independent of input 1",
    "hessian": r"While computing the hessian, .* with respect to input 1 is independent of the input",
    "jvp": r"The output of the user-provided function is independent of input 1",
}


@pytest.mark.parametrize("what", OPTIONS)
def test_zeros_by_an_input_that_is_not_used_or_an_error(what, base):
    """The first case, beside an input that does not count."""
    case = Case("pow3_hessian_2x2")
    f, x = eval(case.text, {"xp": OURS}), case.given[0]
    args = {"vjp": (np.array(1.0),), "jvp": ((x, np.ones(3)),), "hvp": ((x, np.ones(3)),), "vhp": ((x, np.ones(3)),)}.get(what, ())
    for levels, options in itertools.product((0, 1, 2), combinations(what, create_graph=(False, True))):
        S = stacked(base, levels)
        given = (tuple(S.tensor(a, requires_grad=levels > 0) for a in (x, np.ones(3))), *(mapped(base.tensor, a) for a in args))
        found = getattr(functional, what)(lambda x, y: f(x), *given, **options)
        if what == "hessian":
            _same(case.expected, found[0][0], case.rtol)
            assert [[b.shape for b in row] for row in found] == [[(2, 2, 2, 2), (2, 2, 3)], [(3, 2, 2), (3, 3)]]
            zeros = [found[0][1], *found[1]]
        else:
            zeros = [] if what == "jvp" else [found[1] if what == "jacobian" else found[1][1]]
            assert [z.shape for z in zeros] == [(3,)] * len(zeros)
        assert not any(z.numpy().any() for z in zeros)
        with pytest.raises(RuntimeError, match=INDEPENDENT.get(what, INDEPENDENT["jvp"])):
            getattr(functional, what)(lambda x, y: f(x), *given, strict=True, **options)


@pytest.mark.parametrize("name", HIGH)
@pytest.mark.parametrize("inner", STRATEGIES)
@pytest.mark.parametrize("outer", STRATEGIES)
def test_derivatives_of_high_order_by_jacobians_of_jacobians(name, base, inner, outer):
    """One strategy in turn with the other; vectorized or not in turn."""
    f, order, x = eval(CASES[name]["function"], {"xp": OURS}), CASES[name]["order"], CASES[name]["inputs"][0]
    for vectorize, levels in itertools.product((False, True), (0, 1)):
        g = f
        for k in range(order):
            options = {"strategy": (inner, outer)[k % 2], "vectorize": vectorize == (k % 2 == 0), "create_graph": k < order - 1}
            g = lambda x, g=g, options=options: functional.jacobian(g, x, **options)
        found = g(stacked(base, levels).tensor(x, requires_grad=levels > 0))
        _same(np.array(CASES[name]["expected"]), found, CASES[name]["rtol"])
        assert found.level == 0


@pytest.mark.parametrize("name", HIGH)
def test_derivatives_of_high_order_by_transforms(name, base):
    """All sequences of forward and reverse mode; and each entry as a partial derivative of its own, by a series."""
    f, order, x = eval(CASES[name]["function"], {"xp": OURS}), CASES[name]["order"], np.array(CASES[name]["inputs"][0])
    expected, rtol = np.array(CASES[name]["expected"]), CASES[name]["rtol"]
    for path in itertools.product((func.jacrev, func.jacfwd), repeat=order):
        g = f
        for transform in path:
            g = transform(g)
        _same(expected, g(base.tensor(x)), rtol)
    for axes in itertools.product(range(x.size), repeat=order):
        _same(expected[axes] if x.ndim else expected, func.derivative(f, axes)(base.tensor(x)), rtol)


@pytest.mark.parametrize("name", HIGH)
def test_derivatives_of_high_order_on_levels(name, base):
    case, order = CASES[name], CASES[name]["order"]
    x = stacked(base, order).tensor(case["inputs"][0], requires_grad=True)

    def rows(u: Any, n: int) -> Any:
        """All derivatives of a number."""
        if not n:
            return u.numpy()
        g = u.wrt(x)
        return np.array([rows(g[k], n - 1) for k in range(x.size)]) if x.ndim else rows(g, n - 1)

    np.testing.assert_allclose(rows(eval(case["function"], {"xp": OURS})(x), order), case["expected"], rtol=case["rtol"], atol=1e-14)
