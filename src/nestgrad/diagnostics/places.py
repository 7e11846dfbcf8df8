"""Where something comes from: the user's line that made it. Nodes of graphs are found again by their ages."""

import linecache
import sys
from bisect import bisect_right
from pathlib import Path
from threading import Lock
from types import FrameType
from typing import NamedTuple

_ROOM = f"{Path(__file__).parents[1]}/"
_BETWEEN = frozenset({"optree", "contextlib", "functools", "nestgrad"})
"""Packages that stand between a user's line and ours."""


class Place(NamedTuple):
    """A line of a user's program."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        text = linecache.getline(self.file, self.line).strip()
        inside = "" if self.function == "<module>" else f", in {self.function}"
        return f"{self.file}:{self.line}{inside}{': ' if text else ''}{text}"


def place() -> Place | None:
    """The line of the innermost frame that is none of ours: what it calls is nestgrad. ``None`` if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if _foreign(frame):
            return Place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return None


def raised_at(error: BaseException) -> Place | None:
    """The innermost line of the traceback that is none of ours."""
    found, at = None, error.__traceback__
    while at is not None:
        if _foreign(at.tb_frame):
            found = Place(at.tb_frame.f_code.co_filename, at.tb_lineno, at.tb_frame.f_code.co_name)
        at = at.tb_next
    return found


def _foreign(frame: FrameType) -> bool:
    file, name = frame.f_code.co_filename, frame.f_globals.get("__name__")  # generated code has no name
    return name is not None and not file.startswith(_ROOM) and (name.partition(".")[0] not in _BETWEEN or file.startswith("<doctest"))


class Origin(NamedTuple):
    """What made the nodes of a span of ages.

    Attributes:
        op: The op that a user called.
        at: Where.
        passing: Of nodes that a backward pass made, which one.
        of: Then: what made the node that the pass was at; ``None`` if that is not known.
    """

    op: str
    at: Place | None
    passing: str = ""
    of: "Origin | None" = None

    def __str__(self) -> str:
        if self.passing:
            return f"made in the backward pass of {self.passing}, of {self.op}, which was {self.of or UNKNOWN}"
        return f"made at {self.at or 'a line that is not known'}"


UNKNOWN = "made before detect_anomaly() was entered: enter it around the forward run, too"


class Origins:
    """Spans of ages, and what made the nodes of these ages. Of many, the oldest are forgotten.

    Args:
        most: How many are kept, at least.
    """

    def __init__(self, most: int = 1 << 17) -> None:
        self._most = most
        self._starts: list[int] = []
        self._spans: list[tuple[int, Origin]] = []
        self._lock = Lock()

    def note(self, start: int, end: int, origin: Origin) -> None:
        """All nodes that this thread made after ``start`` and before ``end`` are of that origin."""
        with self._lock:
            k = bisect_right(self._starts, start)  # the end, unless threads share a context
            self._starts.insert(k, start)
            self._spans.insert(k, (end, origin))
            if len(self._starts) > 2 * self._most:
                del self._starts[: self._most], self._spans[: self._most]

    def find(self, age: int) -> Origin | None:
        """What made the node of an age."""
        with self._lock:
            k = bisect_right(self._starts, age)
            for end, origin in reversed(self._spans[max(k - _THREADS, 0) : k]):
                if age < end:
                    return origin
        return None


_THREADS = 64
"""How many spans may overlap, at most: one for each thread."""
