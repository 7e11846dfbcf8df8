"""An extension of griffe, which reads docstrings for the reference: examples after ``>>>`` are shown as code, wherever they stand."""

from typing import Any

import griffe


class Examples(griffe.Extension):
    """Puts a fence around each paragraph that begins with ``>>>``. Markdown would take it for a quotation."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """``text`` with its examples in fences."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(f"```pycon\n{p}\n```" if p.startswith(">>>") else p for p in paragraphs)
