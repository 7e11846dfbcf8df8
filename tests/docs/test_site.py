"""The built site: links lead somewhere, nothing comes from outside, the search finds pages and functions, and a browser shows it.

The site is built once for all tests, as ``make docs`` builds it. What needs a browser runs where a Chromium is found.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import names
import numpy as np
import pytest
from pages import PAGES, ROOT

pytest.importorskip("mkdocs", reason="the site is built with the docs extra")

HOME = "https://site.test/"


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """The folder of the site. Processes of pytest-xdist share it: one of them builds, the others wait."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, log = shared / "site", shared / "site.log"
    try:
        (shared / "site.begun").mkdir()
    except FileExistsError:
        for _ in range(600):
            if log.exists():
                break
            time.sleep(0.5)
    else:
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
        environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        unfinished = shared / "site.part"
        unfinished.write_text(f"{done.returncode}\n{done.stdout}{done.stderr}", encoding="utf-8")
        unfinished.replace(log)
    said = log.read_text(encoding="utf-8")
    assert said.startswith("0\n"), said
    return folder


class Page(HTMLParser):
    """What a page links to, what it fetches, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors, self.links, self.fetched, self.titles = {""}, [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag == "link" and given.get("href") and given.get("rel") != "canonical":
            self.fetched.append(given["href"])
        self.fetched += [given[key] for key in ("src", "poster", "data") if given.get(key) and tag != "a"]
        self.titles += ["h1"] if tag == "h1" else []


@pytest.fixture(scope="session")
def built(site) -> dict[str, Page]:
    """All pages by their address."""
    return {
        HOME + path.relative_to(site).as_posix().removesuffix("index.html"): Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
        if path.name != "404.html"
    }


def test_each_page_is_built_and_has_a_title(built):
    sources = [page.relative_to(ROOT / "docs").with_suffix("").as_posix() for page in PAGES if ROOT / "docs" in page.parents]
    wanted = {HOME + ("" if name == "index" else f"{name.removesuffix('index').rstrip('/')}/") for name in sources}
    assert wanted == set(built)
    assert all(page.titles == ["h1"] for page in built.values())


def test_each_link_and_anchor_leads_somewhere(site, built):
    wrong = []
    for address, page in built.items():
        for link in page.links + page.fetched:
            goal, anchor = urldefrag(urljoin(address, link))
            if not goal.startswith(HOME):
                continue
            found = built.get(goal)
            file = site / unquote(urlsplit(goal).path.lstrip("/"))
            # ids of the theme's own buttons begin with two underscores
            if not (found or file.is_file()) or (found and not anchor.startswith("__") and unquote(anchor) not in found.anchors):
                wrong.append((address, link))
    assert not wrong
    assert sum(len(page.links) for page in built.values()) > 1000


def test_nothing_comes_from_outside(site, built):
    fetched = [(address, link) for address, page in built.items() for link in page.fetched]
    assert not [pair for pair in fetched if not urljoin(*pair).startswith((HOME, "data:"))]
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet.name


def test_the_search_has_all_pages_and_functions(site, built):
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"]: entry["title"] for entry in index["docs"]}
    assert {address.removeprefix(HOME) for address in built} <= set(found)
    missing = [path for path in names.homes() if f"functions/#{names.documented(path)}" not in found]
    assert not missing
    assert "All points" in found.values(), "sections are found as well"


# in a browser

QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-quic --disable-sync --no-first-run "
    "--disable-background-networking --disable-component-update"
).split()

SEARCH = """<!DOCTYPE html><title>search</title><iframe src="/?q=QUERY" width="1400" height="900"></iframe><pre></pre>
<script>
(async () => {
  for (let k = 0; k < 100; k++) {
    await fetch(`/wait?${k}`);
    const found = document.querySelector("iframe").contentDocument.querySelectorAll("a.md-search-result__link");
    if (found.length) { document.querySelector("pre").textContent = [...found].map(a => a.href).join("\\n"); break; }
  }
})();
</script>
"""
"""A page around the start page that waits for its search to find something. The browser's own clock does not wait for the search, which
runs beside the page, but for an answer of the server; so the server takes its time."""


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """Runs a headless Chromium with options on an address, and gives what it prints and what it logs."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("no Chromium is installed")

    def run(address: str, *options: str) -> tuple[str, str]:
        profile = f"--user-data-dir={tmp_path_factory.mktemp('profile')}"
        # names other than the site's own lead nowhere, so that what a page tries to fetch from elsewhere is an error in its log
        nowhere = "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"
        command = [path, *QUIET, profile, nowhere, "--enable-logging=stderr", "--virtual-time-budget=20000", *options, address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
        return done.stdout, done.stderr

    return run


@pytest.fixture(scope="session")
def served(site):
    """The address of the site on this machine, and the list of what was asked for and not found."""
    missing = []

    class Quiet(SimpleHTTPRequestHandler):
        def do_GET(self):
            path, _, query = self.path.partition("?")
            if path not in ("/wait", "/search.html"):
                return super().do_GET()
            time.sleep(0.2 if path == "/wait" else 0.0)
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(SEARCH.replace("QUERY", query).encode() if path == "/search.html" else b"")

        def log_message(self, format, *args):
            pass

        def send_error(self, code, message=None, explain=None):
            missing.append(self.path)
            super().send_error(code, message, explain)

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", missing
        server.shutdown()


def complaints(log: str) -> list[str]:
    """What pages wrote to the browser's console."""
    return [line for line in log.splitlines() if "CONSOLE" in line]


def test_a_browser_shows_the_start_page_without_complaints(chromium, served):
    address, missing = served
    page, log = chromium(address, "--dump-dom")
    assert re.search(r"<title>[^<]*nestgrad</title>", page) and re.search(r"<h1[^>]*>nestgrad", page)
    assert "u_xt = u_x.wrt" in re.sub(r"<[^>]+>", "", page)
    assert not complaints(log) and not missing


@pytest.mark.parametrize(("scheme", "bright"), [("1", True), ("0", False)], ids=["light", "dark"])
@pytest.mark.parametrize("width", [500, 1400])
def test_a_browser_paints_the_start_page(chromium, served, tmp_path, scheme, bright, width):
    """In both palettes and two widths: neither blank nor of the wrong brightness."""
    image = pytest.importorskip("matplotlib.image", reason="pictures are read with it")
    options = (f"--window-size={width},1000", f"--blink-settings=preferredColorScheme={scheme}", f"--screenshot={tmp_path / 'start.png'}")
    chromium(served[0], "--hide-scrollbars", "--force-device-scale-factor=1", *options)
    pixels = image.imread(tmp_path / "start.png")[..., :3]
    assert pixels.shape[:2] == (1000, width)
    body = pixels[150:]  # under the bar at the top
    assert (body.mean() > 0.7) == bright
    ink = abs(body - np.median(body, axis=(0, 1))).max(axis=2) > 0.3
    # text covers a few per cent, in many rows of the page
    assert 0.005 < ink.mean() < 0.5
    assert ink.any(axis=1).mean() > 0.3


@pytest.mark.parametrize("query", ["hessian", "logsumexp"])
def test_a_browser_finds_functions_by_the_search(chromium, served, query):
    page, log = chromium(f"{served[0]}search.html?{query}", "--dump-dom")
    found = page.partition("<pre>")[2].partition("</pre>")[0].split()
    assert any(link.endswith(f".{query}") for link in found), found
    assert not complaints(log)
