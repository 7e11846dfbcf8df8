"""README.md and docs/ run, and agree with the project: with its links, commands, names and tests."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import tomllib

import numpy as np
import pytest
from names import homes
from pages import LANGUAGES, NAMES, PAGES, ROOT, blocks, included, prose, run

import nestgrad as ng
from nestgrad.backends.primitives import REQUIRED, Primitives

TEXTS = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
TEXT_NAMES = [text.relative_to(ROOT).as_posix() for text in TEXTS]
DOCS = ROOT / "docs"


def modules() -> list[str]:
    """All modules of the package, by their names; the rooms through the links."""
    return ["nestgrad", *sorted(m.name for m in pkgutil.walk_packages(ng.__path__, "nestgrad."))]


# code


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_a_page_runs(page, tmp_path, monkeypatch):
    code = "".join(included(block.text) for block in blocks(page) if block.info in ("python", "pycon"))
    for library in ("torch", "scipy", "mpmath"):
        if re.search(rf"^(?:>>> )?(?:import|from) {library}\b", code, re.M):
            pytest.importorskip(library, reason=f"the page uses {library}")
    monkeypatch.chdir(tmp_path)
    run(page)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_a_fence_says_what_it_holds(page):
    """So that no code stands in a page and is not run."""
    strange = [f"{block.line}: {block.info!r}" for block in blocks(page) if block.info not in LANGUAGES]
    assert not strange, f"{page.name} has fences {strange}; expected one of {sorted(LANGUAGES)}"
    assert page.read_text(encoding="utf-8").count("```") == 2 * len(blocks(page)), "a fence that is not closed, or stands within a line"
    for block in blocks(page):
        if block.info == "toml":
            tomllib.loads(block.text)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_code_fits_on_the_page(page):
    """104 columns, as the built site has without scrolling."""
    wide = [block.line + k for block in blocks(page) for k, line in enumerate(block.text.splitlines()) if len(line) > 104]
    assert not wide, f"{page.name}: lines {wide} are too long"


def test_the_pages_show_code():
    shown = {page.name for page in PAGES if any(block.info in ("python", "pycon") for block in blocks(page))}
    assert shown >= {"README.md", "tutorial.md", "levels.md", "conventions.md", "write-your-own-backend.md"}


def test_readme_ends_its_quick_start_in_assertions():
    code = [block.text for block in blocks(ROOT / "README.md") if block.info == "python"]
    assert code and all("assert" in text or "raise AssertionError" in text for text in code)


def test_the_start_page_shows_the_example_of_readme():
    assert '--8<-- "README.md:example"' in (DOCS / "index.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme[readme.index("[start:example]") : readme.index("[end:example]")]
    assert "u_xt = u_x.wrt(t)" in section


@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings_run(name):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "pytest"):
            raise
        pytest.skip(f"{error.name} is not installed")
    report: list[str] = []
    failed = 0
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        failed += doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append).failed
    assert not failed, "".join(report)


# links, commands, names


def anchors(text: str) -> set[str]:
    """Anchors of the headings of a page, as Python-Markdown makes them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


@pytest.mark.parametrize("text", TEXTS, ids=TEXT_NAMES)
def test_links_lead_somewhere(text):
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(text)):
        if target.startswith(("https://", "http://")):
            continue
        path, _, anchor = target.partition("#")
        goal = text.parent / path if path else text
        # what docstrings are anchored by is on the built site only: test_site.py
        if not goal.exists() or (anchor and not anchor.startswith("nestgrad.") and anchor not in anchors(goal.read_text(encoding="utf-8"))):
            wrong.append(target)
    assert not wrong


def test_the_site_lists_every_page():
    configuration = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"^ +- (?:.+: )?(\S+\.md)$", configuration[configuration.index("\nnav:") :], re.M)
    assert sorted(listed) == sorted(page.relative_to(DOCS).as_posix() for page in PAGES if DOCS in page.parents)


def test_the_site_fetches_nothing():
    configuration = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "font: false" in configuration
    assert "http" not in configuration and "extra_javascript" not in configuration


@pytest.mark.parametrize("text", TEXTS, ids=TEXT_NAMES)
def test_commands_of_make_are_there(text):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    shell = "\n".join(block.text for block in blocks(text) if block.info == "sh")
    lines = re.findall(r"`make ([a-z -]+)", text.read_text(encoding="utf-8")) + re.findall(r"^make ([a-z -]+)", shell, re.M)
    named = {word for line in lines for word in line.split()}
    assert named <= targets, f"the Makefile has no {named - targets}"


@pytest.mark.parametrize("text", TEXTS, ids=TEXT_NAMES)
def test_paths_are_there(text):
    source = text.read_text(encoding="utf-8")
    folders = "src|levels|backends|tests|examples|docs|benchmarks|tools"
    named = re.findall(rf"`((?:{folders})/[\w./-]*)`", source)
    assert not [path for path in named if not (ROOT / path).exists()]


def test_the_reference_has_all_public_names():
    """The page of functions is made from their modules; ``test_ops_page`` looks at it."""
    pages = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("reference.md", "functions.md"))
    documented = set(re.findall(r"^::: (\S+)$", pages, re.M))
    missing = []
    for name in ng.__all__:
        thing = getattr(ng, name)
        module = homes().get(f"ng.{name}", getattr(thing, "__module__", ""))
        places = {f"nestgrad.{name}", module, f"{module}.{name}", f"{module.rpartition('.')[0]}.{name}"}
        if inspect.ismodule(thing):
            places |= {path for path in documented if path.startswith(f"nestgrad.{name}.")}
        if not places & documented and getattr(thing, "__module__", "") != "nestgrad.backends":
            missing.append(name)
    assert not missing


