"""A run of `spend_many` is the same run on the ledger's host and through a service, for the same caller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

from contract.acts import coin
from ldp_budget import Accountant, Collection, KeyConflict, LedgerError, mechanism
from ldp_budget.accounting import bulk_run
from ldp_budget.accounting.budget_client import BudgetClient
from ldp_budget_service.api_keys import ApiKeys
from ldp_budget_service.client import Client
from service_threads import Served

USERS = [f" user {number % 23} é" for number in range(40)]
POLL = Collection("poll", mechanism("rr")(epsilon="0.1"))
WEEKLY = {"policy": "weekly", "digest": "aB01", "note": "first"}


class Roads:
    """A ledger, its service, and one caller who uses both."""

    def __init__(self, served: Served) -> None:
        self.served, self.accountant = served, served.accountant
        self._clients: list[Client] = []
        key, secret = ApiKeys(self.accountant).create("team", ["spend", "read"])
        self.local: BudgetClient = self.accountant.acting_for(key.caller)
        self.remote: BudgetClient = self.client(secret)

    def client(self, secret: str) -> Client:
        made = Client(f"http://127.0.0.1:{self.served.port}", secret)
        self._clients.append(made)
        return made

    def roads(self, first: str) -> tuple[BudgetClient, BudgetClient]:
        """Return the road on which a run begins, and the other one."""
        return (self.local, self.remote) if first == "local" else (self.remote, self.local)

    def close(self) -> None:
        for each in self._clients:
            each.close()

    @property
    def charges(self) -> int:
        count: int = self.accountant.stats()["entries_by_kind"].get("spent", 0)
        return count


@pytest.fixture
def roads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Roads]:
    monkeypatch.setattr(bulk_run, "BATCH", 7)
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=1000"])
        accountant.set_policy("weekly", ["lifetime=1000", "week=0.15"])
        accountant.add_collection(POLL)
        with Served(accountant) as served:
            made = Roads(served)
            yield made
            made.close()


both = pytest.mark.parametrize("first", ["local", "remote"])


@both
@pytest.mark.parametrize("key", ["run", "a run", "실행", "sha256:x", "x" * 300])
@pytest.mark.parametrize(("chosen", "more"), [(coin("0.1"), {}), (POLL, WEEKLY)])
def test_run_repeated_on_the_other_road_is_a_repeat(
    roads: Roads, first: str, key: str, chosen: Any, more: dict[str, Any]
) -> None:
    one, other = roads.roads(first)
    begun = one.spend_many(USERS, chosen, key=key, **more)
    assert begun.spent + begun.refused == len(USERS)
    assert begun.repeated == 0
    entries, keys = roads.charges, roads.accountant.stats()["keys"]
    for road in (other, one):
        again = road.spend_many(iter(USERS), chosen, key=key, **{**more, **({"note": "again"} if more else {})})
        assert (again.spent, again.repeated) == (0, begun.spent)
        assert again.refused_users == begun.refused_users
    assert (roads.charges, roads.accountant.stats()["keys"]) == (entries, keys)
    assert roads.accountant.verify().ok


class StopError(Exception):
    """The caller was killed."""


def stopping(users: Iterable[str], after: int) -> Iterator[str]:
    for number, user in enumerate(users):
        if number == after:
            raise StopError
        yield user


@both
@pytest.mark.parametrize("after", [0, 6, 7, 20, 39])
def test_run_stopped_between_batches_continues_on_the_other_road(roads: Roads, first: str, after: int) -> None:
    one, other = roads.roads(first)
    with pytest.raises(StopError):
        one.spend_many(stopping(USERS, after), coin("0.1"), key="run")
    done = roads.charges
    assert done == after // 7 * 7
    result = other.spend_many(USERS, coin("0.1"), key="run")
    assert (result.spent, result.repeated) == (len(USERS) - done, done)
    assert one.spend_many(USERS, coin("0.1"), key="run").repeated == len(USERS)
    assert roads.charges == len(USERS)


CHANGED: dict[str, Callable[[BudgetClient], Any]] = {
    "another order": lambda road: road.spend_many(USERS[::-1], coin("0.1"), key="run"),
    "another user": lambda road: road.spend_many(["zoe", *USERS[1:]], coin("0.1"), key="run"),
    "another mechanism": lambda road: road.spend_many(USERS, coin("0.2"), key="run"),
    "a collection": lambda road: road.spend_many(USERS, POLL, key="run"),
    "another policy": lambda road: road.spend_many(USERS, coin("0.1"), key="run", policy="weekly"),
    "a digest": lambda road: road.spend_many(USERS, coin("0.1"), key="run", digest="00"),
    "fewer users": lambda road: road.spend_many(USERS[:-1], coin("0.1"), key="run"),
    "fewer batches": lambda road: road.spend_many(USERS[:14], coin("0.1"), key="run"),
    "more users": lambda road: road.spend_many([*USERS, "zoe"], coin("0.1"), key="run"),
    "more batches": lambda road: road.spend_many([*USERS, *USERS[:9]], coin("0.1"), key="run"),
}


@both
@pytest.mark.parametrize("change", CHANGED)
def test_run_with_another_request_on_the_other_road_is_a_conflict(roads: Roads, first: str, change: str) -> None:
    one, other = roads.roads(first)
    one.spend_many(USERS, coin("0.1"), key="run")
    for road in (other, one):
        with pytest.raises(KeyConflict, match="'run'"):
            CHANGED[change](road)
    assert roads.charges == len(USERS)


@both
def test_run_in_shards_on_both_roads_is_one_run(roads: Roads, first: str) -> None:
    one, other = roads.roads(first)
    assert one.spend_many(USERS, coin("0.1"), key="run", shard=(2, 3)).spent == 14
    assert other.spend_many(USERS, coin("0.1"), key="run", shard=(1, 3)).spent == 14
    assert other.spend_many(USERS, coin("0.1"), key="run").to_json() == {"spent": 12, "refused": 0, "repeated": 28}
    assert one.spend_many(USERS, coin("0.1"), key="run", shard=(3, 3)).repeated == 12


@both
def test_run_whose_batch_failed_is_repeated_on_the_other_road(
    roads: Roads, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = roads.roads(first)
    ledger, error = type(roads.accountant._ledger), LedgerError("it", "the disk is gone", unknown=False)
    charge, calls = ledger.charge, 0

    def failing(self: Any, engine: Any, requests: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise error
        return charge(self, engine, requests, **options)

    with monkeypatch.context() as changes:
        changes.setattr(ledger, "charge", failing)
        if first == "local":
            with pytest.raises(LedgerError):
                one.spend_many(USERS, coin("0.1"), key="run")
            assert roads.charges == 14
        else:  # the client repeats what failed
            assert one.spend_many(USERS, coin("0.1"), key="run").spent == len(USERS)
    assert other.spend_many(USERS, coin("0.1"), key="run").repeated == roads.charges - (26 if first == "local" else 0)
    assert roads.charges == len(USERS)
