"""A moved ledger keeps everything that users hold, and at most one of the two places is open."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from contract.acts import CURVE, check, coin, in_threads, promising
from contract.model import MECHANISMS, TENTH, LedgerMachine
from contract.places import InToys
from contract.toy_store import ToyStore
from fixed_clock import Clock
from ldp_budget import Accountant, KeyConflict, LedgerError, UnknownName
from ldp_budget.accounting import batch as batches
from ldp_budget.accounting import ledger_move, policy_versions
from ldp_budget.errors import InvalidParameter, LedgerMoved
from ldp_budget.ledger import migration_copy, window_backfill, write_queue
from ldp_budget.ledger.ledger import Ledger
from ldp_budget.ledger.storage import Attempt
from ldp_budget.registry.collections import Collection
from migration_story import CROWD, USERS, Story, check_story, places, said, small


@pytest.fixture(autouse=True)
def own_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the keys of ledgers on servers in a folder of the test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("LDP_BUDGET_KEY", raising=False)


@pytest.fixture
def story(tmp_path: Path, clock: Clock) -> Story:
    """Told in a file."""
    with Accountant(tmp_path / "first.db", clock=clock) as accountant:
        return Story(accountant, clock)


WAYS = [
    pytest.param(("file",), id="file"),
    pytest.param(("3 partitions", "file"), id="3 partitions-file"),
    pytest.param(("file", "5 partitions"), id="file-5 partitions", marks=pytest.mark.exhaustive),
    pytest.param(
        ("3 partitions", "5 partitions", "3 partitions"),
        id="3 partitions-5 partitions-3 partitions",
        marks=pytest.mark.exhaustive,
    ),
]


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("way", WAYS)
def test_moved_ledger_returns_the_same_results(
    tmp_path: Path, clock: Clock, story: Story, way: tuple[str, ...]
) -> None:
    here, kinds = str(tmp_path / "first.db"), places(tmp_path)
    with Accountant(here, clock=clock) as accountant:
        before = said(accountant)
    for number, kind in enumerate(way):
        there = kinds[kind](f"copy-{number}")
        with Accountant(here, create=False, clock=clock) as accountant:
            copied = accountant.ledger.move_to(there)
            assert said(accountant) == before, "it can still be read"
            check(accountant, copied.source_head)
            with pytest.raises(LedgerMoved, match=r"it was moved to .*. Nothing was charged."):
                accountant.spend("user-1", coin("0.01"))
        with Accountant(there, create=False, clock=clock) as accountant:
            assert said(accountant) == before
            assert check(accountant) == copied.target_head
            check_story(accountant, story, clock)
            assert said(accountant) == before
        here = there
    with Accountant(here, create=False, clock=clock) as accountant:
        assert accountant.void(story.open).status == "voided"
        assert accountant.commit(story.expired).status == "expired"
        assert accountant.void(story.of_erased).status == "voided"
        new = accountant.reserve("user-1", coin("0.1")).receipt
        assert new is not None
        assert accountant.void(new).status == "voided"
        check(accountant)


# -- interrupted ----------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process is gone."""


def keyed_toys(partitions: int, path: Path) -> ToyStore:
    """An empty store of the key next to a file."""
    return ToyStore(partitions, Path(f"{path}.key").read_bytes())


def charges(ledger: Path | ToyStore, clock: Clock) -> bool:
    """True if a ledger charges users; an empty one has no policy to charge by."""
    with Accountant(ledger, create=False, clock=clock) as accountant:
        try:
            return bool(accountant.spend("zoe", coin("0.001")))
        except (LedgerError, UnknownName):
            return False


