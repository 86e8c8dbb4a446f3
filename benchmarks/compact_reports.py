"""Variance, size and decoding time of compact frequency reports: pgr compared with subset-selection and hcms.

    python benchmarks/compact_reports.py [--quick]

The first table has the variance of a rare answer over that of subset-selection, which is optimal, and the bits of a
report, log2 of the number of possible ones. The second one has the process time of ten million pgr reports of a million
answers, from reports in blocks to the counts of all answers, and the peak memory of the process. `--quick` takes a
hundredth of the reports.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import ldp_budget

EPSILONS = ("1", "2", "3", "4")
ANSWERS = (100, 1024, 10**6)
REPORTS, BLOCK = 10**7, 2**16


def optimum(epsilon: str, answers: int) -> float:
    """The least variance of a rare answer: of subset selection, or of endless answers where these are many."""
    if answers <= 10**4:
        best: Any = ldp_budget.mechanism("subset-selection")(epsilon=epsilon, domain_size=answers)
        return float(best.utility()["variance_per_user"])
    odds = math.exp(float(epsilon))
    return 4 * odds / (odds - 1) ** 2


def print_variances() -> None:
    print("| ε | answers | field, dimension, hyperplanes | pgr / optimum | bits | hcms / optimum | subset bits |")
    print("| ---: | ---: | --- | ---: | ---: | ---: | ---: |")
    for epsilon in EPSILONS:
        for answers in ANSWERS:
            best, pgr = optimum(epsilon, answers), ldp_budget.mechanism("pgr")(epsilon=epsilon, domain_size=answers)
            hcms: Any = ldp_budget.mechanism("hcms")
            sketch = hcms.for_answers(epsilon, answers).utility()["variance_per_user"]
            space, size = pgr.space, max(1, round(answers / (math.exp(float(epsilon)) + 1)))  # type: ignore[attr-defined]
            cells = (
                epsilon,
                f"{answers:,}",
                f"{space.order}, {space.digits}, {space.width}",
                f"{pgr.utility()['variance_per_user'] / best:.4f}",
                f"{math.log2(space.slabs):.1f}",
                f"{sketch / best:.2f}",
                f"{math.log2(math.comb(answers, size)):.0f}",
            )
            print(f"| {' | '.join(cells)} |")


def decode(epsilon: str, reports: int) -> None:
    """In the child: prints the process time of adding up and decoding, and the peak memory."""
    pgr: Any = ldp_budget.mechanism("pgr")(epsilon=epsilon, domain_size=10**6)
    block = pgr.randomize(np.random.default_rng(1).integers(0, 10**6, BLOCK))
    start, total = process_time(), None
    for _ in range(-(-reports // BLOCK)):
        part = pgr.aggregate(block)
        total = part if total is None else total.merge(part)
    added = process_time() - start
    estimate = pgr.estimate(total)
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    assert len(estimate.counts) == 10**6
    print(f"{added:.2f} {process_time() - start - added:.2f} {int(peak.split()[1]) / 1000:.0f}")


def print_decoding(reports: int) -> None:
    print(f"\n| ε | {reports:,} reports added up, s | a million answers decoded, s | peak, MB |")
    print("| ---: | ---: | ---: | ---: |")
    for epsilon in EPSILONS:
        command = (sys.executable, __file__, "--decode", epsilon, str(reports))
        found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        print(f"| {epsilon} | {' | '.join(found)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the reports")
    parser.add_argument("--decode", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.decode:
        decode(options.decode[0], int(options.decode[1]))
        return
    print_variances()
    print_decoding(REPORTS // 100 if options.quick else REPORTS)


if __name__ == "__main__":
    main()
