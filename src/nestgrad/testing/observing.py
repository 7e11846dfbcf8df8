"""What the tests of levels look at: the coats of a value, its numbers, its derivatives."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from nestgrad.errors import NotConnectedError, NotTrackedError
from nestgrad.levels.base import Coat
from nestgrad.levels.coats import on
from nestgrad.levels.level import Level
from nestgrad.tensor import Tensor
from nestgrad.testing.differences import precision


def point(base: Any, seed: int = 0) -> Tensor:
    """Six numbers between 0.2 and 1.2."""
    made: Tensor = base.tensor(np.random.default_rng(seed).uniform(0.2, 1.2, (2, 3)), dtype=base.default_dtype)
    return made


def curve(x: Any, y: Any) -> Any:
    """A smooth function of two arguments, entry by entry, with derivatives of every order."""
    return (x * x + y * x).sin() * (x + y).exp()


def coat_of(level: Level, y: Tensor) -> Coat | None:
    """The coat of the level that ``y`` wears."""
    coat: Coat | None = on(y.value, level.tape)
    return coat


def differentiates(level: Level, entered: Tensor) -> bool:
    """Whether the level is one for derivatives, as the coat of a value that entered says."""
    coat = coat_of(level, entered)
    assert coat is not None, "enter: the value wears no coat of the level"
    return coat.differentiates


def gradient(y: Tensor, x: Tensor) -> Tensor:
    """The derivative; zeros where nothing was recorded, so that a comparison tells."""
    try:
        return y.wrt(x)
    except (NotTrackedError, NotConnectedError):
        zeros: Tensor = x.b.base.tensor(np.zeros(tuple(x.shape)), dtype=x.dtype)
        return zeros


def held(coat: Coat) -> Iterator[Coat]:
    """The coats that a coat refers to, by whatever attribute."""
    names = [name for cls in type(coat).__mro__ for name in getattr(cls, "__slots__", ())]
    for value in [*(getattr(coat, name, None) for name in names), *getattr(coat, "__dict__", {}).values()]:
        yield from (p for p in (value if isinstance(value, (tuple, list)) else (value,)) if isinstance(p, Coat))


def everything(p: Any) -> Iterator[Coat]:
    """All coats of a value and of what is in them."""
    if isinstance(p, Coat):
        yield p
        for part in held(p):
            yield from everything(part)


def close(got: Tensor, want: Tensor, what: str) -> None:
    """Compare values to rounding.

    Raises:
        AssertionError: With both values, if they differ.
    """
    found, right = np.asarray(got.numpy()), np.asarray(want.numpy())
    assert found.shape == right.shape, f"{what}: got shape {found.shape}, expected {right.shape}"
    # rules that are written in two ways, and sums in another order
    allowed = 1024 * max(precision(got.b.base), 2.0**-52) * max(1.0, float(np.abs(right[np.isfinite(right)]).max(initial=0.0)))
    assert np.allclose(found.astype(float), right.astype(float), rtol=0.0, atol=allowed, equal_nan=True), (
        f"{what}: got {found.tolist()}, expected {right.tolist()}"
    )
