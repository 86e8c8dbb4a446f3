"""Two ledgers with one key file: neither accepts a receipt or a row of the other."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from contract.acts import check, coin
from exchanged_rows import BOUND, TABLES, fill
from fixed_clock import Clock
from ldp_budget import Accountant, LedgerError, UnknownName
from ldp_budget_postgres import pool
from postgres_faults import ask
from postgres_places import new_ledger


def reserve(accountant: Accountant) -> str:
    """The same requests in each, so that the entries have the same numbers."""
    accountant.set_policy("default", ["lifetime=9"])
    receipt = accountant.reserve("alice", coin(1)).receipt
    assert receipt is not None
    return receipt


def check_apart(one: Accountant, other: Accountant) -> None:
    first, second = reserve(one), reserve(other)
    assert first.partition("-")[0] == second.partition("-")[0]
    for mine, theirs in ((one, second), (other, first)):
        with pytest.raises(UnknownName):
            mine.commit(theirs)
        with pytest.raises(UnknownName):
            mine.void(theirs)
    assert one.keyed_digest(b"x") != other.keyed_digest(b"x")
    assert one.commit(first).status == "committed"
    assert other.void(second).status == "voided"


def test_receipt_of_another_ledger_with_the_same_key_is_unknown_on_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """`LDP_BUDGET_KEY` named one file for two ledgers: one committed and voided what the other had reserved."""
    monkeypatch.setenv("LDP_BUDGET_KEY", str(tmp_path / "one.key"))
    addresses = new_ledger(1), new_ledger(1)
    with Accountant(addresses[0], clock=clock) as one, Accountant(addresses[1], clock=clock) as other:
        check_apart(one, other)
        check(one)
    ask(addresses[0], "UPDATE meta SET value = 'x' WHERE name = 'ledger_id'")
    with pytest.raises(LedgerError, match="meta was changed"):
        Accountant(addresses[0], create=False)


@pytest.mark.parametrize("partitions", [1, 3])
def test_rows_of_another_ledger_with_the_same_key_do_not_verify_on_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    monkeypatch.setenv("LDP_BUDGET_KEY", str(tmp_path / "one.key"))
    addresses = new_ledger(partitions), new_ledger(partitions)
    for address in addresses:
        clock = Clock()
        with Accountant(address, clock=clock) as accountant:
            fill(accountant, clock)
    rows = [{table: ask(address, f"SELECT * FROM {table}") for table in TABLES} for address in addresses]
    clock.advance(hours=2)
    for tables in (TABLES, *((table,) for table in (*BOUND, "checkpoints"))):
        if all(sorted(map(repr, rows[0][table])) == sorted(map(repr, rows[1][table])) for table in tables):
            continue
        put(addresses[1], rows[0], tables)
        try:
            with Accountant(addresses[1], create=False, clock=clock) as accountant:
                assert not accountant.verify().ok, tables
        except LedgerError:
            pass  # it is refused already when it is opened, or its checkpoint is
        put(addresses[1], rows[1], tables)
    with Accountant(addresses[1], create=False, clock=clock) as accountant:
        check(accountant)


def put(address: str, rows: dict[str, list[tuple[object, ...]]], tables: tuple[str, ...]) -> None:
    """Replace all rows of some tables."""
    with psycopg.connect(pool.read(address).connect) as connection, connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"DELETE FROM {table}")
            for row in rows[table]:
                cursor.execute(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})", row)
