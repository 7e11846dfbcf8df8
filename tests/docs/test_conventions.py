"""The tables of docs/conventions.md, computed row by row."""

import json
import re
from functools import partial

import numpy as np
import pytest
from pages import ROOT

import nestgrad as ng

BACKENDS = {"numpy": ng.NumpyBackend(), "torch": ng.TorchBackend(dtype="float64")}
_ROW = re.compile(r"^\| `(?P<code>[^`]+)` \| (?P<cells>.+) \|$", re.M)


def rows() -> list[tuple[str, list[str]]]:
    """Code, and the five cells after it, of each row that has five."""
    found = []
    for match in _ROW.finditer((ROOT / "docs" / "conventions.md").read_text(encoding="utf-8")):
        cells = [cell.strip() for cell in match["cells"].split(" | ")]
        if len(cells) == 5:
            found.append((match["code"], cells))
    return found


def number(cell: str) -> np.ndarray:
    """A cell as an array of float64: JSON, with ``inf`` and ``nan``."""
    return np.array(json.loads(cell.replace("inf", "Infinity").replace("nan", "NaN")), np.float64)


def test_the_tables_are_found():
    assert len(rows()) > 40


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("code, cells", [pytest.param(*row, id=f"{row[0]} at {row[1][0]}") for row in rows()])
def test_a_row_is_what_is_computed(code, cells, backend):
    base = BACKENDS[backend]
    x = ng.Autodiff(ng.Autodiff(ng.Autodiff(base))).tensor(number(cells[0]), requires_grad=True)
    with np.errstate(all="ignore"):
        derivative = eval(code, {"ng": ng, "x": x, "const": partial(base.tensor, dtype="float64")})
        for order, cell in enumerate(cells[1:]):
            derivative = derivative if order == 0 else derivative.wrt(x)
            # a few roundings; in the tails, relative to what is tiny
            np.testing.assert_allclose(derivative.numpy(), number(cell), rtol=1e-14, atol=0.0, err_msg=f"order {order}")
