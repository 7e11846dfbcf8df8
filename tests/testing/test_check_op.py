"""``check_op`` finds every rule that is bent a little, at its order and argument, and leaves no trace in the table."""

import re
from dataclasses import replace

import numpy as np
import pytest

from nestgrad.backends import NumpyBackend, TorchBackend
from nestgrad.errors import BackendError, WrongDerivativeError
from nestgrad.levels.coats import bare
from nestgrad.ops import TABLE, Kind
from nestgrad.ops.samples import Sample, Samples, calls
from nestgrad.ops.table import Rule
from nestgrad.testing import check_op

UNSEEN = {"heaviside"}
"""Their rule is zero at all points where differences can be taken: ``tests/ops/test_parts_of_numbers.py`` has the one where it is not."""

RULED = [(op, i) for op in TABLE.values() for i, rule in enumerate(op.rules) if rule is not None and op.name not in UNSEEN]
NUMPY = NumpyBackend()


def with_rule(op, i, call):
    """The entry with another rule for argument ``i``."""
    rules = list(op.rules)
    rules[i] = Rule(call, op.rules[i].reads)
    return replace(op, rules=tuple(rules))


def told(op, order=3, error=WrongDerivativeError, backend=NUMPY, **options):
    before = dict(TABLE)
    with pytest.raises(error) as caught:
        check_op(op, backend, order, **options)
    assert before == TABLE, "the table was changed"
    return str(caught.value)


@pytest.mark.parametrize("op, i", RULED, ids=lambda v: getattr(v, "name", v))
def test_a_rule_that_is_off_by_a_thousandth_is_told(op, i):
    right = op.rules[i].call
    message = told(with_rule(op, i, lambda b, g, *saved: b.mul(right(b, g, *saved), 1.001)), order=1)
    # several arguments of a linear op are told together, by the identity of the transpose
    assert message.startswith(f"{op.name}(") and "order 1" in message and re.search(rf"argument {i}|arguments \[.*\b{i}\b.*\]", message)
    assert "got" in message and "expected" in message and "tolerance" in message


@pytest.mark.parametrize("name", UNSEEN)
def test_a_rule_that_is_left_out_of_these_tests_is_one_that_differences_do_not_see(name):
    op = TABLE[name]
    for i, rule in enumerate(op.rules):
        if rule is not None:
            check_op(with_rule(op, i, lambda b, g, *saved, right=rule.call: b.mul(right(b, g, *saved), 1.001)), NUMPY)


@pytest.mark.parametrize("op, i", RULED, ids=lambda v: getattr(v, "name", v))
def test_a_rule_that_takes_its_values_out_of_the_level_is_told_at_order_2(op, i):
    """Such a rule has the right first derivative, and loses a part of the second."""
    right = op.rules[i].call

    def leaving(b, g, *saved):
        return right(b, g, *(tuple(map(bare, v)) if isinstance(v, tuple) else bare(v) for v in saved))

    wrong = with_rule(op, i, leaving)
    check_op(wrong, NUMPY, 1)
    if not reads(op, i) or op.name in CURVELESS:
        check_op(wrong, NUMPY, 2)
        return
    message = told(wrong, order=2)
    assert message.startswith(op.name) and "order 2" in message


CURVELESS = {
    "abs", "relu", "maximum", "minimum", "clamp", "amax", "amin", "leaky_relu", "hardtanh", "hardsigmoid", "threshold",
    "hardshrink", "softshrink", "remainder", "fmod", "copysign", "nan_to_num", "max_along", "min_along",
}  # fmt: skip
"""They read their arguments only to compare them, for their sign, or for a whole quotient: what is constant on both sides of a jump."""


def reads(op, i):
    """What a rule reads that depends on variables."""
    exact = [*op.fixed, *(a for a, rule in zip(op.arguments, op.rules, strict=True) if rule is None)]
    return [word for word in op.rules[i].reads if word in (*op.arguments, *op.results, "out", "others") and word not in exact]


def test_ops_without_curvature_are_listed_only_where_a_rule_reads():
    """That the others on the list have none is seen above: their rules are right at order 2 without what was taken out of the level."""
    assert {op.name for op, i in RULED if reads(op, i)} >= CURVELESS


def test_an_entry_that_is_not_in_the_table_is_checked_as_it_is():
    check_op(TABLE["sin"], NUMPY)
    check_op(replace(TABLE["sin"]), NUMPY)
    check_op("sin", NUMPY)


