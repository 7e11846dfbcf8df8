"""``define``: the derivative that is stated once holds on every level, and what does not fit is refused by name."""

import math

import mpmath
import numpy as np
import pytest
from derivatives import everywhere

import nestgrad as ng
from nestgrad import func
from nestgrad.errors import DTypeError, LevelError, MissingOp, RuleError, ShapeError
from nestgrad.ops import TABLE

S = ng.Autodiff(ng.Autodiff(ng.NumpyBackend()))


def newton(b, x):
    """Lambert's W, for x > 0: ``w`` with ``w e^w = x``."""
    w = b.log1p(x)
    for _ in range(30):
        e = b.exp(w)
        w = b.sub(w, b.div(b.sub(b.mul(w, e), x), b.mul(e, b.add(w, 1.0))))
    return w


# w' = 1 / (x + e^w)
lambert = ng.define("lambert(x)", "elementwise", lambda b, x, out: b.reciprocal(b.add(x, b.exp(out))), value=newton)

# x y^2, elementwise, of arguments that broadcast; its own rules ask for it again
moment = ng.define(
    "moment(x, y, c)",
    "elementwise",
    lambda b, g, y, c: moment.on(b, g, y, c=c),
    lambda b, g, x, y, c: b.scale(b.mul(g, b.mul(x, y)), 2.0 * c),
    value=lambda b, x, y, c: b.scale(b.mul(x, b.mul(y, y)), c),
    defaults=(1.0,),
)

rotate = ng.define(
    "rotate(x, k)",
    "linear",
    lambda b, g, k: rotate.on(b, g, k=-k),
    kernels={"numpy": lambda x, k: np.roll(x, k, axis=-1)},
)

cross = ng.define(
    "cross(x, y)",
    "bilinear",
    lambda b, g, y: cross.on(b, y, g),
    lambda b, g, x: cross.on(b, g, x),
    kernels={"numpy": np.cross},
)

# x / |x|, with both rules: J = (I - u u') / |x| is symmetric
unit = ng.define(
    "unit_vector(x)",
    "special",
    lambda b, g, x, out: _across(b, g, x, out),
    forward=[lambda b, t, x, out: _across(b, t, x, out)],
    value=lambda b, x: b.div(x, b.sqrt(b.sum(b.mul(x, x), (0,)))),
)


def _across(b, v, x, u):
    length = b.sqrt(b.sum(b.mul(x, x), (0,)))
    return b.div(b.sub(v, b.mul(u, b.sum(b.mul(u, v), (0,)))), length)


def test_every_mode_gives_the_derivatives_of_an_elementwise_op():
    x = 0.7
    with mpmath.workdps(40):
        want = [float(mpmath.diff(mpmath.lambertw, mpmath.mpf(x), k).real) for k in (1, 2, 3)]
    for way, got in everywhere(lambda t: lambert(t), x, 3).items():
        assert got == pytest.approx(want, rel=1e-10), way


def test_rules_may_ask_for_the_op_itself_and_parameters_have_defaults():
    f = lambda t: moment(t, t.sin()) + moment(t, t, 2.0)
    exact = lambda t: t * t.sin() ** 2 + 2 * t**3
    want = everywhere(exact, 0.6, 3)["levels"]
    for way, got in everywhere(f, 0.6, 3).items():
        assert got == pytest.approx(want, rel=1e-10), way


def test_arguments_of_an_elementwise_op_broadcast():
    x, y = S.tensor([[1.0], [2.0]], requires_grad=True), S.tensor([1.0, 2.0, 3.0], requires_grad=True)
    out = moment(x, y)
    assert out.tolist() == [[1.0, 4.0, 9.0], [2.0, 8.0, 18.0]]
    grads = out.backward()
    assert grads.wrt(x).tolist() == [[14.0], [14.0]] and grads.wrt(y).tolist() == [6.0, 12.0, 18.0]
    assert func.jvp(lambda x: moment(x, y), (x.detach(),), (ng.ones((2, 1)),))[1].tolist() == [[1.0, 4.0, 9.0]] * 2


def test_every_mode_gives_the_derivatives_of_a_linear_op():
    f = lambda t: (rotate(ng.stack([t, t * t, t.sin()]), 1) * ng.stack([t, t**3, t])).sum()
    exact = lambda t: t.sin() * t + t * t**3 + t * t * t
    want = everywhere(exact, 0.6, 3)["levels"]
    for way, got in everywhere(f, 0.6, 3).items():
        assert got == pytest.approx(want, rel=1e-10), way


