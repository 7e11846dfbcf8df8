"""What is kept beside a variable: its partial derivatives, as ``nestgrad.backward`` has set them. For as long as the variable lives."""

from typing import Any
from weakref import WeakKeyDictionary

from nestgrad.levels.coats import worn
from nestgrad.levels.reverse.node import Node, Tracked
from nestgrad.tensor.handle import Handle

PARTIALS: "WeakKeyDictionary[Node, Any]" = WeakKeyDictionary()
"""By the node of a variable."""


class Attached(Handle):
    """Attributes of a Tensor that is a variable."""

    __slots__ = ()

    @property
    def hgrad(self) -> Any:
        """The partial derivatives by this variable, of every order, as the last ``nestgrad.backward`` has set them; see ``HGrad``.

        Raises:
            AttributeError: If there are none.
        """
        for coat in worn(self.value):
            if isinstance(coat, Tracked) and coat.node in PARTIALS:
                return PARTIALS[coat.node]
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
