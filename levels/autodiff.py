"""``Autodiff``: reverse mode as a backend decorator."""

from typing import Any

from nestgrad.levels.level import Level


class Autodiff(Level):
    """Records what is computed with its variables, so that a backward pass can differentiate it.

    Nested, the inner level records what the outer level's backward pass does: ``Autodiff(Autodiff(b))`` has second derivatives.

    Args:
        inner: A backend, or a level.

    >>> from nestgrad.backends import NumpyBackend
    >>> Autodiff(Autodiff(NumpyBackend()))
    Autodiff(Autodiff(numpy))
    """

    name = "autodiff"
    records = True

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
