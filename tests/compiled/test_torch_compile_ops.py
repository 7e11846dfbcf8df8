"""Every op of the table, as torch's compiler is given it: it reads no number while it is traced, and computes what the backend does.

What is run here is what goes into the compiler; what comes out is compared in ``test_torch_compile.py``, since compiling takes seconds.
"""

import pytest

import nestgrad as ng
from nestgrad.compiled.executors.source import Source
from nestgrad.levels.marks import NONE
from nestgrad.ops import TABLE
from nestgrad.tensor.handle import make
from nestgrad.testing.calling import called

torch = pytest.importorskip("torch")

from nestgrad.backends.torch.compiling import traced  # noqa: E402  # a module of the project is there, or it is a failure


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")  # torch about itself
@pytest.mark.parametrize("op", TABLE.values(), ids=TABLE)
def test_what_the_compiler_is_given_computes_what_the_backend_does(op):
    base = ng.TorchBackend(dtype="float64")
    for sample in op.samples.calls:
        arrays, params = sample.native(base)
        xs = [make(base.dressed, a, NONE) for a in arrays]
        program = ng.func.trace(lambda *xs, params=params: called(op, *xs, **params))(*xs)

        def write(ops, program=program):
            source = Source(program)
            source.b = ops.dressed.bare
            for step in program.instructions:
                source.step(step)
            return source.compiled()

        graph, _, ops = traced(base, write, [(v.shape, v.dtype) for v in program.inputs])
        outs, want = graph(*arrays), program.replay(base, arrays)
        if ops.conditions:
            *outs, right = outs
            assert right, "a condition is for wrong arguments"
        for a, b in zip(outs, want, strict=True):
            # formulas taken apart round elsewhere: a few units in the last place
            torch.testing.assert_close(a, b, rtol=1e-13, atol=1e-14, equal_nan=True)
