"""Plant faults in a copy of the tree and run its tests: each fault must fail a unit or integration test.

    python tools/mutants.py                     # all rooms; about a minute for a fault
    python tools/mutants.py composition ledger  # these rooms
    python tools/mutants.py --only NAME         # one fault

The tests of the room run first, then those of the rooms that use it. A fault that no test finds makes the exit code 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
CODE = ("accountant", "plugins", "cli", "service")

ROOMS = {
    "composition": ("unit/composition", "unit/accounting", "integration/composition"),
    "accounting": ("unit/accounting", "unit/ledger", "unit/cli", "integration/accounting", "integration/ledger"),
    "ledger": ("unit/ledger", "unit/accounting", "unit/simulation", "integration/ledger", "integration/accounting"),
    "sdk": ("unit/sdk", "unit/plugins", "unit/verification", "integration/sdk", "integration/plugins"),
}
"""The folders of tests to run for a room, in order."""


class Mutant(NamedTuple):
    """A fault: `old` occurs once in `file`, a path in accountant/ldp_budget, and is replaced with `new`."""

    name: str
    file: str
    old: str
    new: str


MUTANTS = (
    # -- composition
    Mutant("count-ignored", "composition/rules.py", "UP.add(total, UP.multiply(each, count))", "UP.add(total, each)"),
    Mutant(
        "delta-overdrawn", "composition/rules.py", "        if spent > delta:\n", "        if spent > 2 * delta:\n"
    ),
    Mutant(
        "values-one-short",
        "composition/rules.py",
        "curve=(guarantee.cap,)), guarantee.values",
        "curve=(guarantee.cap,)), guarantee.values - 1",
    ),
    Mutant("copies-counted-once", "composition/rules.py", "reports *= guarantee.count", "reports *= 1"),
    Mutant(
        "aside-not-subtracted",
        "composition/filters.py",
        "left = DOWN.subtract(delta, aside)\n    if",
        "left = delta\n    if",
    ),
    Mutant(
        "rest-counted-twice",
        "composition/filters.py",
        "return UP.add(_log_of_rest_up(excess), UP.divide(UP.minus(logs), excess))",
        "return UP.add(_log_of_rest_up(excess), UP.add(_log_of_rest_up(excess), UP.divide(UP.minus(logs), excess)))",
    ),
    Mutant(
        "worst-order",
        "composition/filters.py",
        "<= _epsilon(charges, delta, ORDERS[middle + 1])",
        ">= _epsilon(charges, delta, ORDERS[middle + 1])",
    ),
    Mutant(
        "capacity-one-too-large",
        "composition/rules.py",
        "low, high = (middle, high) if holds(middle) else (low, middle)\n    return low",
        "low, high = (middle, high) if holds(middle) else (low, middle)\n    return high",
    ),
    Mutant(
        "contradicting-point-believed",
        "composition/pld.py",
        "if basic is not None and float_up(basic) >= lower:",
        "if basic is not None:",
    ),
    Mutant(
        "blanket-of-one-user-more",
        "composition/shuffle_amplification.py",
        "math.log(unit / self.users))",
        "math.log(unit / (self.users + 1)))",
    ),
    # -- accounting
    Mutant("limit-off-by-one", "accounting/limits.py", "or used + each > most:", "or used + each > most + 1:"),
    Mutant(
        "room-one-larger",
        "accounting/admission.py",
        "-1 if cost is None else most - cost",
        "-1 if cost is None else most - cost + 1",
    ),
    Mutant(
        "key-conflict-ignored",
        "accounting/engine.py",
        "if stored.request_digest != request.key.request_digest:",
        "if False:",
    ),
    Mutant(
        "digest-without-reports",
        "accounting/charge_request.py",
        "(*self.charge.identity, self.reports, self.label,",
        "(*self.charge.identity, self.label,",
    ),
    Mutant(
        "share-not-counted",
        "accounting/engine.py",
        "if window.counts(terms.share)]\n        transaction",
        "if window.counts(0)]\n        transaction",
    ),
    Mutant(
        "erased-user-starts-again",
        "accounting/admission.py",
        "ERASED_USER if account.erased else terms.why",
        "terms.why",
    ),
    Mutant("quota-not-stored", "accounting/admission.py", "account.quota_used += reports", "account.quota_used += 0"),
    Mutant(
        "own-approval-counts",
        "accounting/policy_approval.py",
        "(kind == APPROVED and by == before.by)",
        "(kind == APPROVED and by is None)",
    ),
    Mutant(
        "rule-of-a-charged-limit-changes",
        "accounting/policy_versions.py",
        "            _check_limits(earlier, proposed)\n",
        "            pass\n",
    ),
    Mutant(
        "expired-reservation-is-voided",
        "accounting/reservations.py",
        "    if state == RESERVED and transaction.is_over(entry):\n",
        "    if False:\n",
    ),
    # -- ledger
    Mutant(
        "records-not-flushed",
        "ledger/transaction.py",
        "            self.rows.add_idempotency_records(self._records.values())\n",
        "",
    ),
    Mutant(
        "stale-cache", "ledger/transaction.py", "mine is not None and mine.known == end.known", "mine is not None"
    ),
    Mutant(
        "chain-without-the-hash-before",
        "ledger/hash_chain.py",
        'return before + f"[[{entries}]',
        'return f"[[{entries}]',
    ),
    Mutant(
        "window-of-tomorrow",
        "ledger/calendar.py",
        "starts, ends = day, day + timedelta(days=1)",
        "starts, ends = day, day + timedelta(days=2)",
    ),
    Mutant(
        "weeks-start-on-sunday",
        "ledger/calendar.py",
        "timedelta(days=day.weekday())",
        "timedelta(days=(day.weekday() + 1) % 7)",
    ),
    Mutant(
        "clock-trusted-too-long",
        "ledger/calendar.py",
        "TOLERANCE_MICROS = 5_000_000",
        "TOLERANCE_MICROS = 50_000_000",
    ),
    Mutant(
        "changed-account-charged",
        "ledger/row_macs.py",
        "elif self._mac_of(maker, account, today) == row_mac:",
        "elif True:",
    ),
    Mutant(
        "changed-policy-used",
        "ledger/transaction.py",
        "if len(stored) != self._policies or any(row_mac(*policy.covered) != policy.row_mac for policy in stored):",
        "if len(stored) != self._policies:",
    ),
    Mutant("erased-labels-kept", "ledger/account_sums.py", "                    or erased\n", ""),
    Mutant(
        "backfill-misses-the-newest",
        "ledger/window_backfill.py",
        "reading.rows.entries(self._until + 1, newest)",
        "reading.rows.entries(self._until + 2, newest)",
    ),
    # -- sdk
    Mutant(
        "interval-of-half-the-level",
        "sdk/confidence_intervals.py",
        "beyond = (1 - level) / 2\n    low = float",
        "beyond = 1 - level\n    low = float",
    ),
    Mutant(
        "tail-of-one-more",
        "sdk/confidence_intervals.py",
        "others if upper else others + 1",
        "others if upper else others",
    ),
    Mutant(
        "skewness-forgotten",
        "sdk/confidence_intervals.py",
        "rare = width * (0.5 + max(0.0, z * z - 1) / 6) / reports",
        "rare = width * 0.5 / reports",
    ),
    Mutant(
        "norm-sub-keeps-too-few",
        "sdk/consistency.py",
        "np.nonzero(falling > excess)[0][-1]",
        "np.nonzero(falling > excess)[0][0]",
    ),
    Mutant("squares-not-merged", "sdk/estimates.py", "        self.total_squares += other.total_squares\n", ""),
    Mutant(
        "worst-share-of-the-rare",
        "sdk/frequency_oracle.py",
        "max(float(law.at_zero.max()), float(law.at_one.max()))",
        "float(law.at_zero.max())",
    ),
    Mutant("one-bit-too-few", "sdk/frequency_oracle.py", "ways / math.log(2) - 1e-6", "ways / math.log(2) - 1"),
    Mutant(
        "hash-shares-of-width-one",
        "sdk/linear_hashing.py",
        "(1 - same) * Fraction(k - 1, q - 1)",
        "(1 - same) * Fraction(k, q)",
    ),
    Mutant(
        "outside-inside-exchanged",
        "sdk/linear_hashing.py",
        '["where", "kept", "inside", ',
        '["where", "kept", "outside", ',
    ),
    Mutant("polynomial-that-is-reducible", "sdk/linear_hashing.py", "8: 0b1011", "8: 0b1001"),
)


def tests_of(tree: Path, tests: str) -> int:
    """Run a folder of tests; return pytest's exit code."""
    folder = tree / "tests" / tests
    if not folder.is_dir():
        return 5
    paths = os.pathsep.join(str(tree / each) for each in CODE)
    environment = {**os.environ, "PYTHONPATH": paths}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "2", "-p", "no:cacheprovider", str(folder)]
    return subprocess.run(
        command, cwd=tree, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ).returncode


