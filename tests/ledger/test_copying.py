"""A ledger that was copied says what it said before, and nobody is charged in both."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from conftest import Clock
from ldp_budget import Accountant, KeyConflict, LedgerError, UnknownName
from ldp_budget.accounting.plans import Plan
from ldp_budget.catalogue.collections import Collection
from ldp_budget.errors import ReservationConflict
from ldp_budget.guarantees import Pure
from ldp_budget.ledger import copying, gate
from ldp_budget.ledger.ledger import Ledger
from ledger_contract import CURVE, check, coin, promising
from postgres_places import new_ledger
from toy_store import ToyStore

USERS = [f"user-{number}" for number in range(12)]
CROWD = [f"crowd-{number}" for number in range(40)]


@pytest.fixture(autouse=True)
def own_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of ledgers on servers lie in the user's folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("LDP_BUDGET_KEY", raising=False)


class Story:
    """A ledger with something of everything, and what its users hold of it."""

    def __init__(self, accountant: Accountant, clock: Clock) -> None:
        self.asked: list[tuple[dict[str, Any], Any]] = []
        accountant.set_policy("default", ["lifetime=20", "day=5"])
        accountant.set_policy("planned", [], plan=Plan(((Pure("0.1"), 3), (CURVE, 2)), "1e-6"))
        accountant.set_policy("other", ["week=30,1e-6,zcdp"], unbounded=True)
        for number, user in enumerate(USERS):
            self.spend(accountant, user, coin("0.3"), key=f"k{number}")
            self.spend(accountant, user, promising(CURVE), label="home", key="labelled")
            accountant.spend(user, promising(CURVE), label="home", policy="other")
            clock.advance(hours=3)
        self.spend(accountant, "user-1", promising(Pure("0.1")), policy="planned", key="plan")
        self.spend(accountant, "user-2", coin(9), key="refused")
        accountant.set_policy("default", ["lifetime=30", "day=5", "month=25"])
        self.committed = self.reserve(accountant, "user-3")
        self.voided = self.reserve(accountant, "user-4", promising(CURVE), label="work")
        accountant.commit(self.committed)
        accountant.void(self.voided)
        self.expired = self.reserve(accountant, "user-5", expires=60)
        clock.advance(minutes=2)
        self.open = self.reserve(accountant, "user-6", promising(CURVE), label="home", key="held")
        self.of_erased = self.reserve(accountant, "user-7")
        accountant.erase("user-7")
        accountant.erase("stranger", unknown=True)
        accountant.spend_many([*CROWD, CROWD[0], "user-2"], coin("0.2"), key="run")
        accountant.spend_many([*CROWD, "user-7"], coin("4.9"))
        accountant.add_collection(Collection("colours", coin(1)))
        accountant.add_collection(Collection("age", coin(2)))

    def spend(self, accountant: Accountant, user: str, mechanism: Any, **more: Any) -> None:
        request = {"user": user, "mechanism": mechanism, **more}
        self.asked.append((request, accountant.spend(**request)))

    def reserve(self, accountant: Accountant, user: str, mechanism: Any = None, **more: Any) -> str:
        held = accountant.reserve(user, mechanism or coin("0.1"), **more).receipt
        assert held is not None
        return held


def said(accountant: Accountant) -> dict[str, Any]:
    """What a ledger says of its users, its policies and itself, in whatever lanes it is."""
    stats = accountant.stats()
    kinds = {
        kind: n for kind, n in stats["entries_by_kind"].items() if kind not in ("policy", "moved", "copied", "clock")
    }
    return {
        "stats": {name: stats[name] for name in ("users", "erased", "keys", "collections", "periods", "policies")},
        "kinds": kinds,
        "policies": [policy.to_json() for policy in accountant.policies()],
        "collections": accountant.collections(),
        "balances": {
            (user, policy): accountant.balance(user, policy).limits
            for user in (*USERS, *CROWD, "stranger")
            for policy in ("default", "planned", "other")
        },
        "histories": {user: told(accountant.history(user)) for user in (*USERS, *CROWD)},
        "charged": sorted((row["at"], row["kind"], row["epsilon"]) for row in accountant.journal() if row["account"]),
    }


def told(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A history without what is numbered anew."""
    return [{k: v for k, v in row.items() if k not in ("lane", "entry", "account", "resolves")} for row in history]


def check_story(accountant: Accountant, story: Story, clock: Clock) -> None:
    """Everything that users hold is as good as before; nothing is written by it."""
    for request, first in story.asked:
        if request["user"] != "user-7":
            again = accountant.spend(**request)
            assert again.to_json() == {**first.to_json(), "repeated": True}
            with pytest.raises(KeyConflict):
                accountant.spend(**{**request, "reports": 2})
    held = accountant.reserve("user-6", promising(CURVE), label="home", key="held")
    assert (held.receipt, held.repeated, held.status) == (story.open, True, "reserved")
    assert (accountant.commit(story.committed).status, accountant.commit(story.committed).repeated) == (
        "committed",
        True,
    )
    assert (accountant.void(story.voided).status, accountant.void(story.voided).repeated) == ("voided", True)
    with pytest.raises(ReservationConflict, match="is committed"):
        accountant.void(story.committed)
    again = accountant.spend_many([*CROWD, CROWD[0], "user-2"], coin("0.2"), key="run")
    assert again.to_json() == {"spent": 0, "refused": 0, "repeated": 42}
    with pytest.raises(KeyConflict):
        accountant.spend_many([*CROWD, "user-2"], coin("0.2"), key="run")
    assert not accountant.spend("user-7", coin("0.1"))
    assert not accountant.spend("stranger", coin("0.1"))
    for forged in (story.open[:-1] + "x", f"9.{story.open}", "1.0.1-00"):
        with pytest.raises(UnknownName):
            accountant.commit(forged)


