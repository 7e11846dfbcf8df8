"""What a backend promises besides its numbers: names, dtypes, copies, sharing, errors."""

import ast
import inspect
import subprocess
import sys

import numpy as np
import pytest
import torch
from frozen_backend import FrozenBackend
from mpmath_backend import MpmathBackend

import nestgrad.backends
from nestgrad.backends import Backend, NumpyBackend, TorchBackend, get_backend, missing
from nestgrad.backends.primitives import REQUIRED
from nestgrad.errors import BackendError, DTypeError, MissingOp, ShapeError

SHIPPED = [NumpyBackend(), NumpyBackend("float32"), TorchBackend(), TorchBackend(dtype="float64")]


@pytest.mark.parametrize("backend", [*SHIPPED, FrozenBackend(), MpmathBackend()], ids=repr)
def test_nothing_is_missing(backend):
    assert missing(backend) == missing(type(backend)) == []


def test_the_frozen_backend_has_the_required_methods_and_no_others():
    (body,) = [node.body for node in ast.parse(inspect.getsource(FrozenBackend)).body]
    assert sorted(node.name for node in body if isinstance(node, ast.FunctionDef)) == sorted(REQUIRED)


def test_missing_lists_what_a_backend_lacks():
    class Half(Backend):
        def add(self, x, y):
            return x + y

    assert missing(Half()) == [name for name in REQUIRED if name != "add"]
    for name in missing(Half):
        parameters = inspect.signature(getattr(Half(), name)).parameters.values()
        arguments = [None for p in parameters if p.kind == p.POSITIONAL_OR_KEYWORD and p.default is p.empty]
        with pytest.raises(MissingOp, match=rf"{name}: Half lacks a required method. Add `def {name}\(self"):
            getattr(Half(), name)(*arguments)
    with pytest.raises(MissingOp, match="erf"):
        Half().erf(0.0)
    with pytest.raises(NotImplementedError):
        Half().sub(1.0, [2.0])  # a default says which required method it needs


def test_equality_goes_by_value():
    assert NumpyBackend() == NumpyBackend(np.float64) == NumpyBackend(float) != NumpyBackend("float32")
    assert TorchBackend() == TorchBackend("cpu", "float32") == TorchBackend(torch.device("cpu"), np.float32)
    assert TorchBackend() != TorchBackend(dtype=torch.float64) != NumpyBackend()
    assert FrozenBackend() == FrozenBackend() != NumpyBackend()
    assert len({*SHIPPED, NumpyBackend("float32"), TorchBackend()}) == 4


def test_repr_names_what_differs_from_the_default():
    assert list(map(repr, SHIPPED)) == ["numpy", "numpy(float32)", "torch", "torch(float64)"]
    assert repr(FrozenBackend()) == "frozen"


def test_get_backend():
    assert get_backend("numpy") == NumpyBackend()
    assert get_backend("torch", dtype="float64") == TorchBackend(dtype=torch.float64)
    with pytest.raises(BackendError, match=r"no backend is called 'jux'; known: .*numpy, torch"):
        get_backend("jux")
    with pytest.raises(DTypeError, match="must be floating, got int64"):
        get_backend("numpy", dtype="int64")
    with pytest.raises(DTypeError, match=r"must be floating, got torch\.int64"):
        get_backend("torch", dtype="int64")


class Point:
    """An entry point of a package that is not installed."""

    def __init__(self, name, found):
        self.name, self.value, self.found = name, f"elsewhere:{name}", found

    def load(self):
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def test_entry_points_add_backends(monkeypatch):
    points = [Point("frozen", FrozenBackend), Point("broken", ImportError("no module named elsewhere")), Point("wrong", dict)]
    monkeypatch.setattr(nestgrad.backends, "entry_points", lambda group: points if group == "nestgrad.backends" else [])
    assert get_backend("frozen") == FrozenBackend()
    with pytest.raises(BackendError, match="known: broken, frozen, numpy, torch, wrong"):
        get_backend("other")
    with pytest.raises(BackendError, match="'broken' is known but cannot be imported: no module named elsewhere"):
        get_backend("broken")
    with pytest.raises(BackendError, match="elsewhere:wrong made a dict, which is no Backend"):
        get_backend("wrong")


