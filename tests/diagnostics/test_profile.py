"""What a profile tells: calls, own time, bytes, who asked; of a block, and of a backend that has one for good."""

import copy
import pickle
import threading
from collections import Counter

import numpy as np
import pytest
from counting import CountingBackend
from mpmath_backend import MpmathBackend

import nestgrad as ng
from nestgrad.backends import Backend, missing
from nestgrad.diagnostics import profiling
from nestgrad.diagnostics.profiled import ABOUT_ARRAYS
from nestgrad.errors import BackendError, LevelError
from nestgrad.testing import BackendConformance

BASES = {"numpy": ng.NumpyBackend, "torch": lambda: ng.TorchBackend(dtype="float64"), "mpmath": MpmathBackend}


@pytest.fixture(params=BASES)
def base(request):
    return BASES[request.param]()


def net(base, depth):
    """A net with its derivatives by input and parameters, on that many levels."""
    S = base
    for _ in range(depth):
        S = ng.Autodiff(S)
    rng = np.random.default_rng(0)
    x, w, v = (S.tensor(rng.normal(size=shape), requires_grad=True) for shape in ((5, 2), (2, 3), (3, 1)))
    u = ng.softplus(x @ w).tanh() @ v
    for _ in range(depth - 1):
        u = u.wrt(x)
    grads = (u * u).sum().backward()
    return w.grad(grads), v.grad(grads)


def asked(rows):
    """Calls by op, without those of the backend's own methods."""
    names = {row.op for row in rows}
    found = Counter()
    for row in rows:
        if row.asked not in names:
            found[row.op] += row.calls
    return found


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_calls_are_those_that_a_counting_backend_counts(depth):
    counting = CountingBackend()
    net(counting, depth)
    with ng.profile() as p:
        net(ng.NumpyBackend(), depth)
    assert asked(p.rows) == counting.counts
    assert p.calls == counting.total


def test_each_row_says_who_asked(base):
    S = ng.Autodiff(ng.Autodiff(base))
    x, c = S.tensor([0.5, 1.0], requires_grad=True), base.tensor([2.0, 3.0])
    with ng.profile() as p:
        d = c * c
        g = (x.exp() * d).sum().wrt(x)
        g.sum().wrt(x)
    found = {(row.op, row.asked): row.calls for row in p.rows}
    want = {
        ("mul", "level 0"): 1,
        ("exp", "Autodiff level 2"): 1,
        ("mul", "Autodiff level 2"): 1,
        ("sum", "Autodiff level 2"): 1,
        ("sum", "Autodiff level 1"): 1,
        ("mul0", "backward of Autodiff level 2"): 1,
    }
    assert {key: found.get(key) for key in want} == want
    assert {asked for _, asked in found} >= {"level 0", "Autodiff level 2", "backward of Autodiff level 2", "backward of Autodiff level 1"}


def test_what_is_computed_again_is_asked_for_by_checkpointing():
    x = ng.Autodiff(ng.NumpyBackend()).tensor([0.5, 1.0], requires_grad=True)
    f = ng.checkpoint(lambda x: x.sin().exp().cos())  # whose rule reads the exponential
    with ng.profile() as p:
        f(x).sum().wrt(x)
    assert {(row.op, row.calls) for row in p.rows if row.asked == "checkpointing"} == {("sin", 1), ("exp", 1)}


@pytest.mark.parametrize("dtype, size", [("float64", 8), ("float32", 4)])
@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_bytes_are_those_of_the_arrays_that_are_written(name, dtype, size):
    base = ng.get_backend(name, dtype=dtype)
    x = base.tensor(np.ones((3, 4)), dtype=dtype)
    with ng.profile() as p:
        x.exp(), x.T, x.reshape(12), x[1:], x > 0.0, x.sum(axis=0)
    found = {row.op: row.bytes for row in p.rows}
    assert found == {"exp": 12 * size, "permute": 0, "reshape": 0, "getitem": 0, "gt": 12, "sum": 4 * size} | (
        {"matmul": 0} if "matmul" in found else {}
    )
    assert p.bytes == 16 * size + 12


