"""`Accountant.spend_batch`: lines under one key, each charged as by itself, and charged once."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

from contract.acts import coin
from contract.toy_store import ToyStore
from fixed_clock import Clock
from ldp_budget import Accountant, Collection, InvalidParameter, KeyConflict, LdpBudgetError, LedgerError, UnknownName
from ldp_budget import mechanism as find
from ldp_budget.accounting import batch
from ldp_budget.accounting.batch import FAILED, Part, Spend, SpendResult
from ldp_budget.ledger import write_queue
from ldp_budget.ledger.ledger import Ledger
from ldp_budget.ledger.transaction import Transaction
from ledger_inside import writer_of

MEMOISED = find("d-bit-flip")(epsilon=1, buckets=8, bits=2, memoize=True)
PARTY = Collection("party", find("oue")(epsilon="0.5", domain_size=3))


@pytest.fixture(params=["sqlite", "three partitions"])
def ledger(request: pytest.FixtureRequest, clock: Clock) -> Iterator[Accountant]:
    place: Any = {"sqlite": ":memory:", "three partitions": ToyStore(3)}[request.param]
    with Accountant(place, clock=clock) as made:
        set_policies(made)
        yield made


@pytest.fixture(params=[1000, 7])
def part(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The maximum number of lines of a part."""
    monkeypatch.setattr(batch, "PART", request.param)
    return int(request.param)


