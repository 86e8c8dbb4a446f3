"""Plant faults in a copy of the tree and run its tests: each fault must fail a unit or integration test.

    python tools/mutants.py                     # all rooms, in about six minutes
    python tools/mutants.py composition ledger  # these rooms
    python tools/mutants.py --only NAME         # one fault

The test file that found a fault before runs first. If it passes, the folders of tests of the fault's room run in order.
The run stops at the first test that fails with the fault; that test must pass without the fault. If no test finds a
fault, the exit code is 1.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
CODE = ("accountant", "plugins", "cli", "service", "surveys", "verify")

ROOMS = {
    "composition": ("unit/composition", "unit/guarantees", "unit/accounting", "integration/composition"),
    "accounting": ("unit/accounting", "unit/ledger", "unit/cli", "integration/cli", "integration/ledger"),
    "ledger": ("unit/ledger", "unit/accounting", "unit/simulation", "integration/ledger"),
    "sdk": ("unit/sdk", "unit/plugins", "unit/verification", "integration/verification"),
}
"""The folders of tests to run for a room, in order."""


class Mutant(NamedTuple):
    """A fault: `old` occurs once in `file`, a path in accountant/ldp_budget, and is replaced with `new`.

    `found_by` is the test file that found the fault before, a path in tests. It runs first, if it is there.
    """

    name: str
    file: str
    old: str
    new: str
    found_by: str

    @property
    def room(self) -> str:
        """The room that the fault is in."""
        return self.file.partition("/")[0]

    def path(self, tree: Path) -> Path:
        """Return the path of the faulty file in a tree."""
        return tree / "accountant" / "ldp_budget" / self.file


MUTANTS = (
    # -- composition
    Mutant(
        "count-ignored",
        "composition/rules.py",
        "UP.add(total, UP.multiply(each, count))",
        "UP.add(total, each)",
        "unit/composition/test_composition_at_scale.py",
    ),
    Mutant(
        "delta-overdrawn",
        "composition/rules.py",
        "        if spent > delta:\n",
        "        if spent > 2 * delta:\n",
        "unit/composition/test_composition_rules.py",
    ),
    Mutant(
        "values-one-short",
        "composition/rules.py",
        "curve=(guarantee.cap,)), guarantee.values",
        "curve=(guarantee.cap,)), guarantee.values - 1",
        "unit/composition/test_composition_memoized.py",
    ),
    Mutant(
        "copies-counted-once",
        "composition/rules.py",
        "reports *= guarantee.count",
        "reports *= 1",
        "unit/composition/test_composition_exact.py",
    ),
    Mutant(
        "aside-not-subtracted",
        "composition/filters.py",
        "left = DOWN.subtract(delta, aside)\n    if",
        "left = delta\n    if",
        "unit/composition/test_composition_rules.py",
    ),
    Mutant(
        "rest-counted-twice",
        "composition/filters.py",
        "return UP.add(_log_of_rest_up(excess), UP.divide(UP.minus(logs), excess))",
        "return UP.add(_log_of_rest_up(excess), UP.add(_log_of_rest_up(excess), UP.divide(UP.minus(logs), excess)))",
        "unit/composition/test_composition_rules.py",
    ),
    Mutant(
        "worst-order",
        "composition/filters.py",
        "<= _epsilon(charges, delta, ORDERS[middle + 1])",
        ">= _epsilon(charges, delta, ORDERS[middle + 1])",
        "unit/composition/test_composition_rules.py",
    ),
    Mutant(
        "capacity-one-too-large",
        "composition/rules.py",
        "low, high = (middle, high) if holds(middle) else (low, middle)\n    return low",
        "low, high = (middle, high) if holds(middle) else (low, middle)\n    return high",
        "unit/composition/test_composition_rules.py",
    ),
    Mutant(
        "contradicting-point-believed",
        "composition/pld.py",
        "if basic is not None and float_up(basic) >= lower:",
        "if basic is not None:",
        "unit/composition/test_composition_exact.py",
    ),
    Mutant(
        "blanket-of-one-user-more",
        "composition/shuffle_amplification.py",
        "math.log(unit / self.users))",
        "math.log(unit / (self.users + 1)))",
        "unit/composition/test_composition_shuffle.py",
    ),
    # -- accounting
    Mutant(
        "limit-off-by-one",
        "accounting/limits.py",
        "or used + each > most:",
        "or used + each > most + 1:",
        "unit/accounting/test_policy.py",
    ),
    Mutant(
        "room-one-larger",
        "accounting/admission.py",
        "-1 if cost is None else most - cost",
        "-1 if cost is None else most - cost + 1",
        "unit/accounting/test_admission.py",
    ),
    Mutant(
        "key-conflict-ignored",
        "accounting/engine.py",
        "if stored.request_digest != request.key.request_digest:",
        "if False:",
        "unit/accounting/test_accountant.py",
    ),
    Mutant(
        "reservation-answers-a-spend",
        "accounting/charge_request.py",
        'operation = "spend" if lasts is None else f"reserve {lasts}"',
        'operation = "spend"',
        "unit/accounting/test_idempotency_keys.py",
    ),
    Mutant(
        "share-not-counted",
        "accounting/engine.py",
        "if window.counts(terms.share)]\n        transaction",
        "if window.counts(0)]\n        transaction",
        "unit/accounting/test_sub_limits.py",
    ),
    Mutant(
        "erased-user-starts-again",
        "accounting/admission.py",
        "ERASED_USER if account.erased else terms.why",
        "terms.why",
        "unit/ledger/test_erasure.py",
    ),
    Mutant(
        "keys-shared-by-callers",
        "accounting/charge_request.py",
        'named = (b"caller key", ascii((scope, name))) if scope else (b"key", name)',
        'named = (b"key", name)',
        "unit/accounting/test_idempotency_keys.py",
    ),
    Mutant(
        "own-approval-counts",
        "accounting/policy_approval.py",
        "(kind == APPROVED and by == before.by)",
        "(kind == APPROVED and by is None)",
        "unit/accounting/access/test_approvals.py",
    ),
    Mutant(
        "rule-of-a-charged-limit-changes",
        "accounting/policy_versions.py",
        "            _check_limits(earlier, proposed)\n",
        "            pass\n",
        "unit/accounting/test_accountant.py",
    ),
    Mutant(
        "expired-reservation-is-voided",
        "accounting/reservations.py",
        "    if state == RESERVED and transaction.is_over(entry):\n",
        "    if False:\n",
        "unit/ledger/test_bugs_of_other_libraries.py",
    ),
    # -- ledger
    Mutant(
        "records-not-flushed",
        "ledger/transaction.py",
        "            rows.insert(IdempotencyRecord, records)\n",
        "            pass\n",
        "unit/accounting/test_accountant.py",
    ),
    Mutant(
        "stale-cache",
        "ledger/transaction.py",
        "mine is not None and mine.known == end.known",
        "mine is not None",
        "unit/ledger/test_sqlite.py",
    ),
    Mutant(
        "chain-without-the-hash-before",
        "ledger/hash_chain.py",
        'return before + f"[[{entries}]',
        'return f"[[{entries}]',
        "unit/ledger/test_tampering.py",
    ),
    Mutant(
        "erased-user-charged-in-a-batch",
        "ledger/sqlite/write_buffer.py",
        'refused = " OR ".join([erased, *(_over',
        'refused = " OR ".join(["0", *(_over',
        "unit/accounting/test_batches.py",
    ),
    Mutant(
        "changed-account-charged-in-a-batch",
        "ledger/row_macs.py",
        "            if hasher.digest() != row_mac:\n",
        "            if False:\n",
        "unit/accounting/test_decision_replay.py",
    ),
    Mutant(
        "changed-report-sealed",
        "ledger/transaction.py",
        "if self.secret.row_mac(*covered(report, self.partition)) != report.row_mac:",
        "if False:",
        "unit/reports/test_inbox.py",
    ),
    Mutant(
        "changed-account-charged",
        "ledger/row_macs.py",
        "elif maker.mac(today, names, amounts, {}, (number, newest or 0, user)) == row_mac:",
        "elif True:",
        "unit/accounting/test_decision_replay.py",
    ),
    Mutant(
        "changed-policy-used",
        "ledger/snapshot.py",
        "if len(stored) != count or any(row_mac(*policy.covered) != policy.row_mac for policy in stored):",
        "if len(stored) != count:",
        "unit/accounting/test_decision_replay.py",
    ),
    Mutant(
        "erased-labels-kept",
        "ledger/account_sums.py",
        "                    or erased\n",
        "",
        "unit/ledger/test_tampering.py",
    ),
    Mutant(
        "backfill-misses-the-newest",
        "ledger/window_backfill.py",
        "reading.rows.entries(self._until + 1, newest)",
        "reading.rows.entries(self._until + 2, newest)",
        "unit/ledger/test_window_backfill.py",
    ),
    # -- sdk
    Mutant(
        "interval-of-half-the-level",
        "sdk/confidence_intervals.py",
        "beyond = (1 - level) / 2\n    low = float",
        "beyond = 1 - level\n    low = float",
        "unit/sdk/test_intervals.py",
    ),
    Mutant(
        "tail-of-one-more",
        "sdk/confidence_intervals.py",
        "others if upper else others + 1",
        "others if upper else others",
        "unit/sdk/test_intervals.py",
    ),
    Mutant(
        "skewness-forgotten",
        "sdk/confidence_intervals.py",
        "rare = width * (0.5 + max(0.0, z * z - 1) / 6) / reports",
        "rare = width * 0.5 / reports",
        "unit/sdk/test_intervals.py",
    ),
    Mutant(
        "norm-sub-keeps-too-few",
        "sdk/consistency.py",
        "last = counts.shape[-1] - 1 - np.argmax((falling > excess)[..., ::-1], axis=-1, keepdims=True)",
        "last = np.argmax(falling > excess, axis=-1, keepdims=True)",
        "unit/sdk/test_consistency.py",
    ),
    Mutant(
        "squares-not-merged",
        "sdk/estimates.py",
        "        self.total_squares += other.total_squares\n",
        "",
        "unit/plugins/test_square_wave.py",
    ),
    Mutant(
        "worst-share-of-the-rare",
        "sdk/frequency_oracle.py",
        "max(float(law.at_zero.max()), float(law.at_one.max()))",
        "float(law.at_zero.max())",
        "unit/plugins/test_matrix_substitution.py",
    ),
    Mutant(
        "one-bit-too-few",
        "sdk/frequency_oracle.py",
        "ways / math.log(2) - 1e-6",
        "ways / math.log(2) - 1",
        "unit/sdk/test_domain.py",
    ),
    Mutant(
        "hash-shares-of-width-one",
        "sdk/linear_hashing.py",
        "(1 - same) * Fraction(k - 1, q - 1)",
        "(1 - same) * Fraction(k, q)",
        "unit/plugins/test_pgr.py",
    ),
    Mutant(
        "outside-inside-exchanged",
        "sdk/linear_hashing.py",
        '["where", "kept", "inside", ',
        '["where", "kept", "outside", ',
        "unit/plugins/test_pgr.py",
    ),
    Mutant(
        "polynomial-that-is-reducible",
        "sdk/linear_hashing.py",
        "8: 0b1011",
        "8: 0b1001",
        "unit/plugins/test_pgr.py",
    ),
)


def check(mutants: list[Mutant]) -> None:
    """Exit with a message unless the old text of every fault occurs exactly once in its file."""
    moved = []
    for mutant in mutants:
        file = mutant.path(ROOT)
        count = file.read_text(encoding="utf-8").count(mutant.old) if file.is_file() else 0
        if count != 1:
            moved.append(f"{mutant.name}: its old text occurs {count} times in {mutant.file}, and must occur once")
    if moved:
        raise SystemExit("\n".join([*moved, "The code has changed. Adapt these faults in tools/mutants.py."]))


def first_failure(tree: Path, tests: str, workers: int) -> str | None:
    """Run tests until one fails; return the name of the first that fails."""
    paths = os.pathsep.join(str(tree / each) for each in CODE)
    environment = {**os.environ, "PYTHONPATH": paths}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", str(workers), "-p", "no:cacheprovider", "--tb=no"]
    done = subprocess.run(
        [*command, f"tests/{tests}"], cwd=tree, env=environment, capture_output=True, text=True, encoding="utf-8"
    )
    if done.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) tests/(.+?)(?: - |$)", done.stdout, re.MULTILINE)
    if failed is None:
        raise SystemExit(f"pytest tests/{tests} named no failed test:\n{done.stdout}{done.stderr}")
    return failed[1]


def find(tree: Path, mutant: Mutant, clean: set[str]) -> str | None:
    """Plant a fault in the tree, and remove it; return the first test that fails with it and passes without it.

    `clean` has the tests that are known to pass without a fault.
    """
    file = mutant.path(tree)
    source = file.read_text(encoding="utf-8")
    file.write_text(source.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        known = (tree / "tests" / mutant.found_by).is_file()
        failed = first_failure(tree, mutant.found_by, 0) if known else None
        for folder in ROOMS[mutant.room]:
            failed = failed or first_failure(tree, folder, 2)
    finally:
        file.write_text(source, encoding="utf-8")
    if failed is not None:
        test = failed.partition("[")[0]  # all cases of the test
        if test not in clean and first_failure(tree, test, 0) is not None:
            raise SystemExit(f"tests/{test} fails without a fault, too")
        clean.add(test)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"rooms of the library [default: {' '.join(ROOMS)}]")
    parser.add_argument("--only", metavar="NAME", help="the name of one fault")
    given = parser.parse_args()
    if unknown := set(given.rooms) - set(ROOMS):
        parser.error(f"unknown room {', '.join(sorted(unknown))}; there are: {', '.join(ROOMS)}")
    chosen = [each for each in MUTANTS if each.room in (given.rooms or ROOMS) and given.only in (None, each.name)]
    if not chosen:
        parser.error(f"no such fault: {given.only}")
    check(chosen)
    missed, clean = [], set[str]()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "build", "node_modules", "__pycache__"))
        for mutant in chosen:
            start = time.monotonic()
            by = find(tree, mutant, clean)
            seconds = time.monotonic() - start
            print(f"{mutant.room:11}  {mutant.name:34} {seconds:4.0f} s  {by or 'NOT FOUND'}", flush=True)
            if by is None:
                missed.append(mutant.name)
    found = len(chosen) - len(missed)
    print(f"{found} of {len(chosen)} found in {time.monotonic() - begun:.0f} s")
    if missed:
        print(f"not found: {', '.join(missed)}")
    return bool(missed)


if __name__ == "__main__":
    raise SystemExit(main())
