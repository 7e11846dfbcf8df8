"""Nodes of arithmetic, powers, exponentials, logarithms, circular, hyperbolic and special functions.

torch keeps the argument of most of them, and of some the answer. Numbers that it does not keep, as the 1 of ``x + 1``, are unknown: no
derivative reads them.
"""

import math
from collections.abc import Callable
from typing import Any

import torch

from nestgrad.backends.torch.graph.reading import Inputs, Node, Rule


def of_argument(op: str, *names: str, **params: Any) -> Rule:
    """The rule of a node that is an op of the table and saved its arguments by these names."""
    places = tuple(enumerate(names))
    return lambda graph, node, inputs: graph.apply(op, *[node.operand(i, name) for i, name in places], **params)


def of_answer(op: str) -> Rule:
    """The rule of a node that saved its answer, by which the op has its derivatives."""
    return lambda graph, node, inputs: graph.answered(op, inputs[0], value=node.saved("result"))


def of_inverse(op: str, inverse: Callable[[torch.Tensor], torch.Tensor]) -> Rule:
    """The rule of a node that saved its answer, while the op has its derivatives by the argument: that is found by the inverse function."""
    return lambda graph, node, inputs: graph.answered(
        op, node.behind(0, lambda: inverse(node.saved("result"))), value=node.saved("result"))  # fmt: skip


def linear(op: str) -> Rule:
    """The rule of a linear op of one argument, of which nothing is saved."""
    return lambda graph, node, inputs: graph.apply(op, inputs[0])


def unmoved(graph: Any, node: Node, inputs: Inputs) -> Any:
    """``x`` plus what does not change with it, and is unknown: a number, or a whole multiple of one."""
    return graph.apply("add", inputs[0], graph.unknown_value((), node.dtype))


def constant(graph: Any, node: Node, inputs: Inputs) -> Any:
    """Steps: nothing changes with the argument."""
    return graph.unknown_value(node.shape, node.dtype)


def scaled(graph: Any, x: Any, c: Any) -> Any:
    """``c x`` for a number ``c``."""
    return x if c == 1 else graph.apply("neg", x) if c == -1 else graph.apply("scale", x, c=float(c))


def _sum(sign: int) -> Rule:
    """``x + sign alpha y``."""

    def rule(graph: Any, node: Node, inputs: Inputs) -> Any:
        alpha = node.saved("alpha")
        x, y = node.operand(0), node.operand(1)
        if alpha != 1:
            y = scaled(graph, y, alpha)
        return graph.apply("add" if sign > 0 else "sub", x, y)

    return rule


def _rsub(graph: Any, node: Node, inputs: Inputs) -> Any:
    return graph.apply("sub", node.operand(1), scaled(graph, node.operand(0), node.saved("alpha")))


def _rsub_number(graph: Any, node: Node, inputs: Inputs) -> Any:
    return graph.apply("sub", graph.unknown_value((), node.dtype), scaled(graph, inputs[0], node.saved("alpha")))


def _quotient(graph: Any, node: Node, inputs: Inputs) -> Any:
    """A quotient; rounded ones are steps."""
    return graph.apply("div", node.operand(0, "self"), node.operand(1, "other"))


def _addcmul(graph: Any, node: Node, inputs: Inputs) -> Any:
    product = graph.apply("mul", node.operand(1, "tensor1"), node.operand(2, "tensor2"))
    return graph.apply("add", node.operand(0), scaled(graph, product, node.saved("value")))


def _addcdiv(graph: Any, node: Node, inputs: Inputs) -> Any:
    ratio = graph.apply("div", node.operand(1, "tensor1"), node.operand(2, "tensor2"))
    return graph.apply("add", node.operand(0), scaled(graph, ratio, node.saved("value")))


def _power(graph: Any, node: Node, inputs: Inputs) -> Any:
    n = float(node.saved("exponent"))
    x = node.operand(0, "self")
    return graph.apply("powi", x, n=int(n)) if n.is_integer() else graph.apply("powf", x, n=n)


def _number_power(graph: Any, node: Node, inputs: Inputs) -> Any:
    y = node.operand(0, "exponent")
    return graph.apply("pow", _number(graph, node, "self", node.saved("exponent")), y)


def _number(graph: Any, node: Node, name: str, near: torch.Tensor) -> Any:
    """A saved Python number as a constant."""
    return graph.data(torch.full((), float(node.saved(name)), dtype=node.dtype, device=near.device))


