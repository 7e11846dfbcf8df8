"""Random programs that mix levels and styles: no wrong number, and few derivatives that fit the levels raise.

``NESTGRAD_FUZZ_PROGRAMS`` and ``NESTGRAD_FUZZ_SEED`` say how many the long run runs, and from which number: ``make fuzz``.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from fuzz.ledger import detached, merged, taken_out
from fuzz.program import Program
from fuzz.run import loop, many, one, shrunk, summary
from fuzz.steps import UNARY
from fuzz.truth import Expr, add, const, cut, derivative, exact, gradient, mul, name, paired, scaled, symbol

from nestgrad.backends import TorchBackend

RUN = Path(__file__).parent / "fuzz" / "run.py"
MOST_THAT_RAISE = 0.1
"""Of the derivatives that fit (see ``fuzz/ledger.py``). Ages are coarser than the ledger; two or three in a hundred raise."""


def faulty(counts: Counter[str], faults: list[tuple[int, str]]) -> str:
    """What is wrong with the result of a run; nothing: ``""``."""
    if faults:
        seed, fault = faults[0]
        return f"{summary(counts)}\nprogram {seed}: {fault}\nsee: python tests/levels/fuzz/run.py --shrink --seed {seed}"
    rate = counts["raised although they fit"] / max(counts["derivatives that fit"], 1)
    return f"too many raise: {summary(counts)}" if rate > MOST_THAT_RAISE else ""


def test_two_hundred_random_programs_are_right():
    counts, faults = many(range(200))
    assert not faulty(counts, faults)
    assert counts["derivatives not zero"] > 700
    assert all(counts[what] > 25 for what in ("coefficients not zero", "mapped", "calls", "compiled calls that were right"))


def test_random_functions_are_on_samples_at_once_what_they_are_one_by_one():
    counts: Counter[str] = Counter()
    assert not [fault for seed in range(1, 61) if (fault := loop(seed, counts))]
    assert counts["gradients of loops"] > 40
    assert counts["loops that raised at once only"] <= 3


def test_random_programs_over_torch_are_right():
    base, counts = TorchBackend(dtype="float64"), Counter()
    for seed in range(60):
        Program(seed, counts, base=base).run()
    assert counts["derivatives not zero"] > 200


def test_the_ledger_of_a_call_counts_the_arguments_that_the_program_uses():
    """In this program a call ignores one that is lost on a level, and the derivative of the rest is still there."""
    counts: Counter[str] = Counter()
    Program(1501431, counts).run()
    assert counts["derivatives not zero"]


@pytest.mark.fuzz
def test_as_many_random_programs_as_asked_are_right(capfd: pytest.CaptureFixture[str]):
    programs, seed = int(os.environ.get("NESTGRAD_FUZZ_PROGRAMS", "2000")), int(os.environ.get("NESTGRAD_FUZZ_SEED", "0"))
    processes = min(os.cpu_count() or 1, programs)
    command = [sys.executable, str(RUN), "--json", "--every", str(processes)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    running = [
        subprocess.Popen(
            [*command, str(programs - k), "--seed", str(seed + k)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            text=True,
        )
        for k in range(processes)
    ]
    counts: Counter[str] = Counter()
    faults: list[tuple[int, str]] = []
    for process in running:
        out, errors = process.communicate()
        assert process.returncode == 0, errors
        result = json.loads(out)
        counts.update(result["counts"])
        faults += [(number, fault) for number, fault in result["faults"]]
    with capfd.disabled():
        print(f"\nfuzz: {summary(counts)}", file=sys.stderr)
    assert counts["programs"] == programs
    assert not faulty(counts, sorted(faults))


def example(x: Expr, y: Expr) -> Expr:
    """sin(x y) tanh(x) + x^3 / (e^y + cos x)."""
    return add(mul(Expr("sin", mul(x, y)), Expr("tanh", x)), Expr("/", Expr("pow", x, 3), add(Expr("exp", y), Expr("cos", x))))


def test_the_truth_knows_derivatives():
    x, y = symbol(0.7), symbol(-0.4)
    e, h = example(x, y), 1e-5
    for v, dx, dy in ((x, h, 0.0), (y, 0.0, h)):
        ahead, behind = (example(symbol(0.7 + s * dx), symbol(-0.4 + s * dy)).value() for s in (1, -1))
        # central differences in double precision: h^2 and 1e-16 / h
        assert derivative(e, v).value() == pytest.approx((ahead - behind) / (2 * h), abs=1e-9)
    assert float(exact(derivative(derivative(e, x), y))) == pytest.approx(derivative(derivative(e, y), x).value(), rel=1e-14)


def test_the_truth_differentiates_by_names_and_not_through_them():
    x = symbol(2.0)
    p = name(mul(x, x))
    e = name(mul(p, x))
    assert derivative(e, p).value() == 2.0
    assert derivative(e, x).value() == 12.0
    assert derivative(scaled(const(1.0), 3.0), x).value() == 0.0


def test_the_truth_of_a_cut_is_a_constant_for_younger_tapes_only():
    x = symbol(2.0)
    e = mul(x, cut(mul(x, x), birth=10))
    assert derivative(e, x, birth=12).value() == 4.0
    assert derivative(e, x, birth=8).value() == 12.0
    assert derivative(derivative(e, x, birth=8), x, birth=12).value() == 4.0


def test_the_truth_of_an_array_is_a_sum_over_its_entries():
    x = (symbol(2.0), symbol(3.0))
    products = tuple(mul(p, q) for p, q in paired(x, (x[0],)))  # (4, 6)
    assert [e.value() for e in gradient(products, x, None, 0.0)] == [2 * 2.0 + 3.0, 2.0]
    assert [e.value() for e in gradient(products, x, (const(1.0), const(10.0)), 0.0)] == [4.0 + 30.0, 20.0]


def test_the_ledger_follows_each_variable():
    one, two = 0b01, 0b10
    x = {1: (one | two, 0)}
    ux = taken_out(x, two)
    assert ux == {1: (one, two)}
    assert merged(x, ux) == {1: (one, two)}
    assert merged({2: (one | two, 0)}, ux) == {2: (one | two, 0), 1: (one, two)}
    assert taken_out(ux, one) == {1: (0, one | two)}
    assert detached(merged(x, ux), two) == {1: (one, 0)}
    assert detached(x, one | two) == {}


def test_a_failing_program_is_made_small(monkeypatch: pytest.MonkeyPatch):
    """With a faulty truth: what is left are the steps that the fault needs."""
    monkeypatch.setitem(UNARY, "sin", ("{}.sin()", lambda a: a.sin(), lambda e: Expr("cos", e)))
    _, faults = many(range(20))
    seed = faults[0][0]
    fault, program = shrunk(seed)
    assert fault.startswith("wrong")
    left = {int(line.split()[-1]) for line in program.log if line.startswith("# step")}
    assert 1 <= len(left) < 25
    for step in left:
        assert not one(seed, Counter(), skip=frozenset(range(25)) - left | {step})[0].startswith("wrong")
