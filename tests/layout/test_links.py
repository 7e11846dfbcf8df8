"""The two rooms are reached through links that git keeps as links."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("levels", "backends")
LINK_MODE = "120000"


@pytest.mark.parametrize("room", ROOMS)
def test_the_link_leads_to_the_room(room):
    link = ROOT / "src" / "nestgrad" / room
    assert link.is_symlink(), f"{link} is no symbolic link; was git allowed to make one (core.symlinks)?"
    assert link.readlink().as_posix() == f"../../{room}"
    assert (link / "__init__.py").samefile(ROOT / room / "__init__.py")


@pytest.mark.skipif(
    shutil.which("git") is None or not (ROOT / ".git").exists(), reason="not a git checkout, or no git to ask"
)
@pytest.mark.parametrize("room", ROOMS)
def test_git_keeps_the_link_as_a_link(room):
    entry = subprocess.run(
        ["git", "ls-files", "--stage", "--", f"src/nestgrad/{room}"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    mode, _hash, _stage, path = entry.split()
    assert (mode, path) == (LINK_MODE, f"src/nestgrad/{room}")


def test_no_other_links_in_the_package():
    """A third link would be a third name for something; setuptools and the type checkers know of two."""
    links = {path.name for path in (ROOT / "src" / "nestgrad").rglob("*") if path.is_symlink()}
    assert links == set(ROOMS)
