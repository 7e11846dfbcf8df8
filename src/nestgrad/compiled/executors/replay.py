"""A program as straight-line Python over any backend."""

from nestgrad.compiled.executors.source import Source
from nestgrad.levels.traced.program import Function, Program


def replay(program: Program) -> Function:
    """A function of raw arrays that runs the ops of a program one after the other.

    What nobody reads any more is let go at once. An output is what the op gave: it may be an input, a view of one, or a constant of the
    program, as it may be where the ops run one by one.

    Args:
        program: Over any base backend.

    Returns:
        A function of an array for each input, to a tuple of the outputs. What the backend raises comes as it is.

    >>> import nestgrad as ng
    >>> program = ng.func.trace(lambda x: (x * 2.0).tanh())(0.0)
    >>> run = replay(program)
    >>> run(program.base.asarray(0.0))
    (np.float64(0.0),)
    """
    source = Source(program)
    for step in program.instructions:
        source.step(step)
    return source.compiled()
