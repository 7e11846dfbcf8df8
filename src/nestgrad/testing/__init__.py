"""The testing kit that ships: checks of derivatives, of ops and of backends.

``BackendConformance`` needs pytest, which is imported when the class is first asked for.
"""

from typing import TYPE_CHECKING, Any

from nestgrad.testing.gradients import check_grads
from nestgrad.testing.operations import check_op

if TYPE_CHECKING:
    from nestgrad.testing.conformance import BackendConformance

__all__ = ["BackendConformance", "check_grads", "check_op"]


def __getattr__(name: str) -> Any:
    if name == "BackendConformance":
        from nestgrad.testing.conformance import BackendConformance

        return BackendConformance
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