def run(program):
    path = [str(p) for p in sys.path if p]
    return subprocess.run([sys.executable, "-c", f"import sys; sys.path[:] = {path!r}\n{program}"], capture_output=True, text=True)


def test_torch_is_imported_only_when_asked_for():
    assert run("import nestgrad.backends; assert 'torch' not in sys.modules").returncode == 0


def test_without_torch_the_error_says_what_to_install():
    answer = run("sys.modules['torch'] = None\nimport nestgrad.backends\nnestgrad.backends.get_backend('torch')")
    assert "BackendError: the torch backend needs PyTorch: pip install nestgrad[torch]" in answer.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(BackendError, match="no CUDA device for 'cuda:0'; use device='cpu'"):
        TorchBackend("cuda:0")


def test_dtypes_of_new_arrays(b):
    for data, kind in [([1.0, 2], b.float), (1.5, b.float), ([], b.float), ([[1, 2]], np.int64), (3, np.int64), (True, bool),
                       ([True, False], bool), (np.array([1, 2]), np.int64), (np.array([[True]]), bool)]:  # fmt: skip
        array = b.backend.asarray(data)
        numbers = b.to_numpy(array)
        assert numbers.dtype == kind
        assert numbers.tolist() == (data.tolist() if isinstance(data, np.ndarray) else data)
        assert b.is_floating(array) == (kind == b.float)
        assert b.kind(array) == {"f": "float", "i": "int", "b": "bool"}[np.dtype(kind).kind]
    for dtype, kind in [("float64", np.float64), ("int64", np.int64), ("bool", bool), (float, b.float), (int, np.int64), (bool, bool)]:
        wanted = b.resolve_dtype(dtype)
        assert b.to_numpy(b.backend.asarray([0, 1], wanted)).dtype == kind
        assert b.to_numpy(b.cast(b.array([0.0, 1.0]), wanted)).dtype == kind
        assert b.to_numpy(b.full((2,), 1, wanted)).dtype == kind
    b.check(b.cast(b.array([-1.5, 0.0, 1.5]), b.resolve_dtype(int)), [-1, 0, 1])
    b.check(b.cast(b.array([-1.5, 0.0]), b.resolve_dtype(bool)), [True, False])
    b.check(b.cast(b.array([True, False]), b.resolve_dtype(None)), [1.0, 0.0])


@pytest.mark.parametrize("backend", SHIPPED, ids=repr)
def test_arrays_from_elsewhere_keep_their_dtype(backend):
    for dtype in ("float32", "float64", "int32", "int64", "bool", "float16"):
        for source in (np.ones((2, 2), dtype)[:, ::-1], torch.ones((2, 2), dtype=getattr(torch, dtype)), np.ones((), dtype)[()]):
            array = backend.asarray(source)
            assert backend.to_numpy(array).dtype == dtype
            assert backend.to_numpy(backend.asarray(source, "float64")).dtype == np.float64
            assert backend.resolve_dtype(source.dtype) == array.dtype
            assert backend.nbytes(array) == (4 if backend.shape(array) else 1) * np.dtype(dtype).itemsize
            assert backend.device(array) == "cpu"
    rows = [np.ones(2, np.float32), np.zeros(2, np.float32)]
    assert backend.to_numpy(backend.asarray(rows)).tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert backend.resolve_dtype(np.float32) == backend.asarray(rows).dtype


@pytest.mark.parametrize("backend", SHIPPED, ids=repr)
def test_data_that_is_no_array_is_refused(backend):
    with pytest.raises(ShapeError, match="ragged"):
        backend.asarray([[1.0, 2.0], [3.0]])
    for data in ("abc", [None], {"a": 1}, 2**70, np.array(["a"])):
        with pytest.raises(DTypeError, match=r"asarray: got .* expected numbers"):
            backend.asarray(data)
    with pytest.raises(DTypeError, match="unknown dtype 'float7'; try 'float32'"):
        backend.resolve_dtype("float7")
    with pytest.raises(DTypeError, match=r"positions must be integers, got .*float"):
        backend.index([0.5])


def test_asarray_and_to_numpy_copy(b):
    source = np.array([1.0, 2.0], b.float)
    array = b.backend.asarray(source)
    source[0] = 9
    b.to_numpy(array)[1] = 9
    b.check(array, [1.0, 2.0])
    again = b.index_set(b.backend.asarray(array), 5.0, (0,))
    b.check(again, [5.0, 2.0])
    b.check(array, [1.0, 2.0])


