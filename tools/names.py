"""What ops are called: by users of nestgrad, and in NumPy and PyTorch.

Where users have another name than the op table, ``tests/layout/test_names.py`` says so. In the two libraries an op is looked for under
both; ``ELSEWHERE`` has what is called otherwise there, and what has the same name and another meaning.
"""

import ast
import pkgutil
from collections.abc import Iterator
from functools import cache, reduce
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import nestgrad as ng
from nestgrad.ops import Op

ROOT = Path(__file__).resolve().parents[1]

# op, or function without one -> its name in NumPy, in PyTorch; "" where there is none, None to look for it
ELSEWHERE: dict[str, tuple[str | None, str | None]] = {
    "amax": (None, "amax"), "amin": (None, "amin"),  # torch.max gives positions as well, and its rule is another
    "clamp": ("clip", None), "permute": ("permute_dims", None), "index_add": ("add.at", None),
    "cummax": ("maximum.accumulate", None), "cummin": ("minimum.accumulate", None),
    "take_along": (None, "take_along_dim"), "set_along": (None, "scatter"), "log_sigmoid": ("scipy.special.log_expit", "F.logsigmoid"),
    "sigmoid": ("scipy.special.expit", None), "equal": (None, "eq"), "eq": (None, "eq"), "tensor": ("array", None),
    "from_numpy": ("asarray", None), "transpose": (None, "permute"), "expand_dims": (None, "unsqueeze"),
    "repeat": (None, "repeat_interleave"),
    "split": (None, "tensor_split"), "array_split": (None, "tensor_split"), "chunk": ("array_split", None), "unbind": ("unstack", None),
    "unstack": (None, "unbind"), "flatten": ("ravel", None), "broadcast_arrays": (None, "broadcast_tensors"), "select": ("take", None),
    "gather": ("take_along_axis", None), "scatter": ("put_along_axis", None), "scatter_add": ("add.at", None),
    "index_select": ("take", None), "masked_select": ("extract", None), "extract": (None, "masked_select"),
    "bucketize": ("digitize", None), "digitize": (None, "bucketize"), "logcumsumexp": ("logaddexp.accumulate", None), "kl_div": ("", None),
    "solve": (None, "linalg.solve"),  # torch.solve is a name that only raises
    "lgamma": ("scipy.special.gammaln", None), "sliding_window_view": ("lib.stride_tricks.sliding_window_view", "Tensor.unfold"),
}  # fmt: skip

# where names are looked for, and what stands before them
PLACES = {
    "numpy": {"numpy": "", "numpy.linalg": "linalg.", "numpy.fft": "fft.", "scipy.special": "scipy.special."},
    "torch": {"torch": "", "torch.nn.functional": "F.", "torch.special": "special.", "torch.linalg": "linalg.", "torch.fft": "fft."},
}


def _pairs(table: ast.Dict) -> Iterator[tuple[ast.expr, ast.expr]]:
    return ((key, value) for key, value in zip(table.keys, table.values, strict=True) if key is not None)


@cache
def _said(word: str) -> dict[str, str]:
    """A table of ``tests/layout/test_names.py``. Values that are no strings are left empty."""
    tree = ast.parse((ROOT / "tests" / "layout" / "test_names.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == word for t in node.targets):
            assert isinstance(node.value, ast.Dict)
            return {ast.literal_eval(key): value.value if isinstance(value, ast.Constant) else "" for key, value in _pairs(node.value)}
    raise LookupError(word)


def reason(op: Op) -> str:
    """Why users do not call an op; empty if they do."""
    return _said("INTERNAL").get(op.name, "")


@cache
def rooms() -> dict[str, ModuleType]:
    """Packages of functions of users, by what stands before their names: ``{"ng.": nestgrad.functions, "ng.nn.": nestgrad.nn}``."""
    return {"ng.": ng.functions} | {f"ng.{name}.": getattr(ng, name) for name in _said("ROOMS")}


@cache
def homes() -> dict[str, str]:
    """The module of each function of users, by its path: ``{"ng.sin": "nestgrad.functions.elementwise"}``."""
    found = {}
    for before, package in rooms().items():
        modules = [import_module(f"{package.__name__}.{info.name}") for info in pkgutil.iter_modules(package.__path__)]
        for name in vars(package)["__all__"]:
            found[before + name] = next(m.__name__ for m in modules if name in getattr(m, "__all__", ()))
    return found


def called(op: Op) -> str:
    """The name of users, such as ``ng.multiply``; empty where there is none."""
    name = _said("CALLED").get(op.name, op.name)
    return "" if reason(op) else next((before + name for before in rooms() if before + name in homes()), "")


def function(path: str) -> Any:
    """The function of that name, or ``None``."""
    return reduce(getattr, path.split(".")[1:], ng) if path else None


def documented(path: str) -> str:
    """Where the function is described: a second name of a function stands for the first."""
    own = function(path).__name__
    return f"{homes()[path.removesuffix(path.rpartition('.')[2]) + own]}.{own}"


def elsewhere(path: str, op: Op | None, library: str) -> str:
    """The name in a library of a function of users, which may be an op's; empty where it has none."""
    known = ELSEWHERE.get(op.name if op else path.rpartition(".")[2], (None, None))[("numpy", "torch").index(library)]
    if known is not None:
        return known
    places = list(PLACES[library].items())
    if path.startswith("ng.nn."):
        places.sort(key=lambda place: place[1] != "F.")
    for place, before in places:
        try:
            module = import_module(place)
        except ModuleNotFoundError:
            continue
        for name in dict.fromkeys((path.rpartition(".")[2], op.name if op else "")):
            if callable(getattr(module, name, None)):
                return before + name
    return ""
