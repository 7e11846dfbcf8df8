"""Pages and tables that are made from the op table are up to date, and few operations go the general way on any level."""

import importlib
import json
import re
from functools import reduce

import names
import ops_page
import pages
import pytest

import nestgrad as ng
from nestgrad.ops import TABLE, Kind


@pytest.mark.parametrize("name", ops_page.PAGES)
def test_a_page_is_up_to_date(name):
    pytest.importorskip("torch", reason="the pages say where torch has a kernel")
    pytest.importorskip("scipy", reason="the pages name functions of SciPy")
    shown = (ops_page.DOCS / name).read_text(encoding="utf-8")
    assert shown == ops_page.PAGES[name](), "the table has changed: run `python tools/ops_page.py`"


@pytest.mark.parametrize("name", ["ops.md", "ops-on-levels.md"])
def test_every_op_is_on_the_page_once(name):
    found = re.findall(r"^\|(?: \[[^|]*\) \|)? `(\w+\([^`]*)` \|", ops_page.PAGES[name](), re.M)
    assert sorted(found) == sorted(op.signature for op in TABLE.values())


def test_every_function_of_users_is_on_the_page_of_functions_and_on_that_of_ops():
    ops = ops_page.ops()
    documented = re.findall(r"^::: (\S+)$", ops_page.functions(), re.M)
    for path, module in names.homes().items():
        assert f"[`{path}`](functions.md#{names.documented(path)})" in ops and module in documented


@pytest.mark.parametrize("name", names.ELSEWHERE)
def test_what_is_called_otherwise_elsewhere_is_there(name, monkeypatch):
    """And is needed: something else, or nothing, is found without the entry."""
    own = [(path, None) for path in names.homes() if path.rpartition(".")[2] == name]
    own = [(names.called(TABLE[name]), TABLE[name])] if name in TABLE and names.called(TABLE[name]) else own
    assert own, "there is no such op or function"
    said = {library: names.elsewhere(*own[0], library) for library in ("numpy", "torch")}
    stated = dict(zip(said, names.ELSEWHERE[name], strict=True))
    monkeypatch.setattr(names, "ELSEWHERE", {})
    for library, found in said.items():
        assert stated[library] is None or names.elsewhere(*own[0], library) != found, f"found as {found} without the entry"
        if found:
            first, _, rest = found.partition(".")
            module, path = {"F": ("torch.nn.functional", rest), "scipy": ("scipy", rest)}.get(first, (library, found))
            if path.startswith("special."):
                importlib.import_module(f"{module}.special")
            assert callable(reduce(getattr, path.split("."), importlib.import_module(module)))


def test_samples_that_passed_belong_to_functions_or_ops_of_the_page():
    passed = json.loads(ops_page.PASSED.read_text(encoding="utf-8"))
    shown = {path.rpartition(".")[2] for path in names.homes()} | {op.name for op in TABLE.values() if not names.reason(op)}
    users = {name for name in passed if name not in TABLE or not names.reason(TABLE[name])}
    assert not {name for name in users - shown if not hasattr(ng.Tensor, name)}


FALLBACKS = 14
"""One-kernel forms of other ops: ``mul_add``, ``triple``, and rules of activations, quotients and powers, for which parts do as well."""


def test_few_ops_go_the_general_way_and_no_example_calls_one():
    found = [op.name for op in ops_page.fallbacks()]
    assert len(found) <= FALLBACKS, "one more than there were: give it a rule for batches, or say here that it needs none"
    programs = "\n".join(path.read_text(encoding="utf-8") for path in (pages.ROOT / "examples").glob("*.py"))
    assert not [name for name in found if re.search(rf"\b{name}\(", programs)]
    assert not [name for name in found if hasattr(ng, name) or hasattr(ng.Tensor, name)], "users do not call them either"


class Watched(ng.NumpyBackend):
    """It counts calls of its methods, those among each other as well."""

    count = 0

    def __getattribute__(self, name):
        method = super().__getattribute__(name)
        if name not in TABLE:
            return method

        def counted(*args, **kwargs):
            self.count += 1
            return method(*args, **kwargs)

        return counted


@pytest.mark.parametrize("op", [op for op in TABLE.values() if op.kind is not Kind.COMPOSITE], ids=lambda op: op.name)
def test_a_batch_is_one_call_of_the_op(op):
    """No level loops over samples: fifty cost as many operations as one, and up to seven that arrange them."""
    base, sample = Watched(), op.samples.calls[0]
    arrays, params = sample.native(base)
    level = ng.Batched(base)
    xs = [base.tensor(a) if k in sample.exact else level.batch(ng.stack([base.tensor(a)] * 50)) for k, a in enumerate(arrays)]
    run = getattr(base.dressed, op.name)
    base.count = 0
    run(*(base.asarray(a) for a in arrays), **params)
    one, base.count = base.count, 0
    run(*(x.value for x in xs), **params)
    assert 1 <= base.count <= one + 7
