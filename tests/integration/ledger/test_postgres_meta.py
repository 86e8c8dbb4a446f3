"""The table `meta` of a ledger on PostgreSQL, and the encoding of the database that it is in."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from ldp_budget import Accountant, LedgerError
from ldp_budget.accounting.upgrade import upgrade
from ldp_budget_postgres.schema import PARTITIONED, SCHEMA_VERSION
from postgres_faults import ask
from postgres_places import new_ledger

NEWER = SCHEMA_VERSION + 1

pytestmark = pytest.mark.usefixtures("own_keys")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("DELETE FROM meta", "its tables must be of version"),
        ("DELETE FROM meta WHERE name = 'schema'", "its tables must be of version"),
        ("DELETE FROM meta WHERE name = 'identity'", "its table meta was changed"),
        ("UPDATE meta SET name = 'x' WHERE name = 'identity'", "its table meta was changed"),
        ("UPDATE meta SET value = '../../other' WHERE name = 'identity'", "its table meta was changed"),
        (r"UPDATE meta SET value = '\xff' WHERE name = 'identity'", "its table meta was changed"),
        ("DELETE FROM meta WHERE name = 'key_check'", "its table meta was changed"),
        ("UPDATE meta SET value = 'x' WHERE name = 'key_check'", "its key belongs to another ledger"),
    ],
)
def test_changed_row_of_meta_raises_a_ledger_error(change: str, why: str) -> None:
    """The row `identity` under another name: opening ended in `KeyError`."""
    address = new_ledger(1)
    Accountant(address).close()
    ask(address, change)
    with pytest.raises(LedgerError, match=why):
        Accountant(address, create=False)


@pytest.mark.parametrize("opened", [Accountant, upgrade])
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            "UPDATE meta SET name = 'ledger' WHERE name = 'identity'",
            "a release candidate of ldp-budget 1.0.0 wrote it",
        ),
        (f"UPDATE meta SET value = '{NEWER}' WHERE name = 'schema'", f"its tables were upgraded to version {NEWER},"),
        ("UPDATE meta SET value = '0' WHERE name = 'schema'", "its tables must be of version 1: got version \\?"),
    ],
)
def test_ledger_of_another_version_is_refused_and_not_changed(
    change: str, why: str, opened: Callable[[str], object]
) -> None:
    address = new_ledger(1)
    Accountant(address).close()
    ask(address, change)
    before = _rows(address)
    with pytest.raises(LedgerError, match=why):
        opened(address)
    assert _rows(address) == before


def _rows(address: str) -> list[list[tuple[object, ...]]]:
    return [ask(address, f"SELECT xmin, * FROM {table} ORDER BY 2") for table in ("meta", *PARTITIONED)]


def test_verify_finds_an_unknown_row_of_meta() -> None:
    address = new_ledger(2)
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        assert accountant.verify().ok
        ask(address, "INSERT INTO meta VALUES ('other', 'x')")
        found = accountant.verify()
    assert not found.ok
    assert any("meta: there is a row 'other'" in problem for problem in found.problems)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_database_of_another_encoding_than_utf8_is_refused(encoding: str) -> None:
    """A ledger was made there, and a name in Korean failed in the middle of a shared transaction."""
    address = new_ledger(1)
    name = re.findall(r"/(test_\w+)", address)[0]
    other = f"{name}_{encoding.lower()}"
    ask(address, f"CREATE DATABASE {other} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    there = address.replace(name, other)
    with pytest.raises(LedgerError, match=rf"must be UTF8: got {encoding}.*ENCODING 'UTF8'"):
        Accountant(there)
    assert ask(there, "SELECT to_regclass('partitions')") == [(None,)]
    ask(address, f"DROP DATABASE {other}")
