"""A level of one's own: it counts the operations that run on it, and the bytes of their answers.

Under ``Autodiff`` it counts the backward passes as well, over it the function alone. It nests with all other levels.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import nestgrad as ng
from nestgrad.levels import Coat, Level
from nestgrad.levels.coats import bare


class Count(Coat):
    """A value whose operations are counted. It adds nothing to the value but the name of the level."""

    __slots__ = ("level",)
    differentiates = False
    worn_by_all = True

    def __init__(self, tape: Any, value: Any, level: "Counted") -> None:
        self.tape, self.value, self.level = tape, value, level

    def over(self, inner: Any) -> "Count":
        """The same coat over another inner value."""
        return Count(self.tape, inner, self.level)

    def apply(self, b: Any, op: Any, args: Sequence[Any], params: Sequence[Any]) -> "Count":
        """Run the op on what is inside, and count it."""
        out = b.run(op, self.undressed(args), params)
        self.level.calls[op.name] += 1
        for result in out if op.results else (out,):
            self.level.bytes[op.name] += bare(result).nbytes
        counted: Count = op.each(self.over, out)
        return counted


class Counted(Level):
    """Counts operations, and the bytes of their answers, in ``calls`` and ``bytes``."""

    name = "counted"

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.calls: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()

    def dress(self, tape: Any, value: Any) -> Count:
        """All values of the level wear its coat."""
        return Count(tape, value, self)


def main() -> None:
    """Count a function, its gradient, and what a second derivative costs."""

    def f(S: Any, x: Any) -> Any:
        return (x * S.tensor([1.0, 2.0, 3.0])).tanh().sum()

    counted = Counted(ng.NumpyBackend())
    f(counted, counted.tensor([0.1, 0.2, 0.3]))
    print(dict(counted.calls), dict(counted.bytes))
    assert counted.calls == {"mul": 1, "tanh": 1, "sum": 1}
    assert counted.bytes == {"mul": 24, "tanh": 24, "sum": 8}

    counted = Counted(ng.NumpyBackend())
    S = ng.Autodiff(counted)  # what Autodiff does runs on the level under it
    x = S.tensor([0.1, 0.2, 0.3], requires_grad=True)
    f(S, x).wrt(x)
    print(dict(counted.calls))
    assert counted.calls == {"mul": 2, "tanh": 1, "sum": 1, "reshape": 1, "broadcast_to": 1, "tanh_vjp": 1}

    around = Counted(ng.Autodiff(ng.NumpyBackend()))  # and on the level around it runs the function
    x = around.tensor([0.1, 0.2, 0.3], requires_grad=True)
    f(around, x).wrt(x)
    assert around.calls == {"mul": 1, "tanh": 1, "sum": 1}


if __name__ == "__main__":
    main()
