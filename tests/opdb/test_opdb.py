"""Values, first and second derivatives of all operations that torch's own database has, too, on all its samples in float64."""

import json
import re
import sys
import traceback
from pathlib import Path

import pytest

pytest.importorskip("expecttest", reason="torch's database of operations needs it")
pytest.importorskip("torch", reason="the database is torch's")

import torch_ops
from torch_ops.compare import BACKENDS, REFUSED, run
from torch_ops.derivatives import LeftOut, results_of
from torch_ops.exceptions import EXCEPTIONS, LIMIT
from torch_ops.forgotten import REASONS, forgotten
from torch_ops.report import PAGE, lines, op_of, plain
from torch_ops.samples import infos, samples, spread
from torch_ops.table import ADAPTERS

import nestgrad as ng

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's samples warn of all kinds of things

FEW = 3
PARTS = [(name, part) for name, adapter in ADAPTERS.items() for part in range(adapter.parts)]


@pytest.mark.opdb
@pytest.mark.parametrize(("name", "part"), PARTS, ids=[f"{name}-{part}" if ADAPTERS[name].parts > 1 else name for name, part in PARTS])
def test_every_sample_has_torchs_value_and_derivatives(name, part, record_property):
    outcome = run(name, list(range(part, len(samples(name)), ADAPTERS[name].parts)))
    record_property("opdb", plain(name, outcome))
    assert not outcome.wrong, "\n".join(outcome.wrong)
    assert outcome.passed or outcome.excepted or ADAPTERS[name].absent, f"all samples are left out: {outcome.left_out}"


def test_a_few_samples_of_each_operation_have_torchs_value_and_derivatives():
    """In one test, since the database takes seconds to load. Backends take turns."""
    outcomes = {name: run(name, spread(name, FEW), (list(BACKENDS)[k % 2],)) for k, name in enumerate(ADAPTERS)}
    wrong = [line for outcome in outcomes.values() for line in outcome.wrong]
    assert not wrong, "\n".join(wrong)


@pytest.mark.opdb
def test_each_reason_to_leave_samples_out_is_met_by_one():
    """Each line of the adapters that leaves samples out does, and each text of an error that is expected is seen."""
    left, refused = set(), set()
    stack = ng.Autodiff(ng.NumpyBackend())
    for name, adapter in ADAPTERS.items():
        for sample in samples(name):
            try:
                results_of(adapter.call, stack, sample)
            except LeftOut:
                (*_, frame, _) = traceback.extract_tb(sys.exc_info()[2])
                left.add(f"{Path(frame.filename).name}: {frame.line}")
            except (ng.errors.ShapeError, ng.errors.ArgumentError) as error:
                refused |= {words for words in REFUSED if words in str(error)}
    texts = {path.name: path.read_text(encoding="utf-8") for path in Path(torch_ops.__file__).parent.glob("*.py")}
    written = [f"{name}: {line.strip()}" for name, text in texts.items() for line in text.split("\n")]
    assert {line for line in written if re.search(r"(?<!def )\bonly\(", line)} <= left
    assert refused == set(REFUSED)


def test_no_operation_is_forgotten():
    assert not forgotten() - set(REASONS), "add these to the table of torch_ops, or to REASONS with why they cannot be compared"
    assert set(REASONS) <= forgotten(), "a reason for what is compared, or what one of the libraries lacks"
    assert set(ADAPTERS) <= set(infos()), "torch's database lacks these"


def test_each_operation_passes_somewhere():
    """All samples of an operation left out would be no check at all."""
    passed = json.loads(PAGE.read_text())
    assert {op_of(adapter.ours) for adapter in ADAPTERS.values()} == set(passed), "run `make opdb`, which writes the file anew"
    assert {op for op, count in passed.items() if not count} <= {op_of(ADAPTERS[name].ours) for name in EXCEPTIONS}


def test_exceptions_are_few_and_of_operations_in_the_table():
    assert len(EXCEPTIONS) <= LIMIT and set(EXCEPTIONS) <= set(ADAPTERS)


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_an_exception_still_is_one(name):
    """All three are found again: ours, torch's, and what is right. Ours is right, and torch's is another number."""
    different = EXCEPTIONS[name]
    found = {library: compute() for library, compute in different.point.items()}
    assert found == pytest.approx({"nestgrad": different.ours, "torch": different.torchs, "mpmath": different.right}, rel=1e-9)
    assert different.ours == pytest.approx(different.right, rel=1e-12)
    assert different.torchs != pytest.approx(different.right, rel=1e-9)


def test_a_wrong_derivative_and_a_sample_left_out_are_told():
    """The check itself: a false adapter is seen, on each backend, and what is left out is counted with its reason."""
    false = {"sin": lambda x: torch_ops.table.function("sin")(x) * (1 + 1e-6), "cos": lambda x: torch_ops.table.only(False, "no cosines")}
    before = {name: ADAPTERS[name] for name in false}
    try:
        for name, call in false.items():
            ADAPTERS[name] = torch_ops.table.Adapter(name, call)
        wrong, left = run("sin", [0]), run("cos", [0])
    finally:
        ADAPTERS.update(before)
    assert all(word in wrong.wrong[0] for word in ("torch: value", "numpy: value", "torch: first", "numpy: second"))
    assert left.left_out == {"no cosines": 1} and left.passed == 0
    told = lines([plain("sin", wrong), plain("cos", left)])
    assert "sin (sin): 0 passed; 1 WRONG" in told and "cos (cos): 0 passed; 1 left out: no cosines" in told
