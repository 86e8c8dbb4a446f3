"""A ledger with something of everything, to be moved, and the checks of the moved one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contract.acts import CURVE, coin, made, promising, send, write_record
from fixed_clock import Clock
from ldp_budget import Accountant, KeyConflict, UnknownName
from ldp_budget.accounting.charge_request import Principal
from ldp_budget.accounting.plans import Plan
from ldp_budget.errors import ReservationConflict
from ldp_budget.guarantees import Pure
from ldp_budget.registry.collections import Collection
from postgres_places import new_ledger

USERS = [f"user-{number}" for number in range(12)]


CROWD = [f"crowd-{number}" for number in range(40)]


class Story:
    """A ledger with something of everything, and what its users hold of it."""

    def __init__(self, accountant: Accountant, clock: Clock) -> None:
        self.asked: list[tuple[dict[str, Any], Any]] = []
        self.receipts: list[str | None] = []
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
        self.open = self.reserve(accountant, "user-6", promising(CURVE), label="work", key="held")
        self.of_erased = self.reserve(accountant, "user-7")
        accountant.erase("user-7")
        accountant.erase("stranger", unknown=True)
        accountant.spend_many([*CROWD, CROWD[0], "user-2"], coin("0.2"), key="run")
        accountant.spend_many([*CROWD, "user-7"], coin("4.9"))
        colours, age = Collection("colours", coin("0.1"), minimum_group=1), Collection("age", coin("0.1"))
        accountant.add_collection(colours)
        accountant.add_collection(age)
        made(accountant, "team-a", "a")
        write_record(accountant, "key-revoked", "team-a", {})
        limits, shares = ["lifetime=30", "day=5", "month=25"], {"b": ["day=1"], "a": ["lifetime=2", "day=1.5"]}
        accountant.set_policy("default", limits, shares=shares)
        team = accountant.acting_for(Principal(1, "team-a", "a"))
        team.spend("user-1", coin("0.3"))
        team.spend_many(CROWD, coin("0.2"), note="through a share")
        team.void(team.reserve("user-2", coin("0.3")).receipt or "")
        for user in USERS[:8]:
            self.spend(accountant, user, colours, key="colours", note=f"{user} at the door")
            self.spend(accountant, user, age, key="age")
        accountant.spend_many([*CROWD, "user-2"], age, note="the second wave")
        accountant.spend("leaver", age, note="a note that goes")
        for user in USERS[:5]:
            self.receipts.append(send(accountant, user, user.encode(), "report", colours).receipt)
        send(accountant, "leaver", b"leaver", "report", colours)
        accountant.reports.seal("colours", "one", 4)
        accountant.erase("leaver")

    def spend(self, accountant: Accountant, user: str, mechanism: Any, **more: Any) -> None:
        request = {"user": user, "mechanism": mechanism, **more}
        self.asked.append((request, accountant.spend(**request)))

    def reserve(self, accountant: Accountant, user: str, mechanism: Any = None, **more: Any) -> str:
        held = accountant.reserve(user, mechanism or coin("0.1"), **more).receipt
        assert held is not None
        return held


def said(accountant: Accountant) -> dict[str, Any]:
    """Return the data of a ledger on its users, its policies and itself, for any number of partitions."""
    stats = accountant.stats()
    kinds = {
        kind: n for kind, n in stats["entries_by_kind"].items() if kind not in ("policy", "moved", "copied", "clock")
    }
    return {
        "stats": {name: stats[name] for name in ("users", "erased", "keys", "collections", "periods", "policies")},
        "kinds": kinds,
        "policies": [policy.to_json() for policy in accountant.policies()],
        "collections": accountant.collections(),
        "waiting": accountant.reports.waiting("colours"),
        "round": [part.content for part in accountant.reports.round("colours", "one")],
        "balances": {
            (user, policy): accountant.balance(user, policy).limits
            for user in (*USERS, *CROWD, "stranger")
            for policy in ("default", "planned", "other")
        },
        "histories": {user: told(history_of(accountant, user)) for user in (*USERS, *CROWD)},
        "charged": sorted((row["at"], row["kind"], row["epsilon"]) for row in accountant.journal() if row["account"]),
    }


def history_of(accountant: Accountant, user: str) -> list[dict[str, Any]]:
    return [] if accountant.is_erased(user) else accountant.history(user)


def told(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a history without the parts that a move renumbers."""
    return [
        {k: v for k, v in row.items() if k not in ("partition", "entry", "account", "resolves")} for row in history
    ]


def check_story(accountant: Accountant, story: Story, clock: Clock) -> None:
    """Everything that users hold is as good as before; nothing is written by it."""
    for request, first in story.asked:
        if request["user"] != "user-7":
            again = accountant.spend(**request)
            assert again.to_json() == {**first.to_json(), "repeated": True}
            with pytest.raises(KeyConflict):
                accountant.spend(**{**request, "reports": 2})
    held = accountant.reserve("user-6", promising(CURVE), label="work", key="held")
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


def places(tmp_path: Path) -> dict[str, Callable[[str], str]]:
    """Return what makes the address of a ledger of each kind from a name."""
    return {
        "file": lambda name: str(tmp_path / f"{name}.db"),
        "3 partitions": lambda name: new_ledger(3),
        "5 partitions": lambda name: new_ledger(5),
    }