@pytest.mark.parametrize("backend", [NumpyBackend("float32"), TorchBackend(), TorchBackend(dtype="float64")], ids=repr)
def test_wrong_rules_are_told_on_every_backend(backend):
    op = TABLE["sin"]
    message = told(with_rule(op, 0, lambda b, g, x: b.mul(g, b.sin(x))), backend=backend)
    assert re.search(rf"^sin\(shape .*\) on {re.escape(repr(backend))}: derivative of order 1 .*argument 0.*got .*expected", message)


def test_a_cotangent_of_another_shape_is_told():
    op = TABLE["sum"]
    right = op.rules[0].call

    def wrapped(b, g, x_shape, *params):
        return b.reshape(right(b, g, x_shape, *params), (1, *x_shape))

    message = told(with_rule(op, 0, wrapped), order=1)
    assert "got shape (1, 2, 3, 2) and dtype float64; expected the argument's, (2, 3, 2) and float64" in message


# special points


@pytest.mark.parametrize(
    "special, expected",
    [
        ({0.0: (1.0, 0.5, -1.0)}, r"order 2 by argument 0, entry \(\), at the special point 0.0: got -?0.0, expected 0.5 \(tolerance"),
        ({0.0: (1.0, None, -1.0)}, r"order 2 .* got -?0.0, expected infinity or NaN, since there is no finite derivative"),
    ],
)
def test_wrong_special_values_are_told(special, expected):
    assert re.search(expected, told(replace(TABLE["sin"], samples=Samples(TABLE["sin"].samples.calls, special))))


def test_a_rule_that_spoils_the_neighbours_of_a_special_point_is_told():
    op = TABLE["sqrt"]

    def spoiling(b, g, out):
        everything = tuple(range(len(b.shape(out))))
        return b.add(op.rules[0].call(b, g, out), b.mul(b.sum(b.reciprocal(out), everything), 0.0))

    message = told(with_rule(op, 0, spoiling))
    assert re.search(r"order 1 by argument 0, entry \(1,\) of .*: got nan, expected the finite derivative of an ordinary point", message)


# values


def test_wrong_values_are_told():
    message = told("sin", error=BackendError, reference=np.cos)
    assert re.search(r"^sin\(shape \(\)\) on numpy: wrong value at entry \(\): got -?\d\.\d+, expected .* \(tolerance", message)


def test_a_method_that_changes_its_argument_is_told():
    class Careless(NumpyBackend):
        def exp(self, x):
            return np.exp(x, out=x)

    assert "changed argument 0" in told("exp", error=BackendError, backend=Careless())


def test_a_value_of_another_shape_or_kind_is_told():
    class Flat(NumpyBackend):
        def exp(self, x):
            return np.exp(x).reshape(-1)

        def lt(self, x, y):
            return np.less(x, y).astype(float)

    assert "got shape (1,)" in told("exp", error=BackendError, backend=Flat())
    assert "float numbers; expected shape () and bool numbers" in told("lt", error=BackendError, backend=Flat())


def test_a_value_of_a_wider_dtype_is_told():
    class Wide(NumpyBackend):
        def exp(self, x):
            return np.exp(x.astype(np.float64))

    assert "got dtype float64; expected the arguments', float32" in told("exp", error=BackendError, backend=Wide("float32"))


# samples


def test_an_op_without_samples_is_not_tested_silently():
    message = told(replace(TABLE["sin"], samples=calls()), error=ValueError)
    assert message.startswith("op sin(x) has no samples")


def test_every_op_has_samples_that_take_every_default_and_every_argument():
    for op in TABLE.values():
        assert op.samples.calls, op.name
        for sample in op.samples.calls:
            assert op.variadic or len(sample.arrays) == len(op.arguments), op.name
            required = op.params[: len(op.params) - len(op.defaults)]
            assert set(required) <= set(sample.params) <= set(op.params), (op.name, sample.params)


def test_samples_keep_away_from_kinks():
    """So that steps of 0.01 meet none: for what compares its arguments, entries are further apart."""
    for name in ("maximum", "minimum"):
        for sample in TABLE[name].samples.calls:
            x, y = (np.asarray(a, float) if np.size(a) else np.zeros(a.shape) for a in sample.arrays)
            assert np.abs(x - y).min(initial=1.0) > 0.02
    for name in ("abs", "relu", "sign"):
        for sample in TABLE[name].samples.calls:
            assert np.abs(sample.arrays[0]).min(initial=1.0) > 0.02


def test_kinds_are_what_the_rules_are_for():
    for op in TABLE.values():
        assert (op.function is not None) == (op.kind is Kind.COMPOSITE)
        assert op.kind not in (Kind.COMPOSITE, Kind.CONSTANT) or op.rules == ()
        assert isinstance(op.samples.calls[0], Sample)
