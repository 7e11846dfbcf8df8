"""What is built is what is in the tree, and it runs with its three dependencies alone.

Nothing here asks a package index: the build uses the setuptools of the running environment, and the empty environment
sees those that are installed through a folder of links.
"""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("levels", "backends")
RUNTIME = ("numpy", "optree", "typing_extensions")

pytest.importorskip("build", reason="the package `build` makes the sdist and the wheel")


def run(*command: str | Path, cwd: Path) -> str:
    """Run ``command`` with no path that leads back to the checkout; fail with what it printed."""
    environment = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "PYTHONHOME"}}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


def sources(room: str) -> set[str]:
    """The Python files of a room, as paths in the package."""
    return {f"nestgrad/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / room).rglob("*.py")}


@pytest.fixture(scope="module")
def sdist(tmp_path_factory) -> Path:
    # Built from a copy, with the links kept: setuptools leaves its own folders in the tree that it builds.
    tree = tmp_path_factory.mktemp("tree") / "nestgrad"
    keep_out = shutil.ignore_patterns(".*", "build", "dist", "site", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, tree, symlinks=True, ignore=keep_out)
    out = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "build", "--no-isolation", "--sdist", "--outdir", out, tree, cwd=out)
    (archive,) = out.glob("nestgrad-*.tar.gz")
    return archive


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(out, filter="data")
    (tree,) = out.glob("nestgrad-*/")
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", out, tree, cwd=out)
    (built,) = out.glob("nestgrad-*.whl")
    return built


@pytest.fixture(scope="module")
def empty_python(tmp_path_factory) -> Path:
    """The interpreter of a new environment that holds pip and the dependencies."""
    place = tmp_path_factory.mktemp("empty")
    run(sys.executable, "-m", "venv", place / "venv", cwd=place)
    python = place / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    packages = place / "packages"
    packages.mkdir()
    for name in RUNTIME:
        distribution = importlib.metadata.distribution(name)
        files = distribution.files
        assert files is not None
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            (packages / top).symlink_to(Path(str(distribution.locate_file(top))).resolve())
    scheme = sysconfig.get_path("purelib", vars={"base": str(place / "venv"), "platbase": str(place / "venv")})
    Path(scheme, "packages.pth").write_text(f"{packages}\n", encoding="utf-8")
    return python


@pytest.mark.parametrize("room", ROOMS)
def test_the_sdist_holds_the_rooms_once_and_as_files(sdist, room):
    with tarfile.open(sdist) as archive:
        members = {member.name.split("/", 1)[1]: member for member in archive if "/" in member.name}
    packed = {name.removeprefix("src/") for name in members if name.startswith(f"src/nestgrad/{room}/")}
    assert {name for name in packed if name.endswith(".py")} == sources(room)
    assert not members[f"src/nestgrad/{room}/__init__.py"].issym()


@pytest.mark.parametrize("room", ROOMS)
def test_the_wheel_holds_every_module_of_a_room(wheel, room):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in names if name.startswith(f"nestgrad/{room}/") and name.endswith(".py")} == sources(room)


def test_the_wheel_holds_the_front_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    front = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "nestgrad").rglob("*.py")}
    assert names >= front
    assert "nestgrad/py.typed" in names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"nestgrad"}


def test_the_wheel_runs_where_only_its_dependencies_are(wheel, empty_python, tmp_path):
    run(empty_python, "-m", "pip", "install", "--no-index", "--quiet", wheel, cwd=tmp_path)
    program = (
        "import sys, nestgrad, nestgrad.levels, nestgrad.backends\n"
        "print(nestgrad.__file__, nestgrad.levels.__file__, nestgrad.backends.__file__, sep='\\n')\n"
        "assert 'torch' not in sys.modules\n"
    )
    places = run(empty_python, "-c", program, cwd=tmp_path).split()
    venv = empty_python.parent.parent
    assert all(Path(place).is_relative_to(venv) for place in places), places
    listed = run(empty_python, "-m", "pip", "list", "--format=freeze", cwd=tmp_path)
    installed = {line.split("==")[0].replace("_", "-").lower() for line in listed.splitlines() if "==" in line}
    assert installed - {"pip", "setuptools", "wheel"} == {"nestgrad", "numpy", "optree", "typing-extensions"}


def test_the_wheel_announces_the_backends(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt"))
        text = archive.read(name).decode()
    assert text.split() == [
        "[nestgrad.backends]",
        *"numpy = nestgrad.backends.numpy:NumpyBackend".split(),
        *"torch = nestgrad.backends.torch:TorchBackend".split(),
    ]
