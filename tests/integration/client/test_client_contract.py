"""The ledger's contract for a `Client` of a service with a ledger in SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from contract import LedgerContract
from contract.acts import check, coin, everything, spent
from contract.places import InFile
from fixed_clock import Clock
from ldp_budget import Accountant, LedgerError, UnknownName
from postgres_places import Emptied
from service_places import Behind, plugin_of_promises


def but_for_keys(accountant: Accountant) -> list[Any]:
    """The visible state of a ledger, without stored receipts: over HTTP every charge has a key."""
    journal, stats, policies = everything(accountant)
    return [journal, {name: value for name, value in stats.items() if name not in ("keys", "head")}, policies]


class RemoteContract(LedgerContract):
    """The contract over HTTP; what differs there stands below, with the reason."""

    threads_with_one_key = 3  # a request that comes meanwhile waits for a second

    @pytest.fixture(autouse=True)
    def promises(self) -> Iterator[None]:
        with plugin_of_promises():
            yield

    def test_refusal_changes_nothing_but_its_key(self, accountant: Accountant) -> None:
        """A request without a key is given one, so that it can be sent again; a refusal is kept under it."""
        accountant.set_policy("default", ["lifetime=1", "day=0.5"])
        accountant.spend("alice", coin("0.4"))
        before, keys = but_for_keys(accountant), accountant.stats()["keys"]
        for user, epsilon in (("alice", "0.2"), ("alice", 2), ("bob", "0.6")):
            assert accountant.spend(user, coin(epsilon)).status == "refused"
            assert accountant.reserve(user, coin(epsilon)).status == "refused"
        assert accountant.spend("alice", coin(2), key="k").status == "refused"
        assert accountant.spend("alice", coin(2), key="k").repeated
        assert accountant.stats()["keys"] == keys + 7
        assert accountant.spend_many(["alice", "alice"], coin(2)).refused == 2
        assert but_for_keys(accountant) == before
        check(accountant)

    def test_batch_with_all_users_refused_leaves_no_trace(self, accountant: Accountant) -> None:
        """But for the key of the run, which every run has."""
        accountant.set_policy("default", ["lifetime=1"])
        before = but_for_keys(accountant)
        assert accountant.spend_many(["alice", "bob"], coin(2)).refused == 2
        assert but_for_keys(accountant) == before
        check(accountant)
        accountant.set_policy("default", ["lifetime=3"])
        assert accountant.spend("alice", coin(2))
        check(accountant)

    def test_failure_stores_nothing_under_its_key(self, accountant: Accountant, clock: Clock) -> None:
        """Of a run the service keeps which lines it had, before any of them is charged."""
        with pytest.raises(UnknownName):
            accountant.spend("alice", coin(1), key="k")
        accountant.set_policy("default", ["lifetime=1"])
        clock.advance(seconds=-6)
        before = everything(accountant)
        for call in (accountant.spend, accountant.reserve, accountant.quote):
            with pytest.raises(LedgerError, match="more than 5 s before"):
                call("alice", coin(1), **({} if call == accountant.quote else {"key": "k"}))
        assert everything(accountant) == before
        shown = but_for_keys(accountant)
        with pytest.raises(LedgerError, match="more than 5 s before"):
            accountant.spend_many(["alice"], coin(1), key="k")
        assert but_for_keys(accountant) == shown
        clock.advance(seconds=1)
        assert not accountant.spend("alice", coin("0.5"), key="k").repeated, "5 s behind counts as equal"
        run = accountant.spend_many(["alice"], coin(1), key="k")
        assert run.to_json() == {"spent": 0, "refused": 1, "repeated": 0}, "it was not charged when it failed"
        assert spent(accountant, "alice") == {"lifetime": Decimal("0.5")}


class TestBehindAService(RemoteContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Behind:
        return Behind(InFile(tmp_path / "budget.db"))


@pytest.mark.exhaustive
@pytest.mark.usefixtures("own_keys")
class TestBehindAServiceOnAServer(RemoteContract):
    @pytest.fixture
    def place(self) -> Behind:
        return Behind(Emptied(4))
