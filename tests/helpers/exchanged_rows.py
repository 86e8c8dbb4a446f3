"""Two ledgers with one key and the same history, whose rows are put into each other."""

from __future__ import annotations

from contract.acts import CURVE, check, coin, made, promising
from fixed_clock import Clock
from ldp_budget import Accountant
from ldp_budget.accounting.batch import FEW, Spend
from ldp_budget.accounting.stored_reports import Taken
from ldp_budget.registry.collections import Collection

HALF = coin("0.5")

TABLES = (
    *("partitions", "users", "tombstones", "window_sums", "account_macs", "memoised_counts", "quotas", "periods"),
    *("priced_mechanisms", "policies", "journal", "entry_labels", "notes", "idempotency_records", "batch_runs"),
    *("key_epochs", "closings", "moved_entries", "erased_records", "reports", "rounds", "collections"),
    *("checkpoints", "admin_log"),
)
BOUND = (
    *("partitions", "users", "tombstones", "account_macs", "priced_mechanisms", "policies", "journal", "notes"),
    *("idempotency_records", "batch_runs", "reports", "rounds", "collections"),
)
"""The tables each of whose rows, or the last of them, is under a MAC or a chain hash."""


def fill(accountant: Accountant, clock: Clock) -> None:
    """Write a row into nearly every table. The same calls give the same rows, apart from what is keyed or random."""
    accountant.set_policy("default", ["lifetime=9", "day=5"], shares={"team": ["lifetime=4"]})
    accountant.add_collection(Collection("poll", HALF, minimum_group=1))
    team = accountant.acting_for(made(accountant, "key", "team"))
    team.spend("ada", HALF, key="k", note="a note")
    accountant.spend("ada", coin(20), key="refused")
    accountant.spend_batch([Spend(f"user {number}", HALF) for number in range(2 * FEW)], key="batch")
    accountant.spend("dan", promising(CURVE), label="x", reports=2)
    held = accountant.reserve("bob", HALF, expires=3600)
    accountant.commit(held.receipt or "")
    accountant.spend("carol", HALF)
    accountant.spend("carol", coin(20), key="refused")
    accountant.erase("carol")
    taken = [Taken(f"user {number}", b"\1", "sent") for number in range(2)]
    accountant.reports.take_many(taken, accountant.collection("poll"), "default")
    accountant.reports.seal("poll", "first")
    clock.advance(hours=1)
    accountant.checkpoint()
    check(accountant)
