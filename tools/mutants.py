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
    "guarantees": ("unit/guarantees", "unit/ledger", "unit/plugins"),
    "sampling": ("unit/sampling", "unit/sdk"),
    "composition": ("unit/composition", "unit/guarantees", "unit/accounting", "integration/composition"),
    "accounting": ("unit/accounting", "unit/ledger", "unit/cli", "integration/cli", "integration/ledger"),
    "ledger": ("unit/ledger", "unit/accounting", "unit/simulation", "integration/ledger"),
    "sdk": ("unit/sdk", "unit/plugins", "unit/verification", "integration/verification"),
    "registry": ("unit/registry", "unit/cli", "integration/registry"),
    "reports": ("unit/reports", "unit/cli", "integration/reports", "exhaustive/reports"),
    "mechanisms": ("unit/plugins", "unit/verification"),
    "adapters": ("exhaustive/plugins", "unit/registry"),
    "postgres": ("unit/ledger", "integration/ledger"),
    "surveys": ("unit/surveys", "unit/publication", "unit/service", "integration/surveys", "integration/publication"),
    "service": ("unit/service", "unit/accounting/access", "integration/service"),
    "cli": ("unit/cli", "unit/guarantees", "integration/cli"),
    "verify": ("unit/verification", "integration/verification"),
}
"""The folders of tests to run for a room, in order."""


class Mutant(NamedTuple):
    """A fault: `old` occurs once in `file`, a path in the tree, and is replaced with `new`.

    `found_by` is the test file that found the fault before, a path in tests. It runs first, if it is there.
    """

    name: str
    file: str
    old: str
    new: str
    found_by: str

    @property
    def room(self) -> str:
        """The room of the core, or the package, that the fault is in."""
        place, package, inside = self.file.split("/")[:3]
        if place == "plugins":
            return package.removeprefix("ldp_budget_")
        return inside if place == "accountant" else place

    def path(self, tree: Path) -> Path:
        """Return the path of the faulty file in a tree."""
        return tree / self.file


