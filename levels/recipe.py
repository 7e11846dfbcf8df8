"""A value that can be computed again, as the innermost coat: it knows the op that made it, and may forget the array.

All levels stand above this coat. What they record is what they would record without it, so graphs, marks and ages are the same, and a
value computed again is the same to the last bit: the base backend runs the same op on the same arrays. Only what the arrays are for is
decided here, by a *keeper*: a policy (``checkpointing.py``) or a region (``region.py``).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from nestgrad.levels.base import Coat, Tape
from nestgrad.levels.shared import Shared
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

    def keep(self, op: Op, recipe: "Recipe") -> None:
        """Take charge of a value that was just made."""

    def remember(self, recipe: "Recipe", array: Any) -> None:
        """Keep the array of a value that was computed again, for a while; or not."""


class Recipe(Coat):
    """An array, or how to make it: ``call(*args, **params)``. Without a ``call`` the array is stored for good.

    Attributes:
        array: The raw array (or shared memory), or ``None`` where it is forgotten.
        args: Operands: raw arrays, numbers, shared memory, other recipes.
        keeper: Who decides how long the array is kept.
        cost: How many ops run if the array is to be made again, at most; 0 where it is stored.
    """

    __slots__ = ("__weakref__", "args", "array", "call", "cost", "keeper", "params")
    differentiates = False
    tape = _TAPE
    array: Any
    args: Sequence[Any]
    call: Callable[..., Any] | None
    params: dict[str, Any]
    keeper: Any
    cost: int

    @property
    def value(self) -> Any:
        """The raw array; made again where it is forgotten."""
        array = self.array
        return made_again(self) if array is None else array

    @property
    def oldest(self) -> float:
        """It depends on no variable."""
        return float("inf")

    def apply(self, b: Any, op: Op, args: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
        """Run the op on the arrays, and note how."""
        keeper: Any = current.get()
        if keeper is None:
            keeper = next((a.keeper for a in args if a.__class__ is Recipe and a.keeper.lasting), None)
        call = getattr(b, op.name)
        named = dict(zip(op.params, params, strict=True)) if params else _NOTHING
        out = call(*[a.value if a.__class__ is Recipe else a for a in args], **named)
        if keeper is None:
            return out
        recipe = Recipe()
        recipe.array, recipe.args, recipe.call, recipe.params, recipe.keeper = out, args, call, named, keeper
        keeper.keep(op, recipe)
        return recipe

    def over(self, inner: Any) -> "Recipe":
        """Another array, stored."""
        return stored(inner, self.keeper)

    def mapped(self, f: Callable[[Any], Any]) -> "Recipe":
        """Itself: under this coat are none of levels."""
        return self

    def detached(self, inner: Any) -> Any:
        """The array: a constant, which keeps nothing of how it was made."""
        return inner

    def store(self) -> Any:
        """Keep the array for good, and forget how it was made."""
        array = self.array = self.value
        self.call, self.args, self.params, self.cost = None, (), _NOTHING, 0
        return array

    def forget(self) -> None:
        """Let go of the array, if it can be made again."""
        if self.call is not None:
            self.array = None


def stored(array: Any, keeper: Any) -> Recipe:
    """An array that is stored, and from which others are made."""
    recipe = Recipe()
    recipe.array, recipe.args, recipe.call, recipe.params, recipe.keeper, recipe.cost = array, (), None, _NOTHING, keeper, 0
    return recipe


def innermost(p: Any, f: Callable[[Any], Any]) -> Any:
    """``p`` with ``f`` on what is under the coats of levels: on a recipe, shared memory or a raw array, in all parts of ``p``."""
    if not isinstance(p, Coat) or p.__class__ is Recipe or p.__class__ is Shared:
        return f(p)
    return p.mapped(lambda part: innermost(part, f))


def remade(p: Any, keeper: Any) -> Any:
    """``p`` as a value from which others are made that can be made again."""
    return innermost(p, lambda v: v if v.__class__ is Recipe or v.__class__ in (bool, int, float) else stored(v, keeper))


def made_again(target: Recipe) -> Any:
    """The array of a recipe, from the nearest arrays that are there. Each op that is needed runs once."""
    plan = _plan(target)
    uses = Counter(id(a) for recipe in plan for a in recipe.args if a.__class__ is Recipe)
    made: dict[int, Any] = {}
    for recipe in plan:
        call, args = recipe.call, recipe.args  # another thread may store it meanwhile
        values = []
        for a in args:
            if a.__class__ is Recipe:
                key = id(a)
                values.append(made[key] if key in made else a.value)
                uses[key] -= 1
                if not uses[key]:
                    made.pop(key, None)  # what no keeper remembers goes as soon as it has been used
            else:
                values.append(a)
        array = recipe.array if call is None else call(*values, **recipe.params)
        made[id(recipe)] = array
        recipe.keeper.remember(recipe, array)
    return made[id(target)]


def _plan(target: Recipe) -> list[Recipe]:
    """What must be made for ``target``, operands first."""
    plan: list[Recipe] = []
    done: set[int] = set()
    stack = [target]
    while stack:
        recipe = stack[-1]
        todo = [a for a in recipe.args if a.__class__ is Recipe and a.array is None and id(a) not in done]
        if todo:
            stack += todo
            continue
        stack.pop()
        if id(recipe) not in done:
            done.add(id(recipe))
            plan.append(recipe)
    return plan


_NOTHING: dict[str, Any] = {}
