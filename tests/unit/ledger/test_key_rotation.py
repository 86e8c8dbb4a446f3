"""Key rotation: a ledger after the rotation of its secret, and the abilities of an attacker with the old secret."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from contract.acts import CURVE, check, coin, promising, spent
from contract.places import InFile, InMemory, InToys, Place
from contract.rotation import exchange, reopen
from fixed_clock import Clock
from ldp_budget import Accountant, LedgerError, LedgerKeyMissing, LedgerMoved, UnknownName
from ldp_budget.ledger import key_rotation
from ldp_budget.ledger.checkpoints import link_of
from ldp_budget.ledger.hash_chain import canonical_rows, canonical_transaction
from ldp_budget.ledger.keyed_hashing import Key, new_key
from ldp_budget.ledger.models import EMPTY_CHAIN, Checkpoint, PricedMechanism, StoredPolicy
from ldp_budget.ledger.sqlite import SqliteStore
from ledger_inside import ledger_of

pytestmark = pytest.mark.policy("lifetime=9", "day=9")


@pytest.fixture(params=["memory", pytest.param("file", marks=pytest.mark.exhaustive), "three partitions"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    places: dict[str, Place] = {
        "memory": InMemory(),
        "file": InFile(tmp_path / "budget.db"),
        "three partitions": InToys(3),
    }
    return places[request.param]


def in_use(accountant: Accountant) -> None:
    """Write one of everything that depends on the secret."""
    accountant.spend("alice", coin(1), key="a", note="a note")
    accountant.spend("alice", promising(CURVE), label="home", key="labelled")
    accountant.spend_many(["alice", "bob", "carol"], coin("0.5"), key="run", note="all")
    accountant.spend("dora", coin(10), key="refused")
    accountant.spend("erased", coin(1), key="e", note="gone")
    accountant.erase("erased")
    accountant.checkpoint()


@pytest.mark.slow
@pytest.mark.parametrize("owner", [key_rotation, Key])
def test_interrupted_rotation_is_completed_by_the_next(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch, owner: Any
) -> None:
    """Before the transaction has ended, the old secret is in use; after it, the new one. There is no third."""
    in_use(accountant)

    def stop(*given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(owner, "_take" if owner is key_rotation else "with_active", stop)
        with pytest.raises(KeyboardInterrupt):
            accountant.ledger.rotate_key()
    reopen(accountant)
    assert ledger_of(accountant).key.in_use.number == (1 if owner is key_rotation else 2)
    assert accountant.spend("alice", coin(1), key="a").repeated
    check(accountant)
    assert exchange(accountant) == 2
    assert ledger_of(accountant).key.newest == ledger_of(accountant).key.active == 2
    check(accountant)


@pytest.mark.slow
def test_open_ledger_refuses_everything_after_a_rotation(accountant: Accountant) -> None:
    """Its hashes are encrypted with the old secret: they would find no user, who would get a fresh budget."""
    in_use(accountant)
    accountant.ledger.rotate_key()
    for act in (
        lambda: accountant.spend("alice", coin(1)),
        lambda: accountant.spend_many(["alice"], coin(1)),
        lambda: accountant.balance("alice"),
        accountant.verify,
        accountant.ledger.rotate_key,
    ):
        with pytest.raises(LedgerKeyMissing, match="open the ledger again"):
            act()
    assert "open the ledger again" in str(accountant.ledger.check_up()["key"])
    reopen(accountant)
    assert accountant.spend("alice", coin(1), key="a").repeated
    check(accountant)


# -- attacks with the old secret --------------------------------------------------------------------------


@pytest.fixture
def stolen(tmp_path: Path, clock: Clock) -> tuple[Path, Key]:
    """A ledger whose key was seen, and then exchanged; and that key."""
    path = tmp_path / "budget.db"
    with Accountant(path, clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        in_use(accountant)
        accountant.reserve("alice", coin("0.25"))
        key = Key(path.with_name("budget.db.key").read_bytes())
        exchange(accountant)
        accountant.spend("alice", coin("0.1"), key="later")
        accountant.checkpoint()
    return path, key


def stored(path: Path) -> bytes:
    """Every byte of a ledger's files, and the dump of its tables."""
    with closing(sqlite3.connect(path)) as connection, connection:
        dump = "\n".join(connection.iterdump()).encode()
    return dump + b"".join(file.read_bytes() for file in path.parent.glob("budget.db*") if file.suffix != ".key")