def set_policies(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=3", "day=2"])
    accountant.set_policy("strict", ["lifetime=1"])


def lines(number: int, users: int = 12, seed: int = 1) -> list[Spend]:
    """Lines of every kind; users have several lines."""
    draw = random.Random(seed)
    kinds = [
        Spend("", coin(1)),
        Spend("", coin("0.5")),
        Spend("", PARTY, note="weekly"),
        Spend("", coin(1), reports=2),
        Spend("", MEMOISED, label="a"),
        Spend("", coin("0.25"), policy="strict", digest="ab"),
    ]
    weights = [8, 4, 4, 1, 1, 2]
    return [draw.choices(kinds, weights)[0]._replace(user=f"user {draw.randrange(users)}") for _ in range(number)]


def one_each(number: int) -> list[Spend]:
    """Lines of different users with one mechanism; many of them are charged by statements over all of them."""
    asked = coin(1)
    return [Spend(f"user {place}", asked) for place in range(number)]


def statuses(results: Sequence[SpendResult]) -> list[str]:
    return [result.status for result in results]


def reasons(results: Sequence[SpendResult]) -> list[tuple[object, ...]]:
    return [(result.binding, result.affordable_reports, result.why) for result in results]


def granted(accountant: Accountant) -> int:
    """The number of charges in the journal."""
    count: int = accountant.stats()["entries_by_kind"].get("spent", 0)
    return count


def spent(accountant: Accountant, spends: Sequence[Spend]) -> dict[str, list[Any]]:
    users = sorted({spend.user for spend in spends})
    return {
        user: [state.spent_units for name in ("default", "strict") for state in accountant.balance(user, name).limits]
        for user in users
    }


# -- each line -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("part")
def test_spend_batch_of_mixed_lines_gives_each_the_result_of_a_spend(ledger: Accountant, clock: Clock) -> None:
    spends = lines(90)
    with Accountant(":memory:", clock=clock) as alone:
        set_policies(alone)
        receipts = [
            alone.spend(
                each.user,
                each.mechanism,
                reports=each.reports,
                label=each.label,
                key=None if each.digest is None else f"line {number}",
                digest=each.digest,
                note=each.note,
                policy=each.policy,
            )
            for number, each in enumerate(spends)
        ]
        results = ledger.spend_batch(spends, key="batch")
        assert statuses(results) == [receipt.status for receipt in receipts]
        refused = [(each.binding, each.affordable_reports) for each in results if each.status == "refused"]
        assert refused == [(receipt.binding, receipt.affordable_reports) for receipt in receipts if not receipt]
        assert spent(ledger, spends) == spent(alone, spends)
    assert not any(result.repeated for result in results)
    assert all(result.receipt is not None for result in results if result.status == "refused")
    assert ledger.verify().ok


def test_spend_batch_with_invalid_lines_charges_the_others(ledger: Accountant) -> None:
    unreadable = InvalidParameter("user", "a text", 7)
    wrong: list[Any] = [
        unreadable,
        Spend("a", coin(1), key="k"),
        Spend("", coin(1)),
        Spend(7, coin(1)),  # type: ignore[arg-type]
        Spend("a", "oue"),
        Spend("a", coin(1), reports=0),
        Spend("a", coin(1), digest="x"),
        Spend("a", coin(1), note="\n"),
        Spend("a", coin(1), label=""),
        Spend("a", coin(1), label=[]),  # type: ignore[arg-type]
        Spend("a", coin(1), digest={}),  # type: ignore[arg-type]
    ]
    results = ledger.spend_batch([*wrong, Spend("a", coin(1))], key="batch")
    assert statuses(results) == [FAILED] * len(wrong) + ["spent"]
    assert all(isinstance(result.error, InvalidParameter) for result in results[:-1])
    assert results[0].error is unreadable
    assert granted(ledger) == 1


def test_spend_batch_of_something_else_charges_no_line(ledger: Accountant) -> None:
    with pytest.raises(InvalidParameter, match="spends"):
        ledger.spend_batch([Spend("a", coin(1)), ("b", coin(1))], key="batch")  # type: ignore[list-item]
    with pytest.raises(InvalidParameter, match="key"):
        ledger.spend_batch([Spend("a", coin(1))], key="")
    assert granted(ledger) == 0


# -- the key -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("part")
def test_spend_batch_with_used_key_returns_recorded_results(ledger: Accountant) -> None:
    spends = lines(70)
    first = ledger.spend_batch(spends, key="batch")
    entries, before = ledger.stats()["entries"], spent(ledger, spends)
    again = ledger.spend_batch(spends, key="batch")
    assert (statuses(again), reasons(again)) == (statuses(first), reasons(first))
    assert all(result.repeated for result in again)
    assert (ledger.stats()["entries"], spent(ledger, spends)) == (entries, before)
    renamed = [spend._replace(note="another") for spend in spends]
    assert all(result.repeated for result in ledger.spend_batch(renamed, key="batch")), "a note is not part of it"


def changed(spends: list[Spend]) -> dict[str, list[Spend]]:
    return {
        "another request": [*spends[:12], spends[12]._replace(reports=3), *spends[13:]],
        "another user": [*spends[:-1], spends[-1]._replace(user="another")],
        "more lines": [*spends, spends[0]],
        "fewer lines": spends[:-1],
        "another order": [*spends[1:], spends[0]],
        "no lines": [],
    }


@pytest.mark.slow
@pytest.mark.usefixtures("part")
def test_spend_batch_with_other_lines_under_the_key_raises_and_charges_nothing(ledger: Accountant) -> None:
    """Earlier lines of a list that had grown were once charged before the conflict was found."""
    spends = lines(30)
    first = ledger.spend_batch(spends, key="batch")
    entries = ledger.stats()["entries"]
    for name, other in changed(spends).items():
        with pytest.raises(KeyConflict, match="batch"):
            ledger.spend_batch(other, key="batch")
        assert ledger.stats()["entries"] == entries, name
    assert statuses(ledger.spend_batch(spends, key="batch")) == statuses(first), "the key still names the first lines"


@pytest.mark.slow
@pytest.mark.parametrize("kind", [LedgerError, ZeroDivisionError])
def test_spend_batch_interrupted_after_a_part_refuses_other_lines(
    ledger: Accountant, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    """The lines of a batch of several parts are bound to the key before the first part is charged."""
    monkeypatch.setattr(batch, "PART", 7)
    monkeypatch.setattr(write_queue, "MOST_BULK", 1)
    spends = one_each(30)
    with monkeypatch.context() as changes:
        interrupt_at(changes, 2, kind("it", "the disk is gone"))
        with pytest.raises(kind):
            ledger.spend_batch(spends, key="batch")
    done = granted(ledger)
    assert 0 < done < 30
    for other in changed(spends).values():
        with pytest.raises(KeyConflict):
            ledger.spend_batch(other, key="batch")
    assert granted(ledger) == done
    results = ledger.spend_batch(spends, key="batch")
    assert sum(result.repeated for result in results) == done
    assert granted(ledger) == 30


def interrupt_at(monkeypatch: pytest.MonkeyPatch, number: int, error: Exception) -> None:
    """Raise an error instead of charging the nth part."""
    seen: list[Part] = []
    charge = batch.charge_parts

    def failing(transactions: Mapping[int, Transaction], parts: Sequence[Part]) -> list[list[SpendResult]]:
        for part in parts:
            if part not in seen:
                seen.append(part)
            if seen.index(part) == number - 1:
                raise error
        return charge(transactions, parts)

    monkeypatch.setattr(batch, "charge_parts", failing)


def test_spend_batch_failing_after_a_part_says_that_lines_were_charged(
    ledger: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "PART", 7)
    monkeypatch.setattr(write_queue, "MOST_BULK", 1)
    interrupt_at(monkeypatch, 2, LedgerError("it", "the disk is gone"))
    with pytest.raises(LedgerError, match="Other parts of the batch were charged") as caught:
        ledger.spend_batch(one_each(30), key="batch")
    assert caught.value.unknown


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("fails_at", [0, 1, 2, 5])
@pytest.mark.usefixtures("part")
def test_spend_batch_again_after_a_failure_charges_each_line_once(
    ledger: Accountant, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    """The nth part fails; or all were charged, but the caller got an error."""
    monkeypatch.setattr(write_queue, "MOST_BULK", 1)
    spends, charge = lines(60), Ledger.charge
    error = LedgerError("it", "the disk is gone", unknown=True)

    def failing(self: Ledger, *arguments: Any, **options: Any) -> Any:
        charge(self, *arguments, **options)
        raise error

    with monkeypatch.context() as changes:
        if fails_at:
            interrupt_at(changes, fails_at, error)
        else:
            changes.setattr(Ledger, "charge", failing)
        with suppress(LedgerError):
            ledger.spend_batch(spends, key="batch")
    results = ledger.spend_batch(spends, key="batch")
    assert granted(ledger) == sum(result.status == "spent" for result in results)
    assert all(result.repeated for result in ledger.spend_batch(spends, key="batch"))
    assert ledger.verify().ok


@pytest.mark.slow
@pytest.mark.usefixtures("part")
def test_spend_batch_again_tries_only_the_lines_that_failed(ledger: Accountant) -> None:
    spends = [spend._replace(policy="new") if place % 5 == 2 else spend for place, spend in enumerate(one_each(30))]
    expected = [FAILED if place % 5 == 2 else "spent" for place in range(30)]
    first = ledger.spend_batch(spends, key="batch")
    assert statuses(first) == expected
    assert isinstance(first[2].error, UnknownName)
    for _ in range(3):
        assert statuses(ledger.spend_batch(spends, key="batch")) == expected
    ledger.set_policy("new", ["lifetime=1"])
    again = ledger.spend_batch(spends, key="batch")
    assert statuses(again) == ["spent"] * 30
    assert [result.repeated for result in again] == [status == "spent" for status in expected]
    assert all(result.repeated for result in ledger.spend_batch(spends, key="batch"))
    assert granted(ledger) == 30


# -- runs of several batches ---------------------------------------------------------------------------------------


# -- callers, erased users, ledgers that were moved ----------------------------------------------------------------


@pytest.mark.slow
def test_spend_batch_with_an_erased_user_charges_the_others(ledger: Accountant) -> None:
    ledger.spend_batch(one_each(20), key="batch")
    ledger.erase("user 3")
    assert all(result.repeated for result in ledger.spend_batch(one_each(20), key="batch"))
    fresh = ledger.spend_batch(one_each(20), key="another")
    assert [place for place, result in enumerate(fresh) if result.status == "refused"] == [3]
    assert "erased" in fresh[3].why
    assert ledger.is_erased("user 3")


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (3, 2)])
def test_spend_batch_in_a_copied_ledger_continues(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, before: int, after: int
) -> None:
    monkeypatch.setattr(batch, "PART", 7)
    monkeypatch.setattr(write_queue, "MOST_BULK", 1)
    spends: list[Spend | LdpBudgetError] = [*lines(80), InvalidParameter("user", "a text", 7)]
    whole = lines(30, seed=2)
    with Accountant(ToyStore(before), clock=clock) as old:  # type: ignore[arg-type]
        set_policies(old)
        first = old.spend_batch(whole, key="whole")
        with monkeypatch.context() as changes:
            interrupt_at(changes, 3, LedgerError("it", "the disk is gone"))
            with pytest.raises(LedgerError):
                old.spend_batch(spends, key="interrupted")
        old.spend_batch(one_each(4)[:3], key="run#0")
        old.spend_batch([], key="run#1")
        done = granted(old)
        target: Any = ToyStore(after, secret=old._ledger.key.secret)
        target.name = "there"
        old.ledger.move_to(target)
    with Accountant(target, clock=clock) as new:
        again = new.spend_batch(whole, key="whole")
        assert (statuses(again), reasons(again)) == (statuses(first), reasons(first))
        assert all(result.repeated for result in again)
        assert granted(new) == done, "nothing of a recorded batch is charged again"
        with pytest.raises(KeyConflict):
            new.spend_batch(whole[:-1], key="whole")
        with pytest.raises(KeyConflict):
            new.spend_batch(spends[:-2], key="interrupted")
        results = new.spend_batch(spends, key="interrupted")
        assert statuses(results[-1:]) == [FAILED]
        assert 0 < sum(result.repeated for result in results) < 80
        charged = sum(result.status == "spent" and not result.repeated for result in results)
        assert granted(new) == done + charged
        entries = new.stats()["entries"]
        assert all(result.repeated for result in new.spend_batch(spends, key="interrupted")[:-1])
        assert all(result.repeated for result in new.spend_batch(one_each(4)[:3], key="run#0"))
        with pytest.raises(KeyConflict):
            new.spend_batch(one_each(4)[3:], key="run#1")
        assert new.stats()["entries"] == entries
        assert new.verify().ok


@pytest.mark.parametrize("count", [batch.FEW - 1, batch.FEW, 40])
def test_spend_batch_with_a_changed_account_fails_that_line_only(clock: Clock, count: int) -> None:
    with Accountant(":memory:", clock=clock) as accountant:
        set_policies(accountant)
        users = [f"u{number}" for number in range(count)]
        accountant.spend_many(users, coin("0.5"))
        writer_of(accountant).execute("UPDATE window_sums SET epsilon = 0 WHERE account = 4")
        results = accountant.spend_batch([Spend(user, coin("0.5")) for user in users], key="batch")
        assert sorted(statuses(results)) == ["failed"] + ["spent"] * (count - 1)
