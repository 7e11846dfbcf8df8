"""Arguments of all kinds: nested structures, strides, dtypes, sizes, shared memory, keywords, static ones."""

from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest
from likeness import DOUBLE, EXECUTORS, alike, outcome, stacked, var

import nestgrad as ng
from nestgrad import func, jit
from nestgrad.errors import NestgradError

Pair = namedtuple("Pair", "left right")
RNG = np.random.default_rng(0)
M = RNG.normal(size=(3, 4))


@pytest.fixture(params=EXECUTORS)
def executor(request: pytest.FixtureRequest) -> Any:
    return request.param


# ------------------------------------------------------------------ structures

TREES: dict[str, Any] = {
    "tuple": (M, 2.0),
    "list": [M, [M * 2.0, [0.5]]],
    "dict": {"w": M, "b": {"c": 1.5, "d": [M]}},
    "ordered": OrderedDict(b=M, a=M * 2.0),
    "named": Pair(M, [2.0]),
    "none": {"w": M, "b": None},
    "empty": (M, [], {}, ()),
    "one array twice": [M, M],
}


def total(tree: Any) -> Any:
    """A number that tells all leaves and their places."""
    if tree is None:
        return 0.25
    if isinstance(tree, dict):
        return sum((total(tree[key]) * (k + 1.5) for k, key in enumerate(tree)), ng.tensor(1.0))
    if isinstance(tree, (list, tuple)):
        return sum((total(part) * (k + 1.2) for k, part in enumerate(tree)), ng.tensor(2.0))
    return (ng.tensor(1.0) * tree * tree).sum()


def leaves_as(make: Any, tree: Any) -> Any:
    """The same structure with its numbers and arrays as something else."""
    if isinstance(tree, dict):
        return type(tree)((key, leaves_as(make, part)) for key, part in tree.items())
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(leaves_as(make, part) for part in tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(leaves_as(make, part) for part in tree)
    return tree if tree is None else make(tree)


@pytest.mark.parametrize("name", TREES)
def test_nested_structures_come_in_and_go_out(name: str, executor: str):
    S = stacked(ng.NumpyBackend(), 2)
    f = lambda tree, x: (total(tree) * x.sum(), leaves_as(lambda leaf: leaf * x.sum(), tree))
    g = jit(f, executor=executor)
    for make in (ng.tensor, lambda leaf: leaf, lambda leaf: var(S, leaf), lambda leaf: ng.tensor(leaf) * 2.0):
        tree, x = leaves_as(make, TREES[name]), var(S, [1.0, 2.0])
        for _ in range(2):
            got, want = g(tree, x), f(tree, x)
            alike(got, want)
            alike(got[0].wrt(x).sum().wrt(x), want[0].wrt(x).sum().wrt(x))


def test_another_structure_is_another_trace():
    f = lambda tree: total(tree)
    g = jit(f)
    for tree in (*TREES.values(), *TREES.values()):
        alike(g(tree), f(leaves_as(ng.tensor, tree)))


def test_keywords_defaults_and_several_arguments():
    def f(a: Any, b: Any = 2.0, *rest: Any, c: Any, d: Any = None, **more: Any) -> Any:
        return a * b + c + sum(rest, ng.tensor(0.0)) + (0.0 if d is None else d) + sum(more.values(), ng.tensor(0.0))

    g = jit(f)
    a, c = ng.tensor([1.0, 2.0]), ng.tensor([5.0, 6.0])
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((a,), {"c": c}), ((a,), {"c": 1.0}), ((a, 3.0), {"c": c}), ((a, c, a, 2.0), {"c": c, "d": a}), ((), {"a": a, "c": c}),
        ((a,), {"c": c, "e": a, "z": 2.0}), ((a,), {"z": 2.0, "e": a, "c": c}), ((a,), {"c": c, "b": c}),
    ]  # fmt: skip
    for args, kwargs in calls * 2:
        alike(g(*args, **kwargs), f(*args, **kwargs))
    for args, kwargs in (((), {}), ((a,), {}), ((a, a), {"c": c, "b": a})):
        with pytest.raises(TypeError):
            g(*args, **kwargs)


def test_static_arguments_are_python_values_inside():
    def f(x: Any, mode: str, n: int = 2, flag: bool = False) -> Any:
        for _ in range(n):
            x = x.sin() if mode == "sin" else x.cos()
        return x * 2.0 if flag else x

    g = jit(f, static_argnames=("mode", "n", "flag"))
    x = ng.tensor([0.5, 1.5])
    for mode, n, flag in (("sin", 1, False), ("cos", 1, False), ("sin", 3, True), ("cos", 3, True), ("sin", 1, False)):
        alike(g(x, mode, n, flag), f(x, mode, n, flag))
        alike(g(x, mode=mode, n=n, flag=flag), f(x, mode, n, flag))
    alike(g(x, "sin"), f(x, "sin"))


