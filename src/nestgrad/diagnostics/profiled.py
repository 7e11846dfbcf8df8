"""A backend that profiles the backend it wraps."""

from typing import Any

from nestgrad.backends.base import Backend
from nestgrad.diagnostics.profiling import Profile
from nestgrad.errors import BackendError
from nestgrad.levels.watching import Work
from nestgrad.ops.table import TABLE


class Profiled(Backend):
    """A base backend with a profile of all that it ever does, in all threads: ``ng.Autodiff(ng.Profiled(ng.NumpyBackend()))``.

    It computes what the wrapped backend does, by the same methods. Two are equal if what they wrap is; the wrapped one is another backend,
    whose tensors it does not meet, since what runs over that one is not counted.

    Args:
        wrapped: The base backend.

    Raises:
        BackendError: If it is none. A level wraps a profiled backend, and not the other way round.

    >>> import nestgrad as ng
    >>> base = Profiled(ng.NumpyBackend())
    >>> x = ng.Autodiff(base).tensor([0.5, 1.0], requires_grad=True)
    >>> g = x.exp().sum().wrt(x)
    >>> sorted((row.op, row.calls) for row in base.profile.rows)
    [('broadcast_to', 1), ('exp', 1), ('mul0', 1), ('reshape', 1), ('sum', 1)]
    """

    def __init__(self, wrapped: Any) -> None:
        if not isinstance(wrapped, Backend):
            raise BackendError(
                f"Profiled: got {wrapped!r}; expected a base backend, because levels compute nothing themselves. "
                "Try Autodiff(Profiled(NumpyBackend()))"
            )
        self.wrapped = wrapped
        self.profile = Profile()
        self.watchers = (self.profile,)
        self.name, self.default_dtype = wrapped.name, wrapped.default_dtype
        work = Work(wrapped, self)
        for name in dir(wrapped):
            if name in TABLE:
                setattr(self, name, work.of(TABLE[name]))
        for name in ABOUT_ARRAYS:
            setattr(self, name, getattr(wrapped, name))

    def report(self) -> str:
        """The profile as a table."""
        return str(self.profile)

    def key(self) -> tuple[Any, ...]:
        return (Profiled, *self.wrapped.key())

    def __getattr__(self, name: str) -> Any:
        """What only the wrapped backend has."""
        if name.startswith("_") or name == "wrapped":
            raise AttributeError(name)
        return getattr(self.wrapped, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Profiled, (self.wrapped,))

    def __repr__(self) -> str:
        return f"profiled {self.wrapped!r}"


ABOUT_ARRAYS = (
    "asarray", "to_numpy", "shape", "dtype", "resolve_dtype", "kind", "is_floating", "accepts", "share", "changed", "overlaps", "index",
    "nonzero", "nbytes", "device", "full", "arange", "generator", "uniform", "normal", "wait", "quietly",
    "spread", "stamp", "owner", "recorded",
)  # fmt: skip
"""What a backend has beside ops, and is not counted. Ways around its ops, such as compilers, are none of a profiled backend's."""
