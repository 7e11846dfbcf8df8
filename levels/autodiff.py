"""``Autodiff``: reverse mode as a backend decorator."""

from typing import Any

from nestgrad.levels.checkpointing import Policy, checked
from nestgrad.levels.level import Level


class Autodiff(Level):
    """Records what is computed with its variables, so that a backward pass can differentiate it.

    Nested, the inner level records what the outer level's backward pass does: ``Autodiff(Autodiff(b))`` has second derivatives.

    Args:
        inner: A backend, or a level.
        checkpointing: Which arrays it keeps for the backward pass: all that rules read (``None``), or as a policy says, ``Balanced()``. It
            decides for the variables of this level, and for what is computed with them on all levels.

    Raises:
        LevelError: If ``inner`` is neither backend nor level, or ``checkpointing`` no policy.

    >>> from nestgrad.backends import NumpyBackend
    >>> Autodiff(Autodiff(NumpyBackend()))
    Autodiff(Autodiff(numpy))
    """

    name = "autodiff"
    records = True

    def __init__(self, inner: Any, checkpointing: Policy | None = None) -> None:
        policy = checked(checkpointing)
        super().__init__(inner)
        self.tape.policy = policy