def interrupted_move(accountant: Accountant, there: Any, monkeypatch: pytest.MonkeyPatch, before: str) -> None:
    """Begin a move that ends before one of its steps."""
    with monkeypatch.context() as patch:
        patch.setattr(f"ldp_budget.accounting.ledger_move.{before}", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            accountant.ledger.move_to(there)


@pytest.mark.slow
@pytest.mark.parametrize("way_on", ["start again", "abort"])
def test_move_killed_before_or_after_any_commit_leaves_at_most_one_open(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, thorough: bool, way_on: str
) -> None:
    monkeypatch.setattr(migration_copy, "_STEPS_TOGETHER", 4)
    attempts = Ledger.attempts
    receipt, left = small(tmp_path / "first.db", clock), [0]

    def mortal(ledger: Ledger, *arguments: Any) -> Iterator[Attempt]:
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        yield from attempts(ledger, *arguments)
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    for moment in range(1, 1000, 1 if thorough else 5):
        here, there = tmp_path / f"{moment}.db", keyed_toys(3, tmp_path / "first.db")
        for ending in ("", ".key"):
            shutil.copy(f"{tmp_path / 'first.db'}{ending}", f"{here}{ending}")
        monkeypatch.setattr(Ledger, "attempts", mortal)
        left[0] = moment
        with Accountant(here, create=False, clock=clock) as accountant, suppress(Killed):
            accountant.ledger.move_to(there)
        monkeypatch.setattr(Ledger, "attempts", attempts)
        finished = left[0] > 0
        assert [charges(here, clock), charges(there, clock)].count(True) <= 1
        second = keyed_toys(2, tmp_path / "first.db")
        second.name = "second"
        with Accountant(here, create=False, clock=clock) as accountant:
            if way_on == "abort":
                with suppress(LedgerError):
                    accountant.ledger.abort_move()
            try:
                accountant.ledger.move_to(there)
            except LedgerMoved:
                pytest.fail("the place of this move was refused")
            except LedgerError:
                if way_on == "abort":
                    assert charges(here, clock)
                    assert not charges(there, clock)
                there = second
                accountant.ledger.move_to(there)
        assert not charges(here, clock)
        assert charges(there, clock)
        with Accountant(there, clock=clock) as accountant:
            check(accountant)
            assert accountant.void(receipt).status == "voided"
            assert accountant.stats()["entries_by_kind"]["reserved"] == 1
        if finished:
            break
    assert 20 < moment < 999


@pytest.mark.slow
def test_move_stopped_between_key_and_file_is_started_again(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(tmp_path / "first.db", clock)
    with Accountant(tmp_path / "first.db", clock=clock) as accountant:
        with monkeypatch.context() as patch:
            patch.setattr(os, "rename", lambda *names: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                accountant.ledger.move_to(tmp_path / "copy.db")
        assert (tmp_path / "copy.db.key").exists()
        assert not (tmp_path / "copy.db").exists()
        with pytest.raises(LedgerError, match=r"its key file .* exists, but the ledger is missing"):
            Accountant(tmp_path / "copy.db")
        assert accountant.ledger.move_to(tmp_path / "copy.db").accounts == 5


@pytest.mark.slow
def test_interrupted_move_refuses_writes_until_it_is_aborted(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    receipt = small(tmp_path / "first.db", clock)
    there = keyed_toys(3, tmp_path / "first.db")
    with Accountant(tmp_path / "first.db", clock=clock) as accountant:
        with pytest.raises(LedgerError, match="it is not being moved, so there is nothing to abort"):
            accountant.ledger.abort_move()
        interrupted_move(accountant, there, monkeypatch, "differences")
        with pytest.raises(LedgerMoved, match="closed while it is moved to toy") as raised:
            accountant.spend("alice", coin("0.001"))
        assert (raised.value.code, raised.value.ledger, raised.value.complete) == ("ledger-moved", "toy", False)
        assert "closed while it is moved to toy" in str(accountant.ledger.check_up()["schema"])
        assert accountant.balance("alice").limits, "it can still be read"
        with Accountant(there, clock=clock) as half, pytest.raises(LedgerError, match="is being filled by a move"):
            half.balance("alice")
        accountant.ledger.abort_move()
        assert accountant.spend("alice", coin("0.001"))
        assert not charges(there, clock)
        with pytest.raises(LedgerError, match="toy: it is left over from an interrupted move"):
            accountant.ledger.move_to(there)
        check(accountant)
        second = keyed_toys(2, tmp_path / "first.db")
        accountant.ledger.move_to(second)
        with pytest.raises(LedgerError, match="its move to toy is complete, and cannot be aborted"):
            accountant.ledger.abort_move()
    with Accountant(second, clock=clock) as accountant:
        check(accountant)
        assert accountant.commit(receipt).status == "committed"


@pytest.mark.slow
def test_move_that_was_aborted_or_started_again_meanwhile_never_opens_its_target(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the source is marked as moved, its state and the name of the move are checked once more."""
    small(tmp_path / "first.db", clock)
    for between in ("abort_move", "move_to"):
        first, second = keyed_toys(3, tmp_path / "first.db"), keyed_toys(2, tmp_path / "first.db")
        second.name = "second"
        with Accountant(tmp_path / "first.db", clock=clock) as accountant:

            def meanwhile(done: int, total: int) -> None:
                if done == total:
                    with Accountant(tmp_path / "first.db", clock=clock) as other:
                        getattr(other.ledger, between)(*[second] if between == "move_to" else [])  # noqa: B023

            with pytest.raises(LedgerError, match="its move to toy was aborted or started again"):
                accountant.ledger.move_to(first, on_progress=meanwhile)
            assert not charges(first, clock)
            assert charges(tmp_path / "first.db", clock) is (between == "abort_move")
            assert charges(second, clock) is (between == "move_to")


@pytest.mark.slow
def test_move_interrupted_just_before_it_opened_cannot_be_aborted(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(tmp_path / "first.db", clock)
    with Accountant(tmp_path / "first.db", clock=clock) as accountant:
        interrupted_move(accountant, tmp_path / "copy.db", monkeypatch, "open_target")
        with pytest.raises(LedgerError, match="is complete, and cannot be aborted"):
            accountant.ledger.abort_move()
        assert [charges(tmp_path / "first.db", clock), charges(tmp_path / "copy.db", clock)] == [False, False]
        with pytest.raises(LedgerMoved, match=r"it was moved to .*copy.db"):
            accountant.ledger.move_to(tmp_path / "second.db")
        assert accountant.ledger.move_to(tmp_path / "copy.db").accounts == 5
    with Accountant(tmp_path / "copy.db", clock=clock) as accountant:
        check(accountant)


# -- what is refused ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_move_to_a_place_in_use_is_refused(tmp_path: Path, clock: Clock) -> None:
    small(tmp_path / "first.db", clock)
    small(tmp_path / "other.db", clock)
    with Accountant(tmp_path / "first.db", clock=clock) as accountant:
        accountant.backup(tmp_path / "backup.db")
        before = accountant.stats()
        for place, why in (
            ("other.db", "other.db: a ledger with another key than .*first.db exists there"),
            ("backup.db", "backup.db: a ledger already exists there. Nothing was moved. Name a new place"),
            ("first.db", "first.db: a ledger cannot be moved to itself. Name another place"),
            ("nowhere/copy.db", "nowhere does not exist"),
        ):
            with pytest.raises(LedgerError, match=why):
                accountant.ledger.move_to(tmp_path / place)
        with pytest.raises(InvalidParameter, match=r"ledger must be a path .* got :memory:"):
            accountant.ledger.move_to(":memory:")
        with pytest.raises(InvalidParameter, match="got mysql://"):
            accountant.ledger.move_to("mysql://somewhere")
        assert accountant.stats() == before
        accountant.ledger.move_to(tmp_path / "copy.db")
        for place in ("second.db", "backup.db", "other.db"):
            with pytest.raises(LedgerMoved, match=r"it was moved to .*copy.db"):
                accountant.ledger.move_to(tmp_path / place)
        assert not (tmp_path / "second.db").exists()
        assert accountant.ledger.move_to(tmp_path / "copy.db").accounts == 5, "the result of a complete move"
        for change in (
            lambda: accountant.set_policy("default", ["lifetime=99"]),
            lambda: accountant.erase("alice"),
            lambda: accountant.add_collection(Collection("more", coin(1))),
            lambda: accountant.spend_many(["alice"], coin("0.1")),
            accountant.repair_clock,
        ):
            with pytest.raises(LedgerMoved, match="moved to"):
                change()


def changed_before_the_copy(accountant: Accountant, change: Callable[[], object], patch: pytest.MonkeyPatch) -> None:
    """Let something change after the source was verified, and before it is closed."""
    begin = ledger_move.begin

    def begin_later(source: Ledger, target: Ledger) -> str:
        change()
        return begin(source, target)

    patch.setattr(ledger_move, "begin", begin_later)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE users SET user_hash = zeroblob(16) WHERE account = 1",
        "UPDATE users SET account = 99 WHERE account = 3",
        "DELETE FROM users WHERE account = 3",
        "UPDATE journal SET epsilon = epsilon - 1 WHERE account = 2",
        "UPDATE journal SET account = 3 - account WHERE account IN (1, 2)",
        "UPDATE journal SET at = at + 1 WHERE entry = 3",
        "UPDATE notes SET note = 'another'",
        "UPDATE idempotency_records SET request_digest = zeroblob(16)",
        "UPDATE policies SET definition = replace(definition, '9', '8')",
        "UPDATE priced_mechanisms SET declared = declared || ' '",
        "UPDATE collections SET definition = definition || ' '",
        "UPDATE entry_labels SET label = zeroblob(16) WHERE entry = (SELECT max(entry) FROM entry_labels)",
        "UPDATE memoised_counts SET reports = reports + 1",
    ],
)
def test_move_of_a_ledger_that_is_changed_after_its_verification_is_refused(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    import sqlite3

    def change_rows() -> None:
        with closing(sqlite3.connect(tmp_path / "first.db")) as connection, connection:
            assert connection.execute(change).rowcount > 0

    with Accountant(tmp_path / "first.db", clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9", "day=5"])
        accountant.add_collection(Collection("colours", coin(1)))
        accountant.spend_many(["alice", "bob", "carol"], coin("0.1"), key="run")
        accountant.spend("bob", coin("0.1"), key="k", note="one")
        if "label" in change or "memoised" in change:
            accountant.spend("carol", promising(CURVE), label="home")
        changed_before_the_copy(accountant, change_rows, monkeypatch)
        with pytest.raises(LedgerError, match=r"so it was not moved|the copy differs|ledger verify"):
            accountant.ledger.move_to(tmp_path / "copy.db")
        with pytest.raises(LedgerError):
            Accountant(tmp_path / "copy.db", create=False, clock=clock).spend("zoe", coin("0.001"))


def test_move_replays_the_decisions_of_charges_that_came_after_the_verification(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    replayed: list[str] = []
    check_integrity = ledger_move.check_integrity

    def counted(ledger: Ledger, *given: Any, **more: Any) -> Any:
        replayed.append(f"{Path(ledger.name).stem} {'sums' if more.get('decide_again') else 'rows'}")
        return check_integrity(ledger, *given, **more)

    monkeypatch.setattr(ledger_move, "check_integrity", counted)
    for name, more in ("quiet", []), ("busy", ["busy sums"]):
        replayed.clear()
        with Accountant(tmp_path / f"{name}.db", clock=clock) as accountant, monkeypatch.context() as patch:
            accountant.set_policy("default", ["lifetime=1"])
            accountant.spend("alice", coin("0.25"))
            if more:
                changed_before_the_copy(accountant, lambda: accountant.spend("alice", coin("0.25")), patch)
            accountant.ledger.move_to(tmp_path / f"to {name}.db")
        assert replayed == [f"{name} sums", f"{name} rows", *more, f"to {name} sums"]


# -- concurrent operations -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_spend_during_a_move_is_charged_once(tmp_path: Path) -> None:
    """Threads spend in the ledger until it names the other one, and then there until that is open."""
    here, there = tmp_path / "first.db", tmp_path / "copy.db"
    with Accountant(here) as accountant:
        accountant.set_policy("default", ["lifetime=1000"])
    asked, stop = 4, threading.Event()

    def work(number: int) -> int:
        if number == asked:
            try:
                with Accountant(here, create=False) as accountant:
                    accountant.ledger.move_to(there)
                stop.wait(0.1)
            finally:
                stop.set()
            return 0
        spent = 0
        while True:
            over = stop.is_set()  # one more turn then, so that each has spent something
            for place in (here, there):
                with suppress(LedgerError), Accountant(place, create=False) as accountant:
                    while not spent or not stop.is_set():
                        spent += accountant.spend(f"user-{number}", coin("0.001"), key=f"{spent}").status == "spent"
            if over:
                return spent

    counts = in_threads(asked + 1, work)
    with Accountant(there, create=False) as accountant:
        check(accountant)
        for number, count in enumerate(counts[:asked]):
            spent = accountant.balance(f"user-{number}").limits[0].spent_units.epsilon
            assert spent == count * 10**6 > 0


@pytest.mark.slow
def test_batch_interrupted_before_a_move_continues_after_it(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parts are those of the original partitions; no user is charged twice."""
    here = ToyStore(4)
    with Accountant(here, clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        accountant.spend_many(CROWD[:30], coin(1), key="done")
        with monkeypatch.context() as patch:
            charge = batches._charge_part

            def charge_two(*given: Any) -> Any:
                if not next(lives):
                    raise ZeroDivisionError
                return charge(*given)

            patch.setattr(write_queue, "MOST_BULK", 1)
            patch.setattr(batches, "_charge_part", charge_two)
            lives = iter([True, True, False])  # the store runs each transaction twice
            with pytest.raises(ZeroDivisionError):
                accountant.spend_many(CROWD, coin("0.25"), key="run")
        done = accountant.stats()["entries"]
    for partitions in (1, 3, 4):
        there = ToyStore(partitions, here.key.secret)
        there.name = f"toy of {partitions}"
        with Accountant(here, clock=clock) as accountant:
            accountant.ledger.move_to(there)
        with Accountant(there, clock=clock) as accountant:
            again = accountant.spend_many(CROWD[:30], coin(1), key="done")
            assert again.to_json() == {"spent": 0, "refused": 0, "repeated": 30}
            with pytest.raises(KeyConflict):
                accountant.spend_many(CROWD, coin("0.5"), key="run")
            check(accountant)
        here = there
    with Accountant(here, clock=clock) as accountant:
        result = accountant.spend_many(CROWD, coin("0.25"), key="run")
        assert result.refused == 30
        assert result.spent + result.repeated == 10
        assert accountant.spend_many(CROWD, coin("0.25"), key="run").to_json()["repeated"] == 10
        assert {accountant.balance(user).limits[0].spent_units.epsilon for user in CROWD[30:]} == {250_000_000}
        assert done
        check(accountant)


@pytest.mark.slow
def test_backfill_interrupted_before_a_move_is_done_after_it(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_backfill, "_MOST_AT_ONCE", 5)
    here = ToyStore(2)
    with Accountant(here, clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        for user in USERS:
            accountant.spend(user, coin("0.5"), key="k")
        with monkeypatch.context() as patch:
            patch.setattr(policy_versions, "fill_ahead", lambda *given: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                accountant.set_policy("default", ["lifetime=9", "day=1"])
        assert accountant.spend("user-1", coin("0.25"))
        there = ToyStore(3, here.key.secret)
        there.name = "there"
        accountant.ledger.move_to(there)
    with Accountant(there, clock=clock) as accountant:
        assert [limit.period for limit in accountant.policy().limits] == ["lifetime"]
        accountant.set_policy("default", ["lifetime=9", "day=1"])
        assert accountant.spend("user-1", coin("0.5")).binding == ("day",)
        assert accountant.spend("user-2", coin("0.5"))
        check(accountant)


# -- step by step against the model ---------------------------------------------------------------------------


class MovingMachine(LedgerMachine):
    """A ledger that is sometimes moved to a place with another number of partitions, and continues there."""

    def make_place(self) -> InToys:
        return InToys(2)

    @rule(partitions=st.integers(1, 4))
    def move(self, partitions: int) -> None:
        ledger = self.accountant._ledger
        there = ToyStore(partitions, ledger.key.secret)
        there.name = f"toy of generation {ledger._store._rows[0].end()[0].generation + 1}"
        assert self.accountant.ledger.move_to(there).target == there.name
        with pytest.raises(LedgerError, match=there.name):
            self.accountant.spend("alice", MECHANISMS[TENTH])
        self.accountant = Accountant(there, clock=self._clock)
        self.model.newest = self.model.moment
        self.heads = []


@pytest.mark.slow
class TestMoving(MovingMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=3, stateful_step_count=30)


@pytest.mark.exhaustive
class TestLongMoving(MovingMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=40, stateful_step_count=60)
