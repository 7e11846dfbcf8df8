"""``LevelConformance``: the tests of every level, as a class to subclass. Needs pytest."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

from nestgrad import func
from nestgrad.backends.numpy import NumpyBackend
from nestgrad.errors import LevelError, NestgradError
from nestgrad.levels.autodiff import Autodiff
from nestgrad.levels.coats import constant, on, without
from nestgrad.levels.level import Level
from nestgrad.levels.marks import opened
from nestgrad.ops import Kind, Op
from nestgrad.ops.samples import Sample
from nestgrad.tensor import Tensor
from nestgrad.testing.observing import close, coat_of, curve, differentiates, everything, gradient, held, point
from nestgrad.testing.operations import Checked, samples_of
from nestgrad.testing.suite import Suite

Function = Callable[[Tensor], Tensor]


class LevelConformance(Suite):
    """What a level has to do: ops as on the backend, derivatives through it and by it, and what its coats owe to other levels.

    Subclass it in a test module, under a name that pytest collects::

        class TestMyLevel(LevelConformance):
            level = MyLevel                             # or override make_level

            def enter(self, level, x):                  # where it has doors of its own
                return level.dress_up(x)

            def leave(self, level, y):
                return level.value_of(y)

    A level that differentiates overrides ``derivative`` as well.

    Attributes:
        level: The level's class, or a function from a backend to a level.
        backend: The backend underneath, in double precision.
        xfails: What is known to fail: name of an op or of a test here, and the reason. What is listed and passes fails.
    """

    level: ClassVar[Any] = None
    backend: ClassVar[Any] = NumpyBackend()

    def make_level(self, inner: Any) -> Any:
        """A new level around a backend or a level."""
        if type(self).level is None:
            raise NotImplementedError(f"{type(self).__name__}: set `level`, or override make_level")
        return type(self).level(inner)

    def enter(self, level: Any, x: Tensor) -> Tensor:
        """``x`` in the level's coat. Where its door takes more than ``x``, such as a tangent, give it anything that is not zero."""
        made: Tensor = level.tensor(x, requires_grad=True, levels=[level]) if level.records else level.tensor(x)
        return made

    def leave(self, level: Any, y: Tensor) -> Tensor:
        """The value of ``y`` out of the level, with what it depends on elsewhere."""
        taken: Tensor = level.leave("leave", y, lambda coat, value: [value])[0]
        return taken

    def derivative(self, level: Any, f: Function, x: Tensor, v: Tensor) -> Tensor | None:
        """The derivative of ``f``, whose answer has shape ``()``, at ``x`` in direction ``v``, by the level; ``None`` if it has none."""
        return None

    # ops

    def test_op(self, op: Op) -> None:
        """At all samples: values, shapes and dtypes as on the backend, and derivatives by the level, through it and around it."""
        checked = Checked(op, self.backend, 0)
        with np.errstate(all="ignore"):
            for sample in samples_of(op):
                self._op(checked, sample)

    def _op(self, checked: Checked, sample: Sample) -> None:
        xs, params = checked.tensors(sample)
        called = checked.called(sample)
        f: Callable[..., Tensor] = lambda *given: checked.run(*given, **params)
        floating = [k for k, x in enumerate(xs) if k not in sample.exact and checked.base.is_floating(x.value)]
        self._value(f, xs, floating, checked.op, called)
        for k in floating:
            self._value(f, xs, [k], checked.op, f"{called}, with argument {k} on the level")
        out = f(*xs)
        if checked.op.kind is Kind.CONSTANT or not out.size:
            return
        free = checked.free(sample)
        u, vs = checked.random(out), {k: checked.random(xs[k]) for k in free}
        for k in free:
            by_one: Function = lambda x, k=k: (f(*xs[:k], x, *xs[k + 1 :]) * u).sum()  # type: ignore[misc]
            self._derivatives(by_one, xs[k], vs[k], f"{called}, by argument {k}")
        if len(free) > 1:
            zero, one = (checked.base.tensor(t, dtype=xs[free[0]].dtype) for t in (0.0, 1.0))
            by_all: Function = lambda t: (f(*(x + vs[k] * t if k in vs else x for k, x in enumerate(xs))) * u).sum()
            self._derivatives(by_all, zero, one, f"{called}, by all arguments")

    # the level and its coat

    def test_identity(self) -> None:
        """It wraps a backend or a level and nothing else, is numbered from there, has a tape of its own, and says what it is."""
        inner = Autodiff(self.backend)
        level, again = self.make_level(inner), self.make_level(inner)
        assert isinstance(level, Level) and level.inner is inner and level.base is inner.base
        assert level.level == inner.level + 1, f"its number is {level.level}; expected {inner.level + 1}"
        assert level.tape is not again.tape and level.tape in level.tapes, "each level has a tape of its own"
        assert repr(level) == f"{type(level).__name__}({inner!r})", f"repr is {level!r}"
        assert str(level.level) in repr(level.tape), f"repr of the tape is {level.tape!r}"
        with pytest.raises(LevelError, match="expected a backend or a level"):
            self.make_level(object())

    def test_coats(self) -> None:
        """What enters, and what is computed with it, wears one coat of the level, over an inner value of the shape that the coat tells."""
        level, x = self.make_level(self.backend), point(self.backend)
        entered = self.enter(level, x)
        for y in (entered, curve(entered, 0.5), curve(0.5 * x, entered)):
            coat = coat_of(level, y)
            assert coat is not None, "a value that entered, or one that was computed with it, wears no coat of the level"
            assert on(coat.value, level.tape) is None, "a value wears the coat twice"
            seen, inner = tuple(y.shape), tuple(y.b.shape(coat.value))
            assert seen == tuple(x.shape), f"the shape seen is {seen}; expected {tuple(x.shape)}"
            assert inner == coat.under(seen) and len(inner) == len(seen) + coat.hidden, f"{inner} inside, where {seen} is seen"

    def test_constants(self) -> None:
        """Comparisons are right; on a level for derivatives they are constants, and carry no marks."""
        level, x = self.make_level(self.backend), point(self.backend)
        entered = self.enter(level, x)
        above = entered > 0.5
        if differentiates(level, entered):
            assert coat_of(level, above) is None and not above.marks, "a comparison has no derivative; expected a constant"
        close(self.leave(level, above.astype(x.dtype) * entered), (x > 0.5).astype(x.dtype) * x, "a value chosen by a comparison")

    def test_parts(self) -> None:
        """Other levels come off everything in a coat: ``more`` names what there is beside the value, and ``mapped`` changes all of it."""
        older = Autodiff(self.backend)
        level = self.make_level(older)
        a = older.tensor(point(self.backend), requires_grad=True)
        y = curve(self.enter(level, a), a)
        coat = coat_of(level, y)
        assert coat is not None
        parts = [coat.value, *coat.more]
        beside = [p for p in held(coat) if not any(p is part for part in parts)]
        assert not beside, f"`more` of {type(coat).__name__} does not name {beside[0]!r}, so no level can be taken off it"
        for bare, what in ((without(y.value, {older.tape}), "another level is taken off"), (constant(y.value), "it is detached")):
            assert not any(p.tape is older.tape for p in everything(bare)), f"`mapped` or `over` leaves a part as it was, where {what}"
        assert on(without(y.value, {older.tape}), level.tape) is not None, "the coat is lost where another level is taken off"

    def test_off(self) -> None:
        """A coat that comes off leaves a value of the shape that was seen, or refuses with an error of nestgrad."""
        level = self.make_level(self.backend)
        y = curve(self.enter(level, point(self.backend)), 0.5)
        coat = coat_of(level, y)
        assert coat is not None
        for name in ("off", "read"):
            try:
                inner = getattr(coat, name)()
            except NestgradError:
                continue
            found, seen = tuple(y.b.shape(inner)), tuple(y.shape)
            assert found == seen, f"{name}() gives shape {found} where {seen} is seen; expected that shape, or LevelError"

    def test_marks(self) -> None:
        """What leaves a level for derivatives is marked, and takes that level off what it meets, so that no dependence is lost."""
        level, x = self.make_level(self.backend), point(self.backend)
        entered = self.enter(level, x)
        out = self.leave(level, curve(entered, 0.5))
        assert coat_of(level, out) is None, "leave: the value wears the coat still"
        close(out, curve(x, 0.5), "a value that left")
        if not differentiates(level, entered):
            assert level.tape not in out.marks, "a level that differentiates nothing marks nothing"
            return
        assert level.tape in out.marks, "what leaves a level for derivatives must carry its mark"
        product = out * entered
        assert coat_of(level, product) is None, "a value that left counts as a constant beside what it depends on: a dependence is lost"
        assert level.tape in product.marks
        close(product, out * x, "a product with a value that left")

    def test_detach(self) -> None:
        """``detach`` takes off what differentiates, and leaves the others on, with the same value."""
        level, x = self.make_level(self.backend), point(self.backend)
        entered = self.enter(level, x)
        y = curve(entered, 0.5).detach()
        assert not y.marks
        assert (coat_of(level, y) is None) == differentiates(level, entered), "detach: expected the coat off if it differentiates, else on"
        close(self.leave(level, y), curve(x, 0.5), "a detached value")
        v = point(self.backend, 1)
        found = self.derivative(self.make_level(self.backend), lambda z: (z * z.detach()).sum(), x, v)
        if found is not None:
            close(found, (x * v).sum(), "the derivative of x * x.detach()")

    def test_derivative_is_given(self) -> None:
        """A level whose coat differentiates can be asked for a derivative."""
        level, x = self.make_level(self.backend), point(self.backend)
        if differentiates(level, self.enter(level, x)):
            found = self.derivative(self.make_level(self.backend), lambda z: (z * z).sum(), x, x)
            assert found is not None, "the coat differentiates; override derivative(level, f, x, v), so that it can be checked"

    # with other levels

    def test_nesting(self) -> None:
        """First and second derivatives around, under and between levels of reverse mode; and with a second level of the kind."""
        x, c, v = (point(self.backend, k) for k in range(3))
        f: Function = lambda z: curve(z, c).sum()
        self._derivatives(f, x, v, "a smooth function")
        self._derivatives(lambda z: curve(c, z).sum(), x, v, "a smooth function, by its second argument")
        want = func.grad(lambda z: (func.grad(f)(z) * v).sum())(x)
        for where, found in self._second(f, x, v):
            close(found, want, f"a second derivative, {where}")
        directed = self.derivative(self.make_level(self.backend), lambda z: (func.grad(f)(z) * v).sum(), x, c)
        if directed is not None:
            close(directed, (want * c).sum(), "a second derivative, by the level, of a gradient")
        inside = self.make_level(self.backend)
        around = self.make_level(inside)
        y = curve(self.enter(around, self.enter(inside, x)), c)
        close(self.leave(inside, self.leave(around, y)), curve(x, c), "two levels of the kind")

    def test_transforms(self) -> None:
        """Inside a transform it stands above it. When that has ended, what is left over is a plain value, or an error."""
        level, x = self.make_level(self.backend), point(self.backend)
        stashed = []

        def f(z: Tensor) -> Tensor:
            stashed.append(curve(self.enter(level, z), 0.5))
            return self.leave(level, stashed[0]).sum()

        close(func.grad(f)(x), func.grad(lambda z: curve(z, 0.5).sum())(x), "a gradient of a function that uses the level")
        try:
            rest = stashed[0] * 1.0
            left, _ = opened(rest.value, rest.marks)
        except NestgradError:
            return
        worn = [p.tape for p in everything(left) if p.tape.number]  # coats of number 0 are the base's own affair
        assert not worn, f"a value that outlives its transform still wears {worn[0]}"
        close(rest, curve(x, 0.5), "a value that outlives its transform")

    # helpers

    def _value(self, f: Callable[..., Tensor], xs: Sequence[Tensor], moving: Sequence[int], op: Op, called: str) -> None:
        """The value of an op with some arguments on the level, out of the level."""
        level, want = self.make_level(self.backend), f(*xs)
        entered = [self.enter(level, x) if k in moving else x for k, x in enumerate(xs)]
        y = f(*entered)
        assert tuple(y.shape) == tuple(want.shape), f"{called}: got shape {tuple(y.shape)}, expected {tuple(want.shape)}"
        assert y.dtype == want.dtype, f"{called}: got dtype {y.dtype}, expected {want.dtype}"
        if moving and not differentiates(level, entered[moving[0]]):
            assert coat_of(level, y) is not None, f"{called}: the answer has lost the level's coat"
        elif op.kind is Kind.CONSTANT:
            assert coat_of(level, y) is None and not y.marks, f"{called}: the op has no derivative; expected a constant"
        close(self.leave(level, y), want, called)

    def _derivatives(self, f: Function, x: Tensor, v: Tensor, called: str) -> None:
        """The gradient of a function through the level, with reverse mode under it and around it, and its derivative by the level."""
        want = func.grad(f)(x)
        older = Autodiff(self.backend)
        level, a = self.make_level(older), older.tensor(x, requires_grad=True)
        close(gradient(self.leave(level, f(self.enter(level, a))), a), want, f"{called}: the gradient through the level")
        level = self.make_level(self.backend)
        younger = Autodiff(level)
        a = younger.tensor(self.enter(level, x), requires_grad=True, levels=[younger])
        close(self.leave(level, gradient(f(a), a)), want, f"{called}: the gradient inside the level")
        found = self.derivative(self.make_level(self.backend), f, x, v)
        if found is not None:
            close(found, (want * v).sum(), f"{called}: the derivative by the level")

    def _second(self, f: Function, x: Tensor, v: Tensor) -> Iterator[tuple[str, Tensor]]:
        """The Hessian times ``v``, by two levels or three."""
        first = Autodiff(self.backend)
        second = Autodiff(first)
        level, a = self.make_level(second), second.tensor(x, requires_grad=True)
        yield "around two levels", gradient((gradient(self.leave(level, f(self.enter(level, a))), a) * v).sum(), a)

        level = self.make_level(self.backend)
        second = Autodiff(Autodiff(level))
        a = second.tensor(self.enter(level, x), requires_grad=True, levels=[second, second.inner])
        yield "under two levels", self.leave(level, gradient((gradient(f(a), a) * v).sum(), a))

        first = Autodiff(self.backend)
        level, a = self.make_level(first), first.tensor(x, requires_grad=True)
        second = Autodiff(level)
        inside = second.tensor(self.enter(level, a), requires_grad=True, levels=[second])
        yield "between two levels", gradient((self.leave(level, gradient(f(inside), inside)) * v).sum(), a)

        first = Autodiff(self.backend)
        a = first.tensor(x, requires_grad=True)
        found = self.derivative(self.make_level(first), f, a, v)
        if found is not None:
            yield "of a derivative by the level", gradient(found, a)