def test_the_versions_of_the_comparison_are_those_of_the_constraints():
    pinned = dict(re.findall(r"^(\S+)==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.M))
    said = f"torch {'.'.join(pinned['torch'].split('.')[:2])}, JAX {pinned['jax']}"
    for page in (ROOT / "README.md", DOCS / "comparison.md"):
        text = " ".join(page.read_text(encoding="utf-8").split())
        assert said in text and f"autograd {pinned['autograd']}" in text, page.name


# what tables say


def test_the_required_methods_are_those_of_the_contract():
    expected = []
    for name in REQUIRED:
        method = getattr(Primitives, name)
        parameters = list(inspect.signature(method).parameters.values())[1:]
        signature = inspect.Signature([p.replace(annotation=inspect.Parameter.empty) for p in parameters])
        text = " ".join((inspect.getdoc(method) or "").split()).replace("``", "`")
        expected.append(f"| `{name}{signature}` | {text} |")
    source = (DOCS / "write-your-own-backend.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| `.*\|$", source, re.M)
    assert shown == expected


def claims() -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Titles of the rows of the comparison, and the cells by library and row: what ``tests/comparison`` runs."""
    folder = ROOT / "tests" / "comparison"
    given = {
        target.id: ast.literal_eval(node.value)
        for node in ast.parse((folder / "rows.py").read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    cells = {"Burn": given["BURN"]}
    for file, title in given["LIBRARIES"].items():
        tree = ast.parse((folder / f"test_{file}.py").read_text(encoding="utf-8"))
        cells[title] = {
            node.name.removeprefix("test_"): ast.get_docstring(node) or ""
            for node in tree.body
            if isinstance(node, ast.FunctionDef) and node.name.removeprefix("test_") in given["ROWS"]
        }
    return given["ROWS"], cells


def comparison(page: str) -> dict[str, dict[str, str]]:
    """The table of a page: cells by row and library."""
    source = (ROOT / page).read_text(encoding="utf-8")
    lines = [[cell.strip() for cell in line[1:-1].split("|")] for line in source.splitlines() if line.startswith("|")]
    first = next(k for k, line in enumerate(lines) if line[1:3] == ["nestgrad", "torch.autograd"])
    table = {}
    for line in lines[first + 2 :]:
        if len(line) != len(lines[first]):
            break
        table[line[0]] = dict(zip(lines[first][1:], line[1:], strict=True))
    return table


@pytest.mark.parametrize("page", ["README.md", "docs/comparison.md"])
def test_the_comparison_says_what_is_run(page):
    titles, cells = claims()
    keys = {title: key for key, title in titles.items()}
    table = comparison(page)
    assert set(table) <= set(keys), set(table) - set(keys)
    assert page == "README.md" or set(table) == set(keys)
    for title, row in table.items():
        assert row == {library: cells[library].get(keys[title], "") for library in row}
        assert set(row) == set(cells)


# speed

_SPEED = re.compile(
    r"\b\d+(?:\.\d+)? ?(?:x|×)(?![\w*])"  # 1.3 x
    r"|\b\d+(?:\.\d+)? ?(?:ns|us|µs|ms|GB/s|MB/s|GFLOPS)\b"
    r"|\b\d+(?:\.\d+)? ?% (?:faster|slower|of the time|less time|more time)"
    r"|\b(?:\d+(?:\.\d+)?|two|three|five|ten|hundred) times (?:as fast|faster|slower|as slow|the time)"
)


def test_figures_of_speed_stand_in_the_tables_of_the_performance_page():
    """One place for them, since they age. The decisions in ``docs/adr`` are exempt: they say what was known when they were taken."""
    measured = "\n".join(line for line in (DOCS / "performance.md").read_text(encoding="utf-8").splitlines() if line.startswith("|"))
    for page in PAGES:
        if page.name != "performance.md" and page.parent.name != "adr":
            strange = [figure for figure in _SPEED.findall(prose(page)) if figure not in measured]
            assert not strange, f"{page.name} says {strange}; give it in docs/performance.md, and refer to it"


@pytest.mark.parametrize("text", ["1.3 x of torch", "0.4 us per op", "5 % faster", "twice: two times faster", "12ms"])
def test_a_figure_of_speed_is_recognised(text):
    assert _SPEED.search(text)


# what is said to be there, and not to be there


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_what_is_said_to_be_missing_is_missing(page):
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    sentence = re.search(r"Not there yet: (.*?)\. ?(?:[A-Z#<]|$)", text)
    assert sentence is not None
    names = re.findall(r"`(\w+)`", sentence[1])
    places = (ng, ng.func, ng.linalg, ng.nn, ng.Tensor)
    assert names and not [name for name in names for place in places if hasattr(place, name)]


def test_functions_that_are_methods_elsewhere_are_methods_of_tensors():
    torch = pytest.importorskip("torch", reason="one of the two libraries is PyTorch")
    both = [name for name in ng.__all__ if hasattr(np.ndarray, name) and hasattr(torch.Tensor, name)]
    no_methods = {"sort"}  # it changes an array in NumPy, and gives positions as well in torch
    assert len(both) > 10 and {name for name in both if not hasattr(ng.Tensor, name)} == no_methods