MUTANTS = (
    # -- composition
    Mutant(
        "count-ignored",
        "accountant/ldp_budget/composition/rules.py",
        "UP.add(total, UP.multiply(each, count))",
        "UP.add(total, each)",
        "unit/composition/test_composition_at_scale.py",
    ),
    Mutant(
        "delta-overdrawn",
        "accountant/ldp_budget/composition/rules.py",
        "        if spent > delta:\n",
        "        if spent > 2 * delta:\n",
        "unit/composition/test_composition_rules.py",
    ),
    Mutant(
        "values-one-short",
        "accountant/ldp_budget/composition/rules.py",
        "curve=(guarantee.cap,)), guarantee.values",
        "curve=(guarantee.cap,)), guarantee.values - 1",
        "unit/composition/test_composition_memoized.py",
    ),
    Mutant(
        "copies-counted-once",
        "accountant/ldp_budget/composition/rules.py",
        "reports *= guarantee.count",
        "reports *= 1",
        "unit/composition/test_composition_exact.py",
    ),
    Mutant(
        "aside-not-subtracted",
        "accountant/ldp_budget/composition/filters.py",
        "left = DOWN.subtract(delta, aside)\n    if",
        "left = delta\n    if",
        "unit/composition/test_composition_rules.py",
    ),
    Mutant(
        "rest-counted-twice",
        "accountant/ldp_budget/composition/filters.py",
        "return UP.add(_log_of_rest_up(excess), UP.divide(UP.minus(logs), excess))",
        "return UP.add(_log_of_rest_up(excess), UP.add(_log_of_rest_up(excess), UP.divide(UP.minus(logs), excess)))",
        "unit/composition/test_composition_rules.py",
    ),
    Mutant(
        "worst-order",
        "accountant/ldp_budget/composition/filters.py",
        "<= _epsilon(charges, delta, ORDERS[middle + 1])",
        ">= _epsilon(charges, delta, ORDERS[middle + 1])",
        "unit/composition/test_renyi.py",
    ),
    Mutant(
        "capacity-one-too-large",
        "accountant/ldp_budget/composition/rules.py",
        "low, high = (middle, high) if holds(middle) else (low, middle)\n    return low",
        "low, high = (middle, high) if holds(middle) else (low, middle)\n    return high",
        "unit/composition/test_composition_rules.py",
    ),
    Mutant(
        "contradicting-point-believed",
        "accountant/ldp_budget/composition/pld.py",
        "if basic is not None and float_up(basic) >= lower:",
        "if basic is not None:",
        "unit/composition/test_composition_exact.py",
    ),
    Mutant(
        "blanket-of-one-user-more",
        "surveys/ldp_budget_surveys/planning/shuffle_amplification.py",
        "math.log(unit / self.users))",
        "math.log(unit / (self.users + 1)))",
        "unit/composition/test_composition_shuffle.py",
    ),
    # -- accounting
    Mutant(
        "limit-off-by-one",
        "accountant/ldp_budget/accounting/limits.py",
        "or used + each > most:",
        "or used + each > most + 1:",
        "unit/accounting/test_policy.py",
    ),
    Mutant(
        "room-one-larger",
        "accountant/ldp_budget/accounting/admission.py",
        "-1 if cost is None else most - cost",
        "-1 if cost is None else most - cost + 1",
        "unit/ledger/test_sqlite.py",
    ),
    Mutant(
        "key-conflict-ignored",
        "accountant/ldp_budget/accounting/engine.py",
        "if stored.request_digest != request.key.request_digest:",
        "if False:",
        "unit/ledger/test_sqlite.py",
    ),
    Mutant(
        "reservation-answers-a-spend",
        "accountant/ldp_budget/accounting/charge_request.py",
        'operation = "spend" if lasts is None else f"reserve {lasts}"',
        'operation = "spend"',
        "unit/ledger/test_sqlite.py",
    ),
    Mutant(
        "charge-counts-in-every-scope",
        "accountant/ldp_budget/ledger/calendar.py",
        "return self.share in (0, share) and counts_in(self.scope, tags)",
        "return self.share in (0, share)",
        "unit/accounting/test_scoped_limits.py",
    ),
    Mutant(
        "tags-of-a-void-are-forgotten",
        "accountant/ldp_budget/accounting/reservation_settlement.py",
        "if holds(gauge, entry.sub_limit, tags) and",
        "if holds(gauge, entry.sub_limit, ()) and",
        "unit/accounting/test_scoped_limits.py",
    ),
    Mutant(
        "share-not-counted",
        "accountant/ldp_budget/accounting/engine.py",
        "if window.counts(terms.share, charge.tags)]\n        transaction",
        "if window.counts(0, charge.tags)]\n        transaction",
        "unit/ledger/test_sqlite.py",
    ),
    Mutant(
        "erased-user-starts-again",
        "accountant/ldp_budget/accounting/admission.py",
        "ERASED_USER if account.erased else terms.why",
        "terms.why",
        "unit/ledger/test_erasure.py",
    ),
    Mutant(
        "keys-shared-by-callers",
        "accountant/ldp_budget/accounting/charge_request.py",
        'named = (b"caller key", ascii((scope, name))) if scope else (b"key", name)',
        'named = (b"key", name)',
        "unit/ledger/test_sqlite.py",
    ),
    Mutant(
        "own-approval-counts",
        "accountant/ldp_budget/accounting/policy_approval.py",
        "(kind == APPROVED and by == before.by)",
        "(kind == APPROVED and by is None)",
        "unit/accounting/access/test_approvals.py",
    ),
    Mutant(
        "rule-of-a-charged-limit-changes",
        "accountant/ldp_budget/accounting/policy_versions.py",
        "            _check_limits(earlier, proposed)\n",
        "            pass\n",
        "unit/ledger/test_sqlite.py",
    ),
    Mutant(
        "expired-reservation-is-voided",
        "accountant/ldp_budget/accounting/reservation_settlement.py",
        "    if state == RESERVED and transaction.is_over(entry):\n",
        "    if False:\n",
        "unit/ledger/test_sqlite.py",
    ),
    Mutant(
        "void-in-a-window-not-kept",
        "accountant/ldp_budget/accounting/reservation_settlement.py",
        "tags) and (is_lifetime(gauge) or entry.at >= since)",
        "tags)",
        "unit/ledger/test_sqlite.py",
    ),
    Mutant(
        "template-of-other-tags",
        "accountant/ldp_budget/accounting/charge_request.py",
        "reports, policy, note, tags, kind, lasts\n    try:",
        "reports, policy, note, kind, lasts\n    try:",
        "unit/accounting/test_scoped_limits.py",
    ),
    Mutant(
        "replay-of-a-superseded-version",
        "accountant/ldp_budget/accounting/decision_replay.py",
        "if not found.since < number < found.until:",
        "if not found.since < number:",
        "unit/accounting/test_decision_replay.py",
    ),
    Mutant(
        "many-reports-at-the-price-of-one",
        "accountant/ldp_budget/accounting/decision_replay.py",
        "guarantee.least_costs().times(reports)",
        "guarantee.least_costs()",
        "unit/accounting/test_decision_replay.py",
    ),
    Mutant(
        "changed-ledger-upgraded",
        "accountant/ldp_budget/accounting/upgrade.py",
        "        if not found.ok:\n",
        "        if False:\n",
        "unit/ledger/test_schema.py",
    ),
    # -- ledger
    Mutant(
        "records-not-flushed",
        "accountant/ldp_budget/ledger/transaction.py",
        "            rows.insert(IdempotencyRecord, records)\n",
        "            pass\n",
        "unit/ledger/test_sqlite.py",
    ),
    Mutant(
        "stale-cache",
        "accountant/ldp_budget/ledger/transaction.py",
        "mine is not None and mine.known == end.known",
        "mine is not None",
        "unit/ledger/test_sqlite.py",
    ),
    Mutant(
        "chain-without-the-hash-before",
        "accountant/ldp_budget/ledger/hash_chain.py",
        'return before + f"[[{entries}]',
        'return f"[[{entries}]',
        "unit/ledger/test_tampering.py",
    ),
    Mutant(
        "erased-user-charged-in-a-batch",
        "accountant/ldp_budget/ledger/sqlite/bulk_charges.py",
        'refused = " OR ".join([erased, *(_over',
        'refused = " OR ".join(["0", *(_over',
        "unit/accounting/test_batches.py",
    ),
    Mutant(
        "changed-account-charged-in-a-batch",
        "accountant/ldp_budget/ledger/row_macs.py",
        "            if hasher.digest() != row_mac:\n",
        "            if False:\n",
        "unit/accounting/test_decision_replay.py",
    ),
    Mutant(
        "changed-report-sealed",
        "accountant/ldp_budget/ledger/transaction.py",
        "if self.secret.row_mac(*covered(report, self.partition)) != report.row_mac:",
        "if False:",
        "unit/reports/test_inbox.py",
    ),
    Mutant(
        "changed-account-charged",
        "accountant/ldp_budget/ledger/row_macs.py",
        "elif maker.mac(today, names, amounts, {}, (number, newest or 0, user)) == row_mac:",
        "elif True:",
        "unit/accounting/test_decision_replay.py",
    ),
    Mutant(
        "changed-policy-used",
        "accountant/ldp_budget/ledger/snapshot.py",
        "if len(stored) != count or any(row_mac(*policy.covered) != policy.row_mac for policy in stored):",
        "if len(stored) != count:",
        "unit/accounting/test_decision_replay.py",
    ),
    Mutant(
        "erased-labels-kept",
        "accountant/ldp_budget/ledger/account_sums.py",
        "                    or erased\n",
        "",
        "unit/ledger/test_tampering.py",
    ),
    Mutant(
        "backfill-misses-the-newest",
        "accountant/ldp_budget/ledger/window_backfill.py",
        "reading.rows.entries(self._until + 1, newest)",
        "reading.rows.entries(self._until + 2, newest)",
        "unit/ledger/test_window_backfill.py",
    ),
    Mutant(
        "end-of-a-window-counts-in-it",
        "accountant/ldp_budget/ledger/calendar.py",
        "window.ends is None or moment < window.ends)",
        "window.ends is None or moment <= window.ends)",
        "unit/ledger/test_zones.py",
    ),
    Mutant(
        "sliding-limit-of-one-day-less",
        "accountant/ldp_budget/ledger/calendar.py",
        "range(days_in(period) - 1, 0, -1)",
        "range(days_in(period) - 2, 0, -1)",
        "unit/accounting/test_sliding_limits.py",
    ),
    Mutant(
        "entry-before-the-newest-one",
        "accountant/ldp_budget/ledger/calendar.py",
        "        return Moment(from_micros(newest))\n\n    def _behind",
        "        return moment\n\n    def _behind",
        "unit/accounting/test_accountant.py",
    ),
    Mutant(
        "changed-row-gets-a-new-mac",
        "accountant/ldp_budget/ledger/key_rotation.py",
        "if self._old.row_mac(*named, *values) != row_mac:",
        "if False:",
        "unit/ledger/test_key_rotation.py",
    ),
    # -- sdk
    Mutant(
        "interval-of-half-the-level",
        "accountant/ldp_budget/sdk/confidence_intervals.py",
        "beyond = (1 - level) / 2\n    low = float",
        "beyond = 1 - level\n    low = float",
        "unit/sdk/test_intervals.py",
    ),
    Mutant(
        "tail-of-one-more",
        "accountant/ldp_budget/sdk/confidence_intervals.py",
        "others if upper else others + 1",
        "others if upper else others",
        "unit/sdk/test_intervals.py",
    ),
    Mutant(
        "skewness-forgotten",
        "accountant/ldp_budget/sdk/confidence_intervals.py",
        "rare = width * (0.5 + max(0.0, z * z - 1) / 6) / reports",
        "rare = width * 0.5 / reports",
        "unit/sdk/test_intervals.py",
    ),
    Mutant(
        "norm-sub-keeps-too-few",
        "accountant/ldp_budget/sdk/consistency.py",
        "last = counts.shape[-1] - 1 - np.argmax((falling > excess)[..., ::-1], axis=-1, keepdims=True)",
        "last = np.argmax(falling > excess, axis=-1, keepdims=True)",
        "unit/sdk/test_consistency.py",
    ),
    Mutant(
        "squares-not-merged",
        "accountant/ldp_budget/sdk/estimates.py",
        "        self.total_squares += other.total_squares\n",
        "",
        "unit/plugins/test_square_wave.py",
    ),
    Mutant(
        "worst-share-of-the-rare",
        "accountant/ldp_budget/sdk/frequency_oracle.py",
        "max(float(law.at_zero.max()), float(law.at_one.max()))",
        "float(law.at_zero.max())",
        "unit/plugins/test_matrix_substitution.py",
    ),
    Mutant(
        "one-bit-too-few",
        "accountant/ldp_budget/sdk/frequency_oracle.py",
        "ways / math.log(2) - 1e-6",
        "ways / math.log(2) - 1",
        "unit/sdk/test_domain.py",
    ),
    Mutant(
        "hash-shares-of-width-one",
        "accountant/ldp_budget/sdk/affine_geometry.py",
        "(1 - same) * Fraction(k - 1, q - 1)",
        "(1 - same) * Fraction(k, q)",
        "unit/plugins/test_pgr.py",
    ),
    Mutant(
        "outside-inside-exchanged",
        "accountant/ldp_budget/sdk/affine_geometry.py",
        '["where", "kept", "inside", ',
        '["where", "kept", "outside", ',
        "unit/plugins/test_pgr.py",
    ),
    Mutant(
        "polynomial-that-is-reducible",
        "accountant/ldp_budget/sdk/affine_geometry.py",
        "8: 0b1011",
        "8: 0b1001",
        "unit/plugins/test_pgr.py",
    ),
    # -- guarantees
    Mutant(
        "calibrated-noise-rounded-down",
        "accountant/ldp_budget/guarantees/gaussian_calibration.py",
        "sensitivity / mu * _ROUND_UP, math.inf)",
        "sensitivity / mu / _ROUND_UP, -math.inf)",
        "unit/guarantees/test_gaussian_calibration.py",
    ),
    Mutant(
        "capacity-rounded-up",
        "accountant/ldp_budget/guarantees/fixed_point.py",
        "min(LARGEST, math.floor(DOWN.scaleb(amount, digits)))",
        "min(LARGEST, math.ceil(UP.scaleb(amount, digits)))",
        "unit/guarantees/test_amounts.py",
    ),
    Mutant(
        "earlier-reports-of-a-label-forgotten",
        "accountant/ldp_budget/guarantees/memoised_costs.py",
        "costs = costs.plus(_whole(measure, curve, count.earlier + earlier_plain))",
        "costs = costs.plus(_whole(measure, curve, earlier_plain))",
        "unit/ledger/test_labels_in_windows.py",
    ),
    # -- sampling
    Mutant(
        "tie-counts-as-below",
        "accountant/ldp_budget/sampling/discrete.py",
        "_low_words(stream, ties.size) < low\n",
        "_low_words(stream, ties.size) <= low\n",
        "unit/sampling/test_randomness.py",
    ),
    Mutant(
        "bound-drawn-too",
        "accountant/ldp_budget/sampling/discrete.py",
        "words if bound > mask else words[words < bound]",
        "words if bound > mask else words[words <= bound]",
        "unit/sampling/test_randomness.py",
    ),
    Mutant(
        "labels-alike-in-all-contexts",
        "accountant/ldp_budget/sampling/memoisation.py",
        'secrets_within(secrets, f"{context} labels", len(secrets))',
        'secrets_within(secrets, "labels", len(secrets))',
        "unit/sampling/test_memoization.py",
    ),
    # -- registry
    Mutant(
        "name-of-two-plugins-given-to-the-first",
        "accountant/ldp_budget/registry/plugins.py",
        "        if plugin.own or not lost:\n",
        "        if True:\n",
        "integration/registry/test_registry.py",
    ),
    Mutant(
        "changed-definition-believed",
        "accountant/ldp_budget/registry/collections.py",
        "        if collection.fingerprint != fingerprint:\n",
        "        if False:\n",
        "unit/registry/test_collection.py",
    ),
    Mutant(
        "client-of-another-release-used",
        "accountant/ldp_budget/registry/collections.py",
        '        if self.client not in (None, definition["digest"]):\n',
        "        if False:\n",
        "unit/cli/test_cli_collection.py",
    ),
    # -- reports
    Mutant(
        "key-without-public-attributes",
        "accountant/ldp_budget/reports/inbox.py",
        "digest = hashlib.sha256(stored).hexdigest() if attributes else None",
        "digest = None",
        "unit/reports/test_inbox.py",
    ),
    Mutant(
        "partition-counted-twice",
        "accountant/ldp_budget/reports/partial_aggregate.py",
        "            if source.name in known:\n",
        "            if False:\n",
        "exhaustive/reports/test_partitions.py",
    ),
    Mutant(
        "order-shows-left-out-attributes",
        "accountant/ldp_budget/reports/inbox.py",
        "        if set(columns) != set(found):\n",
        "        if False:\n",
        "unit/reports/test_inbox.py",
    ),
    # -- mechanisms
    Mutant(
        "curve-of-rappor-without-zeros",
        "plugins/ldp_budget_mechanisms/_rappor_loss.py",
        "x, y = DOWN.multiply(x, ones), DOWN.multiply(y, zeros)",
        "x, y = DOWN.multiply(x, ones), y",
        "unit/plugins/test_rappor.py",
    ),
    Mutant(
        "staircase-of-less-variation",
        "plugins/ldp_budget_mechanisms/staircase.py",
        "return UP.divide(UP.multiply(UP.add(1, high), inner), outer)",
        "return UP.divide(inner, outer)",
        "unit/plugins/test_dominating_pairs.py",
    ),
    Mutant(
        "hybrid-without-its-two-numbers",
        "plugins/ldp_budget_mechanisms/hybrid.py",
        "mixed = UP.add(UP.multiply(alpha, self.tau), Decimal(ONE - self.piecewise))",
        "mixed = UP.multiply(alpha, self.tau)",
        "unit/plugins/test_hybrid.py",
    ),
    Mutant(
        "loloha-of-one-cell-fewer",
        "plugins/ldp_budget_mechanisms/loloha.py",
        "return Memoised(tuple(points), cap, self.width, SAME_CHANGE_PATTERN)",
        "return Memoised(tuple(points), cap, self.width - 1, SAME_CHANGE_PATTERN)",
        "unit/plugins/test_loloha.py",
    ),
    # -- adapters
    Mutant(
        "subclass-of-a-user-trusted",
        "plugins/ldp_budget_adapters/_adapter_helpers.py",
        "        if cls is kind:\n            return kind\n",
        "        return kind\n",
        "exhaustive/plugins/adapters/test_dp_accounting.py",
    ),
    Mutant(
        "stated-loss-not-rounded-up",
        "plugins/ldp_budget_adapters/_adapter_helpers.py",
        "return Decimal(repr(math.nextafter(value, math.inf))) if value else Decimal(0)",
        "return Decimal(repr(value))",
        "exhaustive/plugins/adapters/test_opendp.py",
    ),
    Mutant(
        "diagonal-of-one-element",
        "plugins/ldp_budget_adapters/_opendp.py",
        "return UP.multiply(width, UP.next_plus(UP.sqrt(Decimal(size))))",
        "return width",
        "exhaustive/plugins/adapters/test_opendp.py",
    ),
    # -- postgres
    Mutant(
        "no-partition-at-all",
        "plugins/ldp_budget_postgres/pool.py",
        "1 <= int(text) <= most):",
        "0 <= int(text) <= most):",
        "unit/ledger/test_postgres_addresses.py",
    ),
    Mutant(
        "key-of-another-ledger-accepted",
        "plugins/ldp_budget_postgres/store.py",
        '        if bytes(meta["key_check"]) != schema.key_check(key, partitions):\n',
        "        if False:\n",
        "integration/ledger/test_postgres_meta.py",
    ),
    Mutant(
        "server-without-durability-accepted",
        "plugins/ldp_budget_postgres/pool.py",
        '    "fsync": ("on",),\n',
        '    "fsync": ("on", "off"),\n',
        "integration/ledger/test_postgres_standbys.py",
    ),
    Mutant(
        "session-without-durability-trusted",
        "plugins/ldp_budget_postgres/store.py",
        "            pool.judge_settled(settled, connections.address)\n",
        "            pass\n",
        "integration/ledger/test_postgres_catalog.py",
    ),
    # -- surveys
    Mutant(
        "leaf-is-an-inner-node",
        "surveys/ldp_budget_surveys/publication/merkle.py",
        'return sha256(b"\\0" + leaf).digest()',
        "return sha256(leaf).digest()",
        "unit/publication/test_vectors.py",
    ),
    Mutant(
        "noise-shrunk-with-the-sample",
        "surveys/ldp_budget_surveys/designs/finite_population.py",
        "np.maximum(sampling, 0.0) + np.maximum(noises.sum(axis=0), 0.0)",
        "np.maximum(sampling, 0.0)",
        "unit/surveys/test_finite_population.py",
    ),
    Mutant(
        "clusters-with-one-freedom-more",
        "surveys/ldp_budget_surveys/designs/strata.py",
        "number / (number - 1) * (units.squares",
        "(units.squares",
        "unit/surveys/test_strata.py",
    ),
    Mutant(
        "published-maximum-falls",
        "surveys/ldp_budget_surveys/publication/publisher.py",
        '*(each["maximum"] for each in mine if each["limit"] == limit)',
        "*()",
        "unit/publication/test_publisher.py",
    ),
    Mutant(
        "proof-of-another-user",
        "surveys/ldp_budget_surveys/publication/publisher.py",
        "lambda: self._books.find_of(user, mark)",
        "lambda: self._books.find(mark)",
        "unit/service/test_proofs.py",
    ),
    # -- service
    Mutant(
        "revoked-invitation-used",
        "service/ldp_budget_service/invitations.py",
        "if end is not None and (read.made <= end.at or signed < end.secret):",
        "if False:",
        "unit/accounting/access/test_invitations.py",
    ),
    Mutant(
        "invitation-for-two-reports",
        "service/ldp_budget_service/auth.py",
        "        if key != self.invitation.key:\n",
        "        if False:\n",
        "unit/service/test_respondents.py",
    ),
    Mutant(
        "bound-key-sees-sums",
        "service/ldp_budget_service/visibility.py",
        "return receipt._replace(limits=(), affordable_reports=LARGEST)",
        "return receipt",
        "integration/service/test_restricted_callers.py",
    ),
    Mutant(
        "bound-key-charges-any-policy",
        "service/ldp_budget_service/auth.py",
        "if self.key.policies is not None and policy not in self.key.policies:",
        "if False:",
        "integration/service/test_authorization.py",
    ),
    Mutant(
        "rotated-key-lives-longer",
        "service/ldp_budget_service/api_keys.py",
        "expires=until if key.expires is None else min(key.expires, until)",
        "expires=until",
        "unit/accounting/access/test_api_keys.py",
    ),
    # -- cli
    Mutant(
        "refusal-exits-with-zero",
        "cli/ldp_budget_cli/spend.py",
        "    if not receipt:\n        sys.exit(REFUSED)\n",
        "    pass\n",
        "unit/cli/test_cli_spend.py",
    ),
    Mutant(
        "spent-printed-rounded-down",
        "cli/ldp_budget_cli/limit_figures.py",
        "(spent, ROUND_CEILING)",
        "(spent, ROUND_FLOOR)",
        "unit/guarantees/test_printed_figures.py",
    ),
    Mutant(
        "strict-run-exits-with-zero",
        "cli/ldp_budget_cli/spend.py",
        "        if strict:\n            sys.exit(REFUSED)\n",
        "        pass\n",
        "unit/cli/test_cli_next_steps.py",
    ),
    Mutant(
        "shard-above-the-number-of-shards",
        "cli/ldp_budget_cli/spend.py",
        "not 1 <= int(which) <= int(shards):",
        "not 1 <= int(which):",
        "unit/cli/test_cli_spend_many.py",
    ),
    # -- verify
    Mutant(
        "only-the-first-finding-counts",
        "verify/ldp_budget_verify/exact/dominance.py",
        "    ordered = sorted(findings, key=lambda finding: (VIOLATED, UNPROVEN, HOLDS).index(finding.verdict))\n",
        "    ordered = list(findings)\n",
        "unit/verification/test_verification.py",
    ),
    Mutant(
        "finite-pair-not-compared",
        "verify/ldp_budget_verify/exact/dominance.py",
        "        if curve.at(kink) > most:\n",
        "        if False:\n",
        "unit/verification/test_unchecked_cases.py",
    ),
    Mutant(
        "audit-of-twice-the-risk",
        "verify/ldp_budget_verify/audit/events.py",
        "    risk = (1 - confidence) / 2\n    more = _certain_lower_end",
        "    risk = 1 - confidence\n    more = _certain_lower_end",
        "unit/verification/test_auditing.py",
    ),
    Mutant(
        "first-report-held-to-the-cap",
        "verify/ldp_budget_verify/exact/dominance.py",
        "return check_ratio(guarantee.curve[0], comparison)",
        "return check_ratio(guarantee.cap, comparison)",
        "unit/verification/test_verification.py",
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
