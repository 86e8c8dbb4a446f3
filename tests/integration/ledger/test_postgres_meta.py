"""The table `meta` of a ledger on PostgreSQL, and the encoding of the database that it is in."""

from __future__ import annotations

import re

import pytest

from ldp_budget import Accountant, LedgerError
from postgres_faults import ask
from postgres_places import new_ledger

pytestmark = pytest.mark.usefixtures("own_keys")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("DELETE FROM meta", "its tables must be of version"),
        ("DELETE FROM meta WHERE name = 'schema'", "its tables must be of version"),
        ("DELETE FROM meta WHERE name = 'ledger'", "its table meta was changed"),
        ("UPDATE meta SET name = 'x' WHERE name = 'ledger'", "its table meta was changed"),
        ("UPDATE meta SET value = '../../other' WHERE name = 'ledger'", "its table meta was changed"),
        (r"UPDATE meta SET value = '\xff' WHERE name = 'ledger'", "its table meta was changed"),
        ("DELETE FROM meta WHERE name = 'key_check'", "its table meta was changed"),
        ("UPDATE meta SET value = 'x' WHERE name = 'key_check'", "its key belongs to another ledger"),
    ],
)
def test_changed_row_of_meta_raises_a_ledger_error(change: str, why: str) -> None:
    """The row `ledger` under another name: opening ended in `KeyError: 'ledger'`."""
    address = new_ledger(1)
    Accountant(address).close()
    ask(address, change)
    with pytest.raises(LedgerError, match=why):
        Accountant(address, create=False)


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
