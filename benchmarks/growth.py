"""Pictures of how costs grow, from the tables in docs/performance.md: ``python -m benchmarks.growth``."""

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
PICTURES = DOCS / "pictures"


def rows(page: str, start: str) -> list[dict[str, str]]:
    """The rows of the first table whose header starts like that, by the names of the columns."""
    head, _, rest = page.partition(start)[2].partition("\n")
    names = [cell.strip() for cell in (start + head).split("|")[1:-1]]
    table = re.findall(r"^\| (?!---).*\|$", rest.partition("\n\n")[0], re.M)
    return [dict(zip(names, (cell.strip() for cell in row.split("|")[1:-1]), strict=True)) for row in table]


def orders(axes: Any, page: str) -> None:
    """Milliseconds against the order, on logarithmic axes, with the slope of a square."""
    table = rows(page, "| k |")
    labels = {"NumPy": "func.taylor, NumPy", "torch": "func.taylor, torch", "nested": "torch, nested backward passes"}
    for name, label in labels.items():
        found = [(int(row["k"]), float(row[name])) for row in table if row[name]]
        axes.loglog(*zip(*found, strict=True), "o-", label=label)
    ks = [int(row["k"]) for row in table]
    axes.loglog(ks, [float(table[0]["NumPy"]) * k * k for k in ks], ":", color="gray", label="growing with the square of the order")
    axes.set(xlabel="order of the derivative", ylabel="milliseconds", title="All derivatives up to an order, tanh net, 1,000 points")
    axes.set_xticks(ks, [str(k) for k in ks])


def laplacian(axes: Any, page: str) -> None:
    """Milliseconds of a Laplacian against the dimension."""
    by_dimension(axes, page.partition("Laplacian of a")[2], "pde.laplacian", "Laplacian")


def biharmonic(axes: Any, page: str) -> None:
    """Milliseconds of a biharmonic against the dimension."""
    by_dimension(axes, page.partition("Biharmonic of the")[2], "pde.biharmonic", "Biharmonic")


def by_dimension(axes: Any, part: str, ours: str, title: str) -> None:
    """Milliseconds against the dimension, from the first table of a part of the page."""
    table = [row for row in rows(part, "| d | dtype |") if row["dtype"] == "float64"]
    labels = {
        "torch.func": "torch.func, trace of hessian", "torch.autograd": "torch.autograd, pass after pass",
        "NumPy": f"{ours}, NumPy", "torch": f"{ours}, torch",
    }  # fmt: skip
    ds = [int(row["d"]) for row in table]
    for name, label in labels.items():
        axes.loglog(ds, [float(row[name]) for row in table], "o-", label=label)
    axes.set(xlabel="dimension", ylabel="milliseconds", title=f"{title} of a tanh net, 256 points, float64")
    axes.set_xticks(ds, [str(d) for d in ds])


PLOTS = {"orders": (orders,), "fields": (laplacian, biharmonic)}


def draw() -> None:
    """All pictures."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    page = (DOCS / "performance.md").read_text()
    for name, plots in PLOTS.items():
        matplotlib.rcParams["svg.hashsalt"] = name
        figure, grid = plt.subplots(1, len(plots), figsize=(6 * len(plots), 4), squeeze=False)
        for plot, axes in zip(plots, grid[0], strict=True):
            plot(axes, page)
            axes.minorticks_off()
            axes.legend()
        figure.tight_layout()
        figure.savefig(PICTURES / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    draw()
