"""What tests of faults look at behind the accountant's back: its store, its connections, its tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ldp_budget import Accountant
from ldp_budget.ledger.group_commit import GroupCommit
from ldp_budget.ledger.ledger import Ledger


def ledger_of(accountant: Accountant) -> Ledger:
    return accountant._ledger


def group_of(accountant: Accountant) -> GroupCommit:
    (group,) = accountant._ledger._groups
    return group


def store_of(accountant: Accountant) -> Any:
    return accountant._ledger._store


def writer_of(accountant: Accountant) -> sqlite3.Connection:
    """The connection that writes, opened if it is not."""
    connection: sqlite3.Connection = store_of(accountant)._current()
    return connection


def replace_writer(accountant: Accountant, connection: Any) -> None:
    store_of(accountant)._writer = connection


@contextmanager
def tables(accountant: Accountant) -> Iterator[sqlite3.Connection]:
    """A connection that reads the tables as they are now."""
    with store_of(accountant).snapshot() as rows:
        yield rows._connection
