"""Where nestgrad and torch differ, and are to: at most ``LIMIT`` operations, each with a point at which both are seen.

``ours`` and ``torchs`` are what the two libraries give at that point, ``right`` is what fifty digits of mpmath say, where the
mathematics decides. A test finds all three again, so that an exception cannot outlive its reason.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

LIMIT = 20


@dataclass(frozen=True)
class Exception_:
    """One operation.

    Attributes:
        reason: Why they differ.
        concerns: Whether a sample may differ for that reason.
        point: What is computed: ``point(library)`` with ``library`` one of ``"nestgrad"``, ``"torch"``, ``"mpmath"``.
    """

    reason: str
    concerns: Callable[[Any], bool]
    point: Callable[[str], float]
    ours: float
    torchs: float
    right: float | None


EXCEPTIONS: dict[str, Exception_] = {}
