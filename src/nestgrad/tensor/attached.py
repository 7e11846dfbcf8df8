"""What is kept beside a variable: its partial derivatives, as ``nestgrad.backward`` has set them. For as long as the variable lives."""

from itertools import count
from operator import itemgetter
from typing import Any
from weakref import WeakKeyDictionary

from nestgrad.levels.coats import worn
from nestgrad.levels.reverse.node import Node, Tracked
from nestgrad.tensor.handle import Handle

_PARTIALS: "WeakKeyDictionary[Node, tuple[int, Any]]" = WeakKeyDictionary()
"""By the node of a variable, and with the number of the call: a variable has a node on each of its levels."""

_calls = count()


def attach(node: Node, hgrad: Any) -> None:
    """Set the partial derivatives by the variable that a node is; ``None``: delete them."""
    if hgrad is None:
        _PARTIALS.pop(node, None)
    else:
        _PARTIALS[node] = next(_calls), hgrad


def attached(node: Node) -> Any:
    """The partial derivatives by the variable that a node is, or ``None``."""
    found = _PARTIALS.get(node)
    return None if found is None else found[1]


class Attached(Handle):
    """Attributes of a Tensor that is a variable."""

    __slots__ = ()

    @property
    def hgrad(self) -> Any:
        """The partial derivatives by this variable, of every order, as the last ``nestgrad.backward`` has set them; see ``HGrad``.

        On whatever level that one differentiated.

        Raises:
            AttributeError: If there are none.
        """
        found = [_PARTIALS.get(coat.node) for coat in worn(self.value) if isinstance(coat, Tracked)]
        if any(found):
            return max(filter(None, found), key=itemgetter(0))[1]
        raise AttributeError(
            "hgrad: got a Tensor without partial derivatives; expected a variable under an output of which nestgrad.backward was called. "
            "Try nestgrad.backward(output, order=2) first"
        )

    @property
    def hdata(self) -> Any:
        """For each order what tells how ``hgrad`` is to be read: ``(shapes, indeps, vperm)``; see ``Block.metadata``.

        Raises:
            AttributeError: If there are none.
        """
        return self.hgrad.hdata
