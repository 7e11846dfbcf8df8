"""Every error that nestgrad raises on purpose.

Each class also derives from the built-in that users expect. A message names the op, the values at fault, the levels, and the way out.
"""


class NestgradError(Exception):
    """Root of the hierarchy."""


class ShapeError(NestgradError, ValueError):
    """Shapes or axes that do not fit."""


class OrderError(NestgradError, ValueError):
    """An order of differentiation that is none, or beyond what a level carries."""


class IndexRangeError(ShapeError, IndexError):
    """An index outside its axis."""


class ArgumentError(NestgradError, ValueError):
    """An argument outside its range, such as a probability, or a word that is none of those that are known."""


class DTypeError(NestgradError, TypeError):
    """A dtype that the operation cannot use, such as integers that are to require gradients."""


class RuleError(NestgradError, ValueError):
    """A rule, or an op, that does not fit what it is given for."""


class BackendError(NestgradError, ValueError):
    """A backend that is unknown, not installed, or cannot do what is asked."""


class MissingOp(NestgradError, NotImplementedError):
    """A backend lacks a method. The message names the method, and the rule and level that needed it."""


class LevelError(NestgradError, TypeError):
    """Values and levels that do not go together."""


class NoLevelLeft(LevelError):
    """The value was taken out of every level that could differentiate it."""


class NotTrackedError(NestgradError, ValueError):
    """Nothing was recorded: the tensor does not require gradients on any level in question."""


class NotConnectedError(NestgradError, ValueError):
    """The result does not depend on the tensor that was asked for."""


class CoupledError(NestgradError, ValueError):
    """``check_independent``: one sample's output depends on another sample's input."""


class FunctionalError(NestgradError, RuntimeError):
    """A function, or a vector, that does not fit what ``nestgrad.functional`` is asked for; or one that ``strict`` refuses."""


class FunctionalTypeError(NestgradError, TypeError):
    """``nestgrad.functional`` got, or its function returned, what is no Tensor and no tuple of them."""


class GraphFreedError(NestgradError, RuntimeError):
    """A graph whose saved values were freed by ``retain_graph=False`` is used again."""


class UnsupportedNode(NestgradError, NotImplementedError):
    """A graph holds nodes that have no rule. The message names them all."""


class MissingPartial(NestgradError, KeyError, RuntimeError):
    """A partial derivative that was not computed is asked for."""

    __str__ = Exception.__str__  # KeyError's shows the message in quotes


class ConvergenceError(NestgradError, ArithmeticError):
    """An iteration that found no solution, or a solution that is none."""


class AnomalyError(NestgradError, FloatingPointError):
    """``detect_anomaly``: an op gave a NaN or an infinity."""


class SingularMatrixError(NestgradError, ArithmeticError):
    """A matrix that is to be inverted, or solved with, has no inverse."""


class MutatedError(NestgradError, RuntimeError):
    """Memory shared with its owner was written into while a graph still reads it."""


class ImmutableError(NestgradError, TypeError):
    """A Tensor is immutable."""


class ConversionError(NestgradError, TypeError):
    """A tracked tensor would silently become a plain number or array."""


class TraceError(NestgradError, RuntimeError):
    """A program cannot hold what was done in its trace, or a value of a trace is used where it stands for nothing."""


class PatternError(NestgradError, ValueError):
    """A sparsity pattern that lacks entries which are not zero."""


class WrongDerivativeError(NestgradError, AssertionError):
    """The testing kit found a derivative that disagrees with an independent one."""


class CompileWarning(NestgradError, UserWarning):
    """The compiler of an array library could not take a program, which therefore runs op by op: as right, and slower."""