def room_of(mutant: Mutant) -> str:
    """The room that a fault is in."""
    return mutant.file.partition("/")[0]


def find(tree: Path, mutant: Mutant) -> str | None:
    """Plant a fault in the tree, and remove it; return the folder of the first test that fails."""
    file = tree / "accountant" / "ldp_budget" / mutant.file
    source = file.read_text(encoding="utf-8")
    if source.count(mutant.old) != 1:
        raise SystemExit(f"{mutant.name}: its old text occurs {source.count(mutant.old)} times in {mutant.file}")
    file.write_text(source.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        return next((tests for tests in ROOMS[room_of(mutant)] if tests_of(tree, tests) not in (0, 5)), None)
    finally:
        file.write_text(source, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"rooms of the library [default: {' '.join(ROOMS)}]")
    parser.add_argument("--only", metavar="NAME", help="the name of one fault")
    given = parser.parse_args()
    if unknown := set(given.rooms) - set(ROOMS):
        parser.error(f"unknown room {', '.join(sorted(unknown))}; there are: {', '.join(ROOMS)}")
    chosen = [
        each
        for each in MUTANTS
        if (not given.rooms or room_of(each) in given.rooms) and given.only in (None, each.name)
    ]
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "build", "node_modules", "__pycache__"))
        for mutant in chosen:
            start = time.monotonic()
            by = find(tree, mutant)
            seconds = time.monotonic() - start
            print(
                f"{'found' if by else 'NOT FOUND':9}  {room_of(mutant):11}  {mutant.name:34} {by or '-':24} {seconds:5.0f} s",
                flush=True,
            )
            if by is None:
                missed.append(mutant.name)
    print(
        f"{len(chosen) - len(missed)} of {len(chosen)} found"
        + (f"; not found: {', '.join(missed)}" if missed else "")
    )
    return bool(missed)


if __name__ == "__main__":
    raise SystemExit(main())
