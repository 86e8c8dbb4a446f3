"""Rows of one ledger in another one with the same key: each MAC and chain hash names its ledger."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from contract.acts import coin
from exchanged_rows import BOUND, HALF, TABLES, fill
from fixed_clock import Clock
from ldp_budget import Accountant, LedgerError
from ldp_budget.ledger.keyed_hashing import Secret
from ldp_budget.ledger.sqlite import SqliteStore

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=[1, 2])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two files with one key and the same history; with a rotated key if the number of secrets is 2."""
    folder = tmp_path_factory.mktemp("pair")
    one, other = folder / "one.db", folder / "other.db"
    Accountant(one, clock=Clock()).close()
    key = Path(f"{one}.key").read_bytes()
    SqliteStore(other, create=True, secret=key).close()
    for path in (one, other):
        clock = Clock()
        with Accountant(path, create=False, clock=clock) as accountant:
            fill(accountant, clock)
    if request.param == 2:
        with Accountant(one, create=False, clock=clock) as accountant:
            accountant.ledger.rotate_key()
        other_key = Path(f"{other}.key")
        rotated = Path(f"{one}.key").read_bytes()
        other_key.write_bytes(rotated.replace(b'"active":2', b'"active":1'))
        with Accountant(other, create=False, clock=clock) as accountant:
            accountant.ledger.rotate_key()
        assert other_key.read_bytes() == rotated
    return one, other


def exchange(pair: tuple[Path, Path], folder: Path, tables: tuple[str, ...]) -> tuple[Path, bool]:
    """A copy of the second ledger with all rows of some tables of the first; and if that changed anything."""
    path = folder / "other.db"
    for ending in ("", ".key"):
        shutil.copy(f"{pair[1]}{ending}", f"{path}{ending}")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ATTACH ? AS one", (str(pair[0]),))
        changed = False
        for table in tables:
            mine, theirs = (
                sorted(map(repr, connection.execute(f"SELECT * FROM {schema}.{table}"))) for schema in ("main", "one")
            )
            changed = changed or mine != theirs
            connection.execute(f"DELETE FROM main.{table}")
            connection.execute(f"INSERT INTO main.{table} SELECT * FROM one.{table}")
        connection.commit()
    return path, changed


@pytest.mark.parametrize("table", BOUND)
def test_rows_of_another_ledger_in_one_table_do_not_verify(
    pair: tuple[Path, Path], tmp_path: Path, clock: Clock, table: str
) -> None:
    path, changed = exchange(pair, tmp_path, (table,))
    assert changed, "the rows of both ledgers are the same"
    try:
        with Accountant(path, create=False, clock=clock) as accountant:
            assert not accountant.verify().ok
    except LedgerError:
        pass  # it is refused already when it is opened


def test_all_rows_of_another_ledger_are_refused(pair: tuple[Path, Path], tmp_path: Path, clock: Clock) -> None:
    path, _ = exchange(pair, tmp_path, TABLES)
    clock.advance(hours=2)
    try:
        with Accountant(path, create=False, clock=clock) as accountant:
            assert not accountant.verify().ok
            for user in ("ada", "user 3", "dan"):
                with pytest.raises(LedgerError):
                    accountant.spend(user, HALF)
            with pytest.raises(LedgerError):
                accountant.spend("ada", coin(20), key="refused")
    except LedgerError:
        pass  # it is refused already when it is opened


def test_every_hash_that_binds_rows_names_the_ledger() -> None:
    """A user, an idempotency key and a label keep their hashes when a ledger is moved or copied."""
    secrets = [Secret(b"s" * 32) for _ in range(3)]
    for secret, ledger_id in zip(secrets, ("", "a", "b"), strict=True):
        assert secret.row_mac(1)  # a hasher that was begun before the id was known is not used again
        secret.ledger_id = ledger_id
    for hashes in (
        [secret.row_mac(1, "x") for secret in secrets],
        [secret.row_macs([(1, "x")])[0] for secret in secrets],
        [secret.chain_hash(b"x") for secret in secrets],
        [secret.sums(b"x").digest() for secret in secrets],
        [secret.hash_outside(b"receipt", "x") for secret in secrets],
    ):
        assert len(set(hashes)) == 3
    assert len({secret.commitment(b"x", b"y") for secret in secrets}) == 1, "the chain covers it"
    assert len({secret.hash(b"user", "x") for secret in secrets}) == 1
    assert len({secret.hashes(b"user", ["x"])[0] for secret in secrets}) == 1