def test_every_mode_gives_the_derivatives_of_a_bilinear_op():
    f = lambda t: (cross(ng.stack([t, t * t, t.sin()]), ng.stack([t.exp(), t, t])) * ng.tensor([1.0, 2.0, 3.0])).sum()

    def exact(t):
        a, b = (t, t * t, t.sin()), (t.exp(), t, t)
        return (a[1] * b[2] - a[2] * b[1]) + 2 * (a[2] * b[0] - a[0] * b[2]) + 3 * (a[0] * b[1] - a[1] * b[0])

    want = everywhere(exact, 0.6, 3)["levels"]
    for way, got in everywhere(f, 0.6, 3).items():
        assert got == pytest.approx(want, rel=1e-10), way


def test_every_mode_gives_the_derivatives_of_a_special_op():
    f = lambda t: (unit(ng.stack([t, t * t, t.sin()])) * ng.tensor([1.0, 2.0, 3.0])).sum()
    exact = lambda t: (t + 2 * t * t + 3 * t.sin()) / (t * t + t**4 + t.sin() ** 2).sqrt()
    want = everywhere(exact, 0.6, 3)["levels"]
    for way, got in everywhere(f, 0.6, 3).items():
        assert got == pytest.approx(want, rel=1e-9), way


def test_a_composite_is_differentiated_by_its_parts_and_takes_a_kernel_on_raw_arrays():
    called = []
    soft = ng.define(
        "soft(x, c)",
        "composite",
        lambda b, x, c: b.scale(b.softplus(b.scale(x, c)), 1.0 / c),
        kernels={"numpy": lambda x, c: called.append(1) or np.logaddexp(0.0, c * x) / c},
    )
    assert soft(ng.tensor(0.3), 2.0).item() == pytest.approx(math.log1p(math.exp(0.6)) / 2) and called == [1]
    exact = lambda t: (1 + (2 * t).exp()).log() / 2
    want = everywhere(exact, 0.3, 3)["levels"]
    for way, got in everywhere(lambda t: soft(t, 2.0), 0.3, 3).items():
        assert got == pytest.approx(want, rel=1e-10), way


def test_a_constant_op_is_on_no_level():
    count = ng.define("count(x)", "constant", value=lambda b, x: b.sum(b.gt(x, 0.0), (0,)))
    x = S.tensor([1.0, -1.0, 2.0], requires_grad=True)
    out = count(x.wrt(x) * x)
    assert out.item() == 2 and not out.tracked_on() and not out.marks
    assert func.vmap(count)(ng.tensor([[1.0, 2.0], [-1.0, 1.0]])).tolist() == [2, 1]


def test_any_number_of_arguments():
    total = ng.define("total(*xs, power)", "linear", lambda b, g, i, power: b.scale(g, float((i + 1) ** power)),
                      value=lambda b, *xs, power: _weighted(b, xs, power))  # fmt: skip
    f = lambda t: total(t, t * t, t**3, power=2)
    want = everywhere(lambda t: t + 4 * t * t + 9 * t**3, 0.6, 3)["levels"]
    for way, got in everywhere(f, 0.6, 3).items():
        assert got == pytest.approx(want, rel=1e-10), way


def _weighted(b, xs, power):
    out = xs[0]
    for k, x in enumerate(xs[1:], 2):
        out = b.add(out, b.scale(x, float(k**power)))
    return out


def test_it_stays_out_of_the_table():
    before = dict(TABLE)
    ng.define("sin(x)", "elementwise", lambda b, x: x, value=lambda b, x: x)
    assert before == TABLE


def test_an_op_named_like_a_method_of_backends_is_itself():
    mine = ng.define("exp(x)", "elementwise", lambda b, x: b.scale(x, 2.0), value=lambda b, x: b.mul(x, x))
    assert mine(3.0).item() == 9.0 and func.grad(mine)(3.0).item() == 6.0 and ng.exp(0.0).item() == 1.0
    same = ng.define("exp(x)", "composite", lambda b, x: b.mul(x, x))
    assert same(3.0).item() == 9.0 and func.grad(same)(3.0).item() == 6.0


def test_numbers_and_integers_become_floats_where_there_is_a_derivative():
    assert moment(2, 3).item() == 18.0 and moment(2, 3).dtype == np.float64
    single = ng.tensor(2.0, dtype="float32")
    assert moment(single, 3.0).dtype == np.float32 and moment(np.array([1, 2]), single).dtype == np.float32
    shift = ng.define("shift(x, y)", "special", lambda b, g, y: shift.on(b, g, b.neg(y)), None,
                      forward=[lambda b, t, y: shift.on(b, t, y), None], kernels={"numpy": lambda x, y: np.roll(x, int(y))})  # fmt: skip
    x = S.tensor([1.0, 2.0, 3.0], requires_grad=True)
    out = (shift(x, 1) * ng.tensor([1.0, 10.0, 100.0])).sum()
    assert out.item() == 213.0 and out.wrt(x).tolist() == [10.0, 100.0, 1.0]


