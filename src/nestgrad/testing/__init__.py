"""The testing kit that ships: checks of derivatives, of ops, of backends and of levels.

``BackendConformance`` and ``LevelConformance`` need pytest, which is imported when one of the classes is first asked for.
"""

from typing import TYPE_CHECKING, Any

from nestgrad.testing.gradients import check_grads
from nestgrad.testing.operations import check_op

if TYPE_CHECKING:
    from nestgrad.testing.conformance import BackendConformance
    from nestgrad.testing.levels import LevelConformance

__all__ = ["BackendConformance", "LevelConformance", "check_grads", "check_op"]


def __getattr__(name: str) -> Any:
    if name == "BackendConformance":
        from nestgrad.testing.conformance import BackendConformance

        return BackendConformance
    if name == "LevelConformance":
        from nestgrad.testing.levels import LevelConformance

        return LevelConformance
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
