"""Names: each op has a method of every backend and a documented function for users, or a reason to have none; the namespace is complete."""

import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import nestgrad as ng
from nestgrad.backends import Backend
from nestgrad.ops import TABLE, Kind

ROOT = Path(__file__).resolve().parents[2]

# The name of the table -> the name of users, where they differ.
CALLED = {
    "sub": "subtract", "mul": "multiply", "div": "divide", "neg": "negative", "pow": "power", "eq": "equal", "ne": "not_equal",
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "amax": "max", "amin": "min", "huber": "huber_loss",
    "bce_logits": "binary_cross_entropy_with_logits", "bce": "binary_cross_entropy",
    "take_along": "take_along_axis", "set_along": "put_along_axis", "max_along": "scatter_reduce", "min_along": "scatter_reduce",
}  # fmt: skip

# Ops without a function of their own, and why.
INTERNAL = {
    "powi": "power with a whole number", "powf": "power with another number", "powlog": "the rule of pow by its exponent",
    "scale": "multiply by a Python number", "per": "division by a count",
    "mul0": "rules: 0 where the cotangent is 0", "mul00": "the rule of mul0", "div0": "rules: 0 where the cotangent is 0",
    "halves": "a step of prod", "halves_dot": "the rule of halves_spread", "halves_spread": "the rule of halves",
    "quotient00": "the rule of a divisor, in one kernel",
    "power0": "the rules of roots and reciprocals, in one kernel", "secant": "the rule of asin and acos",
    "tanh_vjp": "the rule of tanh, in one kernel", "unit": "the rule of norm, 0 at the origin", "gauss": "the rule of erf",
    "triple": "rules: a product of three in one kernel", "mul_add": "series: a sum of products",
    "product": "matmul with its operands transposed, in rules", "vecmat": "matmul of a vector and a matrix",
    "getitem": "x[index]", "index_set": "x.at[index].set(v)",
    "times_log": "the rule of exp2, log2 and log10", "apart": "the rule of logaddexp", "sinc_slope": "the rule of sinc",
    "erfcx_slope": "the rule of erfcx", "widening": "the rule of erfinv", "bell": "the rule of ndtr", "direction": "the rule of hypot",
    "pole": "the rule of atan2", "log_ndtr_slope": "the rule of log_ndtr",
    "cast": "x.astype(dtype)", "rows": "x[index] where the index is on levels", "to_rows": "the rule of rows",
    "extend": "pad in modes that repeat entries", "gather_in": "the rule of extend",
    "add_along": "the rule of take_along", "from_diagonal": "the rule of diagonal",
    "conv": "conv1d, conv2d and conv3d", "conv_input": "conv_transpose1d and so on", "conv_weight": "the rule of conv",
    "windows": "sliding_window_view and unfold", "from_windows": "fold", "max_pool": "max_pool1d and so on",
    "avg_pool": "avg_pool1d and so on", "from_avg_pool": "the rule of avg_pool", "adaptive_max_pool": "adaptive_max_pool1d and so on",
    "above": "the rule of relu and threshold", "inside": "the rule of hardtanh", "outside": "the rule of softshrink",
    "leaky": "the rule of leaky_relu", "hardswish_vjp": "the rule of hardswish, in one kernel", "elu_vjp": "the rule of elu, in one kernel",
    "exp_below": "the rule of elu_vjp", "gated": "the rule of softplus, in one kernel",
    "silu_vjp": "the rule of silu, in one kernel", "mish_vjp": "the rule of mish, in one kernel",
    "sigmoid_vjp": "the rule of sigmoid, in one kernel", "sigmoid_curve": "the rule of sigmoid_vjp",
    "gelu_vjp": "the rule of gelu, in one kernel", "gelu_curve": "the rule of gelu_vjp",
    "gelu_tanh": "gelu with approximate='tanh'", "gelu_tanh_vjp": "the rule of gelu_tanh", "bce_logits_vjp": "the rule of bce_logits",
    "bce_vjp": "the rule of bce, in one kernel", "over": "the rule of log_least", "log_least": "the rule of bce",
    "standardise": "the core of layer_norm, group_norm, instance_norm and batch_norm",
    "standardise_vjp": "the rule of standardise, in one kernel", "standardise_scale_vjp": "the rule of standardise by its scale",
    "rms_norm_vjp": "the rule of rms_norm, in one kernel",
    "project": "rules of normalisation: what is left beside the mean and the part along y",
    "attention": "scaled_dot_product_attention", "attention_weights": "scaled_dot_product_attention with dropout",
    "recur": "the rule of cumprod and logcumsumexp", "shift": "rules: entries before others", "ranked": "kthvalue, median and quantile",
    "large_det": "det from four rows on", "regular_det": "the rule of large_det, by what stands ahead of the last three rows",
    "pivots": "the rule of large_det, by an order of rows and columns", "held": "the rule of large_det, by what is constant",
    "pnorm": "norm of another order", "abspow": "the rule of pnorm",
    "softmax_vjp": "the rule of softmax, in one kernel", "log_softmax_vjp": "the rule of log_softmax",
    "log_softmax_jvp": "the tangent of log_softmax",
}  # fmt: skip


