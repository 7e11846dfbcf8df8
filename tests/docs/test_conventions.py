"""The table of docs/conventions.md, computed row by row, and compared with the op table."""

import json
import math
import re
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import points
import pytest
from pages import ROOT

import nestgrad as ng
from nestgrad.ops import TABLE
from nestgrad.testing.calling import called

BACKENDS = {"numpy": ng.NumpyBackend(), "torch": ng.TorchBackend(dtype="float64")}
_ROW = re.compile(r"^\| (?P<nature>\w+) \| `(?P<code>[^`]+)` \| (?P<cells>.+) \|$", re.M)


def rows() -> list[tuple[str, str, list[str]]]:
    """Nature, code, and the five cells after it, of each row of the page."""
    source = (ROOT / "docs" / "conventions.md").read_text(encoding="utf-8")
    return [(match["nature"], match["code"], match["cells"].split(" | ")) for match in _ROW.finditer(source)]


ROWS = [pytest.param(*row, id=f"{row[1]} at {row[2][0]}") for row in rows()]


def number(cell: str) -> np.ndarray:
    """A cell as an array of float64: JSON, with ``inf`` and ``nan``."""
    return np.array(json.loads(cell.replace("inf", "Infinity").replace("nan", "NaN")), np.float64)


def computed(code: str, x: np.ndarray, base: Any) -> list[np.ndarray]:
    """The value of the code at ``x``, and three derivatives by ``x``."""
    levels = ng.Autodiff(ng.Autodiff(ng.Autodiff(base)))
    x = levels.tensor(x, requires_grad=True)
    ops = SimpleNamespace(**{name: partial(called, op) for name, op in TABLE.items()})
    names = {"ng": ng, "x": x, "const": partial(base.tensor, dtype="float64"), "b": ops, "inf": math.inf, "nan": math.nan}
    with np.errstate(all="ignore"):
        found = [eval(code, names)]
        for _ in range(3):
            found.append(found[-1].wrt(x))
    return [y.numpy() for y in found]


def test_the_rows_are_found():
    assert len(ROWS) == len(points.rows()) > 40
    assert len({(row[1], row[2][0]) for row in rows()}) == len(ROWS), "a point stands twice"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("nature, code, cells", ROWS)
def test_a_row_is_what_is_computed(nature, code, cells, backend):
    for order, (got, cell) in enumerate(zip(computed(code, number(cells[0]), BACKENDS[backend]), cells[1:], strict=True)):
        if cell == "–":
            continue
        if cell == "none":
            assert not np.isfinite(got).any(), f"order {order}"
            continue
        # a few roundings; in the tails, relative to what is tiny
        np.testing.assert_allclose(got, number(cell), rtol=1e-14, atol=0.0, err_msg=f"order {order}")


@pytest.mark.parametrize("nature, code, cells", [row for row in ROWS if row.values[0] in ("jump", "kink", "smooth") and "[" not in row.id])
def test_a_kink_is_one_and_a_smooth_point_is_none(nature, code, cells):
    """By what the function does on both sides: it, or a derivative, is another, or none is. A jump is one of its own."""
    left, right = (computed(code, number(cells[0]) + step, BACKENDS["numpy"]) for step in (-1e-6, 1e-6))
    # a smooth function changes by the step times the next derivative
    differs = [abs(a - b) > 1e-4 * (1 + max(abs(a), abs(b))) for a, b in zip(left, right, strict=True)]
    assert any(differs) == (nature != "smooth") and differs[0] == (nature == "jump")


def test_the_page_has_all_special_points_of_ops_that_users_call():
    """Their derivatives are those of the op table: digit by digit, and *none* is no finite number."""
    shown = {(code, cells[0]): cells[2:] for _, code, cells in rows()}
    for row in points.stated():
        for cell, want in zip(shown[row.code, row.x], row.derivatives, strict=True):
            assert cell == want or (want in ("none", "–") and not np.isfinite(number(cell))), row
