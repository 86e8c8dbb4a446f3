"""Runs: lines of any number, each charged as by itself and once, in whatever chunks they come and come again."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import pytest

from conftest import Clock
from ldp_budget import Accountant, Collection, InvalidParameter, KeyConflict, LdpBudgetError, LedgerError, UnknownName
from ldp_budget import mechanism as find
from ldp_budget.accounting.api_keys import ApiKeys
from ldp_budget.accounting.batch_run import FAILED, Spend, SpendResult
from ldp_budget.ledger.ledger import Ledger
from ledger_contract import coin
from toy_store import ToyStore

KEPT = find("d-bit-flip")(epsilon=1, buckets=8, bits=2, memoize=True)
PARTY = Collection("party", find("oue")(epsilon="0.5", domain_size=3))


@pytest.fixture(params=["sqlite", "three partitions"])
def ledger(request: pytest.FixtureRequest, clock: Clock) -> Iterator[Accountant]:
    place: Any = {"sqlite": ":memory:", "three partitions": ToyStore(3)}[request.param]
    with Accountant(place, clock=clock) as made:
        made.set_policy("default", ["lifetime=3", "day=2"])
        made.set_policy("strict", ["lifetime=1"])
        yield made


def lines(number: int, users: int = 12, seed: int = 1) -> list[Spend]:
    """Lines of every kind, in which users come again."""
    draw = random.Random(seed)
    kinds = [
        Spend("", coin(1)),
        Spend("", coin("0.5")),
        Spend("", PARTY, note="weekly"),
        Spend("", coin(1), reports=2),
        Spend("", KEPT, label="a"),
        Spend("", coin("0.25"), policy="strict", digest="ab"),
    ]
    weights = [8, 4, 4, 1, 1, 2]
    return [draw.choices(kinds, weights)[0]._replace(user=f"user {draw.randrange(users)}") for _ in range(number)]


def played(
    accountant: Accountant, spends: Sequence[Spend | LdpBudgetError], size: int, key: str = "run"
) -> list[SpendResult]:
    """All lines, as if so many came at a time."""
    run, answers = accountant.run(key), list[SpendResult]()
    waiting = 0
    while len(answers) < len(spends):
        waiting += size
        some = spends[len(answers) : len(answers) + waiting]
        told = run.charge(some, last=len(answers) + len(some) == len(spends))
        waiting = 0 if told else waiting
        answers += told
    return answers


def statuses(answers: Sequence[SpendResult]) -> list[str]:
    return [answer.status for answer in answers]


def spent(accountant: Accountant, spends: Sequence[Spend]) -> dict[str, list[Any]]:
    users = sorted({spend.user for spend in spends})
    return {
        user: [state.spent_units for name in ("default", "strict") for state in accountant.balance(user, name).limits]
        for user in users
    }


@pytest.mark.parametrize("size", [2, 40, 100])
def test_each_line_is_answered_as_by_itself(ledger: Accountant, clock: Clock, size: int) -> None:
    spends = lines(90)
    with Accountant(":memory:", clock=clock) as alone:
        alone.set_policy("default", ["lifetime=3", "day=2"])
        alone.set_policy("strict", ["lifetime=1"])
        receipts = [alone.spend(user, what, **rest(each)) for each in spends for user, what in [each[:2]]]
        answers = played(ledger, spends, size)
        assert statuses(answers) == [receipt.status for receipt in receipts]
        refused = [(a.binding, a.affordable_reports) for a in answers if a.status == "refused"]
        assert refused == [(r.binding, r.affordable_reports) for r in receipts if not r]
        assert spent(ledger, spends) == spent(alone, spends)
    assert ledger.verify().ok


def rest(spend: Spend) -> dict[str, Any]:
    return {name: getattr(spend, name) for name in ("reports", "label", "digest", "note", "policy")}


@pytest.mark.parametrize("sizes", [(30, 30), (7, 30), (30, 7), (3, 100), (100, 3)])
@pytest.mark.some(4)
def test_run_again_nobody_is_charged_again(ledger: Accountant, sizes: tuple[int, int]) -> None:
    spends = lines(70)
    first = played(ledger, spends, sizes[0])
    entries, before = ledger.stats()["entries"], spent(ledger, spends)
    again = played(ledger, spends, sizes[1])
    assert statuses(again) == statuses(first)
    assert all(answer.repeated for answer in again)
    told = [(answer.binding, answer.affordable_reports, answer.why) for answer in again]
    assert told == [(answer.binding, answer.affordable_reports, answer.why) for answer in first]
    assert (ledger.stats()["entries"], spent(ledger, spends)) == (entries, before)


def test_cut_off_it_goes_on(ledger: Accountant) -> None:
    spends = lines(100)
    run = ledger.run("run")
    first = run.charge(spends[:40])
    again = played(ledger, spends, 1000)
    assert statuses(again[:40]) == statuses(first)
    assert [answer.repeated for answer in again] == [True] * 40 + [False] * 60


def test_two_at_a_time_charge_each_line_once(ledger: Accountant) -> None:
    spends, runs = lines(120), [ledger.run("run") for _ in range(2)]
    answers: list[list[SpendResult]] = [[], []]
    for step in range(1000):
        which = step % 2
        if len(answers[which]) < len(spends):
            size = (5, 40)[which] * (1 + step % 3)
            some = spends[len(answers[which]) : len(answers[which]) + size]
            answers[which] += runs[which].charge(some, last=len(answers[which]) + len(some) == len(spends))
    assert statuses(answers[0]) == statuses(answers[1])
    granted = sum(answer.status == "spent" for answer in answers[0])
    assert ledger.stats()["entries_by_kind"]["spent"] == granted
    assert [one.repeated != other.repeated for one, other in zip(*answers, strict=True)] == [True] * len(spends)


def test_a_line_that_failed_is_tried_again_and_no_other(ledger: Accountant) -> None:
    wrong = InvalidParameter("user", "a text", 7)
    given: list[Spend | LdpBudgetError] = [
        Spend("a", coin(1)),
        wrong,
        Spend("b", coin(1), policy="new"),
        Spend("c", coin(1)),
    ]
    first = played(ledger, given, 4)
    assert statuses(first) == ["spent", FAILED, FAILED, "spent"]
    assert first[1].error is wrong
    assert isinstance(first[2].error, UnknownName)
    for _ in range(3):
        assert statuses(played(ledger, given, 4)) == ["spent", FAILED, FAILED, "spent"]
    ledger.set_policy("new", ["lifetime=1"])
    given[1] = Spend("d", coin(1))
    mended = played(ledger, given, 4)
    assert statuses(mended) == ["spent"] * 4
    assert [answer.repeated for answer in mended] == [True, False, False, True]
    assert all(answer.repeated for answer in played(ledger, given, 4))
    assert ledger.stats()["entries_by_kind"]["spent"] == 4


@pytest.mark.parametrize("mended", [False, True])
def test_a_chunk_of_nothing_but_failures_keeps_its_place(ledger: Accountant, mended: bool) -> None:
    wrong = InvalidParameter("user", "a text", 7)
    given: list[Spend | LdpBudgetError] = [wrong, Spend("a", coin(1))]
    played(ledger, given, 1)
    if mended:
        given[0] = Spend("b", coin(1))
    again = played(ledger, given, 2)
    assert statuses(again) == ["spent" if mended else FAILED, "spent"]
    assert ledger.stats()["entries_by_kind"]["spent"] == 1 + mended


def test_other_lines_under_the_same_key_are_a_conflict_and_cost_nothing(ledger: Accountant) -> None:
    spends = lines(30)
    played(ledger, spends, 10)
    entries = ledger.stats()["entries"]
    other = [*spends[:12], spends[12]._replace(reports=3), *spends[13:]]
    answers = played(ledger, other, 10)
    assert [answer.status == FAILED for answer in answers] == [False] * 10 + [True] * 10 + [False] * 10
    assert all(isinstance(answer.error, KeyConflict) for answer in answers[10:20])
    short = played(ledger, spends[:15], 10)
    assert [answer.status == FAILED for answer in short] == [False] * 10 + [True] * 5
    assert ledger.stats()["entries"] == entries
    assert "run" in str(answers[10].error)


@pytest.mark.parametrize("size", [10, 7, 100])
def test_run_repeated_with_more_lines_is_a_conflict(ledger: Accountant, size: int) -> None:
    """A run of 20 lines was repeated with 21, and the last user was charged under the key of the others."""
    spends = lines(21)
    played(ledger, spends[:20], size)
    entries = ledger.stats()["entries"]
    for again in (10, 7, 100):
        answers = played(ledger, spends, again)
        assert isinstance(answers[-1].error, KeyConflict)
        assert all(answer.repeated for answer in answers[:14])
    assert ledger.stats()["entries"] == entries


def test_run_repeated_with_fewer_lines_is_a_conflict(ledger: Accountant) -> None:
    """A run of two chunks of ten lines was repeated with the first ten, which were answered as if they were all."""
    spends = lines(20)
    first = played(ledger, spends, 10)
    assert all(isinstance(answer.error, KeyConflict) for answer in played(ledger, spends[:10], 10))
    run = ledger.run("run")
    run.charge(spends[:10])
    with pytest.raises(KeyConflict):
        run.charge([], last=True)
    assert statuses(played(ledger, spends, 10)) == statuses(first), "the whole list is still the run's"


def test_run_whose_end_came_alone_is_closed_there(ledger: Accountant) -> None:
    """The last line of a stream may be answered before it is known that no more follow."""
    spends = lines(11)
    for _ in range(2):
        run = ledger.run("run")
        run.charge(spends[:10])
        assert run.charge([], last=True) == []
    assert isinstance(played(ledger, spends, 10)[-1].error, KeyConflict)
    assert ledger.run("nothing").charge([], last=True) == []
    assert isinstance(played(ledger, spends[:1], 10, "nothing")[0].error, KeyConflict)


def test_run_interrupted_before_its_end_takes_the_rest_of_its_lines(ledger: Accountant) -> None:
    """Nobody knows how long an interrupted run was to be."""
    spends = lines(20)
    ledger.run("run").charge(spends[:10])
    answers = played(ledger, spends, 10)
    assert [answer.repeated for answer in answers] == [True] * 10 + [False] * 10


def test_a_line_of_a_run_has_no_key_and_each_other_thing_that_is_wrong_is_its_own(ledger: Accountant) -> None:
    wrong: list[Any] = [
        Spend("a", coin(1), key="k"),
        Spend("", coin(1)),
        Spend(7, coin(1)),  # type: ignore[arg-type]
        Spend("a", "oue"),  # type: ignore[arg-type]
        Spend("a", coin(1), reports=0),
        Spend("a", coin(1), digest="x"),
        Spend("a", coin(1), note="\n"),
        Spend("a", coin(1), label=""),
        Spend("a", coin(1), label=[]),  # type: ignore[arg-type]
        Spend("a", coin(1), digest={}),  # type: ignore[arg-type]
    ]
    answers = played(ledger, [*wrong, Spend("a", coin(1))], 100)
    assert statuses(answers) == [FAILED] * len(wrong) + ["spent"]
    assert all(isinstance(answer.error, InvalidParameter) for answer in answers[:-1])


def test_a_policy_with_a_plan_is_charged_line_by_line(ledger: Accountant) -> None:
    from ldp_budget import Plan

    ledger.set_policy("default", ["lifetime=3", "day=2"], plan=Plan([(coin(1), 1)], 0))
    answers = played(ledger, [Spend(f"u{n % 10}", coin(1)) for n in range(20)], 20)
    assert statuses(answers) == ["spent"] * 10 + ["refused"] * 10
    assert answers[-1].binding == ("plan",)


@pytest.mark.parametrize("fails_at", [1, 2, 3, 4])
def test_where_the_ledger_fails_the_next_run_tells_what_was_charged(
    ledger: Accountant, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    spends, calls, run = lines(60), [0], Ledger.run

    def failing(self: Ledger, *arguments: Any, **options: Any) -> Any:
        calls[0] += 1
        if calls[0] == fails_at:
            raise LedgerError("it", "the disk is gone", unknown=True)
        return run(self, *arguments, **options)

    monkeypatch.setattr(Ledger, "run", failing)
    with suppress(LedgerError):
        played(ledger, spends, 30)
    monkeypatch.setattr(Ledger, "run", run)
    answers = played(ledger, spends, 1000)
    assert ledger.stats()["entries_by_kind"]["spent"] == sum(answer.status == "spent" for answer in answers)
    assert all(answer.repeated for answer in played(ledger, spends, 1000))
    assert ledger.verify().ok


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (3, 2)])
def test_a_copied_ledger_goes_on_with_a_run(clock: Clock, before: int, after: int) -> None:
    spends = lines(80)
    store: Any = None
    with Accountant(ToyStore(before), clock=clock) as old:  # type: ignore[arg-type]
        old.set_policy("default", ["lifetime=3", "day=2"])
        old.set_policy("strict", ["lifetime=1"])
        first = old.run("run").charge(spends[:50])
        ended = [Spend("of another run", coin(1))] * 2
        played(old, ended[:1], 10, "ended")
        target: Any = ToyStore(after, secret=old._ledger.key.secret)
        target.name = "there"
        old.ledger.copy_to(target)
        store = target
    with Accountant(store, clock=clock) as new:
        answers = played(new, spends, 1000)
        assert statuses(answers[:50]) == statuses(first)
        assert [answer.repeated for answer in answers] == [True] * 50 + [False] * 30
        assert new.stats()["entries_by_kind"]["spent"] == 1 + sum(answer.status == "spent" for answer in answers)
        assert all(answer.repeated for answer in played(new, spends, 7))
        assert all(answer.repeated for answer in played(new, ended[:1], 7, "ended"))
        assert isinstance(played(new, ended, 7, "ended")[-1].error, KeyConflict)


def test_callers_have_runs_of_their_own_and_stand_in_the_journal(ledger: Accountant) -> None:
    key, _ = ApiKeys(ledger).create("team", ["spend"])
    spends = [Spend(f"user {n}", coin(1)) for n in range(20)]
    played(ledger, spends, 20)
    answers = played(ledger.acting_for(key.caller), spends, 20)
    assert not any(answer.repeated for answer in answers)
    assert [row["by"] for row in ledger.history("user 3")] == [None, "team"]


def test_nothing_of_a_run_leads_to_whoever_was_erased(ledger: Accountant) -> None:
    spends = [Spend(f"user {n}", coin(1)) for n in range(20)]
    played(ledger, spends, 20)
    ledger.erase("user 3")
    answers = played(ledger, spends, 20)
    assert all(answer.repeated for answer in answers)
    fresh = played(ledger, spends, 20, "another")
    assert [answer.status for answer in fresh].count("refused") == 1
    assert "erased" in fresh[3].why
