"""A value that can be computed again, as the innermost coat: it knows the op that made it, and may forget the array.

All levels stand above this coat. What they record is what they would record without it, so graphs, marks and ages are the same, and a
value computed again is the same to the last bit: the base backend runs the same op on the same arrays. Only what the arrays are for is
decided here, by a *keeper*: a policy (``checkpointing.py``) or a region (``region.py``).

The coat holds the array for those who hold the coat. How to make it is in the ``Recipe``, which holds no array unless it is stored; so
arrays that nobody reads but other ops go as early as they do without all this.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from itertools import count
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Protocol
from weakref import ref

from nestgrad.levels.base import Coat, Tape
from nestgrad.levels.shared import Shared
from nestgrad.levels.watching import again, here, unasked
from nestgrad.ops.table import Op

if TYPE_CHECKING:
    from nestgrad.levels.region import Region

_TAPE = Tape("recipe", 0)
_TAPE.birth = 0.5  # over shared memory, under every level

current: ContextVar["Region | None"] = ContextVar("current", default=None)
"""The region in which ops run in this context: the function that is run, or the part of the graph that a pass is in."""


class Keeper(Protocol):
    """Decides which arrays are kept."""

    lasting: bool
    """Whether what is computed from its values is its own, too, wherever that happens."""
    later: bool
    """Whether ops are only noted, for the time being, and run when their answers are read."""

    def keep(self, op: Op, value: "Remade") -> None:
        """Take charge of a value that was just made."""

    def remember(self, value: "Remade", array: Any) -> None:
        """Keep the array of a value that was computed again, for a while; or not."""


class Recipe:
    """How to make an array: ``call(*args, **params)``. Without a ``call`` the array is stored.

    Attributes:
        args: Operands: raw arrays, numbers, shared memory, other recipes.
        array: The raw array (or shared memory), if it is stored.
        coat: The coat that holds the array when somebody holds the coat.
        keeper: Who decides how long the array is kept.
        cost: How many ops run if the array is to be made again, at most; 0 where it is stored.
        number: Recipes are numbered as they are made.
    """

    __slots__ = ("args", "array", "call", "coat", "cost", "keeper", "number", "params")
    args: Sequence[Any]
    array: Any
    call: Callable[..., Any] | None
    coat: "Callable[[], Remade | None]"
    cost: int
    keeper: Any
    number: int
    params: dict[str, Any]

    def there(self) -> Any:
        """The array, if it is there."""
        if self.array is not None:
            return self.array
        coat = self.coat()
        return None if coat is None else coat.array

    def store(self) -> Any:
        """Keep the array for good, and forget how it was made."""
        array = self.there()
        self.array = made_again([self])[0] if array is None else array
        self.call, self.args, self.params, self.cost = None, (), _NOTHING, 0
        return self.array


class Remade(Coat):
    """The coat: a recipe, and the array unless it is forgotten."""

    __slots__ = ("__weakref__", "array", "recipe")
    differentiates = False
    ever = False
    """Whether there ever was one. Passes look for them only then."""
    tape = _TAPE
    array: Any
    recipe: Recipe

    @property
    def value(self) -> Any:
        """The raw array; made again where it is forgotten."""
        array = self.array
        return made_again([self.recipe])[0] if array is None else array

    @property
    def oldest(self) -> float:
        """It depends on no variable."""
        return float("inf")

    def apply(self, b: Any, op: Op, args: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
        """Run the op on the arrays, and note how."""
        return self.noted(op, unasked(op.of(b)), args, dict(zip(op.params, params, strict=True)) if params else _NOTHING)

    def noted(self, op: Op, call: Callable[..., Any], args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Run ``call``, which is how the backend does ``op``, on the arrays, and note it."""
        keeper: Any = current.get()
        if keeper is None:
            keeper = next((a.recipe.keeper for a in args if a.__class__ is Remade and a.recipe.keeper.lasting), None)
        out = None
        if keeper is None or not keeper.later:
            out = call(*[a.value if a.__class__ is Remade else a for a in args], **params)
            if keeper is None:
                return out
        coat = _coat(out, [a.recipe if a.__class__ is Remade else a for a in args], call, params, keeper)
        if op.results:
            return tuple(_item(op, coat, k) for k in range(len(op.results)))
        keeper.keep(op, coat)
        return coat

    def over(self, inner: Any) -> "Remade":
        """Another array, stored."""
        return stored(inner, self.recipe.keeper)

    def mapped(self, f: Callable[[Any], Any]) -> "Remade":
        """Itself: under this coat are none of levels."""
        return self

    def detached(self, inner: Any) -> Any:
        """The array: a constant, which keeps nothing of how it was made."""
        return inner

    def forget(self) -> None:
        """Let go of the array, if it can be made again."""
        if self.recipe.call is not None:
            self.array = None