def _number_first(op: str) -> Rule:
    return lambda graph, node, inputs: graph.apply(op, _number(graph, node, "self", node.saved("other")), node.operand(0, "other"))


def _number_last(op: str) -> Rule:
    return lambda graph, node, inputs: graph.apply(op, node.operand(0, "self"), _number(graph, node, "other", node.saved("self")))


def _lerp(graph: Any, node: Node, inputs: Inputs) -> Any:
    w = float(node.saved("weight"))
    return graph.apply("add", graph.apply("scale", node.operand(0), c=1.0 - w), graph.apply("scale", node.operand(1), c=w))


def _lerp_by(graph: Any, node: Node, inputs: Inputs) -> Any:
    x = node.operand(0, "self")
    return graph.apply("mul_add", node.operand(2, "weight"), graph.apply("sub", node.operand(1, "end"), x), x)


def _less_whole(mode: str) -> Rule:
    """``x - y n`` with a whole ``n = x / y``, which is constant between its steps."""

    def rule(graph: Any, node: Node, inputs: Inputs) -> Any:
        if not node.tracked(1):
            return graph.apply("add", inputs[0], graph.unknown_value(node.shape, node.dtype))
        whole = torch.div(node.saved("self"), node.saved("other"), rounding_mode=mode)
        return graph.apply("sub", node.operand(0, "self"), graph.apply("mul", inputs[1], graph.data(whole)))

    return rule


def _logit(graph: Any, node: Node, inputs: Inputs) -> Any:
    """``log x - log(1 - x)``, constant beyond ``eps`` from 0 and 1."""
    x, eps = node.operand(0, "self"), node.saved("eps")
    if eps is not None:
        x = graph.apply("clamp", x, lo=float(eps), hi=1.0 - float(eps))
    return graph.apply("sub", graph.apply("log", x), graph.apply("log1p", graph.apply("neg", x)))


def _entropy(graph: Any, node: Node, inputs: Inputs) -> Any:
    """``-x log x``."""
    x = node.operand(0, "self")
    return graph.apply("neg", graph.apply("xlogy", x, x))


def _multigamma(graph: Any, node: Node, inputs: Inputs) -> Any:
    """``sum lgamma(x - i / 2)``, and a constant."""
    x = node.operand(0, "self")
    out = graph.apply("lgamma", x)
    for i in range(1, int(node.saved("p"))):
        out = graph.apply("add", out, graph.apply("lgamma", graph.apply("sub", x, i / 2)))
    return unmoved(graph, node, (out,))


def _ndtri(graph: Any, node: Node, inputs: Inputs) -> Any:
    """By the inverse of the error function, of which the answer tells all derivatives, with the digits of both tails."""
    y, root = node.saved("result"), math.sqrt(2.0)
    turned = graph.apply("sub", graph.apply("scale", inputs[0], c=2.0), 1.0)
    return graph.apply("scale", graph.answered("erfinv", turned, value=y / root), c=root)


def _times_power_of_two(graph: Any, node: Node, inputs: Inputs) -> Any:
    """``x 2^y``, of which the answer tells all derivatives by ``y``."""
    if not node.tracked(0):
        y = graph.apply("add", inputs[1], graph.unknown_value(node.shape, node.dtype))
        return graph.answered("exp2", y, value=node.saved("result"))
    power = graph.apply("exp2", node.operand(1, "other"))
    if not node.tracked(1):
        return graph.apply("mul", inputs[0], power)
    return graph.apply("mul", node.behind(0, lambda: node.saved("result") / torch.exp2(node.saved("other"))), power)


def _mantissa(graph: Any, node: Node, inputs: Inputs) -> Any:
    """``x / 2^n``, and the whole ``n``, which is constant between its steps."""
    n = node.saved("exponent")
    power = torch.ldexp(torch.ones_like(n, dtype=node.dtype), -n)
    return graph.apply("mul", inputs[0], graph.data(power)), None


