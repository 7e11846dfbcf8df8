"""Run random programs and count: ``python tests/levels/fuzz/run.py --help``."""

import argparse
import json
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.loops import Loop
from fuzz.program import Program, Wrong

LOOPS = 19
"""One loop for so many programs; a prime, so that all processes have their share."""


def one(seed: int, counts: Counter[str], steps: int = 25, skip: frozenset[int] = frozenset()) -> tuple[str, Program]:
    """Run one program. Returns what was wrong with it (nothing: ``""``), and the program."""
    program = Program(seed, counts, skip)
    try:
        program.run(steps)
    except Wrong as wrong:
        return f"wrong: {wrong}", program
    except Exception:
        return f"crash: {traceback.format_exc(limit=-4)}", program
    return "", program


def loop(seed: int, counts: Counter[str]) -> str:
    """What is wrong with ``vmap`` of one random function (nothing: ``""``)."""
    try:
        return Loop(seed, counts).fault()
    except Exception:
        return f"crash: {traceback.format_exc(limit=-4)}"


def many(seeds: range, limit_s: float = 1e9, loops: int = LOOPS) -> tuple[Counter[str], list[tuple[int, str]]]:
    """Run programs, and a loop for so many of them. Returns the counts, and the number and the fault of each failing one."""
    counts: Counter[str] = Counter()
    faults = []
    start = time.monotonic()
    for seed in seeds:
        fault, _ = one(seed, counts)
        counts["programs"] += 1
        if not fault and not seed % loops:
            fault = loop(seed, counts)
        if fault:
            counts["wrong" if fault.startswith("wrong") else "crashes"] += 1
            faults.append((seed, fault))
        if time.monotonic() - start > limit_s:
            break
    return counts, faults


def summary(counts: Counter[str]) -> str:
    """One line."""
    fit, raised = counts["derivatives that fit"], counts["raised although they fit"]
    return (
        f"{counts['programs']} programs, {counts['derivatives']} derivatives ({counts['derivatives not zero']} not zero), "
        f"{counts['loops']} loops, {counts['wrong']} wrong, {counts['crashes']} crashes, "
        f"{raised} of {fit} that fit raised ({100 * raised / max(fit, 1):.2f} %)"
    )


def shrunk(seed: int, steps: int = 25) -> tuple[str, Program]:
    """The same fault with as few steps as leaving them out one by one gets to."""
    skip: frozenset[int] = frozenset()
    fault, program = one(seed, Counter(), steps)
    kind = _kind(fault)
    again = bool(fault)
    while again:
        again = False
        for k in range(steps - 1, -1, -1):
            if k not in skip:
                f, p = one(seed, Counter(), steps, skip | {k})
                if _kind(f) == kind:
                    skip, fault, program, again = skip | {k}, f, p, True
    return fault, program


def _kind(fault: str) -> str:
    """What sort of fault it is: a wrong number, or the class of the exception."""
    return "wrong" if fault.startswith("wrong") else fault.strip().splitlines()[-1].partition(":")[0] if fault else ""


def main() -> int:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", type=int, nargs="?", default=1000)
    parser.add_argument("--seed", type=int, default=0, help="number of the first program")
    parser.add_argument("--every", type=int, default=1, help="run every k-th program, for several processes")
    parser.add_argument("--json", action="store_true", help="print counts and faults as JSON")
    parser.add_argument("--show", action="store_true", help="print the program --seed alone, as it is")
    parser.add_argument("--shrink", action="store_true", help="print the program --seed alone, with as few steps as fail")
    args = parser.parse_args()
    sys.setrecursionlimit(20_000)
    if args.show or args.shrink:
        fault, program = shrunk(args.seed) if args.shrink else one(args.seed, Counter())
        print("\n".join(program.log), "\n", fault)
        return bool(fault)
    counts, faults = many(range(args.seed, args.seed + args.programs, args.every))
    if args.json:
        print(json.dumps({"counts": counts, "faults": faults}))
        return 0
    print(summary(counts))
    for what, n in sorted(counts.items()):
        print(f"  {what}: {n}")
    for seed, fault in faults[:10]:
        print(f"program {seed}: {fault}\n  python {sys.argv[0]} --shrink --seed {seed}")
    return bool(faults)


if __name__ == "__main__":
    raise SystemExit(main())
