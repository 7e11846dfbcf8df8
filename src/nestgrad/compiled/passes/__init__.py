"""The optimiser: from a traced program to one that computes the same with less.

The programs are for raw arrays. What is made of a program on levels, its derivatives, is made of what was traced; so a pass keeps values,
and need not keep what a derivative would need.
"""

from nestgrad.compiled.passes.collecting import collected
from nestgrad.compiled.passes.factoring import factored
from nestgrad.compiled.passes.folding import folded
from nestgrad.compiled.passes.fusing import fused
from nestgrad.compiled.passes.pruning import pruned
from nestgrad.compiled.passes.rewriting import Code, Rules, Walk
from nestgrad.compiled.passes.shaping import SHAPING
from nestgrad.compiled.passes.sharing import key, merge_constants
from nestgrad.compiled.passes.units import UNITS
from nestgrad.levels.traced.program import Program

__all__ = ["optimized"]

_LOCAL = Rules.joined(SHAPING, UNITS)


def optimized(program: Program) -> Program:
    """A program with the same values for raw arrays, and fewer or cheaper ops.

    >>> import nestgrad as ng
    >>> program = ng.func.trace(lambda x: ng.func.grad(lambda z: z * z.tanh())(x))(0.3)
    >>> len(program.instructions) > len(optimized(program).instructions)
    True
    """
    code = pruned(Code.of(program))
    code = folded(code)
    merge_constants(code)
    code = Walk(code, _LOCAL, key).run()
    code = collected(code)
    return fused(factored(folded(code))).program(program)
