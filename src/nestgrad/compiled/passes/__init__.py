"""The optimiser: from a traced program to one that computes the same with less.

The programs are for raw arrays. What is made of a program on levels, its derivatives, is made of what was traced; so a pass keeps values,
and need not keep what a derivative would need.
"""

from nestgrad.compiled.passes.collecting import collected
from nestgrad.compiled.passes.factoring import FACTORING
from nestgrad.compiled.passes.folding import folded
from nestgrad.compiled.passes.fusing import FUSING
from nestgrad.compiled.passes.pruning import pruned
from nestgrad.compiled.passes.rewriting import Code, Rules, Walk
from nestgrad.compiled.passes.shaping import SHAPING
from nestgrad.compiled.passes.sharing import key, merge_constants
from nestgrad.compiled.passes.units import UNITS
from nestgrad.levels.traced.program import Program

__all__ = ["optimized", "rearranged"]

_LOCAL = Rules.joined(SHAPING, UNITS)
_LAST = Rules.joined(FACTORING, FUSING)


def optimized(program: Program) -> Program:
    """A program with the same values for raw arrays, and fewer or cheaper ops.

    Values are equal to rounding. Finite ones stay finite and NaN stays NaN, but for what ``nestgrad.compiled.passes.collecting`` says of
    overflow and of infinity. It takes time in proportion to the number of ops.

    Args:
        program: As it was traced. Ops that are not in the table stay as they are.

    Returns:
        A program of the same inputs, for raw arrays only: what it is on levels is not what the other is.

    >>> import nestgrad as ng
    >>> program = ng.func.trace(lambda x: ng.func.grad(lambda z: z * z.tanh() * z)(x))(0.3)
    >>> len(program.instructions)
    9
    >>> print(optimized(program))
    input v0: float64[]
    v1: float64[] = tanh(v0)
    v2: float64[] = scale(v1, c=2.0)
    v3: float64[] = tanh_vjp(v0, v1)
    v4: float64[] = add(v2, v3)
    v5: float64[] = mul(v0, v4)
    return v5
    """
    return rearranged(program)[0]


def rearranged(program: Program) -> tuple[Program, Program | None]:
    """The optimised program, and the one before its arithmetic was rearranged; ``None`` if nothing has been."""
    code = folded(pruned(Code.of(program)))
    merge_constants(code)
    code = Walk(code, _LOCAL, key).run()
    before = code.program(program)
    code = folded(collected(code))
    made = Walk(code, _LAST, key, counted=True).run().program(program)
    same = [step.op for step in made.instructions] == [step.op for step in before.instructions]
    return made, None if same else before
