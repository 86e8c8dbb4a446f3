"""`Inbox.take_many`: a stream of reports, of which a bad one stops no other."""

from __future__ import annotations

import pytest

import ldp_budget
from ldp_budget import Accountant, UnknownName
from ldp_budget.errors import KeyConflict, LedgerError
from ldp_budget.registry.collections import Collection
from ldp_budget.reports.inbox import Inbox, Sent


@pytest.fixture
def inbox(accountant: Accountant) -> Inbox:
    accountant.set_policy("default", ["lifetime=1"])
    made = ldp_budget.mechanism("randomized-response").calibrate(epsilon=1)
    accountant.add_collection(Collection("poll", made))
    return Inbox(accountant, accountant.collection("poll"))


def test_good_reports_are_taken_and_the_others_named(inbox: Inbox) -> None:
    sent = [
        Sent("ada", "1", b"\1"),
        Sent("bob", "1", b"\7"),  # no report of this collection
        Sent("carol", "1", b"\1\1"),
        Sent("", "1", b"\1"),
        Sent("ada", "2", b"\0"),  # over budget
        Sent("dora", "1", b"\0"),
    ]
    taken, refused = inbox.take_many(sent)
    assert [receipt.user for receipt in taken] == ["ada", "dora"]
    assert [each.index for each in refused] == [1, 2, 3, 4]
    assert "a report must have 1 bytes: got 2" in refused[1].reason
    assert "refused: ada asked for" in refused[3].reason
    assert [each.receipt is None for each in refused] == [True, True, True, False]
    assert len(inbox) == 2


def test_repeated_batch_is_charged_once_and_answers_alike(inbox: Inbox) -> None:
    sent = [Sent(f"user {number}", "topic/0/7", bytes([number % 2])) for number in range(5)]
    first, _ = inbox.take_many(sent)
    again, refused = inbox.take_many(sent)
    assert ([each.receipt for each in again], refused) == ([each.receipt for each in first], [])
    assert all(each.repeated for each in again)
    assert len(inbox) == 5


def test_key_of_another_request_is_refused_alone(inbox: Inbox, accountant: Accountant) -> None:
    accountant.spend("ada", ldp_budget.mechanism("oue").calibrate(epsilon="0.1", domain_size=4), key="k")
    taken, refused = inbox.take_many([Sent("ada", "k", b"\1"), Sent("bob", "k", b"\1")])
    assert [receipt.user for receipt in taken] == ["bob"]
    assert isinstance(refused[0].error, KeyConflict)


def test_ledger_without_the_policy_takes_nothing_and_refuses_nothing(inbox: Inbox, accountant: Accountant) -> None:
    other = Inbox(accountant, accountant.collection("poll"), policy="other")
    with pytest.raises(UnknownName):
        other.take_many([Sent("ada", "1", b"\1")])
    accountant.close()
    with pytest.raises(LedgerError):
        inbox.take_many([Sent("ada", "1", b"\1")])
