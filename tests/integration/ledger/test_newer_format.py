"""A ledger whose tables a newer version has upgraded: an open process refuses each charge and read, a new one to open."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

import ldp_budget
from ldp_budget import Accountant, LedgerUpgraded
from ldp_budget.ledger.sqlite.schema import SCHEMA_VERSION
from ldp_budget_postgres.schema import SCHEMA_VERSION as SERVER_VERSION
from postgres_places import new_ledger

NEWER = "upgraded to version {0}, and this process knows version {1}"


def file_at(tmp_path: Path) -> tuple[str, Callable[[int], None], int]:
    path = tmp_path / "budget.db"

    def upgrade(version: int) -> None:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA user_version = {version}")

    return str(path), upgrade, SCHEMA_VERSION


def server_at(tmp_path: Path) -> tuple[str, Callable[[int], None], int]:
    url = new_ledger(2)

    def upgrade(version: int) -> None:
        with psycopg.connect(url.replace("partitions=2", "").rstrip("?&")) as connection:
            connection.execute("UPDATE meta SET value = %s WHERE name = 'schema'", (str(version).encode(),))

    return url, upgrade, SERVER_VERSION


@pytest.mark.parametrize("made", [file_at, server_at])
def test_open_process_refuses_a_newer_format_and_charges_again_after_the_way_back(
    made: Any, tmp_path: Path, own_keys: None
) -> None:
    ledger, upgrade, known = made(tmp_path)
    coin = ldp_budget.mechanism("rr")(epsilon="0.5")
    with Accountant(ledger) as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        accountant.spend("ann", coin, key="1")
        upgrade(known + 1)
        for call in (
            lambda: accountant.spend("ann", coin, key="2"),
            lambda: accountant.spend("ann", coin, key="1"),
            lambda: accountant.spend_many(["ann", "bob"], coin, key="run"),
            lambda: accountant.set_policy("default", ["lifetime=5"]),
            lambda: accountant.reserve("bob", coin),
            lambda: accountant.balance("ann"),
            lambda: accountant.history("ann"),
            lambda: Accountant(ledger, create=False),
        ):
            with pytest.raises(LedgerUpgraded, match=NEWER.format(known + 1, known)):
                call()
        assert NEWER.format(known + 1, known) in str(accountant.ledger.check_up()["schema"])
        upgrade(known)
        assert accountant.spend("ann", coin, key="2").status == "spent"
        assert len(accountant.history("ann")) == 2
        assert accountant.ledger.verify().ok