def test_static_arguments_that_are_equal_and_of_another_type():
    """1, 1.0 and True are equal, and not the same argument."""
    g = jit(lambda x, n: x * n, static_argnames=("n",))
    x = ng.tensor([1, 2])
    for n in (1, 1.0, True, 1, 0.0, -0.0, 0):
        got, want = g(x, n), x * n
        alike(got, want)
        assert np.array_equal(np.signbit(got.numpy().astype(float)), np.signbit(want.numpy().astype(float)))


# ------------------------------------------------------------------ numbers


def test_a_number_is_an_input_and_not_baked_in():
    g = jit(lambda x, c: x * c + c)
    x = ng.tensor([1.0, 2.0])
    for c in (2.0, 3.0, -1.5, 0.0, float("inf")):
        alike(g(x, c), x * c + c)
    assert g.stats().traces == 1


def test_numbers_are_weakly_typed(executor: str):
    """They change no dtype: of float32 and integers either."""
    f = lambda x, c: (x * c, c * x, x + c, ng.where(x > c, x, c), c - x, x / c if not isinstance(c, bool) else x)
    g = jit(f, executor=executor)
    for dtype in ("float32", "float64", "int64", "int32", "bool"):
        for c in (2.0, 2, True, np.float64(2.0), np.float32(2.0), np.int64(2), np.array(2.0), np.array(2)):
            if dtype == "bool" and not isinstance(c, (float, int)):
                continue
            x = ng.tensor([1, 2, 3], dtype=dtype)
            want, got = outcome(f, x, c), outcome(g, x, c)
            if isinstance(want, NestgradError):
                assert isinstance(got, NestgradError), (dtype, c)
            elif not isinstance(got, NestgradError):
                alike(got, want, rtol=1e-6, where=f"{dtype} {c!r}")
            else:
                raise AssertionError(f"{dtype} {c!r}: {got}")


def test_functions_of_numbers_alone():
    f = lambda a, b: ng.sin(a) * b
    g = jit(f)
    for a, b in ((1.0, 2.0), (0.5, 3.0)):
        got = g(a, b)
        assert got.item() == pytest.approx(np.sin(a) * b, rel=1e-15) and got.shape == ()
    alike(func.grad(g)(1.0, 2.0), func.grad(f)(1.0, 2.0))


def test_exact_integers_stay_exact():
    """2^53 + 1 is no float64."""
    big = 2**53 + 1
    g = jit(lambda n, m: (n + m, n * 1, n - big))
    x = ng.tensor([1, 2])
    assert g(x, big)[0].tolist() == [big + 1, big + 2]
    assert g(ng.tensor([big]), 1)[2].tolist() == [0]


# ------------------------------------------------------------------ arrays

LAYOUTS: dict[str, Any] = {
    "contiguous": M,
    "transposed": M.T.copy().T,
    "Fortran": np.asfortranarray(M),
    "every other": np.repeat(M, 2, axis=1)[:, ::2],
    "reversed": M[::-1, ::-1].copy()[::-1, ::-1],
    "broadcast": np.broadcast_to(M[:1], (3, 4)),
    "slice": np.pad(M, 2)[2:-2, 2:-2],
    "unaligned": np.frombuffer(b"\0" + M.tobytes(), dtype=np.float64, offset=1).reshape(3, 4),
    "read-only": np.frombuffer(M.tobytes()).reshape(3, 4),
    "big endian": M.astype(">f8"),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_arrays_of_every_layout(name: str, executor: str):
    f = lambda a, x: ((a * x).sin() @ a.T, a.reshape(-1)[::3] * 2.0, a.sum(0) + x, a)
    g = jit(f, executor=executor)
    a = LAYOUTS[name]
    for x in (ng.tensor([1.0, 2.0, 3.0, 4.0]), ng.tensor([-1.0, 0.5, 3.0, 2.0])):
        want, got = outcome(f, ng.tensor(a), x), outcome(g, a, x)
        assert type(got) is type(want), got
        if not isinstance(want, NestgradError):
            alike(got, want)
        for made in (ng.tensor, lambda a: ng.from_numpy(a)):
            if not isinstance(want, NestgradError):
                alike(g(made(a), x), want)


def test_arguments_are_not_written_into_and_results_share_nothing(executor: str):
    """Not by this call, nor by a later one; results of one call do not change at the next."""
    f = lambda a, b: (a, a * 1.0, b[0], a + b, a.T, a.reshape(-1), ng.zeros(2), a[1:])
    g = jit(f, executor=executor)
    a, b = M.copy(), M * 2.0
    kept = [[part.numpy().copy() for part in g(a, b)], g(a, b)]
    first = g(a, b)
    frozen = [part.numpy().copy() for part in first]
    np.testing.assert_array_equal(a, M)
    np.testing.assert_array_equal(b, M * 2.0)
    for k in range(3):
        g(a + k, b - k)
    for part, was in zip(first, frozen, strict=True):
        np.testing.assert_array_equal(part.numpy(), was)
    a[:] = 0.0
    b[:] = 0.0
    for part, was in zip(kept[1], kept[0], strict=True):
        np.testing.assert_array_equal(part.numpy(), was)
    for part, was in zip(first, frozen, strict=True):
        np.testing.assert_array_equal(part.numpy(), was)


def test_arguments_that_share_memory():
    f = lambda a, b: (a * b, a + 1.0, b * 2.0, a @ b.T)
    g = jit(f)
    a = RNG.normal(size=(4, 4))
    for one, two in ((a, a), (a, a.T), (a[:2], a[1:3]), (a, a[::-1])):
        alike(g(one, two), f(ng.tensor(one), ng.tensor(two)))
        shared = ng.from_numpy(one.copy())
        alike(g(shared, shared), f(shared, shared))


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0), (1,), (1, 1, 1), (2, 0, 3)])
@pytest.mark.parametrize("backend", DOUBLE)
def test_empty_and_scalar_arrays(shape: tuple[int, ...], backend: str):
    base = DOUBLE[backend]
    f = lambda a: ((a * 2.0).sin(), a.sum(), a.reshape(-1), ng.where(a > 0, a, -a), a.prod())
    g = jit(f)
    a = base.tensor(np.full(shape, 0.5))
    for _ in range(2):
        alike(g(a), f(a))
        S = stacked(base, 2)
        x = var(S, np.full(shape, 0.5))
        alike(g(x)[1].wrt(x).sum().wrt(x), f(x)[1].wrt(x).sum().wrt(x))


