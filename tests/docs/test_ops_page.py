"""``docs/ops.md`` is what the table says, and few operations go the general way on any level."""

import importlib.util
import re

import pages
import pytest

import nestgrad as ng
from nestgrad.ops import TABLE, Kind

_SPEC = importlib.util.spec_from_file_location("nestgrad_tools_ops_page", pages.ROOT / "tools" / "ops_page.py")
ops_page = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(ops_page)


def test_the_page_is_up_to_date():
    assert ops_page.PAGE.read_text(encoding="utf-8") == ops_page.page(), "the table has changed: run `python tools/ops_page.py`"


def test_every_op_is_on_the_page_once():
    found = re.findall(r"^\| `(\w+\([^`]*)` \|", ops_page.page(), re.M)
    assert sorted(found) == sorted(op.signature for op in TABLE.values())


def test_few_ops_go_the_general_way_and_no_example_calls_one():
    names = [op.name for op in ops_page.fallbacks()]
    assert len(names) <= 10
    programs = "\n".join(path.read_text(encoding="utf-8") for path in (pages.ROOT / "examples").glob("*.py"))
    assert not [name for name in names if re.search(rf"\b{name}\(", programs)]
    assert not [name for name in names if hasattr(ng, name) or hasattr(ng.Tensor, name)], "users do not call them either"


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
    """No level loops over samples: a batch of fifty costs a few operations."""

    base, sample = Watched(), op.samples.calls[0]
    arrays, params = sample.native(base)
    level = ng.Batched(base)
    xs = [base.tensor(a) if k in sample.exact else level.batch(ng.stack([base.tensor(a)] * 50)) for k, a in enumerate(arrays)]
    run = getattr(base.dressed, op.name)
    base.count = 0
    run(*(x.value for x in xs), **params)
    assert 1 <= base.count < 20
