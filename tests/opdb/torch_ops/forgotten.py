"""Functions of ours with the name of an operation in torch's database: all are in the table, or here with a reason."""

from typing import Any

import nestgrad as ng
from torch_ops.samples import names
from torch_ops.table import ADAPTERS, function

REASONS = {
    "softplus": "a case of nn.softplus, which is in the table",
    "select": "NumPy's choice among several arrays; torch's is x[..., index]",
}
"""Names that mean something else in torch, or that are compared under another name."""

MODULES = ("", "nn.", "special.", "linalg.", "fft.")


def public() -> dict[str, Any]:
    """Our functions by their names, with the module's name in front: ``"nn.conv2d"``."""
    found = {}
    for prefix in MODULES:
        module = function(prefix.rstrip(".")) if prefix and hasattr(ng, prefix.rstrip(".")) else None if prefix else ng
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if callable(value) and not isinstance(value, type):
                found[prefix + name] = value
    return found


def forgotten() -> set[str]:
    """Functions that torch's database has, and that the table lacks. Another name of a function in the table is in it, too."""
    functions = public()
    covered = {functions[a.ours] for a in ADAPTERS.values() if a.ours in functions}
    return {name for name, f in functions.items() if name.rpartition(".")[2] in names() and f not in covered}