class Slow(ng.NumpyBackend):
    """A clock goes on by some seconds in two of its ops, of which one calls the other."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock

    def exp(self, x):
        self.clock[0] += 5.0
        return super().exp(x)

    def sinh(self, x):
        self.clock[0] += 1.0
        up, down = self.exp(x), self.exp(self.neg(x))
        self.clock[0] += 2.0
        return self.div(self.sub(up, down), 2.0)


def test_own_time_is_without_that_of_ops_that_an_op_calls(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(profiling, "perf_counter", lambda: clock[0])
    x = Slow(clock).tensor([1.0])
    with ng.profile() as p:
        x.sinh()
        x.exp()
    found = {(row.op, row.asked): (row.calls, row.own, row.seconds) for row in p.rows}
    assert found["sinh", "level 0"] == (1, 3.0, 13.0)
    assert found["exp", "sinh"] == (2, 10.0, 10.0)
    assert found["exp", "level 0"] == (1, 5.0, 5.0)
    assert p.seconds == 18.0 and p.calls == 2
    assert [row.op for row in p.rows[:2]] == ["exp", "exp"], "the most time of its own comes first"


def test_what_measuring_costs_is_in_no_row(monkeypatch):
    """A clock that goes on by one second each time it is read."""
    clock = iter(range(10**6))
    monkeypatch.setattr(profiling, "perf_counter", lambda: float(next(clock)))
    x = Slow([0.0]).tensor([1.0])
    with ng.profile() as p:
        x.sinh()
    (row,) = (row for row in p.rows if row.op == "sinh")
    inner = [row for row in p.rows if row.asked == "sinh"]
    assert sum(row.calls for row in inner) == 5
    assert all(row.own == row.seconds == row.calls for row in inner), "one second is between the two times that are taken"
    assert row.seconds == row.own + 5


def test_times_add_up(base):
    with ng.profile() as p:
        net(base, 2)
    names = {row.op for row in p.rows}
    assert p.seconds == pytest.approx(sum(row.seconds for row in p.rows if row.asked not in names), rel=1e-9)
    assert all(0.0 <= row.own <= row.seconds * (1 + 1e-9) for row in p.rows)


def test_the_table():
    x = ng.Autodiff(ng.NumpyBackend()).tensor(np.ones(1000), requires_grad=True)
    with ng.profile() as p:
        x.exp().sum().wrt(x)
    head, *rows, last = str(p).splitlines()
    assert head.split() == ["op", "asked", "by", "calls", "own", "ms", "ms", "written"]
    assert len({len(row) for row in (head, *rows, last)}) == 1
    assert [row.split()[0] for row in rows] == [row.op for row in p.rows]
    (exp,) = (row for row in rows if row.startswith("exp "))
    assert exp.split()[1:5] == ["Autodiff", "level", "1", "1"] and exp.endswith("8.0 kB")
    assert last.split()[:2] == ["all", f"{p.calls}"]
    assert repr(p).startswith(f"<profile of {p.calls} ops, ")


def test_a_backend_that_allows_no_subclass_is_watched_from_outside():
    class Last(ng.NumpyBackend):
        def __init_subclass__(cls):
            raise TypeError("there is none after me")

    x = Last().tensor([1.0, 2.0])
    with ng.profile() as p:
        x.sinh()
    assert [(row.op, row.asked, row.calls) for row in p.rows] == [("sinh", "level 0", 1)]


def test_a_method_that_a_backend_lacks_is_told_as_ever():
    class Without(MpmathBackend):
        cos = Backend.cos

    x = ng.Autodiff(Without()).tensor(0.5, requires_grad=True)
    expected = r"^cos: Without lacks .* All that it lacks: cos \(needed by the rule of 'sin'"
    with ng.profile(), pytest.raises(ng.errors.MissingOp, match=expected):
        x.sin().wrt(x)


def test_blocks_nest_and_what_fails_is_not_counted():
    x = ng.tensor([1.0, 2.0])
    with ng.profile() as outer:
        x.exp()
        with pytest.raises(ng.errors.ShapeError), ng.profile() as inner:
            x.sin()
            x + np.ones(3)
        x.cos()
    x.tan()
    assert {row.op for row in inner.rows} == {"sin"}
    assert {row.op for row in outer.rows} == {"exp", "sin", "cos"}


def test_another_thread_is_not_in_it():
    x = ng.tensor([1.0, 2.0])
    with ng.profile() as p:
        thread = threading.Thread(target=x.exp)
        thread.start()
        thread.join()
        x.sin()
    assert {row.op for row in p.rows} == {"sin"}


def test_it_stands_beside_an_alarm():
    x = ng.Autodiff(ng.NumpyBackend()).tensor([1.0, 4.0], requires_grad=True)
    with ng.detect_anomaly(), ng.profile() as p:
        y = x.sqrt().sum().wrt(x)
    assert y.tolist() == [0.5, 0.25]
    assert asked(p.rows)["sqrt"] == 1 and not {"isnan", "isfinite"} & {row.op for row in p.rows}


def test_outside_of_the_block_all_methods_are_the_same_objects(base):
    net(base, 2)
    before = {**vars(base.dressed)}
    with ng.profile():
        net(base, 2)
    assert {name: method for name, method in vars(base.dressed).items() if name in before} == before


def test_jitted_functions_are_counted_op_by_op():
    f = ng.jit(lambda x: (x * x).exp().sum())
    x = ng.tensor([1.0, 2.0])
    f(x)
    with ng.profile() as p:
        f(x)
    assert asked(p.rows).keys() >= {"exp", "sum"}
    base = ng.Profiled(ng.NumpyBackend())
    x = base.tensor([1.0, 2.0])
    f(x)
    base.profile.clear()
    f(x)
    assert asked(base.profile.rows) == asked(p.rows)


# a backend with a profile


def test_a_profiled_backend_has_the_profile_of_a_block(base):
    with ng.profile() as p:
        net(base, 2)
    profiled = ng.Profiled(base)
    net(profiled, 2)
    of_a_block, of_the_backend = ({(r.op, r.asked): (r.calls, r.bytes) for r in rows} for rows in (p.rows, profiled.profile.rows))
    assert of_the_backend == of_a_block
    assert profiled.report() == str(profiled.profile)
    assert profiled.report().splitlines()[-1].split()[:2] == ["all", f"{p.calls}"]


def test_it_computes_what_the_wrapped_backend_does(base):
    for got, want in zip(net(ng.Profiled(base), 2), net(base, 2), strict=True):
        assert got.numpy().tobytes() == want.numpy().tobytes()


def test_all_threads_are_in_it():
    base = ng.Profiled(ng.NumpyBackend())
    x = base.tensor([1.0, 2.0])
    threads = [threading.Thread(target=lambda: [x.exp() for _ in range(100)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert base.profile.calls == 400


def test_what_meets():
    """Profiled backends that wrap equal ones; not a profiled one and the one that it wraps."""
    plain = ng.NumpyBackend()
    x, y = ng.Profiled(plain).tensor([1.0]), ng.Profiled(ng.NumpyBackend()).tensor([2.0])
    assert (x + y).tolist() == [3.0]
    with pytest.raises(LevelError, match="different base backends, profiled numpy and numpy; they cannot meet"):
        x + plain.tensor([1.0])
    assert (x + np.array([1.0])).tolist() == [2.0]
    assert ng.Profiled(ng.NumpyBackend("float32")) != ng.Profiled(plain) != plain


def test_copies_begin_anew(base):
    profiled = ng.Profiled(ng.NumpyBackend())
    x = profiled.tensor([1.0]).exp()
    for other in (pickle.loads(pickle.dumps(profiled)), copy.copy(profiled), copy.deepcopy(profiled)):
        assert other == profiled and other.profile.calls == 0
        assert (x + other.tensor([1.0])).tolist() == [x.item() + 1.0]


def test_a_level_is_no_backend_to_profile():
    expected = r"^Profiled: got Autodiff\(numpy\); expected a base backend, because .* Try Autodiff\(Profiled\(NumpyBackend\(\)\)\)"
    with pytest.raises(BackendError, match=expected):
        ng.Profiled(ng.Autodiff(ng.NumpyBackend()))


def test_all_that_a_backend_has_beside_ops_is_forwarded():
    """But ways around the ops, which would not be counted."""
    around = {"memory", "compiled", "uncompilable", "at_hand", "graphs"}
    public = {name for name in vars(Backend) if not name.startswith("_")} - {"key", "name", "default_dtype"}
    assert public - around <= {*ABOUT_ARRAYS}, "add it to ABOUT_ARRAYS, or here if it is a way around the ops"
    assert not missing(ng.Profiled(ng.NumpyBackend()))
    assert ng.Profiled(ng.TorchBackend()).default_device == ng.TorchBackend().default_device


class TestProfiled(BackendConformance):
    order = 1

    def make_backend(self):
        return ng.Profiled(ng.NumpyBackend())
