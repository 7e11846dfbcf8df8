"""Pictures of a graph: text for Graphviz and for Mermaid, and HTML for notebooks.

Names may hold any characters, so each format escapes what it would read itself.
"""

from collections import Counter
from html import escape

from nestgrad.partials.showing import Shown, View, left_out, sizes, tree

LINES = 200
"""How many lines of a tree a notebook shows."""

LEAVES = 50
"""How many leaves a notebook lists."""

_QUOTED = str.maketrans({"\\": r"\\", '"': r"\""})
_CODED = str.maketrans({c: f"#{ord(c)};" for c in "#&\"'<>|`\\"})  # Mermaid's own way to write a character by its number


def to_dot(view: View) -> str:
    """A graph in the language of Graphviz, with an arrow from each node to each that it was made of.

    Args:
        view: The nodes.

    Returns:
        A ``digraph``: leaves are ellipses, what is not supported is dashed.

    >>> print(to_dot((Shown("sin", ((2,),), (1,), True, (1,)), Shown("leaf", ((2,),), (1,), True, (), leaf=True))))
    digraph partials {
      node [shape=box];
      n0 [label="sin\\n(2,)\\nlevel 1"];
      n1 [label="leaf\\n(2,)\\nlevel 1", shape=ellipse];
      n0 -> n1;
    }
    """
    lines = ["digraph partials {", "  node [shape=box];"]
    for number, node in enumerate(view):
        label = r"\n".join(part.translate(_QUOTED) for part in (node.title(), *node.facts()))
        look = (", shape=ellipse" if node.leaf else "") + ("" if node.supported else ", style=dashed")
        lines.append(f'  n{number} [label="{label}"{look}];')
    lines += [f"  n{number} -> n{parent};" for number, node in enumerate(view) for parent in node.parents]
    return "\n".join([*lines, "}"])


def to_mermaid(view: View) -> str:
    """A graph as a flowchart of Mermaid, with an arrow from each node to each that it was made of.

    Args:
        view: The nodes.

    Returns:
        A ``flowchart``: leaves are round, what is not supported is dashed. Mermaid itself refuses more than 500 arrows unless its
        ``maxEdges`` says otherwise.

    >>> print(to_mermaid((Shown("sin", ((2,),), (1,), True, (1,)), Shown("leaf", ((2,),), (1,), True, (), leaf=True))))
    flowchart TD
      n0["sin<br/>(2,)<br/>level 1"]
      n1(["leaf<br/>(2,)<br/>level 1"])
      n0 --> n1
    """
    lines = ["flowchart TD"]
    for number, node in enumerate(view):
        label = "<br/>".join(part.translate(_CODED) for part in (node.title(), *node.facts()))
        lines.append(f'  n{number}(["{label}"])' if node.leaf else f'  n{number}["{label}"]')
    lines += [f"  n{number} --> n{parent}" for number, node in enumerate(view) for parent in node.parents]
    if dashed := [f"n{number}" for number, node in enumerate(view) if not node.supported]:
        lines += ["  classDef unsupported stroke-dasharray: 5 5", f"  class {','.join(dashed)} unsupported"]
    return "\n".join(lines)


def html(view: View) -> str:
    """A graph for notebooks: its tree, and a table of its leaves with how often each is read. No more than a screen or two of either.

    Args:
        view: The nodes.

    Returns:
        HTML without scripts and links.
    """
    leaves = [(number, node) for number, node in enumerate(view) if node.leaf]
    uses = Counter(parent for node in view for parent in node.parents)
    heads = ("leaf", "shape", *(["levels"] if any(node.levels for _, node in leaves) else []), "read")  # other libraries have none
    rows = [_row("th", heads)]
    rows += [_row("td", _leaf(number, node, uses[number], "levels" in heads)) for number, node in leaves[:LEAVES]]
    if len(leaves) > LEAVES:
        rows.append(f'<tr><td colspan="{len(heads)}">{left_out(len(leaves) - LEAVES, "leaf", "leaves")}</td></tr>')
    return "\n".join([
        "<div>", f'<pre style="line-height: 1.2">{escape(tree(view, LINES))}</pre>', "<table>", *rows, "</table>", "</div>",
    ])  # fmt: skip


def _leaf(number: int, node: Shown, uses: int, levels: bool) -> tuple[str, ...]:
    told = [", ".join(map(str, node.levels))] if levels else []
    return f"#{number}", sizes(node.shapes), *told, f"{uses} time{'' if uses == 1 else 's'}"


def _row(cell: str, texts: tuple[str, ...]) -> str:
    return f"<tr>{''.join(f'<{cell}>{escape(text)}</{cell}>' for text in texts)}</tr>"
