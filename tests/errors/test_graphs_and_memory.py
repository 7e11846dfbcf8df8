"""Graphs that were freed, memory that was written into, values taken out of their levels; and that no class of error is idle."""

import pickle
import warnings

import numpy as np
import pytest
import torch

import nestgrad as ng
from nestgrad import Autodiff, NumpyBackend, errors
from nestgrad.backends import Backend
from nestgrad.backends.torch.graph import adopt, index
from nestgrad.compiled.executors import native
from nestgrad.errors import GraphFreedError, LevelError, MutatedError, NestgradError, NoLevelLeft, NotTrackedError
from nestgrad.func import grad, taylor, trace, vjp
from nestgrad.testing import check_grads


def _shared(S, requires_grad=True, data=(1.0, 2.0, 3.0)):
    """An array, and a Tensor over its memory."""
    if S.base.name == "numpy":
        array = np.array(data)
        return array, S.from_numpy(array, requires_grad=requires_grad)
    tensor = torch.tensor(data, dtype=torch.float64)
    return tensor, S.from_torch(tensor, requires_grad=requires_grad)


def _write(array, value=100.0):
    """Write into memory that was lent: a NumPy array has to be made writeable against the wish of the lender."""
    if isinstance(array, np.ndarray):
        array.setflags(write=True)
    array[0] = value


def test_a_shared_numpy_array_becomes_read_only():
    array, _ = _shared(Autodiff(NumpyBackend()))
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 5.0
    whole = np.arange(6.0)
    Autodiff(NumpyBackend()).from_numpy(whole[1:4])
    with pytest.raises(ValueError, match="read-only"):
        whole[2] = 5.0


SAVED = {
    "product": lambda x: (x * x * x).sum(),
    "function": lambda x: x.sin().sum(),
    "view": lambda x: (x.reshape(3, 1).T[0, 1:] ** 2).sum(),
    "matrices": lambda x: (x.reshape(1, 3) @ x.reshape(3, 1)).sum(),
    "extremum": lambda x: x.max() * x.min(),
    "power": lambda x: (x**x).sum(),
    "other operand": lambda x: (x.detach() * x).sum(),
}
WORDS = r"from_numpy/from_torch was written into after it was shared, and a graph still reads it; .* Try tensor\(data\), which copies"


@pytest.mark.parametrize("f", SAVED.values(), ids=SAVED)
def test_a_saved_value_that_was_written_into_is_an_error_at_every_order(S, f):
    array, x = _shared(S)
    y = f(x)
    g = y.wrt(x)
    first, second = g.numpy(), g.wrt(x).numpy()
    late = y.backward()
    _write(array)
    with pytest.raises(MutatedError, match=WORDS):
        late.wrt(x)
    if f in (SAVED["view"], SAVED["matrices"], SAVED["other operand"]):  # the second derivative of a square reads no values
        assert np.array_equal(g.wrt(x).numpy(), second)
    else:
        with pytest.raises(MutatedError, match=WORDS):
            g.wrt(x)
    assert np.array_equal(g.numpy(), first)  # what was computed before is still there, and still right


READS = {
    "operator": lambda x: x * 2.0, "function": lambda x: x.sin(), "comparison": lambda x: x > 0.0, "numpy": lambda x: x.numpy(),
    "list": lambda x: x.tolist(), "item": lambda x: x[0].item(), "bool": lambda x: bool(x[0] > 0.0), "reduction": lambda x: x.sum(),
    "extremum": lambda x: x.argmax(), "product": lambda x: x @ x, "concat": lambda x: ng.concat([x, x]),
    "write": lambda x: x.at[0].set(1.0), "detached": lambda x: x.detach() + 1.0, "inner": lambda x: x.inner() + 1.0,
    "cast": lambda x: x.astype("float32"), "transform": lambda x: grad(lambda v: (v * v).sum())(x), "pickle": pickle.dumps,
    "seed": lambda x: x.backward(gradient=x)[x] + 1.0,
}  # fmt: skip


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_every_way_to_read_memory_that_was_written_into_is_an_error(S, read):
    array, x = _shared(S)
    _write(array)
    with pytest.raises(MutatedError, match=WORDS):
        read(x)


