"""Classes of axes: which axes of a program go entry by entry together, also where an axis holds several of another array's.

A reshape that merges axes makes one of (12,) of two of (4, 3). So a class may come apart into two classes, in the order of memory, and an
axis is a list of *atoms*, classes that have not come apart. A class is dead once its entries meet.
"""

from collections.abc import Iterable
from math import prod


class Classes:
    """Disjoint sets of axes, which are numbered."""

    __slots__ = ("_dead", "_parent", "_parts", "sizes")

    def __init__(self) -> None:
        self._parent: list[int] = []
        self._dead: list[bool] = []
        self._parts: list[tuple[int, int] | None] = []
        self.sizes: list[int] = []

    def axis(self, size: int, dead: bool = False) -> int:
        """A new axis, in a class of its own."""
        number = len(self.sizes)
        self._parent.append(number)
        self._dead.append(dead)
        self._parts.append(None)
        self.sizes.append(size)
        return number

    def root(self, axis: int) -> int:
        """The axis that stands for the class."""
        parent = self._parent
        while parent[axis] != axis:
            parent[axis] = axis = parent[parent[axis]]
        return axis

    def atoms(self, axis: int) -> list[int]:
        """The roots of the classes that an axis consists of, the slowest first."""
        found, stack = [], [axis]
        while stack:
            root = self.root(stack.pop())
            parts = self._parts[root]
            if parts is None:
                found.append(root)
            else:
                stack += parts[::-1]
        return found

    def dead(self, root: int) -> bool:
        """Whether entries of the class meet."""
        return self._dead[root]

    def kill(self, axis: int) -> None:
        """Entries along an axis meet."""
        for root in self.atoms(axis):
            self._dead[root] = True

    def join(self, x: int, y: int) -> None:
        """Two axes of one size go together."""
        p, q = self.root(x), self.root(y)
        if p == q:
            return
        if self._parts[p] is None and self._parts[q] is None:
            self._parent[q] = p
            self._dead[p] |= self._dead[q]
        else:
            self.match((p,), (q,))

    def match(self, xs: Iterable[int], ys: Iterable[int]) -> None:
        """Two lists of axes hold the same entries in the same order. What does not fit, because one would have to be cut askew, dies."""
        left, right = [*xs][::-1], [*ys][::-1]
        while left and right:
            p, q = self._next(left), self._next(right)
            n, m = self.sizes[p], self.sizes[q]
            if n == m:
                self.join(p, q)
            elif n % m == 0:
                left += self._cut(p, m)[::-1]
                right.append(q)
            elif m % n == 0:
                right += self._cut(q, n)[::-1]
                left.append(p)
            else:
                self._askew(p, q, left, right)
        for root in (*left, *right):
            self.kill(root)

    def _next(self, side: list[int]) -> int:
        """The next atom of a list."""
        root = self.root(side.pop())
        while (parts := self._parts[root]) is not None:
            side.append(parts[1])
            root = self.root(parts[0])
        return root

    def _askew(self, p: int, q: int, left: list[int], right: list[int]) -> None:
        """Everything dies up to where both sides have come to the same entry again."""
        n, m = self.sizes[p], self.sizes[q]
        self.kill(p)
        self.kill(q)
        while n != m and (left if n < m else right):
            root = self.root((left if n < m else right).pop())
            self.kill(root)
            if n < m:
                n *= self.sizes[root]
            else:
                m *= self.sizes[root]

    def _cut(self, root: int, size: int) -> tuple[int, int]:
        """Take an atom apart, into one of ``size`` and the rest."""
        dead = self._dead[root]
        parts = self._parts[root] = self.axis(size, dead), self.axis(self.sizes[root] // size, dead)
        return parts

    def stride(self, axis: int, atom: int) -> int:
        """How many entries of an axis lie within one entry of an atom of it."""
        atoms = self.atoms(axis)
        return prod([self.sizes[root] for root in atoms[atoms.index(atom) + 1 :]])
