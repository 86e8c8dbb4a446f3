"""Backfill of a new window over a long journal: it runs in steps, and other operations continue meanwhile."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from contract import StoreContract
from contract.acts import CURVE, check, coin, promising, spent
from contract.model import LedgerMachine
from contract.places import InFile, InMemory, InToys, Place
from fixed_clock import Clock
from ldp_budget import Accountant, Limit
from ldp_budget.guarantees import Approximate
from ldp_budget.ledger import window_backfill

USERS = [f"user-{number}" for number in range(6)]
LIFETIME: list[Limit | str] = ["lifetime=900,0.1"]
ALL: list[Limit | str] = [*LIFETIME, "day=90,0.1", "week=90,0.1", "month=90,0.1"]

Meanwhile = Callable[[int], None]


def in_steps(monkeypatch: pytest.MonkeyPatch, accounts: int = 2) -> None:
    """Fill every journal as if it were a long one, so many accounts at a time."""
    monkeypatch.setattr(window_backfill, "_MOST_AT_ONCE", 0)
    monkeypatch.setattr(window_backfill, "_ACCOUNTS_TOGETHER", accounts)


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[Meanwhile], list[int]]:
    """Do something after each part was read and before it is written; returns the steps that were done."""
    in_steps(monkeypatch)

    def install(meanwhile: Meanwhile) -> list[int]:
        read, steps = window_backfill._read_part, [0]

        def read_part(*arguments: Any) -> Any:
            part = read(*arguments)
            steps[0] += 1
            meanwhile(steps[0])
            return part

        monkeypatch.setattr(window_backfill, "_read_part", read_part)
        return steps

    return install


@pytest.fixture(params=["file", pytest.param("memory", marks=pytest.mark.exhaustive), "toys"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return {"file": InFile(tmp_path / "budget.db"), "memory": InMemory(), "toys": InToys()}[request.param]


class Twins:
    """A ledger and another one, which had every limit from the start, and to which the same is done."""

    def __init__(self, place: Place, clock: Clock) -> None:
        self.clock = clock
        self.one, self.other = place.open(clock), Accountant(":memory:", clock=clock)
        self.one.set_policy("default", LIFETIME)
        self.other.set_policy("default", ALL)
        self.held: list[tuple[str, str]] = []

    def spend(self, number: int) -> None:
        """A little of everything, by users old and new."""
        for accountant in (self.one, self.other):
            accountant.spend(USERS[number % 6], coin("0.1"), reports=number + 1)
            accountant.spend(USERS[number * 5 % 6], promising(CURVE), label=f"home-{number % 2}", reports=2)
            accountant.spend_many([*USERS, f"new-{number}"], coin("0.3"))

    def reserve(self) -> None:
        def one(accountant: Accountant, user: str) -> list[str]:
            return [
                accountant.reserve(user, coin("0.5"), expires=10**6).receipt or "",
                accountant.reserve(user, promising(CURVE), label="home-0", reports=9, expires=10**6).receipt or "",
                accountant.reserve(user, promising(Approximate(1, "1e-9")), expires=10**6).receipt or "",
            ]

        for user in USERS:
            self.held += zip(one(self.one, user), one(self.other, user), strict=True)

    def void(self) -> None:
        for mine, others in self.held:
            self.one.void(mine)
            self.other.void(others)
        self.held = []

    def check_alike(self) -> None:
        check(self.one)
        users = [*USERS, *(f"new-{number}" for number in range(9))]
        for user in users:
            mine, others = self.one.balance(user), self.other.balance(user)
            assert mine.erased == others.erased
            assert [state.to_json() for state in mine.limits] == [state.to_json() for state in others.limits]

    def close(self) -> None:
        self.one.close()
        self.other.close()


@pytest.fixture
def twins(place: Place, clock: Clock) -> Iterator[Twins]:
    made = Twins(place, clock)
    for number in range(3):
        made.spend(number)
    yield made
    made.close()


def in_thread(work: Callable[[], None]) -> None:
    """Do it in another thread, as this one is filling."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive(), "it waits for the filling"


@pytest.mark.slow
@pytest.mark.some(3)
def test_backfill_counts_voids_made_meanwhile(twins: Twins, between: Callable[[Meanwhile], list[int]]) -> None:
    twins.reserve()

    def meanwhile(step: int) -> None:
        twins.void()
        twins.reserve()
        in_thread(lambda: twins.spend(step))

    between(meanwhile)
    twins.one.set_policy("default", ALL)
    twins.check_alike()
    twins.void()
    twins.check_alike()