def test_what_does_not_read_the_memory_still_works(S):
    array, x = _shared(S)
    linear, exponential = (x + 1.0).sum(), x.exp().sum()
    _write(array)
    assert (x.shape, x.ndim, x.level) == ((3,), 1, 2)
    assert "whose shared memory was written into" in repr(x)
    assert linear.wrt(x).tolist() == [1.0, 1.0, 1.0]  # its rule reads nothing, and the rule of exp reads the answer
    assert np.allclose(exponential.wrt(x).numpy(), np.exp([1.0, 2.0, 3.0]), rtol=1e-15)


def test_data_is_copied_so_its_owner_may_write(S):
    array = np.array([1.0, 2.0, 3.0]) if S.base.name == "numpy" else torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    x = S.tensor(array, requires_grad=True)
    y = (x * x * array).sum()
    array[0] = 100.0
    assert x.tolist() == [1.0, 2.0, 3.0]
    assert y.wrt(x).tolist() == [2.0, 8.0, 18.0]
    out = x.numpy()
    out[0] = 100.0
    assert x.tolist() == [1.0, 2.0, 3.0]


def _root(S):
    a, b = S.tensor([2.0], requires_grad=True), S.tensor([3.0], requires_grad=True)
    m = a * b
    return m.sin() * b, m, a, b


LATER = {
    "another pass": lambda y, m, a: y.backward()[a],
    "wrt": lambda y, m, a: y.wrt(a),
    "wrt list": lambda y, m, a: y.backward(wrt=[a]),
    "freed again": lambda y, m, a: y.backward(retain_graph=False),
    "contains": lambda y, m, a: a in y.backward(),
    "part of it": lambda y, m, a: m.wrt(a),
    "child of it": lambda y, m, a: (m.exp() * 2.0).wrt(a),
    "seeded": lambda y, m, a: y.backward(gradient=np.ones(1))[a],
}


@pytest.mark.parametrize("later", LATER.values(), ids=LATER)
def test_a_freed_graph_is_an_error_that_names_the_op(S, later):
    y, m, a, _ = _root(S)
    y.backward(retain_graph=False)
    words = r"the graph was freed at '(mul|sin)' \(shape \(1,\)\) .*expected its saved values\. Try retain_graph=True"
    with pytest.raises(GraphFreedError, match=words):
        later(y, m, a)


def test_a_graph_is_freed_on_the_level_that_was_differentiated_alone(S):
    """The level further in still differentiates the derivative, and the value."""
    y, _, a, b = _root(S)
    grads = y.backward(retain_graph=False)
    first = a.grad(grads)
    assert np.allclose(first.numpy(), 9.0 * np.cos(6.0), rtol=1e-15)
    assert np.allclose(first.wrt(b).numpy(), 6.0 * np.cos(6.0) - 18.0 * np.sin(6.0), rtol=1e-14)
    assert np.allclose(y.inner().wrt(a).numpy(), 9.0 * np.cos(6.0), rtol=1e-15)


def test_gradients_that_were_closed_say_so(S):
    y, _, a, b = _root(S)
    grads = y.backward(wrt=[a])
    assert grads[a].shape == (1,)
    with pytest.raises(NotTrackedError, match=r"computed with wrt=\[\.\.\.\] or closed"):
        grads[b]
    again = y.backward()
    again.close()
    with pytest.raises(NotTrackedError, match="or closed"):
        again[a]


def test_a_value_taken_out_of_all_its_levels_tells_its_story(S):
    x = S.tensor([1.0, 2.0], requires_grad=True)
    taken = (x * x).inner().inner()
    with pytest.raises(NoLevelLeft, match=r"no level is left .*Autodiff level 1: inner\(\) of a 'mul'.*Try detach\(\).*one more Autodiff"):
        (taken * 2.0).backward()
    second = (x**3).wrt(x).wrt(x)
    with pytest.raises(NoLevelLeft, match=r"a derivative of a .*Try detach\(\) on what is meant as a constant, or one more Autodiff"):
        second.wrt(x)


def test_a_transform_does_not_lose_what_was_taken_out_of_it(S):
    with pytest.raises(LevelError, match=r"grad: the output was taken out of the level of this grad .*Make a variable inside"):
        grad(lambda v: v.inner() * 1.0)(S.base.tensor(2.0))


def _watched(x):
    """A NaN while somebody looks for it."""
    with ng.detect_anomaly():
        return (x - 2.0).log()


