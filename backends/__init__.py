"""Backends: where numbers live.

``Backend`` is the contract, ``NumpyBackend`` and ``TorchBackend`` come with nestgrad, and a package that names a class
in the entry point group ``nestgrad.backends`` adds one. torch is imported only when it is asked for.
"""

from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from nestgrad.backends.base import Backend, missing
from nestgrad.backends.numpy import NumpyBackend
from nestgrad.errors import BackendError

if TYPE_CHECKING:
    from nestgrad.backends.torch import TorchBackend as TorchBackend

__all__ = ["Backend", "NumpyBackend", "get_backend", "missing"]  # not TorchBackend: a star import must not load torch


def get_backend(name: str, **options: Any) -> Backend:
    """The backend called ``name``, made with ``options``.

    Raises:
        BackendError: If the name is unknown, or its array library is not installed.

    >>> get_backend("numpy", dtype="float32")
    numpy(float32)
    """
    if name == "numpy":
        return NumpyBackend(**options)
    if name == "torch":
        torch_backend: Backend = _torch_backend()(**options)
        return torch_backend
    found = {point.name: point for point in entry_points(group="nestgrad.backends")}
    if name not in found:
        known = ", ".join(sorted({"numpy", "torch", *found}))
        raise BackendError(
            f"no backend is called {name!r}; known: {known}. "
            "A package adds one by the entry point group nestgrad.backends"
        )
    try:
        made = found[name].load()(**options)
    except ImportError as error:
        raise BackendError(f"backend {name!r} is known but cannot be imported: {error}") from error
    if not isinstance(made, Backend):
        raise BackendError(f"the entry point {found[name].value} made a {type(made).__name__}, which is no Backend")
    return made


def _torch_backend() -> "type[TorchBackend]":
    try:
        from nestgrad.backends.torch import TorchBackend
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise BackendError("the torch backend needs PyTorch: pip install nestgrad[torch]") from error
    return TorchBackend


def __getattr__(name: str) -> Any:
    if name == "TorchBackend":
        return _torch_backend()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