@pytest.mark.parametrize("backend", SHIPPED, ids=repr)
@pytest.mark.parametrize("view", [lambda a: a, lambda a: a[1:], lambda a: a[::-1], lambda a: a.reshape(2, 2).T], ids=range(4))
def test_shared_numpy_memory_is_guarded(backend, view):
    owner = np.arange(4.0)
    mine = view(owner)
    value, token = backend.share(mine)
    assert backend.to_numpy(value).tolist() == mine.tolist()
    if token is None:  # torch has no negative strides: a copy, so nothing can change
        return
    assert not backend.changed(value, token)
    for array in (owner, mine):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7.0
    assert not backend.changed(value, token)
    owner.flags.writeable = True
    assert backend.changed(value, token)
    owner[1] = 7.0
    assert 7.0 in backend.to_numpy(value)  # the memory is shared


def test_shared_torch_memory_counts_versions():
    backend = TorchBackend()
    owner = torch.arange(4.0, requires_grad=True)
    for mine in (owner, owner[1:], owner.detach(), owner.double().detach()[::2]):
        value, token = backend.share(mine)
        assert not value.requires_grad
        assert value.data_ptr() == mine.data_ptr()
        assert not backend.changed(value, token)
        with torch.no_grad():
            mine.mul_(2)
        assert backend.changed(value, token)
    with torch.inference_mode():
        value, token = backend.share(torch.ones(2))
    assert not backend.changed(value, token)


def test_torch_records_nothing():
    backend = TorchBackend()
    x = backend.asarray(torch.ones(2, requires_grad=True))
    assert not x.requires_grad
    assert not backend.linear(backend.asarray([[1.0, 2.0]]), backend.asarray([[1.0], [2.0]]), backend.asarray([0.0])).requires_grad


def test_operands_that_are_accepted(b):
    assert b.accepts(np.ones(2))
    assert b.accepts(np.float64(1))
    assert b.accepts(b.array(np.ones(2)))
    assert not any(b.accepts(data) for data in (1.0, [1.0], "a", None, object()))


def test_new_arrays(b):
    b.check(b.full((2, 3), 0.5), np.full((2, 3), 0.5))
    b.check(b.full((), 2), np.array(2))
    b.check(b.full((2,), True), [True, True])
    b.check(b.arange(0, 5), np.arange(5))
    b.check(b.arange(5, 0, -2), [5, 3, 1])
    b.check(b.arange(0.0, 1.0, 0.25), [0.0, 0.25, 0.5, 0.75])
    b.check(b.arange(0, 3, 1, b.resolve_dtype(None)), [0.0, 1.0, 2.0])
    assert tuple(b.shape(b.arange(3, 3))) == (0,)
    b.check(b.index([1, -1]), [1, -1])
    b.check(b.index(np.array([[1]], np.int32)), [[1]])
    mask = np.array([[True, False], [True, True]])
    for got, want in zip(b.nonzero(b.array(mask)), np.nonzero(mask), strict=True):
        b.check(got, want)


def test_random_numbers(b):
    n = 50 if b.exact else 4000
    for draw, mean, deviation in [(b.uniform, 0.5, 12**-0.5), (b.normal, 0.0, 1.0)]:
        x, y = (draw((n, 2), b.generator(3)) for _ in range(2))
        numbers = b.to_numpy(x)
        assert numbers.dtype == b.float
        assert numbers.shape == (n, 2)
        np.testing.assert_array_equal(numbers, b.to_numpy(y))
        assert not np.array_equal(numbers, b.to_numpy(draw((n, 2), b.generator(4))))
        # Five standard errors of the mean; the deviation's is smaller.
        assert abs(numbers.mean() - mean) < 5 * deviation / np.sqrt(2 * n)
        assert abs(numbers.std() - deviation) < 5 * deviation / np.sqrt(2 * n)
        assert tuple(b.shape(draw((), b.generator()))) == ()
    assert b.to_numpy(b.uniform((n,), b.generator(0))).min() >= 0


def test_floats_where_both_branches_are_numbers(b):
    b.check(b.where(b.array([True, False]), 1.0, 0.0), [1.0, 0.0])