@pytest.mark.slow
def test_backfill_leaves_out_users_erased_meanwhile(twins: Twins, between: Callable[[Meanwhile], list[int]]) -> None:
    def meanwhile(step: int) -> None:
        if step <= 3:
            for accountant in (twins.one, twins.other):
                accountant.erase(USERS[2 * step - 1])
            check(twins.one)

    between(meanwhile)
    twins.one.set_policy("default", ALL)
    twins.check_alike()
    assert [user for user in USERS if twins.one.is_erased(user)] == ["user-1", "user-3", "user-5"]


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("moment", [datetime(2026, 11, 30, 23, tzinfo=UTC), datetime(2026, 11, 22, 23, tzinfo=UTC)])
def test_backfill_while_a_window_ends_is_correct(
    place: Place, clock: Clock, between: Callable[[Meanwhile], list[int]], moment: datetime
) -> None:
    """A day, a week or a month: what was filled and what is open are two windows then."""
    clock.now = moment
    twins = Twins(place, clock)
    for number in range(3):
        twins.spend(number)
    twins.reserve()

    def meanwhile(step: int) -> None:
        twins.spend(step)
        clock.now = moment + timedelta(minutes=40 * step)
        twins.spend(step + 1)
        if step == 2:
            twins.void()

    between(meanwhile)
    twins.one.set_policy("default", ALL)
    assert clock.now.day != moment.day
    twins.check_alike()
    twins.spend(5)
    twins.check_alike()
    twins.close()


def repair(twins: Twins) -> None:
    twins.clock.advance(days=-100, hours=1)
    for accountant in (twins.one, twins.other):
        assert accountant.repair_clock()


@pytest.mark.slow
def test_backfill_during_a_clock_jump_and_repair_is_correct(
    twins: Twins, between: Callable[[Meanwhile], list[int]]
) -> None:
    def meanwhile(step: int) -> None:
        if step == 1:
            twins.clock.advance(days=100)
        twins.spend(step)
        if step == 3:
            repair(twins)

    between(meanwhile)
    twins.one.set_policy("default", ALL)
    twins.check_alike()


@pytest.mark.slow
@pytest.mark.some(2)
def test_backfill_interrupted_is_ignored_and_verifies(
    twins: Twins, between: Callable[[Meanwhile], list[int]]
) -> None:
    def meanwhile(step: int) -> None:
        if step == 3:
            raise KeyboardInterrupt

    stopped = between(meanwhile)
    with pytest.raises(KeyboardInterrupt):
        twins.one.set_policy("default", ALL)
    check(twins.one)
    assert twins.one.policy().version == 1
    assert list(spent(twins.one, "user-0")) == ["lifetime"]
    twins.reserve()
    twins.void()
    twins.spend(4)
    twins.clock.advance(days=40)
    twins.spend(5)
    for accountant in (twins.one, twins.other):
        accountant.erase("user-3")
    check(twins.one)
    stopped[0] = 3  # past the step at which it stops
    twins.one.set_policy("default", ALL)
    twins.check_alike()
    kinds = twins.one.stats()["entries_by_kind"]
    assert kinds["period"] == 3, "it was begun once"


def test_verify_with_a_period_missing_in_the_journal_finds_it(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "budget.db"
    with Accountant(path, clock=clock) as accountant:
        accountant.set_policy("default", LIFETIME)
        accountant.spend("alice", coin(1))
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("INSERT INTO periods VALUES ('month', 0)")
        assert accountant.verify().problems == ("periods: month is kept, and no policy limits it",)


# -- real processes ------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "budget.db"
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=900"])
        accountant.spend_many([f"user-{number}" for number in range(500)], coin("0.1"))
    return path


# -- everything else a ledger owes, with every journal a long one ----------------------------------------------


@pytest.mark.exhaustive
class TestContractInSteps(StoreContract):
    @pytest.fixture(autouse=True)
    def every_journal_is_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        in_steps(monkeypatch, accounts=1)

    @pytest.fixture(params=["file", "toys"])
    def place(self, request: pytest.FixtureRequest, tmp_path: Path) -> Place:
        return InFile(tmp_path / "budget.db") if request.param == "file" else InToys()


class SteppedMachine(LedgerMachine):
    def make_place(self) -> InMemory:
        self._patch = pytest.MonkeyPatch()
        in_steps(self._patch, accounts=1)
        return InMemory()

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self._patch.undo()


@pytest.mark.exhaustive
class TestModelInSteps(SteppedMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=20, stateful_step_count=50)
