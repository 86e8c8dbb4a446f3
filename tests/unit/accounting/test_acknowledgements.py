"""Acknowledged problems of entries: a ledger with a fault that is no overdraft verifies, and can be moved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from contract.acts import check, coin, made, write_record
from contract.toy_store import ToyStore
from fixed_clock import Clock
from ldp_budget import Accountant, InvalidParameter, LedgerError
from ldp_budget.accounting import engine
from ldp_budget.accounting.admission import Decision
from ldp_budget.accounting.charge_request import Principal
from ldp_budget.accounting.policies import Policy
from ldp_budget.accounting.policy_versions import latest_policy
from ldp_budget.errors import NotSupported
from ldp_budget.ledger.snapshot import Reading
from ledger_inside import ledger_of, store_of

pytestmark = pytest.mark.slow

SHARES: dict[str, Any] = {"team": ["lifetime=2"]}
WHY = "Fault of an early version, seen on 28 November"


def unknown_writer(accountant: Accountant, monkeypatch: pytest.MonkeyPatch) -> None:
    accountant.acting_for(Principal(7, "unknown")).spend("ada", coin("0.5"))


def share_without_a_key(accountant: Accountant, monkeypatch: pytest.MonkeyPatch) -> None:
    """As batches of mixed and alike lines once wrote it."""
    accountant.acting_for(Principal(0, "", "team")).spend("ada", coin("0.5"))


def older_version(accountant: Accountant, monkeypatch: pytest.MonkeyPatch) -> None:
    accountant.set_policy("default", ["lifetime=8"], shares=SHARES)
    number, policy = 1, Reading.policy_version
    with monkeypatch.context() as patch:
        with ledger_of(accountant).reading() as reading:
            first = policy(reading, number)
            assert latest_policy(reading, "default")[0] == 2
        patch.setattr(engine, "latest_policy", lambda reading, name: (1, Policy.read(first.definition)))
        accountant.spend("late", coin("0.5"))


def commit_of_an_expired_reservation(accountant: Accountant, monkeypatch: pytest.MonkeyPatch) -> None:
    receipt = accountant.reserve("ada", coin("0.5"), expires=10).receipt
    clock: Any = ledger_of(accountant)._clock._read
    clock.advance(minutes=1)
    with monkeypatch.context() as patch:
        patch.setattr("ldp_budget.ledger.transaction.Transaction.is_over", lambda *given: False)
        assert accountant.commit(receipt or "").status == "committed"


def missing_record(accountant: Accountant, monkeypatch: pytest.MonkeyPatch) -> None:
    accountant.spend("ada", coin("0.5"), key="k")
    for rows in store_of(accountant)._rows:
        rows._idempotency_records.clear()


def missing_note(accountant: Accountant, monkeypatch: pytest.MonkeyPatch) -> None:
    accountant.spend("ada", coin("0.5"), note="a note")
    for rows in store_of(accountant)._rows:
        rows._notes.clear()


def unusable_record(accountant: Accountant, monkeypatch: pytest.MonkeyPatch) -> None:
    write_record(accountant, "verified", "ledger", {"ok": 1})


Fault = Callable[[Accountant, pytest.MonkeyPatch], None]
FAULTS: dict[str, Fault] = {
    "writer": unknown_writer,
    "share": share_without_a_key,
    "version": older_version,
    "end": commit_of_an_expired_reservation,
    "record": missing_record,
    "note": missing_note,
    "body": unusable_record,
}


@pytest.fixture(params=[1, 3])
def accountant(request: pytest.FixtureRequest, clock: Clock) -> Accountant:
    accountant = Accountant(ToyStore(request.param), clock=clock)
    accountant.set_policy("default", ["lifetime=9"], shares=SHARES)
    accountant.spend("bob", coin("0.5"), key="k", note="a note")
    return accountant


def named(accountant: Accountant) -> list[str]:
    """The entries that may be acknowledged, as a user types them."""
    found = accountant.verify()
    assert not found.ok
    assert not found.final, found.final
    assert found.to_json()["open_entries"] == found.named_entries
    return found.named_entries


def moved(accountant: Accountant, partitions: int, clock: Clock) -> Accountant:
    there = ToyStore(partitions, store_of(accountant).key.secret)
    there.name = f"toy of {partitions}"
    accountant.ledger.move_to(there)
    return Accountant(there, clock=clock)


@pytest.mark.parametrize("code", FAULTS)
def test_acknowledged_problem_is_reported_and_the_ledger_moves_twice(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch, clock: Clock, code: str
) -> None:
    FAULTS[code](accountant, monkeypatch)
    found = accountant.verify()
    assert {each for codes in found.open_entries.values() for each in codes} == {code}
    if code != "body":
        numbers = {str(number) for _, number in found.open_entries}
        assert any(number in problem for number in numbers for problem in found.problems)
    if code != "body":  # such a record grants nothing, and is copied as it is
        with pytest.raises(LedgerError, match="verification failed, so it was not moved"):
            moved(accountant, 2, clock)
    (record,) = accountant.ledger.acknowledge(named(accountant), WHY)
    assert record.body["reason"] == WHY
    assert {each for codes in record.body["entries"].values() for each in codes} == {code}
    assert (record.kind, record.by, record.fault) == ("acknowledged", None, None)
    after = accountant.verify()
    assert after.ok
    assert after.problems == ()
    assert len(after.acknowledged) == len(found.problems)
    assert "acknowledged" in repr(after)
    assert after.to_json()["acknowledged"] == list(after.acknowledged)
    for partitions in (2, 4, 1):
        accountant = moved(accountant, partitions, clock)
        if code not in ("version", "end"):  # copied entries are not decided again by their order
            assert len(check_acknowledged(accountant)) == len(after.acknowledged)
        assert accountant.spend("zoe", coin("0.1"))


def check_acknowledged(accountant: Accountant) -> tuple[str, ...]:
    found = accountant.verify()
    assert found.ok, found.problems
    return found.acknowledged


@pytest.mark.parametrize("code", FAULTS)
def test_overdraft_of_an_acknowledged_entry_still_fails(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """The acknowledgement covers the problem, not the entry, and hides no other one."""
    FAULTS[code](accountant, monkeypatch)
    accountant.ledger.acknowledge(named(accountant), WHY)
    check(accountant)
    overdraw(accountant, monkeypatch)
    found = accountant.verify()
    assert not found.ok
    assert any("overdraws limit" in problem for problem in found.problems)
    with pytest.raises(LedgerError, match=r"can never be acknowledged: .*overdraws"):
        accountant.ledger.acknowledge([overdrawn(accountant)], WHY)


def overdraw(accountant: Accountant, monkeypatch: pytest.MonkeyPatch) -> None:
    decide = engine.decide

    def grant(*given: Any) -> Decision:
        decision = decide(*given)
        decision.why, decision.binding = "", ()
        return decision

    with monkeypatch.context() as patch:
        patch.setattr(engine, "decide", grant)
        accountant.spend("ada", coin(9))
        accountant.spend("ada", coin(9))


def overdrawn(accountant: Accountant) -> str:
    several = len(ledger_of(accountant).partitions) > 1
    position = accountant.position("ada")
    return position.replace(":", ".") if several else position.partition(":")[2]


def test_overdraft_can_never_be_acknowledged(accountant: Accountant, monkeypatch: pytest.MonkeyPatch) -> None:
    unknown_writer(accountant, monkeypatch)
    entries = named(accountant)
    overdraw(accountant, monkeypatch)
    for some in ([overdrawn(accountant)], entries, [overdrawn(accountant), *entries]):
        with pytest.raises(LedgerError, match=r"can never be acknowledged: .*overdraws"):
            accountant.ledger.acknowledge(some, WHY)
    assert not [record for record in accountant.records() if record.kind == "acknowledged"]


def test_writer_who_may_have_evaded_a_sub_limit_cannot_be_acknowledged(accountant: Accountant) -> None:
    key = made(accountant, "key", "team")
    accountant.acting_for(Principal(key.number, "key", None)).spend("ada", coin("0.5"))
    found = accountant.verify()
    assert found.final == found.problems
    assert not found.open_entries


@pytest.mark.parametrize("tamper", ["row", "link", "entry", "sum", "user", "changed record", "changed note"])
def test_changed_or_missing_rows_can_never_be_acknowledged(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch, tamper: str
) -> None:
    accountant.spend("ada", coin("0.5"), key="k", note="a note")
    unknown_writer(accountant, monkeypatch)
    entries = named(accountant)
    partition = ledger_of(accountant).partition_of(ledger_of(accountant).key.hash(b"user", "ada"))
    rows = store_of(accountant)._rows[partition]
    last = max(rows._journal)
    if tamper == "row":
        rows._journal[last] = (*rows._journal[last][:7], 1, *rows._journal[last][8:])
    elif tamper == "link":
        rows._links[last] = bytes(32)
    elif tamper == "entry":
        del rows._journal[last]
    elif tamper == "sum":
        key = max(rows._sums)
        rows._sums[key] = rows._sums[key]._replace(epsilon=0)
    elif tamper == "user":
        rows._users[max(rows._users)] = rows._users[max(rows._users)]._replace(user_hash=bytes(16))
    elif tamper == "changed record":
        key = next(iter(rows._idempotency_records))
        rows._idempotency_records[key] = rows._idempotency_records[key]._replace(response="[]")
    else:
        key = next(iter(rows._notes))
        rows._notes[key] = rows._notes[key]._replace(note="another note")
    with pytest.raises(LedgerError):
        accountant.ledger.acknowledge(entries, WHY)
    assert not accountant.verify().ok


def test_acknowledgement_of_a_sound_entry_or_of_none_is_refused(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown_writer(accountant, monkeypatch)
    entries = named(accountant)
    several = len(ledger_of(accountant).partitions) > 1
    with pytest.raises(LedgerError, match=r"has no open problem\. Nothing was acknowledged"):
        accountant.ledger.acknowledge([*entries, "0.1" if several else "1"], WHY)
    for wrong in (
        [],
        ["x"],
        ["1.2.3"],
        ["0"],
        ["9.1"],
        ["3-2"],
        [7],
        ["1-9999999999"],
        ["1"] if several else ["1.1"],
    ):
        with pytest.raises(InvalidParameter):
            accountant.ledger.acknowledge(wrong, WHY)  # type: ignore[arg-type]
    for reason in ("", "   ", "x" * 501):
        with pytest.raises(InvalidParameter, match="reason"):
            accountant.ledger.acknowledge(entries, reason)
    with pytest.raises(NotSupported, match="on the machine of the ledger"):
        accountant.acting_for(made(accountant, "key")).ledger.acknowledge(entries, WHY)
    assert not accountant.verify().ok
    accountant.ledger.acknowledge(entries, WHY)
    with pytest.raises(LedgerError, match="has no open problem"):
        accountant.ledger.acknowledge(entries, WHY)


def test_record_of_an_api_key_or_of_another_shape_acknowledges_nothing(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown_writer(accountant, monkeypatch)
    ((partition, entry),) = accountant.verify().open_entries
    name = f"{partition}.{entry}" if partition else str(entry)
    right = {"entries": {name: ["writer"]}, "reason": WHY}
    with pytest.raises(InvalidParameter, match="kind"):
        accountant.record("acknowledged", "ledger", right, expected=0)
    write_record(accountant.acting_for(made(accountant, "key")), "acknowledged", "ledger", right)
    for entries in ({name: []}, {name: ["share"]}, {name: ["overdraft"]}, {"x": ["writer"]}, [], {name: "writer"}, 7):
        write_record(accountant, "acknowledged", "ledger", {"entries": entries, "reason": WHY})
    codes = accountant.verify().open_entries
    assert codes.pop((partition, entry)) == {"writer"}
    assert {*codes.values()} == {frozenset({"body"})}, "records that cannot be used"


def test_acknowledged_problems_take_no_place_of_open_ones(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most a hundred problems are listed. An overdraft after a hundred acknowledged ones is listed all the same."""
    monkeypatch.setattr("ldp_budget.ledger.verification._MOST_PROBLEMS", 3)
    for number in range(4):
        accountant.spend(f"user {number}", coin("0.1"), key="k")
    for rows in store_of(accountant)._rows:
        rows._idempotency_records.clear()
    while not accountant.verify().ok:
        accountant.ledger.acknowledge(named(accountant), WHY)
    assert len(accountant.verify().acknowledged) == 5
    overdraw(accountant, monkeypatch)
    assert not accountant.verify().ok


def test_changed_position_of_an_acknowledged_entry_is_a_problem(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    unknown_writer(accountant, monkeypatch)
    accountant.ledger.acknowledge(named(accountant), WHY)
    accountant = moved(accountant, 1, clock)
    ((key, row),) = store_of(accountant)._rows[0]._numbered["moved_entries"].items()
    store_of(accountant)._rows[0]._numbered["moved_entries"][key] = row._replace(to_entry=row.to_entry + 1)
    problems = accountant.verify().problems
    assert any("moved_entries: the row" in problem for problem in problems)
    assert any("which has made none" in problem for problem in problems)
