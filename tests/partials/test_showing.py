"""What is shown of a graph: its text tells the graph, no more and no less, and keeps none of it alive."""

import random
import re
import weakref
from collections import Counter
from functools import partial
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

import nestgrad as ng
from nestgrad.backends import NumpyBackend
from nestgrad.errors import BackendError, NotTrackedError
from nestgrad.levels import Autodiff
from nestgrad.partials.picture import html, to_dot, to_mermaid
from nestgrad.partials.showing import WIDEST, Shown, tree, view

TWO = Autodiff(Autodiff(NumpyBackend()))


each = pytest.mark.parametrize("make", [partial(of, requires_grad=True) for of in (TWO.tensor, torch.tensor)], ids=["ours", "torch"])


class Doubled(torch.autograd.Function):
    """Somebody's own function of torch, with two results."""

    @staticmethod
    def forward(ctx, x):
        ctx.variable = x  # what a leaf's node is told by elsewhere
        return 2 * x, x + 1

    @staticmethod
    def backward(ctx, g, h):
        return 2 * g + h


def unsupported(*names):
    return lambda kind: getattr(kind, "__name__", kind) not in names


def tensors():
    x = TWO.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    return x, TWO.tensor([3.0, 4.0], requires_grad=True)


# trees


def test_a_tree_of_ours():
    x, w = tensors()
    u = ng.tanh(x @ w)
    z = (u * u.sin() + w).sum()
    assert tree(view(z, unsupported("sin"))) == (
        "sum () level 2\n"
        "add (2,) level 2\n"
        "├─ mul (2,) level 2\n"
        "│  ├─ tanh #3 (2,) level 2\n"
        "│  │  vecmat (2,) level 2\n"
        "│  │  ├─ leaf #5 (2,) level 2\n"
        "│  │  └─ leaf #6 (2, 2) level 2\n"
        "│  └─ sin (2,) level 2 (not supported)\n"
        "│     merge: tanh #3\n"
        "└─ merge: leaf #5"
    )


def test_a_derivative_is_shown_on_the_level_that_is_left():
    x, w = tensors()
    assert tree(view(ng.tanh(x @ w).wrt(w))) == (
        "derivative (2,) level 1\n"
        "vecmat (2,) level 1\n"
        "├─ tanh_vjp (2,) level 1\n"
        "│  tanh (2,) level 1\n"
        "│  vecmat (2,) level 1\n"
        "│  ├─ leaf #5 (2,) level 1\n"
        "│  └─ leaf #6 (2, 2) level 1\n"
        "└─ merge: leaf #6"
    )


def test_edges_that_pass_nothing_are_not_shown():
    x = Autodiff(Autodiff(NumpyBackend())).tensor([1.0, 2.0], requires_grad=True)
    assert tree(view((3.0 * x).wrt(x))) == "derivative (2,) level 1"


def test_results_of_one_op_share_it():
    x, _ = tensors()
    assert tree(view(ng.linalg.slogdet(x).logabsdet, unsupported("slogdet"))) == (
        "slogdet[1] () level 2\n"
        "slogdet level 2 (not supported)\n"
        "leaf #2 (2, 2) level 2"
    )


def test_a_freed_node_says_so():
    x = Autodiff(NumpyBackend()).tensor([1.0, 2.0], requires_grad=True)
    y = x.sin()
    z = (y * y).sum()
    z.backward(wrt=[x], retain_graph=False)
    assert tree(view(z)) == "sum () level 1 (freed)"


def test_a_tree_of_torch():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
    u = torch.tanh(x) * 2.0 + torch.ones(2)  # constants have no nodes
    z = (u * u.sin().cumsum(0)).sum()
    assert tree(view(z, unsupported("CumsumBackward0"))) == (
        "SumBackward0 ()\n"
        "MulBackward0 (3, 2)\n"
        "├─ AddBackward0 #2 (3, 2)\n"
        "│  MulBackward0 (3, 2)\n"
        "│  TanhBackward0 (3, 2)\n"
        "│  leaf #5 (3, 2)\n"
        "└─ CumsumBackward0 (3, 2) (not supported)\n"
        "   SinBackward0 (3, 2)\n"
        "   merge: AddBackward0 #2"
    )


