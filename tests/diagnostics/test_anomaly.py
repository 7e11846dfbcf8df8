"""What an alarm says: the op, the level, the pass, the entry and its operands, and the user's lines."""

import inspect
import re
import threading
from contextvars import copy_context

import numpy as np
import pytest
from mpmath_backend import MpmathBackend

import nestgrad as ng
from nestgrad.errors import AnomalyError, ArgumentError, NestgradError
from nestgrad.levels.watching import Watcher

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

BASES = {"numpy": ng.NumpyBackend, "torch": lambda: ng.TorchBackend(dtype="float64"), "mpmath": MpmathBackend}


@pytest.fixture(params=BASES)
def base(request):
    return BASES[request.param]()


def line(mark):
    """``file:number`` of the line of this module that ends in the comment ``mark``, and its text."""
    source = inspect.getsource(inspect.getmodule(line)).splitlines()
    (number,) = [k for k, text in enumerate(source, 1) if text.endswith(f"  # {mark}")]
    return re.escape(f"{__file__}:{number}, in "), re.escape(f": {source[number - 1].strip()}")


def raised(mark, *others):
    """A pattern for a message with the line at ``mark``, and with what ``others`` say, in this order."""
    where, text = line(mark)
    return "(?s)" + ".*".join([*others, f"{where}\\w+{text}"])


def test_a_forward_run(base):
    """The op, the level, how many entries, which is the first, its operand, and the line."""
    x = ng.Autodiff(ng.Autodiff(base)).tensor([[1.0, 4.0], [-9.0, -1.0]], requires_grad=True)
    expected = raised(
        "forward",
        r"^log: gave NaN in the forward run on Autodiff level 2: in its answer, 2 of 4 entries \(shape \(2, 2\), \w+\), ",
        r"the first at \(1, 0\), where x = -9\.0; its operands held none\n  log was made at ",
    )
    with pytest.raises(AnomalyError, match=expected), ng.detect_anomaly():
        ng.log(x)  # forward


def test_a_run_on_no_level(base):
    expected = r"^div: gave inf in the forward run, on no level: in its answer, its one number .*, where x = 1\.0, y = 0\.0"
    with pytest.raises(AnomalyError, match=expected), ng.detect_anomaly():
        base.tensor(1.0) / base.tensor(0.0)


def test_what_is_expected_and_what_to_try():
    expected = r"(?s)expected finite numbers, because .*Try other operands there; safe_where, .* forward=False"
    with pytest.raises(AnomalyError, match=expected), ng.detect_anomaly():
        ng.log(ng.tensor(-1.0))


def test_a_backward_pass(base):
    """The level, the operand, what the rule read, what began it, where the op was made, and where the pass was asked for."""
    x = ng.Autodiff(ng.Autodiff(base)).tensor([4.0, 0.0], requires_grad=True)
    expected = raised(
        "asked",
        r"^sqrt: gave inf in the backward pass of Autodiff level 2: in the cotangent of its x, 1 of 2 entries \(shape \(2,\), \w+\), ",
        r"the first at \(1,\), where g = 1\.0, out = 0\.0; the cotangent g that arrived held none\n",
        r"it began with power0, in .* where x = 1\.0, y = 0\.0\n",
        r"sqrt was made at " + "".join(line("made")[:1]) + r"\w+" + line("made")[1],
        r"the pass was asked for at ",
    )
    with pytest.raises(AnomalyError, match=expected), ng.detect_anomaly():
        y = ng.sqrt(x).sum()  # made
        y.wrt(x)  # asked


def test_a_second_pass_is_of_the_level_below(base):
    """What the first pass made is told with the op that it was made for."""
    x = ng.Autodiff(ng.Autodiff(base)).tensor([4.0, 0.0], requires_grad=True)
    expected = raised(
        "root",
        r"gave inf in the backward pass of Autodiff level 1: ",
        r"was made in the backward pass of Autodiff level 2, of powf, which was made at ",
    )
    with pytest.raises(AnomalyError, match=expected), ng.detect_anomaly():
        y = (x**1.5).sum()  # root
        g = y.wrt(x)
        g.sum().wrt(x)


def test_a_node_from_before_says_so():
    x = ng.Autodiff(ng.NumpyBackend()).tensor([0.0, 1.0], requires_grad=True)
    y = ng.sqrt(x).sum()
    expected = r"sqrt was made before detect_anomaly\(\) was entered: enter it around the forward run, too"
    with pytest.raises(AnomalyError, match=expected), ng.detect_anomaly():
        y.wrt(x)


