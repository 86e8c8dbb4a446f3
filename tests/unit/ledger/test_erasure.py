"""Erasure of a user: no trace is left, the user gets no fresh budget, and the ledger still verifies."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from contract.acts import CURVE, check, coin, everything, promising, spent
from fixed_clock import Clock
from ldp_budget import Accountant, UnknownName, UserErased
from ldp_budget.ledger.key_file import read_key
from ledger_inside import tables

RAPPOR = promising(CURVE)


def live(accountant: Accountant, user: str) -> dict[str, str]:
    """A life in the ledger; returns two open reservations."""
    accountant.spend(user, coin("0.5"), reports=2, key=f"{user}/1", note=f"{user} lives at home")
    accountant.spend(user, RAPPOR, label=f"home of {user}", key=f"{user}/2")
    accountant.spend(user, coin(50), key=f"{user}/refused")
    accountant.spend_many([user, "another"], coin("0.25"), key=f"run with {user}", note="second wave")
    return {
        "plain": accountant.reserve(user, coin("0.125")).receipt or "",
        "labelled": accountant.reserve(user, RAPPOR, label=f"home of {user}").receipt or "",
    }


@pytest.fixture(autouse=True)
def policy(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=20", "day=15", "week=15"])


def table(accountant: Accountant, name: str) -> list[tuple[Any, ...]]:
    with tables(accountant) as transaction:
        return transaction.execute(f"SELECT * FROM {name}").fetchall()


# -- no fresh budget -----------------------------------------------------------------------------------------


# -- nothing leads back --------------------------------------------------------------------------------------


def test_tombstone_does_not_reveal_the_account(accountant: Accountant, clock: Clock) -> None:
    """Not even the time: the entry of an erasure does not name the user."""
    for user in ("alice", "bob", "carol"):
        live(accountant, user)
    for user in ("bob", "alice"):
        clock.advance(hours=1)
        accountant.erase(user)
    assert len(table(accountant, "tombstones")) == 2
    assert len([account for account, hashed, _ in table(accountant, "users") if hashed is None]) == 2
    entries = [row for row in accountant.journal() if row["kind"] == "erased"]
    assert [(row["account"], row["mechanism"], row["policy"]) for row in entries] == [(None, None, None)] * 2
    with pytest.raises(UserErased):
        accountant.history("alice")
    balance = accountant.balance("alice")
    assert (balance.erased, balance.limits, balance.to_json()["odometer"]) == (True, (), None)


@pytest.mark.slow
def test_erase_leaves_no_trace_in_the_file(tmp_path: Path, clock: Clock) -> None:
    """Neither name nor hash, neither in the log nor in what SQLite no longer uses; but one tombstone."""
    path = tmp_path / "budget.db"
    with Accountant(path, clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=20"])
        for number in range(40):
            accountant.spend(f"first-{number}", coin(1), key=f"key-{number}")
        live(accountant, "alice")
        for number in range(40):
            accountant.spend(f"second-{number}", coin(1), key=f"other-{number}")
        key = read_key(path)
        user = key.hash(b"user", "alice")
        private = [
            key.hash(b"label", f"{user.hex()} home of alice"),
            *(key.hash(b"key", name) for name in ("alice/1", "alice/2", "alice/refused")),
            b"alice lives at home",
        ]

        def stored(secret: bytes) -> int:
            return sum(file.read_bytes().count(secret) for file in tmp_path.iterdir())

        assert all(stored(secret) for secret in (user, *private))
        accountant.erase("alice")
        assert (stored(user), [stored(secret) for secret in private]) == (1, [0, 0, 0, 0, 0])
    assert stored(user) == 1
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM tombstones WHERE user_hash = ?", (user,)).fetchone() == (1,)
    connection.close()


# -- what stays ----------------------------------------------------------------------------------------------


def test_erase_does_not_reuse_the_account_number(accountant: Accountant) -> None:
    accountant.spend("alice", coin(1))
    accountant.erase("alice")
    accountant.spend("bob", coin(1))
    accounts = [row["account"] for row in accountant.journal() if row["kind"] == "spent"]
    assert len(set(accounts)) == 2
    assert spent(accountant, "bob")["lifetime"] == 1
    check(accountant)


def test_erased_user_is_not_backfilled_into_a_new_period(accountant: Accountant) -> None:
    live(accountant, "alice")
    live(accountant, "bob")
    accountant.erase("alice")
    accountant.set_policy("default", ["lifetime=20", "month=15"])
    check(accountant)
    assert spent(accountant, "bob")["month"] == spent(accountant, "bob")["lifetime"]


# -- a name never seen ---------------------------------------------------------------------------------------


def test_erase_of_an_unknown_user_needs_unknown_true(accountant: Accountant) -> None:
    """The name may be misspelt, and would be blocked for good."""
    live(accountant, "alice")
    before = everything(accountant)
    with pytest.raises(UnknownName, match=r"no user is named 'alcie'\. Nothing was erased") as caught:
        accountant.erase("alcie")
    assert (caught.value.kind, caught.value.known) == ("user", ())
    assert everything(accountant) == before
    assert not accountant.is_erased("alcie")
    assert accountant.spend("alcie", coin(1)).status == "spent"
    assert accountant.erase("dave", unknown=True) is False
    assert accountant.is_erased("dave")
    assert accountant.spend("dave", coin(1)).status == "refused"
    assert accountant.erase("alice", unknown=True) is True
    assert accountant.erase("alice") is False, "done before"
    check(accountant)
