"""Policies: which arrays a level keeps for its backward pass, and which it computes again."""

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar

from nestgrad.errors import LevelError
from nestgrad.levels.recipe import Recipe, Remade
from nestgrad.ops import TABLE, Kind, Op


class Policy(ABC):
    """Which answers are stored. What is not stored is forgotten soon after it was used, and made again when it is read.

    Attributes:
        limit: At most about so many ops run again for one array; a longer chain of cheap ops is stored in between.
    """

    lasting: ClassVar[bool] = True
    later: ClassVar[bool] = False
    limit: int

    @abstractmethod
    def cheap(self, op: Op) -> bool:
        """Whether the answer of an op is computed again rather than stored."""

    def keep(self, op: Op, value: Remade) -> None:
        """Store a new value, or keep it warm."""
        recipe, cost = value.recipe, 1
        for a in recipe.args:
            if a.__class__ is Recipe:
                cost += a.cost
        if cost > self.limit or not self.cheap(op):
            recipe.store()
        else:
            recipe.cost = cost
            _warm.add(value)

    def remember(self, value: Remade, array: Any) -> None:
        """Keep an array that was made again warm."""
        value.array = array
        _warm.add(value)


class Balanced(Policy):
    """Computes again what is cheap, stores what is dear.

    Dear are the ops that sum (products of matrices, reductions, norms, softmax) and those that solve or sort. Cheap are the elementwise
    ones and those that move entries about.

    Args:
        limit: At most about so many ops run again for one array. Higher: less memory, more time.
        store: Names of ops, as in ``nestgrad.ops.TABLE``, whose answers are to be stored as well.

    Raises:
        LevelError: A limit below 1, or a name that is no op.

    >>> from nestgrad import Autodiff, Balanced, NumpyBackend
    >>> S = Autodiff(NumpyBackend(), checkpointing=Balanced())
    >>> x = S.tensor([1.0, 2.0], requires_grad=True)
    >>> (x.sin() * x).exp().sum().wrt(x).shape
    (2,)
    """

    def __init__(self, limit: int = 64, store: tuple[str, ...] = ()) -> None:
        if not isinstance(limit, int) or limit < 1:
            raise LevelError(f"Balanced: got limit={limit!r}; expected an int from 1 on, the number of ops that may run again for an array")
        names = (store,) if isinstance(store, str) else tuple(store)
        if unknown := [name for name in names if name not in TABLE]:
            raise LevelError(f"Balanced: got store={unknown}; expected names of ops. Try some of {sorted(TABLE)}")
        self.limit = limit
        self.store = names

    def cheap(self, op: Op) -> bool:
        """Whether it works entry by entry, or moves entries about. Of an op that is in no table nobody knows what it costs."""
        entrywise = op.kind in (Kind.ELEMENTWISE, Kind.CONSTANT) or op.broadcasts or op.name in _MOVERS
        return entrywise and op.name not in self.store and TABLE.get(op.name) is op

    def __repr__(self) -> str:
        return f"Balanced(limit={self.limit}{f', store={self.store}' if self.store else ''})"


def checked(policy: Any) -> Policy | None:
    """A policy, or none.

    Raises:
        LevelError: If it is something else.
    """
    if policy is None or isinstance(policy, Policy):
        return policy
    instead = f"{policy.__name__}()" if isinstance(policy, type) and issubclass(policy, Policy) else "Balanced()"
    raise LevelError(f"Autodiff: got checkpointing={policy!r}; expected a policy or None. Try checkpointing={instead}")


def cool() -> None:
    """Forget all arrays that are warm in this thread: a backward pass has ended."""
    _warm.clear()


_MOVERS = frozenset(
    "reshape permute broadcast_to concat stack getitem put index_set index_add pad flip roll triu tril diagonal from_diagonal "
    "scale per neg cast".split()
)  # add, sub, mul, where broadcast


class _Warm(threading.local):
    """The last arrays that were made: neighbours in a graph read the same ones. They are held by whoever holds their coats."""

    def __init__(self) -> None:
        self.values: deque[Callable[[], Remade | None]] = deque()

    def add(self, value: Remade) -> None:
        self.values.append(value.recipe.coat)
        if len(self.values) > WARM:
            self._drop(self.values.popleft())

    def clear(self) -> None:
        while self.values:
            self._drop(self.values.popleft())

    def _drop(self, member: Callable[[], Remade | None]) -> None:
        value = member()
        if value is not None:
            value.forget()


_warm = _Warm()

WARM = 32
"""How many arrays stay warm."""