def test_a_rule_of_ones_own_is_named_with_its_line():
    @ng.custom_vjp
    def wrong(x):
        return x * 2.0

    def forward(x):
        return x * 2.0, x

    def backward(x, g):
        return (g * ng.log(x),)  # rule

    wrong.defvjp(forward, backward)
    x = ng.Autodiff(ng.NumpyBackend()).tensor([1.0, -1.0], requires_grad=True)
    what = r"^wrong: gave NaN in the backward pass of Autodiff level 1: "
    expected = raised("rule", what, r"it began with log, in 1 of 2 entries.* x = -1\.0, at ")
    with pytest.raises(AnomalyError, match=expected) as caught, ng.detect_anomaly():
        wrong(x).sum().wrt(x)  # custom
    assert re.search(raised("custom", "wrong was made at "), str(caught.value))


def test_tangents_and_coefficients_are_named_with_their_level(base):
    values = {"Forward": ng.Forward(base).dual([0.0, 1.0], [1.0, 1.0]), "Taylor": ng.Taylor(base, 2).series([0.0, 1.0], [1.0, 1.0])}
    for name, x in values.items():
        expected = f"^sqrt: gave inf in the forward run on {name} level 1: in what {name} level 1 adds to its answer, 1 of 2 entries"
        with pytest.raises(AnomalyError, match=expected), ng.detect_anomaly():
            ng.sqrt(x)


def test_transforms_are_named_with_their_levels():
    def f(x):
        return ng.sqrt(x).sum()

    x = ng.tensor([0.0, 1.0])
    with pytest.raises(AnomalyError, match="sqrt: gave inf in the backward pass of grad level 1"), ng.detect_anomaly():
        ng.func.grad(f)(x)
    with pytest.raises(AnomalyError, match="log: gave NaN in the forward run on vmap level 1"), ng.detect_anomaly():
        ng.func.vmap(ng.log)(-x - 1.0)


def test_traced_and_compiled_functions_run_op_by_op():
    """Whether they were traced before or inside."""
    jitted = ng.jit(lambda x: ng.log(x * 3.0).sum())
    assert jitted(ng.tensor([1.0])).item() > 1
    x = ng.Autodiff(ng.NumpyBackend()).tensor([-1.0], requires_grad=True)
    for call in (lambda: jitted(ng.tensor([-1.0])), lambda: jitted(x)):
        with pytest.raises(AnomalyError, match="log: gave NaN in the forward run"), ng.detect_anomaly():
            call()
    root = ng.jit(lambda x: ng.sqrt(x).sum())
    root(x + 1.0)
    expected = raised("jitted", "sqrt was made in the backward pass of Autodiff level 1, of call, which was made at ")
    with pytest.raises(AnomalyError, match=expected), ng.detect_anomaly():
        y = root(x + 1.0)  # jitted
        y.wrt(x)


def test_checkpointed_functions(base):
    """What is computed again is computed where the pass comes to it."""
    x = ng.Autodiff(base).tensor([4.0, 0.0], requires_grad=True)
    f = ng.checkpoint(lambda x: ng.exp(-ng.sqrt(x)))
    with pytest.raises(AnomalyError, match="sqrt: gave inf in the backward pass of Autodiff level 1"), ng.detect_anomaly():
        f(f(x)).sum().wrt(x)
    balanced = ng.Autodiff(base, checkpointing=ng.Balanced()).tensor([4.0, 0.0], requires_grad=True)
    with pytest.raises(AnomalyError, match="sqrt: gave inf in the backward pass of Autodiff level 1"), ng.detect_anomaly():
        ng.exp(-ng.sqrt(balanced)).sum().wrt(balanced)


@pytest.mark.parametrize("others", [False, True], ids=["alone", "with others"])
def test_what_a_checkpointed_function_only_notes_is_found_late(others):
    """A cotangent that waits for a later visit of a function is computed there, or where another is added to it."""
    inner = ng.checkpoint(lambda s: ng.sin(s) * s)

    @ng.checkpoint
    def outer(x):
        s = x * 1.0  # waits
        return inner(s if others else x) + ng.sqrt(s)

    x = ng.Autodiff(ng.NumpyBackend()).tensor([4.0, 0.0], requires_grad=True)
    what = "^scale: got inf in the backward pass of Autodiff level 1: what arrived at it, 1 of 2 entries"
    expected = raised("waits", what, "from an op that was made of its answer in the same checkpointed function")
    with pytest.raises(AnomalyError, match=expected), ng.detect_anomaly():
        outer(x).sum().wrt(x)