def test_an_argument_without_a_rule_is_a_constant():
    f = ng.define("f(x, y)", "bilinear", lambda b, g, y: b.mul(g, y), None, value=lambda b, x, y: b.mul(x, y))
    for way, got in everywhere(lambda t: f(t * t, t), 0.6, 2).items():  # x^2 c with c = x: 2 x c = 2 x^2, then 2 c = 2 x
        assert got[0] == pytest.approx(2 * 0.6 * 0.6), way


def test_on_other_backends():
    torch = pytest.importorskip("torch")
    f = ng.define("f(x)", "elementwise", lambda b, x: b.cos(x), kernels={"numpy": np.sin, "torch": torch.sin})
    for base in (ng.NumpyBackend(), ng.TorchBackend(), ng.TorchBackend(dtype="float64")):
        x = ng.Autodiff(ng.Autodiff(base)).tensor(0.5, requires_grad=True)
        assert f(x).wrt(x).wrt(x).item() == pytest.approx(-math.sin(0.5), rel=1e-6)
        assert lambert(x).wrt(x).item() == pytest.approx(float(mpmath.diff(mpmath.lambertw, 0.5).real), rel=1e-6)


def test_with_less_memory():
    weights = ng.linspace(0.1, 1.0, 5)
    f = lambda x: (lambert(x * x) * weights).sum()
    want = func.grad(f)(ng.linspace(0.5, 1.5, 5)).tolist()
    assert func.grad(ng.checkpoint(f))(ng.linspace(0.5, 1.5, 5)).tolist() == want
    x = ng.Autodiff(ng.NumpyBackend(), checkpointing=ng.Balanced()).tensor(np.linspace(0.5, 1.5, 5), requires_grad=True)
    assert f(x).wrt(x).tolist() == pytest.approx(want, rel=1e-14)


def test_it_has_a_name_a_signature_and_words():
    assert moment.__name__ == "moment" and str(moment.__signature__) == "(x, y, c=1.0)"
    assert repr(moment) == "<moment(x, y, c=1.0), elementwise>"
    assert lambert.__doc__.startswith("Lambert's W") and moment.__doc__ == "``moment(x, y, c=1.0)``, elementwise; made by ``define``."


# what is refused


@pytest.mark.parametrize(
    "signature, kind, rules, options, message",
    [
        ("f(x)", "wise", [], {}, r"define: got kind 'wise' for f\(x\); expected one of \['elementwise', 'linear'"),
        ("f(x, y)", "elementwise", [lambda b, x: x], {}, r"f\(x, y\) has 2 arguments and 1 rules"),
        ("f(x)", "special", [lambda b, g: g], {}, "has 1 arguments and 0 forward rules"),
        ("f(x)", "elementwise", [lambda b, z: z], {}, r"a rule of f reads \['z'\]"),
        ("f(x)", "linear", [lambda b, g: g], {"samples": [([1.0], 2.0, 3.0)]}, "got the sample .* expected a tuple with its arguments"),
    ],
)
def test_what_does_not_fit_is_refused_when_it_is_defined(signature, kind, rules, options, message):
    with pytest.raises(RuleError, match=message):
        ng.define(signature, kind, *rules, value=lambda b, *xs: xs[0], **options)


def test_parameters_are_plain_data():
    with pytest.raises(DTypeError, match=r"moment: got a Tensor as parameter c; expected plain data.*Try to define it as an argument"):
        moment(1.0, 2.0, S.tensor(1.0))
    with pytest.raises(TypeError, match=r"moment: missing a required argument: 'y'; expected moment\(x, y, c=1.0\)"):
        moment(1.0)
    with pytest.raises(TypeError, match="moment: too many positional arguments"):
        moment(1.0, 2.0, 3.0, 4.0)


def test_backends_must_meet():
    pytest.importorskip("torch")
    with pytest.raises(LevelError, match="moment: got tensors over different base backends"):
        moment(ng.tensor(1.0), ng.TorchBackend().tensor(1.0))
    with pytest.raises(MissingOp, match=r"rotate: there is no function for the backend torch.*Try define\('rotate\(x, k\)', ..., value="):
        rotate(ng.TorchBackend().tensor([1.0]), 1)


