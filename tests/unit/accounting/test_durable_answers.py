"""Answers from what is stored: a repeat reads under the partition's lock, and waits for the same durability as a write."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contract.acts import coin
from contract.toy_store import ToyStore
from fixed_clock import Clock
from ldp_budget import Accountant, LedgerError
from ldp_budget.accounting.batch import FEW, Spend
from ldp_budget.accounting.stored_reports import Taken
from ldp_budget.errors import KeyConflict
from ldp_budget.ledger.sqlite import store as sqlite_store
from ldp_budget.registry.collections import Collection
from ledger_inside import store_of

Verb = Callable[[Accountant], Any]
"""An operation that a client repeats until it has the answer."""

HALF = coin("0.5")
POLL = Collection("poll", HALF)


def lines(count: int) -> list[Spend]:
    return [Spend(f"user {number}", HALF) for number in range(count)]


def mixed(count: int) -> list[Spend]:
    return [line._replace(reports=1 + number % 3) for number, line in enumerate(lines(count))]


def reserved(accountant: Accountant, user: str) -> str:
    receipt = accountant.reserve(user, HALF, key="held", expires=60).receipt
    assert receipt
    return receipt


def take(accountant: Accountant) -> Any:
    return accountant.reports.take_many([Taken("ada", b"\1", "k")], accountant.collection("poll"), "default")


VERBS: dict[str, Verb] = {
    "spend": lambda a: a.spend("ada", HALF, key="k"),
    "refused spend": lambda a: a.spend("ada", coin(20), key="k"),
    "reserve": lambda a: a.reserve("ada", HALF, key="k", expires=60),
    "spend each": lambda a: [each.receipt for each in a.spend_each([line._replace(key="k") for line in lines(9)])],  # type: ignore[union-attr]
    "batch of one": lambda a: a.spend_batch(lines(1), key="k"),
    "batch of alike lines": lambda a: a.spend_batch(lines(3 * FEW), key="k"),
    "batch of mixed lines": lambda a: a.spend_batch(mixed(3 * FEW), key="k"),
    "batch of refused lines": lambda a: a.spend_batch([Spend("ada", coin(20))], key="k"),
    "batch of no lines": lambda a: a.spend_batch([], key="k"),
    "run": lambda a: a.spend_many([line.user for line in lines(3 * FEW)], HALF, key="k").to_json(),
    "run of one user": lambda a: a.spend_many(["ada"], HALF, key="k").to_json(),
    "report": take,
    "policy": lambda a: a.set_policy("other", ["lifetime=3"]),
    "collection": lambda a: a.add_collection(Collection("other", HALF)),
    "erasure": lambda a: a.erase("gone", unknown=True),
}
ENDS: dict[str, Verb] = {
    "commit": lambda a: a.commit(reserved(a, "ada")),
    "void": lambda a: a.void(reserved(a, "ada")),
}
CONFLICTS: dict[str, tuple[Verb, Verb, type[Exception]]] = {
    "spend": (VERBS["spend"], lambda a: a.spend("ada", coin(1), key="k"), KeyConflict),
    "batch": (VERBS["batch of one"], lambda a: a.spend_batch(lines(2), key="k"), KeyConflict),
}


class Unsure:
    """A store that commits, and cannot make anything durable while it is `down`: a primary without its standby."""

    def __init__(self, accountant: Accountant, monkeypatch: pytest.MonkeyPatch) -> None:
        self.down = False
        attempts = store_of(accountant).attempts

        def unsure(*given: Any) -> Any:
            yield from attempts(*given)
            if self.down:
                raise LedgerError("toy", "no standby has it", unknown=True)

        monkeypatch.setattr(store_of(accountant), "attempts", unsure)


@pytest.fixture(params=[1, 3])
def accountant(request: pytest.FixtureRequest, clock: Clock) -> Accountant:
    accountant = Accountant(ToyStore(request.param), clock=clock)
    accountant.set_policy("default", ["lifetime=9"])
    accountant.add_collection(POLL)
    return accountant


@pytest.mark.slow
@pytest.mark.parametrize("verb", [*VERBS, *ENDS])
def test_repeat_is_not_answered_while_its_charge_is_not_durable(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    store = Unsure(accountant, monkeypatch)
    receipt = reserved(accountant, "ada") if verb in ENDS else ""

    def attempt(accountant: Accountant) -> Any:
        return getattr(accountant, verb)(receipt) if receipt else VERBS[verb](accountant)

    attempt(accountant)
    store.down = True
    for _ in range(2):
        with pytest.raises(LedgerError, match="no standby has it"):
            attempt(accountant)
    store.down = False
    attempt(accountant)


@pytest.mark.parametrize("verb", [*VERBS, *ENDS])
def test_first_attempt_that_is_not_durable_is_repeated_once(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """The commit is there, and no standby has it: no repeat says so before a standby has it."""
    store = Unsure(accountant, monkeypatch)
    attempt = VERBS[verb] if verb in VERBS else ENDS[verb]
    store.down = True
    for _ in range(3):
        with pytest.raises(LedgerError, match="no standby has it"):
            attempt(accountant)
    store.down = False
    attempt(accountant)
    for user in ("ada", "user 0"):
        limit = accountant.balance(user).limits[0]
        assert limit.spent.epsilon in (0, 0.5, 1.5)
    assert accountant.verify().ok


@pytest.mark.parametrize("verb", CONFLICTS)
def test_conflict_of_a_key_is_an_answer_too(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    first, other, error = CONFLICTS[verb]
    store = Unsure(accountant, monkeypatch)
    first(accountant)
    store.down = True
    with pytest.raises(LedgerError, match="no standby has it"):
        other(accountant)
    store.down = False
    with pytest.raises(error):
        other(accountant)


@pytest.mark.parametrize("partitions", [(3, 1), (3, 2), (1, 3)])
def test_repeat_of_a_moved_batch_is_not_answered_while_it_is_not_durable(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, partitions: tuple[int, int]
) -> None:
    here = ToyStore(partitions[0])
    with Accountant(here, clock=clock) as source:
        source.set_policy("default", ["lifetime=9"])
        source.spend_batch(lines(12), key="k")
        there = ToyStore(partitions[1], here.key.secret)
        there.name = "another toy"
        source.ledger.move_to(there)
    with Accountant(there, clock=clock) as target:
        store = Unsure(target, monkeypatch)
        store.down = True
        with pytest.raises(LedgerError, match="no standby has it"):
            target.spend_batch(lines(12), key="k")
        store.down = False
        again = target.spend_batch(lines(12), key="k")
        assert all(each.status == "spent" and each.repeated for each in again)
        assert target.balance("user 0").limits[0].spent.epsilon == 0.5


# -- the log of a file ---------------------------------------------------------------------------------------------


class Synced:
    """Counts how often a process makes the log durable itself, apart from its own commits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths: list[Path] = []
        self.fails = False
        monkeypatch.setattr(sqlite_store, "sync_file", self._sync)

    def _sync(self, path: Path) -> None:
        self.paths.append(path)
        if self.fails:
            raise OSError(5, os.strerror(5))


