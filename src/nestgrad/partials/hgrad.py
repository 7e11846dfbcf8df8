"""``HGrad``: the derivatives of one leaf, order by order, made dense when they are read."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

from nestgrad.errors import IndexRangeError
from nestgrad.partials.blocks import Block

Metadata = tuple[tuple[tuple[int, ...], ...], tuple[tuple[int | None, ...], ...], tuple[int, ...]]


class HGrad(Sequence[Any]):
    """The partial derivatives of an output by one leaf: entry k - 1 is that of order k.

    It holds numbers, and no graph unless ``create_graph`` asked for one. ``hgrad[k]`` makes a dense array each time that it is read, and
    does not keep it: what is stored may be smaller by orders of magnitude, and one who reads it once has it once. ``hgrad.blocks[k]`` is
    what is stored.

    Args:
        blocks: One for each order.
        wrap: Makes the user's kind of tensor of an array.
        keep_batch: Whether independent axes are taken once in what is read; see ``Block.batched``.

    >>> from nestgrad.backends import NumpyBackend
    >>> from nestgrad.partials.blocks import Leg
    >>> b = NumpyBackend()
    >>> hgrad = HGrad([Block(b, b.asarray([2.0, 3.0]), (2,), ((2,),), (Leg(2, 0, (0,)),)), Block.zero(b, (2,), ((2,), (2,)))])
    >>> hgrad
    HGrad(order 1: (2, 2), stored 2 of 4 numbers; order 2: (2, 2, 2), stored 0 of 8 numbers)
    >>> hgrad[0].tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """

    __slots__ = ("blocks", "keep_batch", "wrap")

    def __init__(self, blocks: Sequence[Block], wrap: Callable[[Any], Any] = lambda raw: raw, keep_batch: bool = False) -> None:
        self.blocks = tuple(blocks)
        self.wrap = wrap
        self.keep_batch = keep_batch

    def __len__(self) -> int:
        return len(self.blocks)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> "HGrad": ...

    def __getitem__(self, index: int | slice) -> Any:
        """The derivative of order ``index + 1``; of a slice an ``HGrad``, which makes no array.

        Raises:
            IndexRangeError: If that order was not computed; it is an ``IndexError``.
            MutatedError: If somebody has written into what was read before. Copy it, and write into that.
        """
        if isinstance(index, slice):
            return HGrad(self.blocks[index], self.wrap, self.keep_batch)
        try:
            block = self.blocks[index]
        except IndexError:
            raise IndexRangeError(
                f"hgrad: got index {index}; expected 0 to {len(self) - 1}, because entry k - 1 is the derivative of order k, and backward "
                f"was called with order={len(self)}. Try a higher order"
            ) from None
        return self.wrap(block.batched()[0] if self.keep_batch else block.dense())

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))  # one dense array at a time

    @property
    def hdata(self) -> tuple[Metadata, ...]:
        """For each order how what is read is to be understood: see ``Block.metadata``."""
        return tuple([block.metadata(self.keep_batch) for block in self.blocks])

    @property
    def nbytes(self) -> int:
        """How much memory the numbers that are stored take."""
        return sum([block.nbytes for block in self.blocks])

    def __repr__(self) -> str:
        return f"HGrad({'; '.join([self._told(block) for block in self.blocks])})"

    def _told(self, block: Block) -> str:
        shape = block.structure.batched_shape if self.keep_batch else block.structure.dense_shape
        return f"order {block.order}: {shape}, stored {block.size} of {block.dense_size} numbers"
