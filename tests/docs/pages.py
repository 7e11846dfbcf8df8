"""Pages of Markdown as programs: their fenced blocks, run in the order of the page.

A ``python`` block runs. If a ``text`` block follows it, that is what it has to print. A ``pycon`` block is a transcript, as in doctest.
All blocks of a page share one namespace. ``--8<-- "file"`` stands for a file of the project, as it does when the site is built.
"""

import contextlib
import doctest
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]

LANGUAGES = {"python", "pycon", "text", "sh", "toml"}
"""What a fence may say. Code of another name would not run here."""

_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```[ ]*$", re.M | re.S)
_SNIPPET = re.compile(r'^--8<-- "(?P<file>[^":]+)"$', re.M)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block: what its fence says, its text, and the line of the page on which the text begins."""

    info: str
    text: str
    line: int
    follows: bool = False  # nothing but empty lines between it and the block before


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page."""
    source, found, end = page.read_text(encoding="utf-8"), [], None
    for match in _FENCE.finditer(source):
        indent = len(match["indent"])
        text = "".join(line[indent:] if line.strip() else line for line in match["body"].splitlines(keepends=True))
        follows = end is not None and not source[end : match.start()].strip()
        found.append(Block(match["info"].strip(), text, source.count("\n", 0, match.start("body")) + 1, follows))
        end = match.end()
    return found


def prose(page: Path) -> str:
    """A page without fenced blocks and without code in its lines."""
    return re.sub(r"`[^`\n]*`", "", _FENCE.sub("", page.read_text(encoding="utf-8")))


def included(text: str) -> str:
    """The text with the files that it names in their places."""
    return _SNIPPET.sub(lambda match: (ROOT / match["file"]).read_text(encoding="utf-8").rstrip("\n"), text)


def run(page: Path) -> None:
    """Run a page.

    Raises:
        AssertionError: If something is not printed as the page says.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    here, printed = page.relative_to(ROOT).as_posix(), ""
    for block in blocks(page):
        if block.info == "python":
            with contextlib.redirect_stdout(io.StringIO()) as stdout:
                # empty lines before it, so that a traceback names the line of the page
                exec(compile("\n" * (block.line - 1) + included(block.text), here, "exec"), namespace)
            printed = stdout.getvalue()
        elif block.info == "pycon":
            _transcript(block, namespace, here)
            printed = ""
        elif block.info == "text" and block.follows and printed:
            assert printed.split() == block.text.split(), f"{here}:{block.line}: printed\n{printed}\nbut the page says\n{block.text}"


def _transcript(block: Block, namespace: dict[str, Any], here: str) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, namespace, here, here, block.line - 1)
    report = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()):
        failed = doctest.DocTestRunner(optionflags=_FLAGS).run(test, out=report.write, clear_globs=False).failed
    namespace.update(test.globs)
    assert not failed, report.getvalue()