def test_repeat_of_what_another_process_wrote_makes_the_log_durable(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "budget.db"
    synced = Synced(monkeypatch)
    with Accountant(path, clock=clock) as one, Accountant(path, clock=clock) as other:
        one.set_policy("default", ["lifetime=9"])
        for number, verb in enumerate(VERBS["spend"] for _ in range(2)):
            verb(one)
            assert synced.paths == [Path(f"{path}-wal")] * number
            assert verb(other).repeated
            assert synced.paths == [Path(f"{path}-wal")] * (number + 1)
            assert verb(other).repeated, "nothing was written meanwhile"
            assert len(synced.paths) == number + 1
            one.spend("bob", HALF)
        synced.fails = True
        with pytest.raises(LedgerError, match="cannot be made durable") as told:
            VERBS["spend"](other)
        assert told.value.unknown
        synced.fails = False
        assert VERBS["spend"](other).repeated
        assert len(synced.paths) == 5, "the queue asks once more by the key"
        assert other.verify().ok


def test_repeat_of_what_the_same_process_wrote_needs_no_second_sync(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = Synced(monkeypatch)
    with Accountant(tmp_path / "budget.db", clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        for name in ("spend", "batch of mixed lines"):
            VERBS[name](accountant)
            VERBS[name](accountant)
        assert not synced.paths