@pytest.mark.slow
def test_old_secret_after_a_rotation_finds_no_user(stolen: tuple[Path, Key]) -> None:
    path, key = stolen
    alice = key.hash(b"user", "alice")
    names = {
        "a user": alice,
        "an erased user": key.hash(b"user", "erased"),
        "an idempotency key": key.hash(b"key", "a"),
        "a label": key.hash(b"label", f"{alice.hex()} home"),
    }
    found = stored(path)
    for what, name in names.items():
        assert name not in found, what
        assert name.hex().upper().encode() not in found, what
    with closing(sqlite3.connect(path)) as connection, connection:
        marks = connection.execute(
            "SELECT label_commitment, label, salt FROM journal JOIN entry_labels USING (entry)"
        ).fetchall()
        assert marks
        for mark, label, salt in marks:
            assert key.commitment(salt, label) != mark
            assert key.commitment(salt, names["a label"]) != mark


def forged_link(connection: sqlite3.Connection, key: Key) -> None:
    """Link every transaction again with a secret, as if nothing had ever been exchanged."""
    columns = "entry, at, kind, account, priced_mechanism, policy, reports, epsilon, delta, rho, mu_squared"
    columns += ", label_commitment, expires, resolves, has_record, has_note, api_key, sub_limit, period"
    charges = [PricedMechanism(*row) for row in connection.execute("SELECT * FROM priced_mechanisms")]
    policies = [StoredPolicy(*row) for row in connection.execute("SELECT * FROM policies")]
    before, rows, seen = EMPTY_CHAIN, [], (0, 0)
    for *row, chain_hash in connection.execute(
        f"SELECT {columns}, chain_hash FROM journal ORDER BY entry"
    ).fetchall():
        rows.append(tuple(row))
        if chain_hash is not None:
            now = max([seen[0], *(each[4] for each in rows)]), max([seen[1], *(each[5] for each in rows)])
            new_charges = [each.covered for each in charges if seen[0] < each.number <= now[0]]
            new_policies = [each.covered for each in policies if seen[1] < each.number <= now[1]]
            before = key.chain_hash(
                canonical_transaction(before, canonical_rows(rows), new_charges, new_policies, [])
            )
            connection.execute("UPDATE journal SET chain_hash = ? WHERE entry = ?", (before, row[0]))
            rows, seen = [], now


@pytest.mark.slow
def test_old_secret_after_a_rotation_forges_no_valid_journal(stolen: tuple[Path, Key], clock: Clock) -> None:
    path, key = stolen
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE journal SET epsilon = 1 WHERE entry = 2")
        forged_link(connection, key)
    connection.close()
    with Accountant(path, clock=clock) as accountant:
        found = accountant.verify()
        assert any("link of entries" in problem for problem in found.problems)