# Where users find functions of Tensors, besides ``ng`` itself. ``docs/functions.md`` has them all.
ROOMS = {"linalg": ng.linalg, "nn": ng.nn}

# Where they find what takes functions, and more. ``docs/reference.md`` has these.
OTHERS = {
    "func": ng.func, "functional": ng.functional, "implicit": ng.implicit, "optimize": ng.optimize, "pde": ng.pde, "sparse": ng.sparse,
}  # fmt: skip

PUBLIC = {name: getattr(room, name) for room in (ng, *ROOMS.values()) for name in room.__all__}


@pytest.mark.parametrize("op", TABLE.values(), ids=TABLE)
def test_every_op_is_a_method_of_backends(op):
    """With the parameters that the table says; of a composite the backend need not have one."""
    method = getattr(Backend, op.name, None)
    if method is None:
        assert op.kind is Kind.COMPOSITE, f"add a default for {op.name} to nestgrad.backends.derived"
        return
    parameters = list(inspect.signature(method).parameters.values())[1:]
    arrays = 1 if op.variadic else len(op.arguments)
    assert tuple(p.name for p in parameters[arrays:]) == op.params
    assert parameters[0].kind is (inspect.Parameter.VAR_POSITIONAL if op.variadic else inspect.Parameter.POSITIONAL_OR_KEYWORD)
    assert inspect.getdoc(method)


@pytest.mark.parametrize("name", TABLE)
def test_every_op_has_a_function_or_a_reason(name):
    if name in INTERNAL:
        assert CALLED.get(name, name) not in PUBLIC, f"{name} has a function, and needs no reason to have none"
    else:
        assert CALLED.get(name, name) in PUBLIC, f"export ng.{CALLED.get(name, name)}, or say in INTERNAL why users do not call it"


def test_reasons_and_names_are_of_ops():
    assert set(INTERNAL) <= set(TABLE) and set(CALLED) <= set(TABLE)


def test_the_namespace_is_complete():
    public = {name for name, value in vars(ng).items() if not name.startswith("_") and not inspect.ismodule(value)}
    assert public - {"TYPE_CHECKING", "Any", "TorchBackend"} == {name for name in ng.__all__ if not inspect.ismodule(getattr(ng, name))}
    assert len(set(ng.__all__)) == len(ng.__all__) and all(hasattr(ng, name) for name in ng.__all__)
    assert set(ng.functions.__all__) <= set(ng.__all__)


@pytest.mark.parametrize("room", (ROOMS | OTHERS).values(), ids=ROOMS | OTHERS)
def test_a_room_lists_each_name_once(room):
    names = room.__all__
    assert len(set(names)) == len(names) and all(callable(getattr(room, name)) for name in names)


EVERYTHING = PUBLIC | {f"{room}.{name}": getattr(package, name) for room, package in OTHERS.items() for name in package.__all__}


@pytest.mark.parametrize("name", EVERYTHING)
def test_everything_public_is_documented(name):
    value = EVERYTHING[name]
    assert inspect.getdoc(value)
    if inspect.isfunction(value):
        assert value.__module__.startswith("nestgrad.")
        assert "return" in value.__annotations__, "say what it returns"


@pytest.mark.parametrize("name", [n for n, v in inspect.getmembers(ng.Tensor) if not n.startswith("_") and callable(v)])
def test_every_method_is_documented(name):
    assert inspect.getdoc(getattr(ng.Tensor, name))


def test_a_star_import_loads_no_torch():
    imports = "import sys; from nestgrad import *; from nestgrad.backends import *"
    program = imports + "; assert sin(0.0).item() == 0 and 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, env={"PYTHONPATH": str(ROOT / "src")}, cwd=ROOT)


def test_the_version_is_the_packages():
    assert ng.__version__ == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


@pytest.mark.parametrize("cls", [Backend, ng.NumpyBackend, ng.TorchBackend], ids=lambda cls: cls.__name__)
def test_families_of_a_backend_do_not_use_the_same_private_name(cls):
    """They are bases of one class, so that one of them would get the other's."""
    seen = {}
    for base in cls.__mro__[:-1]:
        for name in vars(base):
            if name.startswith("_") and not name.startswith("__") and not name.startswith("_abc"):
                seen.setdefault(name, []).append(base.__qualname__)
    assert not {name: bases for name, bases in seen.items() if len(bases) > 1}