def test_several_results_and_functions_of_somebody_else_on_torch():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    a, b = Doubled.apply(x)
    p, q = torch.unbind(a * b)
    assert tree(view(p * q, unsupported("DoubledBackward"))) == (
        "MulBackward0 ()\n"
        "├─ UnbindBackward0 #1 () x 2\n"
        "│  MulBackward0 (2,)\n"
        "│  ├─ DoubledBackward #3 (2,) x 2 (not supported)\n"
        "│  │  leaf #4 (2,)\n"
        "│  └─ merge: DoubledBackward #3\n"
        "└─ merge: UnbindBackward0 #1"
    )
    values, _ = torch.linalg.qr(torch.eye(3, 2).requires_grad_())
    assert tree(view(values)) == "LinalgQrBackward0 (3, 2), (2, 2)\nleaf #1 (3, 2)"


def test_support_is_asked_for_by_the_type_of_a_torch_node():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.sin()
    asked = []
    view(y, lambda kind: asked.append(kind) or True)
    assert asked == [type(y.grad_fn)]


@each
def test_a_variable_alone_is_a_leaf(make):
    assert tree(view(make([[1.0, 2.0, 3.0]]))).removesuffix(" level 2") == "leaf #0 (1, 3)"


def test_what_has_no_graph_is_refused():
    with pytest.raises(NotTrackedError, match=r"view: got a Tensor that no level tracks; expected .*because.*Try stack.tensor"):
        view(ng.tensor([1.0]))
    for data in (torch.ones(2), np.ones(2), 3.0):
        with pytest.raises(BackendError, match=rf"recorded: .* knows of no graph under a {type(data).__name__}; expected .*because.*Try"):
            view(data)


# laws


def drawn(seed, count):
    """A random graph in which each node is read by an earlier one."""
    rng = random.Random(seed)
    parents = [[] for _ in range(count)]
    for k in range(1, count):
        parents[max(0, k - 1 - int(rng.expovariate(0.5)))].append(k)
    for _ in range(count // 2):
        j = rng.randrange(count - 1)
        parents[j].append(rng.randrange(j + 1, count))
    for operands in parents:
        rng.shuffle(operands)
    return tuple(Shown(f"op{k}", ((k,),), (1,), bool(k % 3), tuple(p), leaf=not p) for k, p in enumerate(parents))


def read_back(text):
    """The operands of each node, by what a reader makes of a tree: names and columns."""
    found = {}
    at = {}  # what stands last in each column
    above = None
    for line in text.split("\n"):
        if not line:
            above = None
            continue
        start = re.search(r"[^ │├└─]", line).start()
        words = line[start:].split()
        name = words[1] if words[0] in ("merge:", "below:") else words[0]
        if start and line[start - 3] in "├└":
            found[at[start - 3]].append(name)
        elif above is not None:
            assert above[0] == start
            found[above[1]].append(name)
        if words[0] == name:
            assert name not in found, "shown twice"
            found[name] = []
            at[start], above = name, (start, name)
        else:
            assert f" #{name.removeprefix('op')}" in line
            above = None
    return found


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("count", [2, 7, 60, 400])
def test_a_tree_tells_the_graph(seed, count):
    shown = drawn(seed, count)
    text = tree(shown)
    assert read_back(text) == {node.name: [f"op{k}" for k in node.parents] for node in shown}
    lines = re.findall(r"^[│├└─ ]*op(\d+)(?: #\1)? \(\1,\) level 1( \(not supported\))?$", text, re.MULTILINE)
    assert sorted((int(k), bool(mark)) for k, mark in lines) == [(k, not node.supported) for k, node in enumerate(shown)]
    assert max(map(len, text.splitlines())) < WIDEST + 50


def test_numbers_of_merges_are_told_where_they_lead():
    text = tree(drawn(5, 400))
    assert "merge: " in text and "below: " in text
    for number in re.findall(r"(?:merge|below): op\d+ #(\d+)", text):
        assert re.search(rf"(^|[ ─])op{number} #{number} ", text, re.MULTILINE)


@each
def test_deep_graphs_are_shown_in_linear_size(make):
    y = x = make([1.0])
    for _ in range(10_000):
        y = y.sin()
    shown = view(y)
    lines = tree(shown).splitlines()
    assert len(lines) == len(shown) == 10_001
    assert {len(line) for line in lines[:-1]} == {len(lines[0])}
    text = {}
    for n in (500, 1000):
        y = x
        for _ in range(n):
            y = y.sin() + y / 2.0
        text[n] = tree(view(y))
        assert max(map(len, text[n].splitlines())) < WIDEST + 50
    assert len(text[1000]) < 2.2 * len(text[500])  # 2, and a digit more in some numbers


@each
def test_what_is_shown_is_the_same_each_time_and_keeps_nothing_alive(make):
    def once():
        x = make([1.0, 2.0])
        y = (x * x.tanh()).sum() / 3.0
        shown = view(y)
        return shown, weakref.ref(x)

    shown, leaf = once()
    again, _ = once()
    assert leaf() is None
    for say in (tree, to_dot, to_mermaid, html):
        assert say(shown) == say(again)
        assert "0x" not in say(shown)


# pictures

ODD = 'a"b\\c<i>&|`#9;\n\'d'
NAMED = (Shown(ODD, ((2,),), (1, 2), False, (1, 1)), Shown("leaf", ((),), (1, 2), True, (), leaf=True))


def dot_graph(text):
    """Labels and arrows of a ``digraph``, read by its grammar."""
    statement = r'n(\d+) \[label="((?:[^"\\\n]|\\.)*)"(?:, \w+=\w+)*\];|n(\d+) -> n(\d+);|node \[\w+=\w+\];'
    lines = text.split("\n")
    assert lines[0] == "digraph partials {"
    assert lines[-1] == "}"
    labels, arrows = {}, []
    for line in lines[1:-1]:
        match = re.fullmatch("  (?:" + statement + ")", line)
        assert match, line
        if match[1]:
            labels[int(match[1])] = re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], match[2])
        elif match[3]:
            arrows.append((int(match[3]), int(match[4])))
    return labels, arrows


