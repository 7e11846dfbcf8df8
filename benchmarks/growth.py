"""The picture of how the cost of high orders grows, from the table in docs/performance.md: ``python -m benchmarks.growth``."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
PICTURE = DOCS / "pictures" / "orders.svg"


def curves(page: str) -> dict[str, list[float]]:
    """Milliseconds by order, of each column that is one."""
    table = page.partition("| k |")[2]
    names = [name.strip() for name in table.partition("\n")[0].split("|")[:3]]
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in re.findall(r"^\| \d+ \|.*$", table.partition("\n\n")[0], re.M)]
    return {name: [float(row[k]) for row in rows if row[k]] for k, name in enumerate(names, 1)}


def draw() -> None:
    """Milliseconds against the order, on logarithmic axes, with the slope of a square."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "orders"
    from matplotlib import pyplot as plt

    found = curves((DOCS / "performance.md").read_text())
    figure, axes = plt.subplots(figsize=(6, 4))
    labels = {"NumPy": "func.taylor, NumPy", "torch": "func.taylor, torch", "nested": "torch, nested backward passes"}
    for name, times in found.items():
        axes.loglog(range(1, len(times) + 1), times, "o-", label=labels[name])
    square = [found["NumPy"][0] * k * k for k in range(1, len(found["NumPy"]) + 1)]
    axes.loglog(range(1, len(square) + 1), square, ":", color="gray", label="growing with the square of the order")
    axes.set(xlabel="order of the derivative", ylabel="milliseconds", title="All derivatives up to an order, tanh net, 1,000 points")
    axes.set_xticks(range(1, len(square) + 1), [str(k) for k in range(1, len(square) + 1)])
    axes.minorticks_off()
    axes.legend()
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    draw()
