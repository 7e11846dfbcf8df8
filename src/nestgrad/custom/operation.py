"""``define``: an op of one's own, for which derivatives are stated once and follow on every level.

What it makes is an entry like those of the op table (``nestgrad.ops.table``), but it stays out of the table and brings its function along.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nestgrad.custom.checks import checked, native
from nestgrad.errors import DTypeError, RuleError, ShapeError
from nestgrad.levels.coats import bare, constant
from nestgrad.levels.marks import NONE
from nestgrad.ops import table
from nestgrad.ops.samples import Sample, Samples
from nestgrad.ops.table import Kind, Op
from nestgrad.tensor import Tensor
from nestgrad.tensor.handle import Handle, Operand, is_scalar, make, meet

_REAL = (Kind.ELEMENTWISE, Kind.SPECIAL, Kind.COMPOSITE)
"""Kinds of functions of the reals: integers become floats where they are differentiated by. The others may move integers about."""


class Operation:
    """A function of Tensors, arrays and numbers, made by ``define``.

    Attributes:
        op: Its entry: kind and rules.
    """

    __slots__ = ("__dict__", "op")
    op: Op
    __name__: str
    __signature__: inspect.Signature

    def __init__(self, op: Op, doc: str) -> None:
        self.op = op
        self.__name__ = self.__qualname__ = op.name
        self.__doc__ = doc
        self.__signature__ = _signature(op)

    def __call__(self, *args: Operand, **params: Any) -> Tensor:
        """The op on Tensors on any levels; parameters are plain Python data and come after the arrays.

        Raises:
            TypeError: Too few arguments, or too many.
            DTypeError: A Tensor as a parameter.
            LevelError: Tensors over different base backends.
        """
        op = self.op
        bound = self._bound(args, params)
        xs = bound.args[: len(bound.args) if op.variadic else len(op.arguments)]
        bound.apply_defaults()
        named = {name: bound.arguments[name] for name in op.params}
        for name, value in named.items():
            if isinstance(value, Handle):
                raise DTypeError(
                    f"{op.name}: got a Tensor as parameter {name}; expected plain data, since nothing is differentiated by a parameter. "
                    "Try to define it as an argument, x, y or z, with a rule"
                )
        b, values, marks = meet(op.name, *xs)
        out = op.of(b)(*self._arrays(b, values), **named)
        return make(b, out, NONE if op.kind is Kind.CONSTANT else marks)

    def on(self, b: Any, *args: Any, **params: Any) -> Any:
        """The op in the rules of another, or of itself: ``lambda b, g, x: b.mul(g, f.on(b, x))``."""
        bound = self._bound(args, params)
        bound.apply_defaults()
        n = len(args) if self.op.variadic else len(self.op.arguments)
        return self.op.of(b)(*bound.args[:n], **{name: bound.arguments[name] for name in self.op.params})

    def _bound(self, args: Sequence[Any], params: Mapping[str, Any]) -> inspect.BoundArguments:
        try:
            return self.__signature__.bind(*args, **params)
        except TypeError as error:
            raise TypeError(f"{self.op.name}: {error}; expected {self.op.signature}") from None

    def _arrays(self, b: Any, values: Sequence[Any]) -> list[Any]:
        """Numbers as arrays, and integers as floats where the op is differentiated by them; constants where it has no derivative."""
        op, base = self.op, b.base
        found = [b.dtype(v) for v in values if not is_scalar(v) and base.is_floating(bare(v))]
        dtype = found[0] if found else base.default_dtype
        arrays = []
        for k, v in enumerate(values):
            ruled = op.kind is Kind.COMPOSITE or (op.kind is not Kind.CONSTANT and op.rules[0 if op.variadic else k] is not None)
            exact = op.kind not in _REAL or not ruled
            v = v if ruled else constant(v)
            if is_scalar(v):
                v = base.asarray(v if exact else float(v), dtype if isinstance(v, float) or not exact else None)
            elif not exact and not base.is_floating(bare(v)):
                v = b.cast(v, dtype)
            arrays.append(v)
        return arrays

    def __repr__(self) -> str:
        return f"<{self.op.signature}, {self.op.kind.value}>"


def define(
    signature: str,
    kind: Kind | str,
    *rules: Any,
    value: Callable[..., Any] | None = None,
    kernels: Mapping[str, Callable[..., Any]] | None = None,
    forward: Sequence[Any] = (),
    samples: Samples | Sequence[Sample | Sequence[Any]] = (),
    defaults: Sequence[Any] = (),
    series: Callable[..., Any] | None = None,
    batched: Callable[..., Any] | None = None,
    doc: str | None = None,
) -> Operation:
    """A function of Tensors with derivatives of your own, which works on every level, to any order.

    Rules are written in ops of ``b``, the backend under the level that runs them. The names of their parameters say what they read: ``x``,
    ``y``, ``z`` (arguments), ``out`` (the answer), ``g`` (the cotangent), ``t`` (the tangent), ``x_shape``, a parameter by its name. So no
    rule can read what was not recorded, and derivatives of any order follow from the one that is stated.

    Args:
        signature: ``"name(x, y, c)"``. Arrays are named ``x``, ``y``, ``z``, or ``*xs`` for any number; what follows are parameters.
        kind: What the answer is: ``"elementwise"`` (each entry made of one entry of each argument; these broadcast), ``"linear"`` (in all
            differentiable arguments together), ``"bilinear"`` (in each separately), ``"constant"`` (no derivative), ``"composite"`` (made
            of other ops), ``"special"`` (anything else).
        rules: One for each argument; ``None``: constant in it; ``...``: not constant, but whoever asks for that derivative gets a
            ``RuleError``. A rule with ``g`` gives the argument's cotangent; an elementwise one without
            ``g`` the partial derivative. Of a composite, the one function ``(b, x, y, c)`` that it is.
        value: The function itself, ``(b, x, y, c)``, in ops of ``b``, for every backend.
        kernels: By the name of a backend (``"numpy"``, ``"torch"``) a function ``(x, y, c)`` of its raw arrays, taken there instead.
        forward: Of a special op, for each argument what its tangent ``t`` adds to the answer's.
        samples: Calls for ``nestgrad.testing.check_op``: for each a tuple of nested lists, and parameters, as one would call the function.
        defaults: Default values of the last parameters.
        series: Taylor mode's ``k``-th coefficient, where a recurrence beats the rules; see ``nestgrad.ops.table.Op``.
        batched: The op on values of which some have one more axis in front; see there. Without it an op that is neither elementwise nor
            composite runs once for each sample of a batch.
        doc: Its docstring. ``None``: that of ``value``.

    Returns:
        The function: of Tensors, arrays and numbers, then parameters. Keep it at the top of a module: each is compiled once, and stays.
        ``f.on(b, x)`` is the op in rules. Cost: that of the value, and on each level that of its rules.

    Raises:
        RuleError: If rules, arguments and kind do not fit. From the function, if a rule gives nothing.
        ShapeError: From the function, if the value or a rule has a shape that cannot be.
        MissingOp: From the function, on a backend for which there is neither ``value`` nor a kernel.

    >>> from nestgrad import func
    >>> swish = define(
    ...     "swish(x, c)",
    ...     "elementwise",
    ...     lambda b, x, out, c: b.add(b.scale(out, c), b.mul(b.sigmoid(b.scale(x, c)), b.sub(1.0, b.scale(out, c)))),
    ...     value=lambda b, x, c: b.mul(x, b.sigmoid(b.scale(x, c))),
    ... )
    >>> swish(0.0, c=1.0).item(), func.grad(swish)(0.0, 1.0).item()
    (0.0, 0.5)
    """
    sort = _kind(signature, kind)
    given = rules[0] if sort is Kind.COMPOSITE and len(rules) == 1 else value
    stated = table.define(
        signature, sort, *rules, samples=_samples(signature, samples), defaults=defaults, forward=forward, series=series, batched=batched,
        listed=False,
    )  # fmt: skip
    if batched is None and sort not in (Kind.ELEMENTWISE, Kind.COMPOSITE):
        batched = lambda b, n, xs, on, *params: _one_by_one(op, b, n, xs, on, params)
    own = lambda b: native(stated, b, given, kernels or {})
    op: Op = replace(checked(stated), native=own, batched=batched)
    return Operation(op, doc or (inspect.getdoc(value) if value else None) or f"``{op.signature}``, {sort.value}; made by ``define``.")


def _one_by_one(op: Op, b: Any, n: int, xs: Sequence[Any], on: Sequence[bool], params: tuple[Any, ...]) -> Any:
    """The op on each sample by itself: right whatever the op does with axes."""
    if n == 0:
        raise ShapeError(f"{op.name}: got no samples, and the shape of its answer is known only if it runs. Try define(..., batched=...)")
    outs = [b.run(op, [b.getitem(x, (k,)) if here else x for x, here in zip(xs, on, strict=True)], params) for k in range(n)]
    return b.concat(*(b.reshape(out, (1, *b.shape(out))) for out in outs), axis=0)


def _kind(signature: str, kind: Kind | str) -> Kind:
    try:
        return Kind(kind)
    except ValueError:
        raise RuleError(f"define: got kind {kind!r} for {signature}; expected one of {[k.value for k in Kind]}") from None


def _samples(signature: str, given: Samples | Sequence[Sample | Sequence[Any]]) -> Samples:
    """Calls as they are written, as samples."""
    if isinstance(given, Samples):
        return given
    names = [word.strip() for word in signature.partition("(")[2].rstrip(")").split(",")]
    count = sum(name in ("x", "y", "z") for name in names)
    calls = []
    for call in given:
        if isinstance(call, Sample):
            calls.append(call)
        elif not isinstance(call, (tuple, list)) or "*xs" in names or not count <= len(call) <= len(names):
            raise RuleError(
                f"define: got the sample {call!r:.60} for {signature}; expected a tuple with its arguments and parameters, as in a call. "
                "Try Sample((arrays, ...), {parameter: value}) of nestgrad.ops.samples for an op of any number of arrays"
            )
        else:
            calls.append(Sample(tuple(call[:count]), dict(zip(names[count:], call[count:], strict=False))))
    return Samples(tuple(calls))


def _signature(op: Op) -> inspect.Signature:
    first = len(op.params) - len(op.defaults)
    sort = inspect.Parameter
    arrays = [sort("xs", sort.VAR_POSITIONAL)] if op.variadic else [sort(a, sort.POSITIONAL_OR_KEYWORD) for a in op.arguments]
    later = sort.KEYWORD_ONLY if op.variadic else sort.POSITIONAL_OR_KEYWORD
    params = [sort(p, later, default=sort.empty if k < first else op.defaults[k - first]) for k, p in enumerate(op.params)]
    return inspect.Signature([*arrays, *params])
