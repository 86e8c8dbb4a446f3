"""Values that PostgreSQL cannot store: only their caller gets the error, not others in the commit."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from contract.acts import check, coin, spent
from ldp_budget import Accountant, InvalidParameter, LedgerError
from ldp_budget.ledger.models import StoredPolicy
from ldp_budget.ledger.storage import UnstorableError
from ldp_budget.ledger.transaction import Transaction
from ldp_budget.registry.collections import Collection
from ledger_inside import BusyWriter
from postgres_faults import In
from postgres_places import Emptied

pytestmark = pytest.mark.usefixtures("own_keys")


def charge(transaction: Transaction) -> str:
    account = transaction.open_account(secrets.token_bytes(16))
    transaction.set_spent(account, 0, coin(1).guarantee.costs())
    return "charged"


def find_nul(transaction: Transaction) -> Any:
    """The driver refuses it, before anything is sent."""
    return transaction.collection("a\0b")


def store_too_long(transaction: Transaction) -> None:
    """The server refuses it, with the last statements before the commit: no row of an index is that long."""
    transaction.rows.insert(StoredPolicy, [StoredPolicy(99, secrets.token_hex(9_000), 1, 0, "{}")])


@pytest.mark.parametrize("failing", [find_nul, store_too_long])
def test_value_that_cannot_be_stored_fails_its_own_submission_alone(failing: Any) -> None:
    """A collection name with a NUL, asked for by one caller: 45 % of the spends of others failed meanwhile."""
    with Accountant(Emptied(1).address) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        ledger = accountant._ledger
        callers = []
        with BusyWriter(accountant) as writer:
            for number, work in enumerate((charge, charge, failing, charge), 1):
                callers.append(In(lambda work=work: ledger.run(work)))  # type: ignore[misc]
                writer.wait_for(number)
        first, second, failed, third = [caller.result() for caller in callers]
        assert [first, second, third] == ["charged"] * 3
        assert isinstance(failed, UnstorableError)
        assert "Nothing was charged" in str(failed)
        assert not failed.unknown
        with pytest.raises(LedgerError):
            ledger.run(failing)
        assert accountant.stats()["users"] == 3


@pytest.mark.parametrize("name", ["a\0b", "\0", "\ud800", "x\udcff"])
def test_name_that_cannot_be_stored_is_refused_before_the_database_sees_it(name: str) -> None:
    """`spend(policy="a\\0b")` reached the server's driver, in a transaction that others shared."""
    with Accountant(Emptied(1).address) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        calls = {
            "user": lambda: accountant.spend(name, coin(1)),
            "key": lambda: accountant.spend("alice", coin(1), key=name),
            "policy": lambda: accountant.spend("alice", coin(1), policy=name),
            "label": lambda: accountant.spend("alice", coin(1), label=name),
            "note": lambda: accountant.spend("alice", coin(1), note=name),
            "users": lambda: accountant.spend_many(["bob", name], coin(1)),
            "key of a run": lambda: accountant.spend_many(["bob"], coin(1), key=name),
            "balance": lambda: accountant.balance(name),
            "balance under": lambda: accountant.balance("alice", policy=name),
            "set_policy": lambda: accountant.set_policy(name, ["lifetime=9"]),
            "read policy": lambda: accountant.policy(name),
            "collection": lambda: accountant.collection(name),
            "Collection": lambda: Collection(name, coin(1)),
            "record": lambda: accountant.record("mine", name, {}, expected=0),
            "erase": lambda: accountant.erase(name),
        }
        for what, call in calls.items():
            with pytest.raises(InvalidParameter) as told:
                call()
            assert name not in str(told.value), what
        assert spent(accountant, "alice") == {"lifetime": 0}
        check(accountant)