def _uncompiled(x):
    """A program over a backend that has no compiler, or none for its subclass; the warning as an error."""

    class Plain(NumpyBackend):
        """A backend of the user's own."""

    program = trace(lambda v: v * v)(Plain().tensor([1.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.CompileWarning)
        return native(program)


def _adopted(x):
    """A graph of torch with a function of the user's own in it."""

    class Own(torch.autograd.Function):
        """A sine without a rule."""

        @staticmethod
        def forward(ctx, v):
            return v.sin()

        @staticmethod
        def backward(ctx, g):
            return g

    adopt(None, Own.apply(torch.ones(2, requires_grad=True)), index())


IDLE = {
    errors.ShapeError: lambda x: x.reshape(5),
    errors.IndexRangeError: lambda x: x[9],
    errors.ArgumentError: lambda x: x.round("two"),
    errors.DTypeError: lambda x: x * 1j,
    errors.BackendError: lambda x: ng.get_backend("none of these"),
    errors.MissingOp: lambda x: Backend().asarray([1.0]),
    errors.LevelError: lambda x: x.detach(0),
    errors.NoLevelLeft: lambda x: x.inner().inner().wrt(x),
    errors.NotTrackedError: lambda x: x.wrt(x.detach()),
    errors.NotConnectedError: lambda x: x.sum().wrt(x + 0.0),
    errors.CoupledError: lambda x: (x[::-1] * x).backward(check_independent=True)[x],
    errors.GraphFreedError: lambda x: [(y := x.sin()).backward(retain_graph=False), y.wrt(x)],
    errors.UnsupportedNode: _adopted,
    errors.MissingPartial: lambda x: ng.Controller(x.sin()).fetch_hgrad((x,)),
    errors.MutatedError: lambda x: [_write((pair := _shared(Autodiff(x.backend)))[0]), pair[1] + 1.0],
    errors.ImmutableError: lambda x: x.__setitem__(0, 1.0),
    errors.ConversionError: lambda x: float(x.sum()),
    errors.OrderError: lambda x: taylor(lambda v: v.sum(), x, x, order=0),
    errors.RuleError: lambda x: ng.define("twice(x)", "no kind", lambda b, g: b.scale(g, 2.0)),
    errors.TraceError: lambda x: trace(lambda v: v[v > 0])(x),
    errors.ConvergenceError: lambda x: ng.implicit.root(lambda p: p, lambda v, p: v * v - p)(x),
    errors.FunctionalError: lambda x: ng.functional.hessian(lambda v: v, x),
    errors.FunctionalTypeError: lambda x: ng.functional.hessian(lambda v: [v], x),
    errors.AnomalyError: _watched,
    errors.CompileWarning: _uncompiled,
    errors.SingularMatrixError: lambda x: ng.linalg.inv(ng.zeros((2, 2))),
    errors.PatternError: lambda x: ng.func.hessian_diag(lambda v: v[0] * v[1] * v.sum(), pattern=np.eye(4))(x.detach()),
    errors.WrongDerivativeError: lambda x: check_grads(lambda v: (v * v.detach()).sum(), [np.array([1.0, 2.0])]),
}


def _classes(root):
    return {root}.union(*(_classes(c) for c in root.__subclasses__() if c.__module__ == "nestgrad.errors"))


def test_every_class_of_error_is_raised_by_something():
    assert set(IDLE) == _classes(NestgradError) - {NestgradError}


@pytest.mark.parametrize("error", IDLE, ids=lambda error: error.__name__)
def test_each_error_is_itself_and_a_builtin_and_has_a_message(S, error):
    x = S.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    with pytest.raises(error, match=r"(?s).{20}") as caught:
        IDLE[error](x)
    assert type(caught.value) is error
    builtins = [c for c in error.__mro__ if c.__module__ == "builtins" and c not in (Exception, BaseException, object)]
    assert builtins and isinstance(caught.value, builtins[0])


def test_a_pullback_of_a_freed_transform_still_works(S):
    """A transform keeps what its pullback needs, however often it is called."""
    x = S.base.tensor([1.0, 2.0])
    _, pull = vjp(lambda v: v**3, x)
    for _ in range(3):
        assert pull(np.ones(2))[0].tolist() == [3.0, 12.0]