RULES: dict[str, Rule] = {
    # arithmetic
    "AddBackward0": _sum(1),
    "AddBackward1": unmoved,
    "SubBackward0": _sum(-1),
    "SubBackward1": unmoved,
    "RsubBackward0": _rsub,
    "RsubBackward1": _rsub_number,
    "MulBackward0": of_argument("mul", "self", "other"),
    "MulBackward1": lambda graph, node, inputs: scaled(graph, inputs[0], node.saved("other")),
    "DivBackward0": _quotient,
    "DivBackward1": lambda graph, node, inputs: graph.apply("div", inputs[0], float(node.saved("other"))),
    "DivBackward2": lambda graph, node, inputs: (_quotient if node.saved("rounding_mode") is None else constant)(graph, node, inputs),
    "DivBackward3": constant,
    "NegBackward0": linear("neg"),
    "AbsBackward0": of_argument("abs", "self"),
    "ReciprocalBackward0": of_answer("reciprocal"),
    "AddcmulBackward0": _addcmul,
    "AddcdivBackward0": _addcdiv,
    "LerpBackward0": _lerp,
    "LerpBackward1": _lerp_by,
    # powers, exponentials, logarithms
    "PowBackward0": _power,
    "PowBackward1": of_argument("pow", "self", "exponent"),
    "PowBackward2": _number_power,
    "SqrtBackward0": of_answer("sqrt"),
    "RsqrtBackward0": of_answer("rsqrt"),
    "ExpBackward0": of_answer("exp"),
    "Exp2Backward0": of_answer("exp2"),
    "Expm1Backward0": of_inverse("expm1", torch.log1p),
    "LogBackward0": of_argument("log", "self"),
    "Log2Backward0": of_argument("log2", "self"),
    "Log10Backward0": of_argument("log10", "self"),
    "Log1PBackward0": of_argument("log1p", "self"),
    "XlogyBackward0": of_argument("xlogy", "self", "other"),
    "XlogyBackward1": _number_first("xlogy"),
    "XlogyBackward2": _number_last("xlogy"),
    "SpecialXlog1PyBackward0": of_argument("xlog1py", "self", "other"),
    "SpecialXlog1PyBackward1": _number_first("xlog1py"),
    "SpecialXlog1PyBackward2": _number_last("xlog1py"),
    "LogaddexpBackward0": of_argument("logaddexp", "self", "other"),
    "Logaddexp2Backward0": of_argument("logaddexp2", "self", "other"),
    "LogitBackward0": _logit,
    "SpecialEntrBackward0": _entropy,
    "LdexpBackward0": _times_power_of_two,
    # circular and hyperbolic
    "TanBackward0": of_answer("tan"),
    "TanhBackward0": of_answer("tanh"),
    "Atan2Backward0": of_argument("atan2", "self", "other"),
    "HypotBackward0": lambda graph, node, inputs: graph.answered(
        "hypot", node.operand(0, "self"), node.operand(1, "other"), value=node.saved("result")),
    **{f"{name.capitalize()}Backward0": of_argument(name, "self") for name in (
        "sin", "cos", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "sinc")},
    "Deg2RadBackward0": linear("deg2rad"),
    "Rad2DegBackward0": linear("rad2deg"),
    # special functions
    "ErfBackward0": of_argument("erf", "self"),
    "ErfinvBackward0": of_argument("erfinv", "self"),
    "ErfcBackward0": of_argument("erfc", "self"),
    "SpecialErfcxBackward0": of_argument("erfcx", "self"),
    "SpecialLogNdtrBackward0": of_argument("log_ndtr", "self"),
    "LgammaBackward0": of_argument("lgamma", "self"),
    "DigammaBackward0": of_argument("digamma", "self"),
    "PolygammaBackward0": lambda graph, node, inputs: graph.apply("polygamma", node.operand(0, "self"), n=int(node.saved("n"))),
    "MvlgammaBackward0": _multigamma,
    "SpecialNdtriBackward0": _ndtri,
    # parts of numbers
    "FrexpBackward0": _mantissa,
    "FracBackward0": unmoved,
    "FmodBackward0": unmoved,
    "FmodBackward1": _less_whole("trunc"),
    "RemainderBackward0": unmoved,
    "RemainderBackward1": _less_whole("floor"),
    **{f"{name}Backward0": constant for name in ("Sign", "Sgn", "Floor", "Ceil", "Trunc", "Round")},
    "RoundBackward1": constant,
    "AngleBackward0": constant,
    # drawn numbers, whatever they are drawn by
    **dict.fromkeys([f"{name}Backward0" for name in (
        "Bernoulli", "Uniform", "Cauchy", "Exponential", "Geometric", "LogNormal", "Random", "Poisson")], constant),
    **dict.fromkeys([f"NormalBackward{k}" for k in range(4)], constant),
}  # fmt: skip
"""By the names of nodes."""
