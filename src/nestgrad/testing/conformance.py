"""``BackendConformance``: the tests of every backend, as a class to subclass. Needs pytest."""

from typing import Any, ClassVar

import numpy as np
import pytest

from nestgrad.backends.base import missing
from nestgrad.ops import Op
from nestgrad.testing.differences import precision
from nestgrad.testing.operations import check_op
from nestgrad.testing.suite import Suite


class BackendConformance(Suite):
    """What a backend has to do, and the derivatives of all ops on it, to third order on three levels.

    Subclass it in a test module, under a name that pytest collects::

        class TestMyBackend(BackendConformance):
            backend = MyBackend()                       # or override make_backend
            xfails = {"erf": "no erf before 2.3"}       # known gaps

    Attributes:
        backend: The backend, or its class.
        xfails: What is known to fail: name of an op or of a test here, and the reason. What is listed and passes fails.
        order: The highest order of derivatives.
    """

    backend: ClassVar[Any] = None
    order: ClassVar[int] = 3

    def make_backend(self) -> Any:
        """A new backend, or the one there is."""
        if type(self).backend is None:
            raise NotImplementedError(f"{type(self).__name__}: set `backend`, or override make_backend")
        return type(self).backend() if isinstance(type(self).backend, type) else type(self).backend

    @pytest.fixture
    def b(self) -> Any:
        """The backend."""
        return self.make_backend()

    # ops

    def test_op(self, b: Any, op: Op) -> None:
        """Values against NumPy, derivatives against finite differences and by the printed conventions."""
        check_op(op, b, self.order)

    # the contract

    def test_required_methods(self, b: Any) -> None:
        """None is missing."""
        assert missing(b) == []

    def test_identity(self, b: Any) -> None:
        """Backends that are made alike are equal and hash alike; none equals something else."""
        other = self.make_backend()
        assert b == other and hash(b) == hash(other)
        assert b != object()
        assert isinstance(repr(b), str)

    def test_python_data(self, b: Any) -> None:
        """Floats get the default dtype; ints and bools keep their kind; shapes are tuples of ints."""
        assert b.dtype(b.asarray(1.5)) == b.default_dtype
        assert b.dtype(b.asarray([[1.5, 2.0]])) == b.default_dtype
        assert [b.kind(b.asarray(v)) for v in (1.5, 2, True)] == ["float", "int", "bool"]
        assert [b.is_floating(b.asarray(v)) for v in (1.5, 2, True)] == [True, False, False]
        for data, shape in ((1.5, ()), ([1.0], (1,)), ([[1.0, 2.0]], (1, 2)), ([], (0,))):
            found = tuple(b.shape(b.asarray(data)))
            assert found == shape and all(type(n) is int for n in found)
        assert b.resolve_dtype(None) == b.resolve_dtype(float) == b.default_dtype

    def test_copies(self, b: Any) -> None:
        """Data is copied on the way in and on the way out."""
        data = np.array([1.0, 2.0])
        x = b.asarray(data)
        data[0] = 9.0
        out = b.to_numpy(x)
        assert out.tolist() == [1.0, 2.0]
        out[0] = 9.0
        y = b.asarray(x)
        assert b.to_numpy(x).tolist() == b.to_numpy(y).tolist() == [1.0, 2.0]

    def test_python_numbers_are_weakly_typed(self, b: Any) -> None:
        """A Python number on either side changes no dtype."""
        x = b.asarray([0.5, 1.5])
        for name in ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "mul0", "div0"):
            for number in (2.0, 2):
                for pair in ((x, number), (number, x)):
                    assert b.dtype(getattr(b, name)(*pair)) == b.default_dtype, f"{name} with {number!r}"
        c = b.asarray([True, False])
        for pair in ((x, 0.0), (0, x)):
            assert b.dtype(b.where(c, *pair)) == b.default_dtype, f"where with {pair!r}"

    def test_casts(self, b: Any) -> None:
        """Between floats, ints and bools."""
        x = b.asarray([-1.5, 0.0, 2.7])
        assert b.to_numpy(b.cast(x, b.resolve_dtype(int))).tolist() == [-1, 0, 2]
        assert b.to_numpy(b.cast(x, b.resolve_dtype(bool))).tolist() == [True, False, True]
        assert b.dtype(b.cast(b.asarray([1, 2]), b.default_dtype)) == b.default_dtype

    def test_axes(self, b: Any) -> None:
        """Reductions over none, some and all axes; sums over nothing are 0."""
        x = np.arange(6.0).reshape(1, 2, 3)
        for axes in ((), (0,), (2,), (0, 2), (0, 1, 2)):
            for keepdims in (False, True):
                for name, of in (("sum", np.sum), ("amax", np.max), ("amin", np.min)):
                    want = of(x, axis=axes, keepdims=keepdims)
                    self._equal(b, getattr(b, name)(self._float(b, x), axes, keepdims), want, f"{name} over {axes}")
        self._equal(b, b.sum(self._float(b, np.ones((0, 3))), (0,)), np.zeros(3), "sum over nothing")

    def test_sizes(self, b: Any) -> None:
        """What is big, and what has no entries."""
        big = np.arange(6000.0) % 7 - 2.75
        for shape in ((6000,), (3000, 2), (2, 3000), (60, 10, 10)):
            x = big.reshape(shape)
            for k in range(len(shape)):
                self._equal(b, b.sum(self._float(b, x), (k,)), x.sum(k), f"sum of {shape} over {k}")
        self._equal(b, b.broadcast_to(self._float(b, big[:5]), (2000, 5)), np.broadcast_to(big[:5], (2000, 5)), "broadcast_to")
        none = self._float(b, np.zeros((0, 3)))
        for got, shape in (
            (b.add(none, none), (0, 3)),
            (b.exp(none), (0, 3)),
            (b.reshape(none, (3, 0)), (3, 0)),
            (b.matmul(none, self._float(b, np.ones((3, 2)))), (0, 2)),
            (b.concat(none, none, axis=1), (0, 6)),
            (b.getitem(none, (slice(None), 1)), (0,)),
        ):
            assert tuple(b.shape(got)) == shape

    def test_indices(self, b: Any) -> None:
        """Ints, slices in both directions and index arrays; what is named twice is added twice."""
        x = np.arange(12.0).reshape(3, 4)
        rows, back = np.array([2, 0, 2]), slice(None, None, -1)
        indices: list[Any] = [(1,), (-1, slice(None)), (back,), (slice(2, 0, -1), slice(0, 4, 2)), (rows,), (rows, rows), (rows, 1)]
        for index in indices:
            native = tuple(b.index(part) if isinstance(part, np.ndarray) else part for part in index)
            part = x[index]
            self._equal(b, b.getitem(self._float(b, x), native), part, f"getitem {index}")
            summed, replaced, spread = x.copy(), x.copy(), np.zeros_like(x)
            np.add.at(summed, index, 10.0)
            np.add.at(spread, index, part)
            replaced[index] = 10.0
            ten = b.asarray(10.0)
            self._equal(b, b.index_add(self._float(b, x), ten, native), summed, f"index_add {index}")
            self._equal(b, b.index_set(self._float(b, x), ten, native), replaced, f"index_set {index}")
            self._equal(b, b.put(self._float(b, part), native, (3, 4)), spread, f"put {index}")

    def test_not_a_number(self, b: Any) -> None:
        """NaN equals nothing, goes through, and is stopped by ``where``, and by a zero in ``mul0`` and ``div0``."""
        nan, inf = float("nan"), float("inf")
        x, y = b.asarray([nan, 0.0, 0.0, 1.0]), b.asarray([1.0, nan, inf, 0.0])
        with np.errstate(all="ignore"):
            self._equal(b, b.eq(x, x), np.array([False, True, True, True]), "eq")
            self._equal(b, b.isnan(b.add(x, y)), np.array([True, True, False, False]), "add")
            self._equal(b, b.isfinite(y), np.array([True, False, False, True]), "isfinite")
            self._equal(b, b.where(b.eq(x, x), x, 7.0), np.array([7.0, 0.0, 0.0, 1.0]), "where")
            self._equal(b, b.getitem(b.mul0(x, y), (slice(1, None),)), np.zeros(3), "mul0")
            self._equal(b, b.getitem(b.div0(x, y), (slice(1, None),)), np.array([0.0, 0.0, inf]), "div0")
            self._equal(b, b.maximum(x, y), np.array([nan, nan, inf, 1.0]), "maximum")

    def test_new_arrays(self, b: Any) -> None:
        """``full``, ``arange`` and random numbers; a seed repeats them."""
        self._equal(b, b.full((2, 3), 1.5), np.full((2, 3), 1.5), "full")
        assert b.dtype(b.full((2,), 1.5)) == b.default_dtype
        self._equal(b, b.arange(0.0, 1.0, 0.25), np.arange(0.0, 1.0, 0.25), "arange")
        self._equal(b, b.arange(5, 0, -2), np.array([5, 3, 1]), "arange of ints")
        for name in ("uniform", "normal"):
            first, again, other = (b.to_numpy(getattr(b, name)((50, 20), b.generator(seed))) for seed in (1, 1, 2))
            assert first.shape == (50, 20) and np.array_equal(first, again) and not np.array_equal(first, other)
            mean, spread = (0.5, 12**-0.5) if name == "uniform" else (0.0, 1.0)
            # a thousand numbers: five standard errors
            assert abs(float(first.mean()) - mean) < 5 * spread / 1000**0.5, name
            assert abs(float(first.std()) - spread) < 0.15 * spread, name

    def test_shared_memory(self, b: Any) -> None:
        """``share`` gives the values, and nothing has changed as long as nobody writes."""
        x, token = b.share(np.array([1.0, 2.0]))
        assert b.to_numpy(x).tolist() == [1.0, 2.0]
        assert not b.changed(x, token)

    def test_precision(self, b: Any) -> None:
        """The default dtype has at least the digits of a half-precision number."""
        assert precision(b) <= 2.0**-7

    # helpers

    def _float(self, b: Any, data: Any) -> Any:
        return b.cast(b.asarray(data), b.default_dtype)

    def _equal(self, b: Any, got: Any, want: Any, what: str) -> None:
        assert tuple(b.shape(got)) == np.shape(want), f"{what}: got shape {b.shape(got)}, expected {np.shape(want)}"
        kind = {"b": "bool", "i": "int", "f": "float"}[np.asarray(want).dtype.kind]
        assert b.kind(got) == kind, f"{what}: got {b.kind(got)} numbers, expected {kind}"
        found = b.to_numpy(got)
        # whole numbers and quarters: exact in any dtype but for the order in which long sums round
        tolerance = max(precision(b), 2.0**-52) * 64
        assert np.allclose(found.astype(float), np.asarray(want, float), rtol=tolerance, atol=0.0, equal_nan=True), (
            f"{what}: got {found.tolist()}, expected {np.asarray(want).tolist()}"
        )
