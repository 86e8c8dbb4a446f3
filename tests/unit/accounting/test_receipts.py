"""Receipts: unguessable, and valid for one reservation of one ledger."""

from __future__ import annotations

import pytest

from contract.acts import coin
from fixed_clock import Clock
from ldp_budget import Accountant, UnknownName

pytestmark = pytest.mark.policy("lifetime=9")


def test_commit_with_a_receipt_of_another_ledger_raises(accountant: Accountant, clock: Clock) -> None:
    with Accountant(":memory:", clock=clock) as other:
        other.set_policy("default", ["lifetime=9"])
        mine, foreign = (each.reserve("alice", coin(1)).receipt or "" for each in (accountant, other))
    assert mine.partition("-")[0] == foreign.partition("-")[0], "the same entry, in two ledgers"
    for resolve in (accountant.commit, accountant.void):
        with pytest.raises(UnknownName, match="no reservation is named"):
            resolve(foreign)
    assert accountant.void(mine).status == "voided"


@pytest.mark.parametrize(
    "change", ["2", "2-", "2-00000000000000000000", "é", "2-é", "3{rest}", "{receipt}0", " {receipt}"]
)
def test_commit_with_a_changed_receipt_raises(accountant: Accountant, change: str) -> None:
    receipt = accountant.reserve("alice", coin(1)).receipt or ""
    accountant.reserve("bob", coin(1))
    for resolve in (accountant.commit, accountant.void):
        with pytest.raises(UnknownName):
            resolve(change.format(receipt=receipt, rest=receipt[1:]))
    assert accountant.commit(receipt).status == "committed"


def test_reserve_retried_after_its_void_is_false(accountant: Accountant) -> None:
    first = accountant.reserve("alice", coin(1), key="k")
    assert first
    assert accountant.reserve("alice", coin(1), key="k"), "retried, it is as good as before"
    assert not accountant.void(first.receipt or ""), "nothing may be sent"
    again = accountant.reserve("alice", coin(1), key="k")
    assert (again.status, again.repeated, bool(again)) == ("voided", True, False)
    assert again.receipt == first.receipt
    kept = accountant.reserve("alice", coin(1), key="l")
    accountant.commit(kept.receipt or "")
    assert accountant.reserve("alice", coin(1), key="l"), "what was committed stays granted"
