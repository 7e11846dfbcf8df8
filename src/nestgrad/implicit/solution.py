"""``root`` and ``fixed_point``."""

from collections.abc import Callable, Sequence
from typing import Any

from nestgrad.custom.attach import attach
from nestgrad.custom.body import plain, refuse_strangers
from nestgrad.errors import DTypeError, LevelError, RuleError, ShapeError
from nestgrad.func.home import home
from nestgrad.func.run import Run, as_leaf, outside
from nestgrad.implicit.rules import SOLVE, Problem, Solution, still
from nestgrad.levels.coats import bare, within
from nestgrad.levels.marks import NONE, opened
from nestgrad.levels.mixing import fitted
from nestgrad.levels.traced.wire import Wire
from nestgrad.tensor import Tensor
from nestgrad.tensor.handle import Handle, make, meet

LinearSolver = Callable[[Callable[[Tensor], Tensor], Tensor], Any]
"""``linear_solver(matvec, rhs)``: the ``y`` for which ``matvec(y)`` is ``rhs``; all are constants."""


def root(
    solver: Callable[..., Any],
    residual: Callable[..., Tensor],
    *,
    linear_solver: LinearSolver | None = None,
    check: bool = True,
) -> Callable[..., Tensor]:
    """The solution ``x`` of ``residual(x, *params) = 0`` as a differentiable function of ``params``.

    Args:
        solver: ``solver(*params)`` returns ``x``, a Tensor, array or number. It gets constants, so it may leave for NumPy or SciPy, branch
            and iterate. It runs once a call.
        residual: ``residual(x, *params)``, of Tensors, has the shape of ``x``. It must not close over tracked tensors. Its derivative by
            ``x`` must be invertible at the solution.
        linear_solver: ``linear_solver(matvec, rhs)`` returns ``y`` with ``matvec(y) = rhs``, where ``matvec`` is the product with dF/dx, or
            with its transpose. ``None``: GMRES without a preconditioner.
        check: Verify that ``x`` is a root, where a derivative is wanted: raise if a Newton step would move it by more than half of the
            digits. Costs one linear system.

    Returns:
        A function of the parameters: Tensors, arrays or numbers, each by its position. It is differentiable at any order, by any of
        them, on every level; for a batch the solver runs once for each sample.

    Raises:
        ConvergenceError: From the function, if a linear system has no solution, or ``x`` is no root.
        ShapeError: From the function, if the residual has another shape than ``x``.
        LevelError: From the function, if ``residual`` depends on a tracked tensor that is no parameter.

    Cost: a backward pass solves one linear system, that of the transpose, with one product of a vector with the Jacobian of ``residual``
    (a backward pass of it) for each iteration: at most as many as ``x`` has entries, in exact arithmetic. Each further order solves one
    more for each solution that it differentiates. A tangent costs one system as well.

    >>> from nestgrad import func
    >>> sqrt = root(lambda p: p.item() ** 0.5, lambda x, p: x * x - p)
    >>> func.grad(sqrt)(4.0).item(), func.grad(func.grad(sqrt))(4.0).item()
    (0.25, -0.03125)
    """
    return _Solver("root", solver, residual, linear_solver, check)


def fixed_point(
    solver: Callable[..., Any],
    step: Callable[..., Tensor],
    *,
    linear_solver: LinearSolver | None = None,
    check: bool = True,
) -> Callable[..., Tensor]:
    """The solution of ``x = step(x, *params)`` as a differentiable function of ``params``: the root of ``x - step(x, *params)``.

    Args:
        solver: ``solver(*params)`` returns ``x``; see ``root``.
        step: ``step(x, *params)``, of Tensors, has the shape of ``x``.
        linear_solver: See ``root``; here for the identity minus the derivative of ``step``.
        check: See ``root``.

    Returns:
        A function of the parameters; see ``root``, also for cost and errors.

    >>> from nestgrad import func
    >>> def iterate(p):
    ...     x = 1.0
    ...     for _ in range(100):
    ...         x = 0.5 * (x + p.item() / x)
    ...     return x
    >>> sqrt = fixed_point(iterate, lambda x, p: 0.5 * (x + p / x))
    >>> func.grad(sqrt)(4.0).item()
    0.25
    """
    return _Solver("fixed_point", solver, lambda x, *params: x - step(x, *params), linear_solver, check)


class _Solver:
    """The function that ``root`` and ``fixed_point`` return."""

    def __init__(
        self, name: str, solver: Callable[..., Any], residual: Callable[..., Tensor], linear_solver: LinearSolver | None, check: bool
    ) -> None:
        self.problem = Problem(f"implicit.{name}", solver, residual, linear_solver)
        self.check = check

    def __call__(self, *params: Any) -> Tensor:
        """The solution for these parameters."""
        name = self.problem.name
        if not params:
            raise RuleError(f"{name}: got no parameters; expected at least one, by which the solution can be differentiated")
        b = home(self.problem.residual, params)
        b, values, marks = meet(name, *(as_leaf(name, p, b) for p in params))
        pairs = [opened(v, marks) for v in values]
        values, marks = [v for v, _ in pairs], pairs[0][1]
        tracked = any(coat.differentiates or isinstance(coat, Wire) for v in values for coat in within(v))
        out = b.run(SOLVE, [still(v) for v in values], (self.problem, tracked and self.check))
        self._closed(b, out, values)
        if not tracked:
            return make(b, out, marks)
        whole, marks = fitted(attach(b, Solution(self.problem, b, out), out, (), values), marks)
        return make(b, whole, marks)

    def _closed(self, b: Any, out: Any, values: Sequence[Any]) -> None:
        """Run the residual on constants: it must be floating, of the shape of the solution, and depend on nothing that is on a level.

        Without tracked parameters, too: the solution would be a constant of what the residual closes over.
        """
        with Run(self.problem.name, []):
            f = self.problem.residual(*(make(b, plain(v), NONE) for v in (out, *values)))
        name = self.problem.name
        if not isinstance(f, Handle):
            raise DTypeError(f"{name}: the residual returned a {type(f).__name__}; expected a Tensor")
        if tuple(f.shape) != tuple(b.shape(out)):
            raise ShapeError(
                f"{name}: the residual has shape {tuple(f.shape)} for a solution of shape {tuple(b.shape(out))}; expected one equation "
                "for each unknown, in the same shape"
            )
        if not b.base.is_floating(bare(out)):
            raise DTypeError(f"{name}: the solver returned dtype {b.dtype(out)}; expected floating numbers")
        f = outside(f)
        refuse_strangers(name, [f], [])
        if f.marks:
            raise LevelError(
                f"{name}: the residual depends on a closed-over value that was taken out of {', '.join(map(repr, f.marks))}; expected "
                "parameters and constants alone. Try to pass it as a parameter, or detach() it"
            )