def test_what_counts():
    zero, minus = ng.tensor([0.0]), ng.tensor([-1.0])
    with ng.detect_anomaly(inf=False):
        ng.log(zero)
        with pytest.raises(AnomalyError, match="gave NaN"):
            ng.log(minus)
    with ng.detect_anomaly(nan=False):
        ng.log(minus)
        with pytest.raises(AnomalyError, match="gave inf"):
            ng.log(zero)
    with pytest.raises(ArgumentError, match=r"got nan=False and inf=False, so nothing counts; expected one of them\. Try"):
        with ng.detect_anomaly(nan=False, inf=False):
            pass


def test_a_branch_that_where_does_not_take_is_none_without_forward():
    x = ng.Autodiff(ng.NumpyBackend()).tensor([4.0, -4.0], requires_grad=True)

    def f():
        return ng.where(x > 0.0, ng.log(x), x)

    with pytest.raises(AnomalyError, match="log: gave NaN in the forward run"), ng.detect_anomaly():
        f()
    with ng.detect_anomaly(forward=False):
        assert f().wrt(x).tolist() == [0.25, 1.0]
        with pytest.raises(AnomalyError, match="in the backward pass of Autodiff level 1"):
            ng.sqrt(x - 4.0).sum().wrt(x)


def test_what_operands_hold_is_no_anomaly():
    """Entry by entry where the op is: a new one beside an old one is found."""
    data, more = ng.tensor([np.nan, np.inf, 1.0, 0.0]), ng.tensor([[1.0], [2.0]])
    with ng.detect_anomaly():
        assert (data + more).shape == (2, 4)
        assert np.isnan(data.sum().item())
        ng.exp(data), data * 2.0, ng.max(data), ng.where(data > 0, data, -np.inf)
        with pytest.raises(AnomalyError, match=r"div: gave NaN .*1 of 4 entries .*the first at \(3,\), where x = 0\.0, y = 0\.0"):
            data / np.array([1.0, 1.0, 1.0, 0.0])
        with pytest.raises(AnomalyError, match=r"div: gave inf .*1 of 4 entries .*the first at \(3,\), where x = 1\.0, y = 0\.0"):
            1.0 / data
        with pytest.raises(AnomalyError, match=r"sub: gave NaN .*the first at \(1,\), where x = inf, y = inf"):
            data - data


def test_parameters_may_be_of_any_kind():
    """A dtype is no number, although NumPy's has a shape; a number counts as an operand."""
    x = ng.tensor([1.0, np.nan, 1e300])
    with ng.detect_anomaly():
        x.astype(np.dtype("float64")), ng.nan_to_num(x, nan=np.inf)
        with pytest.raises(AnomalyError, match=r"cast: gave inf .* \(shape \(3,\), float32\), the first at \(2,\)"):
            x.astype(np.dtype("float32"))


def test_a_seed_that_holds_one_is_no_anomaly():
    x = ng.Autodiff(ng.NumpyBackend()).tensor([1.0, 4.0], requires_grad=True)
    with ng.detect_anomaly():
        g = x.grad(ng.exp(ng.sqrt(x)).backward(gradient=[np.nan, 1.0]))
    assert np.isnan(g.numpy()).tolist() == [True, False]


def test_a_factor_that_is_nan_is_told_with_the_pass():
    """Zero times NaN: what ``where`` was to take away comes back, and it was in what the rule read."""
    x = ng.Autodiff(ng.NumpyBackend()).tensor([1.0, 4.0], requires_grad=True)
    data = ng.tensor([np.nan, 2.0])
    expected = r"(?s)^mul: gave NaN in the backward pass of Autodiff level 1.*NaN was in what it read of the forward run, already: in y"
    with pytest.raises(AnomalyError, match=expected), ng.detect_anomaly():
        ng.where(np.array([False, True]), x * data, 0.0).sum().wrt(x)


