"""The simulator finds faults: each fault is planted in the engine, and must break a promise.

The engine without them keeps every promise on the same seeds, see `test_simulation`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from ldp_budget.accounting import batch, ledger_maintenance
from ldp_budget.accounting import reservation_settlement as reservations
from ldp_budget.accounting.policies import Policy
from ldp_budget.errors import LdpBudgetError, LedgerError
from ldp_budget.guarantees.fixed_point import ZERO
from ldp_budget.ledger import ledger as ledgers
from ldp_budget.ledger.calendar import Clock, is_lifetime
from ldp_budget.ledger.models import RESERVED, VOIDED
from ldp_budget.ledger.row_macs import AccountMacs
from ldp_budget.ledger.transaction import Cache, Transaction
from ldp_budget.ledger.write_queue import Submission
from simulation import BrokenPromiseError, simulate

SEEDS, STEPS = range(12), 500
Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]


def wrap(patch: Patch, owner: Any, name: str, around: Callable[..., Any]) -> None:
    """Replace a function; `around` gets the original before its arguments."""
    original = getattr(owner, name)
    patch.setattr(owner, name, lambda *given, **named: around(original, *given, **named))


def sums_are_not_written(patch: Patch) -> None:
    def changes(original: Any, macs: AccountMacs) -> Any:
        for account in macs.accounts.values():
            account.changed = set()
        return original(macs)

    wrap(patch, AccountMacs, "changes", changes)


def sums_of_an_earlier_transaction_decide(patch: Patch) -> None:
    def load(original: Any, macs: AccountMacs, users: list[bytes]) -> Any:
        if not isinstance(macs._transaction, Transaction):
            return original(macs, users)
        known = macs._transaction.cache.__dict__.setdefault("accounts", {})
        known.update(original(macs, [user for user in users if user not in known]))
        found = {user: known[user] for user in users if user in known}
        macs.accounts.update((account.number, account) for account in found.values())
        return found

    wrap(patch, AccountMacs, "load", load)


def key_is_forgotten(patch: Patch) -> None:
    def store(original: Any, transaction: Transaction, user: bytes, key: bytes, *more: Any) -> Any:
        record = original(transaction, user, key, *more)
        del transaction._records[user, key]
        return record

    wrap(patch, Transaction, "store_idempotency_record", store)


def refusal_is_not_stored(patch: Patch) -> None:
    def store(original: Any, transaction: Transaction, user: bytes, key: bytes, entry: int | None, *more: Any) -> Any:
        record = original(transaction, user, key, entry, *more)
        if entry is None:
            del transaction._records[user, key]
        return record

    wrap(patch, Transaction, "store_idempotency_record", store)


def window_is_refilled_at_restart(patch: Patch) -> None:
    def refill(transaction: Transaction) -> None:
        for user in list(transaction.rows.users(1, transaction.end.accounts)):
            if user.user_hash is not None:
                transaction.check_account(user.account)
                for gauge, window in transaction.windows.items():
                    if not is_lifetime(gauge):
                        transaction.set_spent(user.account, window.name, ZERO)

    def open_ledger(original: Any, ledger: Any, *given: Any, **named: Any) -> None:
        original(ledger, *given, **named)
        with suppress(LdpBudgetError):
            for partition in [each for each in ledger.partitions if ledger.entries()[each]]:
                ledger.run(refill, partition)

    wrap(patch, ledgers.Ledger, "__init__", open_ledger)


def commit_is_acknowledged_before_it_is_durable(patch: Patch) -> None:
    def attempts(original: Any, *given: Any) -> Any:
        try:
            yield from original(*given)
        except LedgerError as error:
            if not error.unknown:
                raise

    wrap(patch, ledgers.Ledger, "attempts", attempts)


def unknown_commit_is_charged_again(patch: Patch) -> None:
    def doubt(original: Any, submission: Submission, error: BaseException) -> bool:
        return not submission.doubted and original(submission, error) in (True, False)

    wrap(patch, Submission, "doubt", doubt)


def unknown_commit_is_reported_as_failed(patch: Patch) -> None:
    def attempts(original: Any, *given: Any) -> Any:
        try:
            yield from original(*given)
        except LedgerError as error:
            error.unknown = False
            raise

    wrap(patch, ledgers.Ledger, "attempts", attempts)


def void_returns_the_charge_twice(patch: Patch) -> None:
    def find(original: Any, *given: Any) -> Any:
        entry, state = original(*given)
        return entry, RESERVED if state == VOIDED else state

    wrap(patch, reservations, "_reservation", find)


def part_of_a_batch_is_applied_twice(patch: Patch) -> None:
    def charge(original: Any, transaction: Transaction, part: Any) -> Any:
        part.key_hash = b""
        return original(transaction, part)

    wrap(patch, batch, "_charge_part", charge)


def clock_that_jumped_is_accepted(patch: Patch) -> None:
    patch.setattr(Clock, "_check_bound", lambda clock, moment: None)


def clock_behind_the_ledger_is_accepted(patch: Patch) -> None:
    patch.setattr("ldp_budget.ledger.calendar.TOLERANCE_MICROS", 10**18)


def repaired_clock_refills_windows(patch: Patch) -> None:
    patch.setattr(ledger_maintenance, "recount_after_clock_repair", lambda transaction, moment: None)


def sub_limit_is_ignored(patch: Patch) -> None:
    wrap(patch, Policy, "limits_for", lambda original, policy, share: original(policy, None))


def policy_of_another_process_is_not_seen(patch: Patch) -> None:
    patch.setattr(Cache, "holds", lambda cache, end: cache.end is not None)


def erased_user_gets_a_fresh_budget(patch: Patch) -> None:
    def load(original: Any, macs: AccountMacs, users: list[bytes]) -> Any:
        found = original(macs, users)
        for account in found.values():
            account.erased = False
        return found

    wrap(patch, AccountMacs, "load", load)


def report_is_stored_twice(patch: Patch) -> None:
    def store(original: Any, *given: Any) -> None:
        original(*given)
        original(*given)

    wrap(patch, Transaction, "store_report", store)


FAULTS: tuple[Plant, ...] = (
    sums_are_not_written,
    sums_of_an_earlier_transaction_decide,
    key_is_forgotten,
    refusal_is_not_stored,
    window_is_refilled_at_restart,
    commit_is_acknowledged_before_it_is_durable,
    unknown_commit_is_charged_again,
    unknown_commit_is_reported_as_failed,
    void_returns_the_charge_twice,
    part_of_a_batch_is_applied_twice,
    clock_that_jumped_is_accepted,
    clock_behind_the_ledger_is_accepted,
    repaired_clock_refills_windows,
    sub_limit_is_ignored,
    policy_of_another_process_is_not_seen,
    erased_user_gets_a_fresh_budget,
    report_is_stored_twice,
)


@pytest.mark.slow
@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_simulator_with_planted_fault_finds_a_broken_promise(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    steps, found = find()
    assert found is not None, f"{steps} steps found nothing"
    print(f"{plant.__name__}: found after {steps} steps: {found.promise}")
    assert found.__cause__ is None, "an error of the planted code itself"
    assert "replay:   python tests/helpers/simulation --seed" in str(found)


def find() -> tuple[int, BrokenPromiseError | None]:
    """Run seeds until a promise breaks; return the number of steps, and the broken promise."""
    steps = 0
    for seed in SEEDS:
        try:
            steps += simulate(seed, STEPS)
        except BrokenPromiseError as error:
            return steps + error.steps, error
    return steps, None
