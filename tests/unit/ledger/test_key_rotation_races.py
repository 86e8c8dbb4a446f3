"""Key rotation with other operations at its worst moment: neither the secret nor a receipt is lost."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from contract.acts import check, coin, spent
from contract.rotation import exchange
from contract.toy_store import ToyStore
from fixed_clock import Clock
from ldp_budget import Accountant, LedgerError, LedgerKeyMissing
from ldp_budget.accounting import ledger_move
from ldp_budget.ledger.keyed_hashing import Key
from ldp_budget.ledger.ledger import Ledger
from ldp_budget.ledger.sqlite import connection
from ledger_inside import ledger_of, store_of


def at_first(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, do: Callable[[], object]) -> None:
    """Let another process act just before the first call of a function."""
    inner, done = getattr(owner, name), []

    def outer(*arguments: Any, **more: Any) -> Any:
        if not done:
            done.append(True)
            do()
        return inner(*arguments, **more)

    monkeypatch.setattr(owner, name, outer)


@pytest.mark.exhaustive
def test_backup_during_a_rotation_has_the_key_of_its_moment(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, backup = tmp_path / "budget.db", tmp_path / "backup.db"
    with Accountant(path, clock=clock) as one, Accountant(path, clock=clock) as other:
        one.set_policy("default", ["lifetime=9"])
        one.spend("alice", coin(1))

        def meanwhile() -> None:
            with suppress(LedgerError):  # the log cannot be emptied, for the backup reads it
                exchange(other)
            store_of(one).key.learn(Key(path.with_name("budget.db.key").read_bytes()))

        at_first(monkeypatch, connection, "copy", meanwhile)
        one.backup(backup)
    with Accountant(backup, create=False, clock=clock) as later:
        assert spent(later, "alice")["lifetime"] == 1
        check(later)


def test_partition_restored_from_before_a_rotation_is_found(clock: Clock) -> None:
    store = ToyStore(2)
    with Accountant(store, clock=clock) as one:
        one.set_policy("default", ["lifetime=9"])
        users = {ledger_of(one).partition_of(store.key.hash(b"user", name)): name for name in "abcdefgh"}
        before = copy.deepcopy(store._rows[1])
        exchange(one)
    with Accountant(store, clock=clock) as other:
        assert other.spend(users[0], coin(1))
        store._rows[1] = before
        with pytest.raises(LedgerError, match="partition 1 was rolled back: it uses secret 1"):
            other.spend(users[1], coin(1))


@pytest.mark.slow
@pytest.mark.parametrize("step", ["begin", "fence"])
def test_move_during_a_rotation_is_refused(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The copy would continue under the old secret, and the receipts under the new one would be lost."""
    path, place = tmp_path / "budget.db", tmp_path / "two.db"
    with Accountant(path, clock=clock) as one, Accountant(path, clock=clock) as other:
        one.set_policy("default", ["lifetime=9"])
        receipts = []

        def meanwhile() -> None:
            exchange(other)
            receipts.append(str(other.reserve("alice", coin(1)).receipt))

        at_first(monkeypatch, ledger_move, step, meanwhile)
        with pytest.raises(LedgerKeyMissing, match="rotated"):
            one.ledger.move_to(place)
        assert other.commit(receipts[0]).status == "committed"


def test_spend_that_waits_for_a_rotation_is_refused(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its user was hashed before the rotation: under the new secret the user would not be found, and get a fresh budget."""
    path = tmp_path / "budget.db"
    with Accountant(path, clock=clock) as one, Accountant(path, clock=clock) as other:
        one.set_policy("default", ["lifetime=2"])
        assert one.spend("alice", coin(1))
        at_first(monkeypatch, Ledger, "attempts", lambda: exchange(other))
        with pytest.raises(LedgerKeyMissing):
            one.spend("alice", coin(1))
        assert other.stats()["users"] == 1
        assert other.spend("alice", coin(1))
        assert not other.spend("alice", coin(1))