def test_old_secret_without_a_rotation_forges_a_valid_journal(tmp_path: Path, clock: Clock) -> None:
    """Otherwise the test before says nothing."""
    path = tmp_path / "budget.db"
    with Accountant(path, clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        in_use(accountant)
        key = ledger_of(accountant).key
    with closing(sqlite3.connect(path)) as connection, connection:
        before = connection.execute("SELECT chain_hash FROM journal ORDER BY entry").fetchall()
        forged_link(connection, key)
        assert connection.execute("SELECT chain_hash FROM journal ORDER BY entry").fetchall() == before
    connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("table", ["users", "tombstones", "idempotency_records", "notes", "partitions"])
def test_old_secret_after_a_rotation_makes_no_valid_row_mac(
    stolen: tuple[Path, Key], clock: Clock, table: str
) -> None:
    """A MAC by the old secret over a stored row is invalid, with masked hashes or without."""
    path, key = stolen
    with closing(sqlite3.connect(path)) as connection, connection:
        *values, _ = connection.execute(f"SELECT * FROM {table} LIMIT 1").fetchone()
        sealed = {"notes": ("note", 0, *values), "partitions": ("partition", *values[1:])}.get(table, tuple(values))
        connection.execute(
            f"UPDATE {table} SET row_mac = ? WHERE rowid = (SELECT rowid FROM {table} LIMIT 1)"
            if table != "tombstones"
            else "UPDATE tombstones SET row_mac = ?",
            (key.row_mac(*sealed),),
        )
    connection.close()
    if table == "partitions":
        with pytest.raises(LedgerKeyMissing, match="its counters were changed"):
            Accountant(path, clock=clock)
        return
    with Accountant(path, clock=clock) as accountant:
        assert any(problem.startswith(f"{table}: ") for problem in accountant.verify().problems)


@pytest.mark.slow
def test_old_secret_after_a_rotation_makes_no_receipt(stolen: tuple[Path, Key], clock: Clock) -> None:
    path, key = stolen
    with Accountant(path, clock=clock) as accountant:
        receipt = accountant.reserve("alice", coin("0.1")).receipt
        assert receipt is not None
        name = receipt.partition("-")[0]
        with pytest.raises(UnknownName):
            accountant.void(f"{name}-{key.hash(b'receipt', name).hex()[:20]}")
        assert accountant.void(receipt).status == "voided"


@pytest.mark.slow
def test_ledger_of_the_old_secret_put_in_its_place_is_refused(stolen: tuple[Path, Key], clock: Clock) -> None:
    """An attacker with the old secret can make a valid ledger: an empty one, or one from before the rotation."""
    path, key = stolen
    other = path.with_name("other.db")
    SqliteStore(other, create=True, secret=key.secret).close()
    shutil.copyfile(other, path)
    for beside in ("-wal", "-shm"):
        path.with_name(path.name + beside).unlink(missing_ok=True)
    with pytest.raises(LedgerError, match="was rolled back: it uses secret 1 of the key, and secret 2 was in use"):
        Accountant(path, clock=clock)


@pytest.mark.slow
def test_old_secret_after_a_rotation_makes_no_checkpoint(stolen: tuple[Path, Key], clock: Clock) -> None:
    path, key = stolen
    with closing(sqlite3.connect(path)) as connection, connection:
        before = EMPTY_CHAIN
        for row in connection.execute("SELECT * FROM checkpoints ORDER BY number").fetchall():
            checkpoint = Checkpoint(*row)._replace(at=row[1] + 1)
            before = link_of(key, before, checkpoint)
            update = "UPDATE checkpoints SET at = ?, chain_hash = ? WHERE number = ?"
            connection.execute(update, (checkpoint.at, before, checkpoint.number))
    connection.close()
    with Accountant(path, clock=clock) as accountant:
        assert any(problem.startswith("checkpoints: ") for problem in accountant.verify().problems)


def test_verify_after_a_rotation_checks_the_last_earlier_checkpoint(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "budget.db"
    with Accountant(path, clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        accountant.checkpoint()
        key = Key(path.with_name("budget.db.key").read_bytes())
        exchange(accountant)
    with closing(sqlite3.connect(path)) as connection, connection:
        found = Checkpoint(*connection.execute("SELECT * FROM checkpoints").fetchone())
        found = found._replace(at=found.at + 1)
        connection.execute(
            "UPDATE checkpoints SET at = ?, chain_hash = ?", (found.at, link_of(key, EMPTY_CHAIN, found))
        )
    connection.close()
    with Accountant(path, clock=clock) as accountant:
        assert any(problem.startswith("checkpoints: ") for problem in accountant.verify().problems)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "named"),
    [
        (
            "users SET user_hash = x'00112233445566778899aabbccddeeff' WHERE account = 1",
            "user or the sums of account 1 were",
        ),
        ("priced_mechanisms SET declared = declared || ' '", "a row of priced_mechanisms was"),
        ("notes SET note = 'another note'", "a row of notes was"),
        ("idempotency_records SET response = response || ' '", "a row of idempotency_records was"),
        ("batch_runs SET response = response || ' '", "a row of batch_runs was"),
    ],
)
def test_rotation_does_not_validate_a_changed_row(tmp_path: Path, clock: Clock, change: str, named: str) -> None:
    path = tmp_path / "budget.db"
    with Accountant(path, clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        in_use(accountant)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE {change}")
    connection.close()
    with Accountant(path, clock=clock) as accountant:
        with pytest.raises(LedgerError, match=f"{named} changed, so the key was not rotated"):
            exchange(accountant)
        reopen(accountant)
        assert ledger_of(accountant).key.in_use.number == 1
        assert not accountant.verify().ok


# -- several processes, machines, copies ------------------------------------------------------------------


@pytest.mark.parametrize("rotated_before", [False, True])
def test_machine_without_the_new_secret_writes_nothing(tmp_path: Path, clock: Clock, rotated_before: bool) -> None:
    """As on a machine to which the file was not copied."""
    path = tmp_path / "budget.db"
    key = path.with_name("budget.db.key")
    with Accountant(path, clock=clock) as one:
        one.set_policy("default", ["lifetime=9"])
        if rotated_before:
            exchange(one)
        old = key.read_bytes()
        number = exchange(one)
        new = key.read_bytes()
        key.write_bytes(old)
        with (
            pytest.raises(LedgerKeyMissing, match=f"rotated to secret {number}"),
            Accountant(path, clock=clock) as other,
        ):
            other.spend("alice", coin(1))
        with pytest.raises(LedgerKeyMissing), Accountant(path, clock=clock) as other:
            other.ledger.rotate_key()
        key.write_bytes(new)
        with Accountant(path, clock=clock) as other:
            assert other.spend("alice", coin(1))
            assert spent(other, "alice")["lifetime"] == 1


def test_key_of_the_same_epoch_with_another_secret_is_refused(tmp_path: Path, clock: Clock) -> None:
    """Two machines have made one each: the one of the interrupted rotation would find no user."""
    path = tmp_path / "budget.db"
    key = path.with_name("budget.db.key")
    with Accountant(path, clock=clock) as one:
        one.set_policy("default", ["lifetime=9"])
        one.spend("alice", coin(1))
        prepared = ledger_of(one).key.with_new_secret()
        exchange(one)
    key.write_bytes(prepared)
    with pytest.raises(LedgerKeyMissing):
        Accountant(path, clock=clock)
    assert key.read_bytes() == prepared


@pytest.mark.slow
def test_backup_and_its_key_are_of_one_moment(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "budget.db"
    with Accountant(path, clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        accountant.spend("alice", coin(1))
        for number in range(1, 4):
            accountant.backup(tmp_path / f"{number}.db")
            exchange(accountant)
    for number in range(1, 4):
        with Accountant(tmp_path / f"{number}.db", create=False, clock=clock) as backup:
            assert spent(backup, "alice")["lifetime"] == 1
            assert ledger_of(backup).key.in_use.number == number
            check(backup)
    # A ledger older than the key next to it is refused, and not taken for the current one.
    shutil.copyfile(tmp_path / "3.db.key", tmp_path / "1.db.key")
    with pytest.raises(LedgerError, match="was rolled back"):
        Accountant(tmp_path / "1.db", clock=clock)


@pytest.mark.slow
def test_rotation_of_a_ledger_whose_move_was_interrupted_is_refused(tmp_path: Path, clock: Clock) -> None:
    with Accountant(tmp_path / "one.db", clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        in_use(accountant)
        exchange(accountant)

        def stop(done: int, total: int) -> None:
            if done > 2 * total // 4:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            accountant.ledger.move_to(tmp_path / "two.db", on_progress=stop)
        with pytest.raises(LedgerMoved, match="closed while it is moved to"):
            exchange(accountant)
        accountant.ledger.move_to(tmp_path / "three.db")
    with Accountant(tmp_path / "three.db", create=False, clock=clock) as accountant:
        assert spent(accountant, "alice")
        assert exchange(accountant) == 3
        check(accountant)


# -- the file of the key ----------------------------------------------------------------------------------


def test_rotation_writes_a_whole_key_file_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    key = path.with_name("budget.db.key")
    with Accountant(path) as accountant:
        exchange(accountant)
        assert key.stat().st_mode & 0o777 == 0o600
        found = json.loads(key.read_text())
        assert found["active"] == 2
        assert [len(each) for each in found["secrets"]] == [64, 64]
        assert found.keys() == {"active", "secrets"}


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-9],
        lambda text: text.replace('"active":2', '"active":3'),
        lambda text: text.replace('"active":2', '"active":"2"'),
        lambda text: text.replace('"active":2', '"active":0'),
        lambda text: text.replace('"active":2', '"active":2.0'),
        lambda text: "{}",
        lambda text: "[]",
    ],
)
def test_damaged_key_file_is_refused(tmp_path: Path, damage: Callable[[str], str]) -> None:
    path = tmp_path / "budget.db"
    with Accountant(path) as accountant:
        exchange(accountant)
    key = path.with_name("budget.db.key")
    key.write_text(damage(key.read_text()))
    with pytest.raises(LedgerError, match=r"its key .* (was changed|bytes instead of 32)"):
        Accountant(path)


def test_masked_hash_can_be_unmasked_by_its_secret_only() -> None:
    content = new_key()
    one, other = Key(Key(content).with_new_secret()), Key(Key(content).with_new_secret())
    hashes = [bytes(16), b"\xff" * 16, *(one.hash(b"user", str(n)) for n in range(200))]
    first, second = one.at(2), other.at(2)
    assert first is not None
    assert second is not None
    veiled = [first.encrypt_hash(each) for each in hashes]
    assert [first.decrypt_hash(each) for each in veiled] == hashes
    assert len({*veiled, *hashes}) == 2 * len(hashes)
    assert not {*veiled} & {second.encrypt_hash(each) for each in hashes}
    assert one.encrypt_hash(hashes[0]) == hashes[0] == one.decrypt_hash(hashes[0]), (
        "nothing is veiled by the first one"
    )
    assert first.encrypt_hash(b"") == b"" == first.decrypt_hash(b"")
    # Each bit of what is veiled changes about half of the others.
    changed = [
        (
            int.from_bytes(first.encrypt_hash(bytes(16)))
            ^ int.from_bytes(first.encrypt_hash((1 << bit).to_bytes(16)))
        ).bit_count()
        for bit in range(128)
    ]
    assert min(changed) > 30
    assert 60 < sum(changed) / 128 < 68
