"""What ``strict`` asks: on which inputs do the outputs of a function depend?

The answer is the graph's: an output depends on an input if a derivative could flow from one to the other. Whether it is zero is not asked,
so ``0 * x`` depends on ``x``, and ``x.detach()`` does not.
"""

from collections.abc import Callable, Sequence

from nestgrad.errors import FunctionalError
from nestgrad.func import vjp
from nestgrad.func.run import Run, inside, outside, renewed
from nestgrad.functional.inputs import Inputs
from nestgrad.levels.reverse.node import Node
from nestgrad.tensor import Tensor
from nestgrad.tensor.handle import make

Several = Callable[..., Sequence[Tensor]]
"""A function of Tensors that returns several."""


class Dependence:
    """A run of a function, recorded.

    Attributes:
        values: The outputs.
        on: For each output, and each input, whether that depends on this.
    """

    __slots__ = ("on", "values")

    def __init__(self, given: Inputs, f: Several) -> None:
        with Run(given.name, given.tensors, records=True) as tape:
            variables = [make(x.b, *renewed(x, (tape,))) for x in given.tensors]
            outs = f(*variables)
            found = [inside(given.name, y, tape) for y in outs]
        self.on = []
        for y in found:
            reached = set() if y is None else _reached(y.value.node)
            self.on.append([x.value.node in reached for x in variables])
        self.values = [outside(y) for y in outs]

    def constant(self, i: int) -> bool:
        """Whether output ``i`` depends on nothing: on no input, and on nothing that levels outside track."""
        return not any(self.on[i]) and self.values[i].level == 0


def blocks_depend(given: Inputs, f: Several, outputs: int) -> list[list[bool]]:
    """For each output, and each input, whether the derivative of the one by the other depends on anything.

    Outputs are differentiated one by one: together, the one would be multiplied by zero for the sake of the other, and depend on it.
    """
    n = len(given.tensors)

    def derivatives(*xs: Tensor) -> list[Tensor]:
        found: list[Tensor] = []
        for i in range(outputs):
            value, pullback = vjp(lambda *zs, i=i: f(*zs)[i], *xs)
            found += pullback(given.ones(value)[0])
        return found

    run = Dependence(given, derivatives)
    return [[not run.constant(i * n + k) for k in range(n)] for i in range(outputs)]


def refuse_constant(depends: Sequence[bool]) -> None:
    """Check first derivatives that are to be differentiated further.

    Raises:
        FunctionalError: If one depends on nothing.
    """
    for k, something in enumerate(depends):
        if not something:
            raise FunctionalError(
                f"The jacobian of the user-provided function is independent of input {k}. This is not allowed in strict mode when "
                "create_graph=True. The function is linear there, and all that follows would be zero. Try strict=False, or "
                "create_graph=False"
            )


def all_depend(given: Inputs, f: Several) -> None:
    """Check that every output depends on every input.

    Raises:
        FunctionalError: If one does not.
    """
    run = Dependence(given, f)
    _outputs_depend(run, range(len(run.values)))
    _pairs_depend(run, 0, "Output {i} of the user-provided function is independent of input {k}. This is not allowed in strict mode.")


def some_depend(given: Inputs, f: Several) -> None:
    """Check that every output depends on something, and something on every input.

    Raises:
        FunctionalError: If it does not.
    """
    run = Dependence(given, f)
    _outputs_depend(run, range(len(run.values)))
    _inputs_count(run.on, len(given.tensors))


def gradient_depends(given: Inputs, value_and_gradient: Several, unused: bool, every: bool) -> None:
    """Check that a scalar function has a Hessian: that its gradient depends on the inputs.

    Args:
        given: The inputs.
        value_and_gradient: The value, and then the derivative by each input.
        unused: Whether an input that the value does not depend on has a sentence of its own.
        every: Whether every entry of the gradient is to depend on every input.

    Raises:
        FunctionalError: If it does not.
    """
    run = Dependence(given, value_and_gradient)
    _outputs_depend(run, range(1))
    if unused:
        _inputs_count(run.on[:1], len(given.tensors))
    for k in range(len(given.tensors)):
        if not any(run.on[1 + k]):
            raise FunctionalError(
                f"While computing the hessian, found that the jacobian of the user-provided function with respect to input {k} is "
                "independent of the input. This is not allowed in strict mode. You should ensure that your function is twice "
                "differentiable and that the jacobian depends on the inputs (this would be violated by a linear function for example). "
                f"{given.name} would give zeros. Try strict=False for them"
            )
    if every:
        _pairs_depend(
            run, 1, "Output {i} of the user-provided function is independent of input {k}. This is not allowed in strict mode. "
            "The function here is the gradient, and output {i} the derivative by input {i}."
        )  # fmt: skip


def _outputs_depend(run: Dependence, outputs: range) -> None:
    for i in outputs:
        if run.constant(i):
            raise FunctionalError(independent(i))


def independent(i: int) -> str:
    """What ``strict`` says of an output that nothing can be differentiated in."""
    return (
        f"Output {i} of the user-provided function does not require gradients. The outputs must be computed in a differentiable manner "
        "from the input when running in strict mode. It depends on no input, or only through detach(), a comparison, or numbers. "
        "Try strict=False for zeros"
    )


def _inputs_count(on: Sequence[Sequence[bool]], n: int) -> None:
    used = [any(row[k] for row in on) for k in range(n)]
    if not all(used):
        raise FunctionalError(
            f"The output of the user-provided function is independent of input {used.index(False)}. This is not allowed in strict mode. "
            "Was a Tensor from outside captured instead of the argument? Try strict=False for zeros"
        )


def _pairs_depend(run: Dependence, first: int, sentence: str) -> None:
    for i, row in enumerate(run.on[first:]):
        if not all(row):
            raise FunctionalError(f"{sentence.format(i=i, k=row.index(False))} Try strict=False for zeros")


def _reached(root: Node) -> set[Node]:
    """The nodes that something of a cotangent of ``root`` would arrive at."""
    reached, stack = {root}, [root]
    while stack:
        for parent, rule, _ in stack.pop().edges or ():
            if rule is not None and parent not in reached:
                reached.add(parent)
                stack.append(parent)
    return reached