@pytest.mark.parametrize(("backend", "executor"), [("numpy", "replay"), ("numpy", "numpy"), ("torch", "replay")])
def test_dtypes_are_kept(backend: str, executor: Any):
    base = ng.get_backend(backend)
    f = lambda a, b: (a * b, a.sum(), (a > b), a.astype("float32") + b, -a if a.dtype != base.tensor([True]).dtype else a, a.mean())
    g = jit(f, executor=executor)
    for one in ("float64", "float32", "int64", "int32", "int8", "uint8", "bool"):
        for two in ("float64", "float32", "int64", "bool"):
            a, b = base.tensor([1, 0, 1], dtype=one), base.tensor([1, 1, 0], dtype=two)
            want, got = outcome(f, a, b), outcome(g, a, b)
            if isinstance(want, NestgradError):
                assert type(got) is type(want), f"{one} {two}: {got}"
            else:
                alike(got, want, rtol=1e-6, where=f"{one} {two}")


def test_special_values_are_kept(executor: str):
    f = lambda a: (a * 0.0, a - a, a / a, a + 0.0, -a, 0.0 - a, a * 1.0, a.exp(), ng.maximum(a, 0.0), ng.where(a > 0, a, 0.0))
    g = jit(f, executor=executor)
    a = ng.tensor([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-310, 1e308])
    for _ in range(2):
        for got, want in zip(g(a), f(a), strict=True):
            np.testing.assert_array_equal(got.numpy(), want.numpy())
            np.testing.assert_array_equal(np.signbit(got.numpy()), np.signbit(want.numpy()))


def test_integer_positions_as_arguments():
    f = lambda x, rows: x[rows] * 2.0 + x.take(rows)
    g = jit(f)
    x = ng.tensor([1.0, 2.0, 3.0])
    for rows in ([0, 1], [2, 2], [-1, 0]):
        alike(g(x, np.array(rows)), f(x, np.array(rows)))
    alike(outcome(g, x, np.array([0, 7])), outcome(f, x, np.array([0, 7])))
    alike(outcome(g, x, np.array([0, 1])), outcome(f, x, np.array([0, 1])))


def test_float32_backends():
    base = ng.NumpyBackend(dtype="float32")
    f = lambda x, c: (x * c + 1.0).sin() * np.float32(2.0)
    g = jit(f)
    x = base.tensor([0.5, 1.5])
    alike(g(x, 2.0), f(x, 2.0), rtol=1e-6)
    assert str(g(x, 2.0).dtype) == "float32"


def test_torch_tensors_as_arguments():
    torch = pytest.importorskip("torch")
    f = lambda x, y: (x * y).sin().sum()
    g = jit(f)
    x, y = torch.tensor([1.0, 2.0], dtype=torch.float64), torch.tensor([3.0, 4.0], dtype=torch.float64)
    base = ng.TorchBackend(dtype="float64")
    for _ in range(2):
        alike(g(x, y), f(base.tensor(x), base.tensor(y)))
        x += 1.0


def test_one_function_on_two_backends():
    f = lambda x: (x * 2.0).sin() * ng.softmax(x)
    g = jit(f)
    for _ in range(2):
        for base in DOUBLE.values():
            alike(g(base.tensor([0.5, 1.5])), f(base.tensor([0.5, 1.5])))


def test_no_arguments():
    g = jit(lambda: ng.tensor([1.0, 2.0]) * 2.0)
    for _ in range(2):
        assert g().tolist() == [2.0, 4.0]


def test_the_wrapped_function_is_known():
    def f(x: Any, y: Any = 1.0) -> Any:
        """What it does."""
        return x * y

    g = jit(f)
    assert (g.__name__, g.__doc__, g.__wrapped__) == ("f", "What it does.", f)


def test_as_a_decorator_with_options():
    @jit(executor="replay", static_argnames=("n",))
    def f(x: Any, n: int) -> Any:
        return x**n

    assert f(ng.tensor(3.0), 2).item() == 9.0
