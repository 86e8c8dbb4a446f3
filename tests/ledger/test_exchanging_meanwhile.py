"""What others do at the worst moment of an exchange of a ledger's key loses neither the secret nor a receipt."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from conftest import Clock
from ldp_budget import Accountant, LedgerError, LedgerKeyMissing
from ldp_budget.accounting import connect
from ldp_budget.ledger.keyfile import Key
from ldp_budget.ledger.sqlite import connection
from ledger_contract import check, coin, spent
from ledger_exchanges import exchange
from ledger_inside import ledger_of
from toy_store import ToyStore


def at_first(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, do: Callable[[], object]) -> None:
    """What another process does just before something is called for the first time."""
    inner, done = getattr(owner, name), []

    def outer(*arguments: Any, **more: Any) -> Any:
        if not done:
            done.append(True)
            do()
        return inner(*arguments, **more)

    monkeypatch.setattr(owner, name, outer)


def activate_but_for_the_end(accountant: Accountant) -> None:
    """Somebody is stopped when the new secret is in force in all partitions, and the file does not say so yet."""

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Key, "with_active", interrupted)
        with pytest.raises(KeyboardInterrupt):
            accountant.ledger.activate_key()


@pytest.mark.parametrize("whole", [True, False])
def test_a_secret_that_comes_into_force_meanwhile_is_not_discarded(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    path = tmp_path / "budget.db"
    with Accountant(path, clock=clock) as one, Accountant(path, clock=clock) as other:
        one.set_policy("default", ["lifetime=9"])
        one.spend("alice", coin(1))
        one.ledger.prepare_key()

        def activate() -> None:
            if whole:
                other.ledger.activate_key()
            else:
                activate_but_for_the_end(other)

        at_first(monkeypatch, one._ledger, "change_key", activate)
        assert not one.ledger.discard_key()
    with Accountant(path, create=False, clock=clock) as later:
        assert spent(later, "alice")["lifetime"] == 1
        check(later)


def test_a_secret_in_force_is_not_forgotten_for_a_file_that_has_it_not(tmp_path: Path, clock: Clock) -> None:
    """As where somebody brings an older file in the middle: the last copy of the secret may be in memory."""
    path = tmp_path / "budget.db"
    key = path.with_name("budget.db.key")
    with Accountant(path, clock=clock) as one, Accountant(path, clock=clock) as other:
        one.set_policy("default", ["lifetime=9"])
        old = key.read_bytes()
        one.ledger.prepare_key()
        activate_but_for_the_end(one)
        other.spend("alice", coin(1))
        new = key.read_bytes()
        key.write_bytes(old)
        for act in (one.ledger.activate_key, one.ledger.prepare_key, one.ledger.discard_key, other.ledger.key_states):
            with pytest.raises(LedgerError, match="another key lies"):
                act()
        assert key.read_bytes() == old
        for each in (one, other):
            assert each.spend("alice", coin(1))
        key.write_bytes(new)
        assert one.ledger.activate_key() == 2
        assert spent(one, "alice")["lifetime"] == 3


def test_whoever_has_prepared_another_secret_goes_on_when_the_right_file_is_there(
    tmp_path: Path, clock: Clock
) -> None:
    path = tmp_path / "budget.db"
    key = path.with_name("budget.db.key")
    with Accountant(path, clock=clock) as one, Accountant(path, clock=clock) as other:
        one.set_policy("default", ["lifetime=9"])
        one.ledger.prepare_key()
        theirs = key.read_bytes()
        one.ledger.discard_key()
        exchange(one)
        ours = key.read_bytes()
        key.write_bytes(theirs)
        for act in (other.ledger.activate_key, lambda: other.spend("alice", coin(1))):
            with pytest.raises(LedgerKeyMissing):
                act()
        assert key.read_bytes() == theirs
        key.write_bytes(ours)
        assert other.spend("alice", coin(1))
        assert other.ledger.activate_key() == 2


def test_of_many_users_nobody_says_that_none_was_charged_where_some_partitions_have_the_new_secret(
    clock: Clock,
) -> None:
    """As on a machine to which the file was not brought, while partition after partition is exchanged."""
    store, elsewhere, users = ToyStore(3), ToyStore(3), [f"user-{n}" for n in range(30)]
    with Accountant(store, clock=clock) as one:
        one.set_policy("default", ["lifetime=9"])
        elsewhere.key, elsewhere._rows = Key(store.key.secret), store._rows
        one.ledger.prepare_key()

        def stop(done: int, total: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            one.ledger.activate_key(on_progress=stop)
    elsewhere._rows = store._rows
    with Accountant(elsewhere, clock=clock) as other:
        with pytest.raises(LedgerError, match="others of it may have been charged") as raised:
            other.spend_many(users, coin(1))
        assert raised.value.unknown
        assert not elsewhere._rows[0]._users


@pytest.mark.slow
def test_a_backup_has_a_key_of_its_moment_though_it_is_exchanged_meanwhile(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, backup = tmp_path / "budget.db", tmp_path / "backup.db"
    with Accountant(path, clock=clock) as one, Accountant(path, clock=clock) as other:
        one.set_policy("default", ["lifetime=9"])
        one.spend("alice", coin(1))

        def meanwhile() -> None:
            with suppress(LedgerError):  # the log cannot be emptied, for the backup reads it
                exchange(other)
            ledger_of(one).look_at_key()

        at_first(monkeypatch, connection, "copy", meanwhile)
        one.backup(backup)
    with Accountant(backup, create=False, clock=clock) as later:
        assert spent(later, "alice")["lifetime"] == 1
        check(later)


def test_a_partition_that_goes_back_at_the_end_of_an_exchange_is_found(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a process that has met the new secret in the middle, and has not read since that it is active."""
    store = ToyStore(2)
    with Accountant(store, clock=clock) as one:
        one.set_policy("default", ["lifetime=9"])
        users = {ledger_of(one).partition_of(store.key.hash(b"user", name)): name for name in "abcdefgh"}
        one.ledger.prepare_key()
        before = copy.deepcopy(store._rows[1])
        activate_but_for_the_end(one)
    file = store.key.with_active(2)  # by now
    monkeypatch.setattr(store, "look_at_key", lambda: store.key.learn(Key(file)), raising=False)
    with Accountant(store, clock=clock) as other:
        assert other.spend(users[0], coin(1))
        store._rows[1] = before
        with pytest.raises(LedgerError, match="partition 1 has gone back"):
            other.spend(users[1], coin(1))


@pytest.mark.parametrize("step", ["begin", "shut"])
def test_a_ledger_whose_key_is_exchanged_meanwhile_is_not_copied(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The copy would go on under the old secret, and the receipts of those under the new one would be nobody's."""
    path, place = tmp_path / "budget.db", tmp_path / "two.db"
    with Accountant(path, clock=clock) as one, Accountant(path, clock=clock) as other:
        one.set_policy("default", ["lifetime=9"])
        other.ledger.prepare_key()
        receipts = []

        def meanwhile() -> None:
            other.ledger.activate_key()
            receipts.append(str(other.reserve("alice", coin(1)).receipt))

        at_first(monkeypatch, connect, step, meanwhile)
        with pytest.raises(LedgerError, match="exchanged"):
            one.ledger.copy_to(place)
        assert other.commit(receipts[0]).status == "committed"
