"""``BackendConformance`` finds what is wrong with a backend, and takes known gaps at their word."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from nestgrad.backends import NumpyBackend
from nestgrad.errors import NestgradError
from nestgrad.ops import TABLE
from nestgrad.testing import BackendConformance


class Faulty(NumpyBackend):
    """Each subclass has one fault."""


class Nameless(Faulty):
    def __eq__(self, other):
        return self is other

    __hash__ = NumpyBackend.__hash__


class Sharing(Faulty):
    def asarray(self, data, dtype=None):
        return data if isinstance(data, np.ndarray) else super().asarray(data, dtype)


class Widening(Faulty):
    def mul(self, x, y):
        return np.multiply(np.asarray(x), np.asarray(y, np.float64))


class Rounding(Faulty):
    def cast(self, x, dtype):
        return np.round(x).astype(self.resolve_dtype(dtype))


class Greedy(Faulty):
    def sum(self, x, axes, keepdims=False):
        return np.sum(x, axis=axes or None, keepdims=keepdims)


class Sloppy(Faulty):
    def sum(self, x, axes, keepdims=False):
        return np.sum(x.astype(np.float16), axis=axes, keepdims=keepdims).astype(x.dtype)


class Forgetful(Faulty):
    def index_add(self, x, v, index):
        copy = np.array(x)
        copy[index] += v
        return copy


class Contagious(Faulty):
    def mul0(self, x, y):
        return np.multiply(x, y)


class Unseeded(Faulty):
    def generator(self, seed=None):
        return np.random.default_rng()


class Restless(Faulty):
    def changed(self, value, token):
        return True


class Listed(Faulty):
    def shape(self, x):
        return tuple(np.int64(n) for n in x.shape)


class WrongSin(Faulty):
    def sin(self, x):
        return np.sin(x) * (1 + 1e-12)


class WrongCos(Faulty):
    def cos(self, x):
        return np.cos(x) + 1e-4


FAULTS = {
    Nameless: "test_identity",
    Sharing: "test_copies",
    Widening: "test_python_numbers_are_weakly_typed",
    Rounding: "test_casts",
    Greedy: "test_axes",
    Sloppy: "test_sizes",
    Forgetful: "test_indices",
    Contagious: "test_not_a_number",
    Unseeded: "test_new_arrays",
    Restless: "test_shared_memory",
    Listed: "test_python_data",
}


def conformance(backend):
    return type("Suite", (BackendConformance,), {"backend": backend})()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_faults_are_found(fault):
    suite = conformance(lambda: None)
    suite.make_backend = lambda: fault("float32")
    with pytest.raises((AssertionError, NestgradError)):
        getattr(suite, FAULTS[fault])(suite.make_backend())
    right = conformance(NumpyBackend("float32"))
    getattr(right, FAULTS[fault])(right.make_backend())


def test_a_wrong_function_is_found_as_a_value_and_as_a_derivative_of_another():
    suite = conformance(WrongSin)
    with pytest.raises(NestgradError, match=r"^sin\(shape \(\)\) on numpy: wrong value"):
        suite.test_op(suite.make_backend(), TABLE["sin"])
    suite = conformance(WrongCos)
    with pytest.raises(NestgradError, match=r"^sin\(shape \(\)\) on numpy: derivative of order 1 .* entry \(\): got"):
        suite.test_op(suite.make_backend(), TABLE["sin"])


def test_the_backend_may_be_a_class_an_instance_or_made():
    assert isinstance(conformance(NumpyBackend).make_backend(), NumpyBackend)
    instance = NumpyBackend()
    assert conformance(instance).make_backend() is instance
    with pytest.raises(NotImplementedError, match="set `backend`, or override make_backend"):
        conformance(None).make_backend()


def test_an_op_without_samples_fails_collection(monkeypatch):
    monkeypatch.setitem(TABLE, "nothing", replace(TABLE["sin"], samples=replace(TABLE["sin"].samples, calls=())))
    metafunc = SimpleNamespace(fixturenames=["op"], parametrize=lambda *args, **kwargs: None)
    with pytest.raises(ValueError, match="has no samples"):
        conformance(NumpyBackend).pytest_generate_tests(metafunc)


def test_known_gaps_have_to_fail(tmp_path: Path):
    """Run by pytest: a gap that fails is expected, one that passes fails, and so does one that names nothing."""
    (tmp_path / "test_suite.py").write_text(
        """
from nestgrad.backends import NumpyBackend
from nestgrad.testing import BackendConformance

class Poor(NumpyBackend):
    def erf(self, x):
        raise NotImplementedError("no erf yet")

class TestPoor(BackendConformance):
    backend = Poor
    xfails = {"erf": "no erf yet", "cos": "said to be missing", "test_axes": "said to fail", "nonsense": "names nothing"}
"""
    )
    chosen = "erf or cos or axes or xfails or required or tanh"
    run = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(tmp_path)]
    done = subprocess.run([*run, "-k", chosen, str(tmp_path)], capture_output=True, text=True, check=False)
    told = done.stdout
    assert re.search(r"XFAIL .*TestPoor::test_op\[erf\] - no erf yet", told), told
    assert re.search(r"FAILED .*TestPoor::test_op\[cos\]", told) and "[XPASS(strict)] said to be missing" in told, told
    assert re.search(r"FAILED .*TestPoor::test_axes", told) and "[XPASS(strict)] said to fail" in told, told
    assert re.search(r"FAILED .*TestPoor::test_xfails_name_tests", told) and "xfails names ['nonsense'], which are neither" in told, told
    assert re.search(r"PASSED .*TestPoor::test_required_methods", told) and re.search(r"PASSED .*test_op\[tanh\]", told), told