def places(tmp_path: Path) -> dict[str, Callable[[str], str]]:
    return {
        "file": lambda name: str(tmp_path / f"{name}.db"),
        "3 lanes": lambda name: new_ledger(3),
        "5 lanes": lambda name: new_ledger(5),
    }


@pytest.fixture
def story(tmp_path: Path, clock: Clock) -> Story:
    """Told in a file."""
    with Accountant(tmp_path / "first.db", clock=clock) as accountant:
        return Story(accountant, clock)


@pytest.mark.parametrize(
    "way", [("file",), ("3 lanes", "file"), ("3 lanes", "5 lanes", "3 lanes"), ("file", "5 lanes")], ids="-".join
)
def test_a_copied_ledger_says_what_it_said(tmp_path: Path, clock: Clock, story: Story, way: tuple[str, ...]) -> None:
    here, kinds = str(tmp_path / "first.db"), places(tmp_path)
    with Accountant(here, clock=clock) as accountant:
        before = said(accountant)
    for number, kind in enumerate(way):
        there = kinds[kind](f"copy-{number}")
        with Accountant(here, create=False, clock=clock) as accountant:
            copied = accountant.copy_to(there)
            assert said(accountant) == before, "it can still be read"
            check(accountant, copied.source_head)
            with pytest.raises(LedgerError, match="it was moved to "):
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


# -- killed, and begun again ----------------------------------------------------------------------------------


class Killed(BaseException):
    """The process is gone."""


def small(path: Path, clock: Clock) -> str:
    """A ledger with a little of everything; returns the receipt of what is reserved."""
    with Accountant(path, clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9", "day=5"])
        for user in ("alice", "bob", "carol", "dave"):
            accountant.spend(user, promising(CURVE), label="home", key="k")
            accountant.spend(user, coin(9), key="refused")
        accountant.erase("dave")
        accountant.add_collection(Collection("colours", coin(1)))
        accountant.set_policy("default", ["lifetime=8", "week=7"])
        accountant.spend_many(["alice", "bob", "erin"], coin("0.1"), key="run")
        receipt = accountant.reserve("carol", coin("0.1")).receipt
    assert receipt is not None
    return receipt


def keyed_toys(lanes: int, path: Path) -> ToyStore:
    """An empty store of the key that lies beside a file."""
    return ToyStore(lanes, Path(f"{path}.key").read_bytes())


def charges(ledger: Path | ToyStore, clock: Clock) -> bool:
    """Whether a ledger charges anybody; where it does not, it says which other one does."""
    with Accountant(ledger, create=False, clock=clock) as accountant:
        try:
            return bool(accountant.spend("zoe", coin("0.001")))
        except LedgerError as error:
            assert re.search("moved to toy|copied from .*db", str(error))
            return False


def test_a_copy_that_is_killed_before_or_after_any_commit_goes_on(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never do both charge, and in the end all is there, as if nothing had happened."""
    monkeypatch.setattr(copying, "_ENTRIES_TOGETHER", 4)
    monkeypatch.setattr(copying, "_ANSWERS_TOGETHER", 3)
    transact = Ledger._transact
    receipt, left = small(tmp_path / "first.db", clock), [0]

    def mortal(ledger: Ledger, *arguments: Any, **options: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        transact(ledger, *arguments, **options)
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    for moment in range(1, 1000):
        here, there = tmp_path / f"{moment}.db", keyed_toys(3, tmp_path / "first.db")
        for ending in ("", ".key"):
            shutil.copy(f"{tmp_path / 'first.db'}{ending}", f"{here}{ending}")
        for kill in (9, moment):
            monkeypatch.setattr(Ledger, "_transact", mortal)
            left[0] = kill
            with Accountant(here, create=False, clock=clock) as accountant, suppress(Killed):
                accountant.copy_to(there)
            finished = left[0] > 0
            monkeypatch.setattr(Ledger, "_transact", transact)
            with there.snapshot() as rows:
                begun = rows.end()[0].gate > 0
            if begun and not finished:
                assert [charges(here, clock), charges(there, clock)].count(True) <= 1
        with Accountant(here, create=False, clock=clock) as accountant:
            accountant.copy_to(there)
        assert not charges(here, clock)
        assert charges(there, clock)
        with Accountant(there, clock=clock) as accountant:
            check(accountant)
            assert accountant.stats()["users"] == 5
            assert accountant.void(receipt).status == "voided"
            assert accountant.stats()["entries_by_kind"]["reserved"] == 1
        if finished:
            break
    assert 20 < moment < 999