def stored(array: Any, keeper: Any) -> Remade:
    """An array that is stored, and from which others are made."""
    Remade.ever = True
    coat = _coat(array, (), None, _NOTHING, keeper)
    coat.recipe.array = array
    return coat


def _coat(array: Any, args: Sequence[Any], call: Callable[..., Any] | None, params: dict[str, Any], keeper: Any) -> Remade:
    coat, recipe = Remade(), Recipe()
    coat.array, coat.recipe = array, recipe
    recipe.args, recipe.call, recipe.params, recipe.keeper = args, call, params, keeper
    recipe.array, recipe.coat, recipe.cost, recipe.number = None, ref(coat), 0, _next()
    return coat


def _item(op: Op, whole: Remade, k: int) -> Remade:
    """One of several results, with a recipe that takes it out of all of them. These together are never kept."""
    out, recipe = whole.array, whole.recipe
    recipe.cost = 1 + sum(a.cost for a in recipe.args if a.__class__ is Recipe)
    item = _coat(None if out is None else out[k], (recipe,), itemgetter(k), _NOTHING, recipe.keeper)
    recipe.keeper.keep(op, item)
    return item


def innermost(p: Any, f: Callable[[Any], Any]) -> Any:
    """``p`` with ``f`` on what is under the coats of levels: on a ``Remade``, shared memory or a raw array, in all parts of ``p``."""
    if not isinstance(p, Coat) or p.__class__ is Remade or p.__class__ is Shared:
        return f(p)
    return p.mapped(lambda part: innermost(part, f))


def remade(p: Any, keeper: Any) -> Any:
    """``p`` as a value from which others are made that can be made again."""
    return innermost(p, lambda v: v if v.__class__ is Remade or v.__class__ in (bool, int, float) else stored(v, keeper))


def made_again(targets: Sequence[Recipe]) -> list[Any]:
    """The arrays of some recipes, from the nearest arrays that are there. Each op that is needed runs once, in its old order."""
    found: list[Any] = again(lambda: _made_again(targets)) if here() else _made_again(targets)
    return found


def _made_again(targets: Sequence[Recipe]) -> list[Any]:
    plan = _plan(targets)
    uses = Counter(id(a) for recipe in plan for a in recipe.args if a.__class__ is Recipe)
    uses.update(map(id, targets))
    made: dict[int, Any] = {}
    for recipe in plan:
        call, args = recipe.call, recipe.args  # another thread may store it meanwhile
        values = []
        for a in args:
            if a.__class__ is Recipe:
                key = id(a)
                values.append(made[key] if key in made else _found(a))
                uses[key] -= 1
                if not uses[key]:
                    made.pop(key, None)
            else:
                values.append(a)
        array = recipe.array if call is None else call(*values, **recipe.params)
        made[id(recipe)] = array
        coat = recipe.coat()
        if coat is not None:
            recipe.keeper.remember(coat, array)
    return [made[id(recipe)] if id(recipe) in made else _found(recipe) for recipe in targets]


def _found(recipe: Recipe) -> Any:
    array = recipe.there()
    return made_again([recipe])[0] if array is None else array  # forgotten since the plan was made


def _plan(targets: Iterable[Recipe]) -> list[Recipe]:
    """What must be made for the targets, operands first."""
    stack = [recipe for recipe in targets if recipe.there() is None]
    plan = {id(recipe): recipe for recipe in stack}
    while stack:
        for a in stack.pop().args:
            if a.__class__ is Recipe and id(a) not in plan and a.there() is None:
                plan[id(a)] = a
                stack.append(a)
    return sorted(plan.values(), key=_number)


_next = count().__next__
_number = attrgetter("number")
_NOTHING: dict[str, Any] = {}