@pytest.mark.parametrize(
    "kind, value, error, message",
    [
        ("elementwise", lambda b, x: b.sum(x, (0,)), ShapeError, r"f: its function returned shape \(\); expected \(2,\), since it is"),
        ("elementwise", lambda b, x: [1.0, 2.0], DTypeError, "f: its function returned a list; expected an array of numpy"),
        ("elementwise", lambda b, x: b.gt(x, 0.0), DTypeError, "f: its function returned dtype bool for floating.*kind 'constant'"),
        ("linear", lambda b, x: None, DTypeError, "f: its function returned a NoneType"),
    ],
)
def test_a_value_that_cannot_be_is_refused(kind, value, error, message):
    f = ng.define("f(x)", kind, lambda b, g: g, value=value)
    with pytest.raises(error, match=message):
        f(ng.tensor([1.0, 2.0]))


@pytest.mark.parametrize(
    "kind, rule, error, message",
    [
        ("elementwise", lambda b, g, x: None, RuleError, r"f: the rule of argument x returned None; expected a value"),
        ("elementwise", lambda b, g, x: b.sum(g, (0,)), ShapeError, r"the rule of argument x gave shape \(\) for a cotangent of"),
        ("elementwise", lambda b, g, x: b.reshape(g, (1, 2)), ShapeError, r"f: the rule of argument x gave shape \(1, 2\)"),
        ("linear", lambda b, g: b.sum(g, (0,)), ShapeError, r"f: the rule of argument x gave shape \(\); expected the argument's, \(2,\)"),
    ],
)
def test_a_rule_of_a_wrong_shape_is_told_by_name(kind, rule, error, message):
    f = ng.define("f(x)", kind, rule, value=lambda b, x: b.scale(x, 2.0))
    x = S.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(error, match=message):
        f(x).wrt(x)


def test_an_op_that_there_is_not_is_told_by_name():
    f = ng.define("f(x)", "elementwise", lambda b, x: b.sinn(x), value=lambda b, x: b.exp(x))
    with pytest.raises(RuleError, match=r"f: the rule of argument x asks for b.sinn; expected ops of the table.*such as sin"):
        func.grad(f)(1.0)
    g = ng.define("g(x)", "elementwise", lambda b, x: x, value=lambda b, x: b.sinn(x))
    with pytest.raises(RuleError, match=r"g: its function asks for b.sinn"):
        g(1.0)


def test_a_forward_rule_of_a_wrong_shape_is_told_by_name():
    f = ng.define("f(x)", "special", lambda b, g: g, forward=[lambda b, t: b.sum(t, (0,))], value=lambda b, x: b.scale(x, 1.0))
    with pytest.raises(ShapeError, match=r"f: the forward rule of argument x gave shape \(\); expected the answer's, \(2,\)"):
        func.jvp(f, (ng.tensor([1.0, 2.0]),), (ng.ones(2),))


MODES = {
    "reverse": lambda f, x: ng.func.grad(f)(x),
    "forward": lambda f, x: ng.func.jvp(f, (x,), (1.0,)),
    "taylor": lambda f, x: ng.func.taylor(f, x, 1.0, 2),
    "imperative": lambda f, x: (lambda v: f(v).wrt(v))(ng.Autodiff(ng.Autodiff(ng.NumpyBackend())).tensor(x, requires_grad=True)),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["elementwise", "special"])
def test_a_derivative_without_a_rule_is_an_error_when_it_is_asked_for(mode, kind):
    forward = {"forward": [lambda b, t, y: b.mul(t, y), ...]} if kind == "special" else {}
    op = ng.define("half_known(x, y)", kind, lambda b, g, y: b.mul(g, y), ..., value=lambda b, x, y: b.mul(x, y), **forward)
    assert op(2.0, 3.0).item() == 6.0
    assert ng.func.grad(lambda x: op(x, 3.0))(2.0).item() == 3.0
    with pytest.raises(RuleError, match="half_known: got a derivative by its argument y to compute; expected none, since"):
        MODES[mode](lambda y: op(2.0, y), 3.0)
    assert ng.func.grad(lambda y: op(2.0, y.detach()) + y)(3.0).item() == 1.0


def test_an_op_may_have_the_name_of_another():
    """The entry of the table called ``neg`` undoes itself, and series know it; this one does not."""
    neg = ng.define("neg(x)", "linear", lambda b, g: b.scale(g, -2.0), value=lambda b, x: b.scale(x, -2.0))
    parabola = ng.define("parabola(x)", "elementwise", lambda b, x: neg.on(b, neg.on(b, x)), value=lambda b, x: b.scale(b.square(x), 2.0))
    assert [c.item() for c in func.taylor(parabola, 1.5, 1.0, order=3)] == [4.5, 6.0, 2.0, 0.0]
    assert func.jets(parabola, np.array([1.5]), np.ones((1, 1)), 3)[1].tolist() == [[6.0]]
