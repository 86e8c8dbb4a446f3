"""A moved ledger keeps everything that users hold, and at most one of the two places is open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fixed_clock import Clock
from ldp_budget import Accountant, LedgerError
from ldp_budget.errors import LedgerMissing
from ldp_budget.registry.collections import Collection
from ledger_contract import CURVE, coin, promising
from postgres_places import new_ledger


@pytest.fixture(autouse=True)
def own_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the keys of ledgers on servers in a folder of the test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("LDP_BUDGET_KEY", raising=False)


def places(tmp_path: Path) -> dict[str, Callable[[str], str]]:
    return {
        "file": lambda name: str(tmp_path / f"{name}.db"),
        "3 partitions": lambda name: new_ledger(3),
        "5 partitions": lambda name: new_ledger(5),
    }


# -- interrupted ----------------------------------------------------------------------------------------------


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


# -- what is refused ------------------------------------------------------------------------------------------


def test_move_of_an_empty_server_ledger_onto_itself_is_refused(clock: Clock) -> None:
    address = new_ledger(2)
    other = address.replace("@127.0.0.1", "@localhost")
    if other == address:
        pytest.skip("the server that is given has no other name that is known")
    with Accountant(address, clock=clock) as accountant:
        with pytest.raises(LedgerError, match="a ledger cannot be moved to itself"):
            accountant.ledger.move_to(other)
        accountant.set_policy("default", ["lifetime=1"])
        assert accountant.spend("alice", coin("0.1"))


def test_move_to_a_server_with_another_key_is_refused(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(tmp_path / "first.db", clock)
    there, key = new_ledger(2), tmp_path / "named.key"
    key.write_bytes(bytes(32))
    key.chmod(0o600)
    monkeypatch.setenv("LDP_BUDGET_KEY", str(key))
    with Accountant(tmp_path / "first.db", clock=clock) as accountant:
        with pytest.raises(
            LedgerError, match=r"its key file .*named.key must have the key of the ledger that is copied to it"
        ):
            accountant.ledger.move_to(there)
        with pytest.raises(LedgerMissing):
            Accountant(there, create=False)
        assert accountant.spend("alice", coin("0.001"))
        key.write_bytes((tmp_path / "first.db.key").read_bytes())
        with Accountant(there, clock=clock):
            pass  # made, and empty
        assert accountant.ledger.move_to(there).accounts == 5