def test_a_pass_begins_anew_after_an_alarm():
    x = ng.Autodiff(ng.NumpyBackend()).tensor([4.0, 0.0], requires_grad=True)
    grads = ng.sqrt(x).backward()
    with pytest.raises(AnomalyError), ng.detect_anomaly():
        x.grad(grads)
    assert x.grad(grads).tolist() == [0.25, np.inf]


def test_it_is_a_decorator_and_its_error_is_what_users_expect():
    @ng.detect_anomaly()
    def step(x):
        return ng.log(x)

    assert step(ng.tensor(1.0)).item() == 0.0
    for kind in (NestgradError, FloatingPointError, ArithmeticError):
        with pytest.raises(kind):
            step(ng.tensor(-1.0))
    assert np.isnan(ng.log(ng.tensor(-1.0)).item())


def methods(backend):
    """All that is kept of ops, over values in coats and over raw arrays."""
    return {**vars(backend.dressed), "bare": dict(vars(backend.dressed.bare))}


def program(S):
    x = S.tensor([1.0, 2.0], requires_grad=True)
    return ng.linalg.solve(ng.exp(x)[:, None] * np.eye(2), ng.concat([x[:1], x[1:]])).sum().wrt(x)


def test_outside_of_the_block_all_methods_are_the_same_objects(base):
    """Also after an alarm, and after the inner one of two blocks."""
    S = ng.Autodiff(ng.Autodiff(base))
    program(S)
    before = methods(base)
    with ng.detect_anomaly():
        with pytest.raises(AnomalyError), ng.detect_anomaly():
            ng.log(S.tensor(-1.0))
        inside = methods(base)
        with pytest.raises(AnomalyError):
            ng.log(S.tensor(-1.0))
        program(S)
    after = methods(base)
    assert {name: after[name] for name in before} == before
    assert inside.get("exp") is not before["exp"]
    assert not any(isinstance(method, Watcher) for method in vars(base).values())


def test_backends_made_inside_are_watched_and_then_not():
    with ng.detect_anomaly():
        base = ng.NumpyBackend()
        with pytest.raises(AnomalyError):
            ng.log(base.tensor(-1.0))
    assert base.dressed._work is None
    assert np.isnan(ng.log(base.tensor(-1.0)).item())


def test_a_pass_that_began_outside_is_watched_and_one_that_began_inside_goes_on():
    x = ng.Autodiff(ng.NumpyBackend()).tensor([4.0, 1.0], requires_grad=True)
    y = ng.sqrt(x * x)
    grads = ng.log(y - y).backward()
    y.grad(grads)
    with pytest.raises(AnomalyError), ng.detect_anomaly():
        (y - y).sqrt().sum().wrt(x)
    with ng.detect_anomaly(forward=False):
        more = y.sum().backward()
        y.grad(more)
    assert x.grad(more).tolist() == [1.0, 1.0]


def test_another_thread_is_not_watched_and_one_that_shares_the_context_is():
    base = ng.NumpyBackend()
    found = []

    def run():
        try:
            found.append(np.isnan(ng.log(base.tensor(-1.0)).item()))
        except AnomalyError as error:
            found.append(error)

    with ng.detect_anomaly():
        other = threading.Thread(target=run)
        other.start()
        other.join()
        assert found == [True]
        context = copy_context()
        same = threading.Thread(target=lambda: context.run(run))
        same.start()
        same.join()
        assert isinstance(found[1], AnomalyError)


def test_blocks_of_threads_that_overlap_end_by_themselves():
    """One enters first and leaves first: the other one goes on."""
    base = ng.NumpyBackend()
    plain = base.dressed.log
    entered, left, found = threading.Event(), threading.Event(), []

    def run():
        with ng.detect_anomaly():
            entered.set()
            left.wait(10)
            try:
                ng.log(base.tensor(-1.0))
            except AnomalyError as error:
                found.append(error)

    thread = threading.Thread(target=run)
    with ng.detect_anomaly():
        thread.start()
        assert entered.wait(10)
    assert np.isnan(ng.log(base.tensor(-1.0)).item())
    left.set()
    thread.join()
    assert len(found) == 1
    assert base.dressed.log is plain


def test_values_can_be_pickled_inside():
    import pickle

    base = ng.NumpyBackend()
    with ng.detect_anomaly():
        assert pickle.loads(pickle.dumps(ng.exp(base.tensor([0.0])))).tolist() == [1.0]