def mermaid_graph(text):
    """Labels and arrows of a flowchart, and the names of its nodes that are dashed."""
    statement = r'n(\d+)\(?\["([^"]*)"\]\)?|n(\d+) --> n(\d+)|class ([n\d,]+) unsupported|classDef unsupported [\w :-]+'
    lines = text.split("\n")
    assert lines[0] == "flowchart TD"
    labels, arrows, dashed = {}, [], set()
    for line in lines[1:]:
        match = re.fullmatch("  (?:" + statement + ")", line)
        assert match, line
        if match[1]:
            assert not re.search(r"[<>|`\\&']", match[2].replace("<br/>", ""))
            labels[int(match[1])] = re.sub(r"#(\d+);", lambda found: chr(int(found[1])), match[2].replace("<br/>", "\n"))
        elif match[3]:
            arrows.append((int(match[3]), int(match[4])))
        elif match[5]:
            dashed = {int(name[1:]) for name in match[5].split(",")}
    return labels, arrows, dashed


@pytest.mark.parametrize("shown", [NAMED, drawn(3, 40)], ids=["odd names", "random"])
def test_pictures_tell_the_graph(shown):
    arrows = [(k, parent) for k, node in enumerate(shown) for parent in node.parents]
    labels = {k: "\n".join([" ".join(node.name.split()), *node.facts()]) for k, node in enumerate(shown)}
    assert dot_graph(to_dot(shown)) == (labels, arrows)
    assert mermaid_graph(to_mermaid(shown)) == (labels, arrows, {k for k, node in enumerate(shown) if not node.supported})


def test_a_picture_marks_leaves_and_what_is_not_supported():
    assert to_dot(NAMED).splitlines()[2:4] == [
        '  n0 [label="a\\"b\\\\c<i>&|`#9; \'d\\n(2,)\\nlevels 1, 2\\n(not supported)", style=dashed];',
        '  n1 [label="leaf\\n()\\nlevels 1, 2", shape=ellipse];',
    ]
    assert to_mermaid(NAMED).splitlines()[2] == '  n1(["leaf<br/>()<br/>levels 1, 2"])'


class Page(HTMLParser):
    """The tags of a page, which must be balanced, and its text by tag."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], Counter(), {}
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags[tag] += 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.setdefault(self.open[-1] if self.open else "", []).append(data)


def test_a_notebook_shows_the_tree_and_the_leaves():
    page = Page(html(NAMED))
    assert set(page.tags) == {"div", "pre", "table", "tr", "th", "td"}
    assert "".join(page.text["pre"]) == tree(NAMED)
    assert page.text["td"] == ["#1", "()", "1, 2", "2 times"]


def test_a_notebook_is_told_what_is_left_out():
    chain = tuple(Shown("sin", (), (), True, (k + 1,)) for k in range(1234)) + (Shown("leaf", (), (), True, (), leaf=True),)
    page = Page(html(chain))
    assert "".join(page.text["pre"]).splitlines()[-2:] == ["sin", "... 1,035 nodes left out"]
    wide = (Shown("concat", (), (), True, tuple(range(1, 52))), *[Shown("leaf", (), (), True, (), leaf=True)] * 51)
    page = Page(html(wide))
    assert "".join(page.text["pre"]) == tree(wide)
    assert page.text["th"] == ["leaf", "shape", "read"], "levels are told of what is on levels"
    assert page.text["td"][-1] == "... 1 leaf left out"
    assert page.tags["tr"] == 52
