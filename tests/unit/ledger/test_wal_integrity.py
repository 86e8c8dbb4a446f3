"""The write-ahead log of an open ledger: what is acknowledged after its files were overwritten survives a crash."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from contract.acts import check, coin
from ldp_budget import Accountant, LedgerError
from ldp_budget.ledger.sqlite import wal_integrity
from ledger_inside import store_of


class Place:
    """A folder with an open ledger, older copies of its files, and the keys of all acknowledged charges."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "live" / "budget.db"
        self.path.parent.mkdir()
        with Accountant(self.path) as accountant:
            accountant.set_policy("default", ["lifetime=100"])
        self.accountants = [Accountant(self.path)]
        self.charged: list[str] = []

    def file(self, ending: str) -> Path:
        return self.path.with_name(self.path.name + ending)

    def spend(self, which: int = 0) -> bool:
        """Charge under a new key; return False if the ledger refused."""
        key = f"key {len(self.charged)}"
        try:
            receipt = self.accountants[which].spend("alice", coin("0.1"), key=key)
        except LedgerError:
            return False
        assert receipt.status == "spent"
        self.charged.append(key)
        return True

    def keep(self, name: str) -> Path:
        """Copy all files, as `cp -r` of the folder does."""
        copy = self.folder / name
        shutil.copytree(self.path.parent, copy)
        return copy

    def crash(self, name: str) -> Accountant:
        """Return the ledger as it opens after a crash of all processes."""
        copy = self.keep(name)
        (copy / "budget.db-shm").unlink(missing_ok=True)
        return Accountant(copy / "budget.db", create=False)

    def put(self, copy: Path, *endings: str) -> None:
        """Write older files over the open ones, as `cp` does."""
        for ending in endings:
            shutil.copyfile(copy / f"budget.db{ending}", self.file(ending))
            self.file(ending).chmod(0o600)

    def close(self) -> None:
        for accountant in self.accountants:
            with suppress(LedgerError):
                accountant.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.close()


def is_kept(accountant: Accountant, key: str) -> bool:
    return accountant.spend("alice", coin("0.1"), key=key).repeated


# -- tricks ----------------------------------------------------------------------------------------------------


def _flip(file: Path, at: int) -> None:
    content = file.read_bytes() or bytes(1)
    with file.open("r+b") as opened:
        opened.seek(at % len(content))
        opened.write(bytes([content[at % len(content)] ^ 1]))


def _cut(file: Path, size: int) -> None:
    os.truncate(file, max(0, min(size, file.stat().st_size)))


def _fill(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.write(bytes(file.stat().st_size))


def _log_of_another_ledger(place: Place, old: Path) -> None:
    with Accountant(place.folder / "other.db") as other:
        other.set_policy("default", ["lifetime=100"])
        for number in range(9):
            other.spend(f"user {number}", coin("0.1"))
        shutil.copyfile(place.folder / "other.db-wal", place.file("-wal"))


def _end_of_log(place: Place) -> int:
    with open(f"{place.path}-shm", "rb", buffering=0) as index:
        frames = struct.unpack_from("=I", index.read(96), 16)[0]
    return int(32 + frames * 4120)


TRICKS: dict[str, Callable[[Place, Path], object]] = {
    "older pair": lambda place, old: place.put(old, "", "-wal"),
    "older log": lambda place, old: place.put(old, "-wal"),
    "older database": lambda place, old: place.put(old, ""),
    "log of another ledger": _log_of_another_ledger,
    "database cut": lambda place, old: _cut(place.path, 8192),
    "database emptied": lambda place, old: _cut(place.path, 0),
    "database of zeros": lambda place, old: _fill(place.path),
    "log emptied": lambda place, old: _cut(place.file("-wal"), 0),
    "log cut to its header": lambda place, old: _cut(place.file("-wal"), 32),
    "log cut by a byte": lambda place, old: _cut(place.file("-wal"), _end_of_log(place) - 1),
    "log cut by a frame": lambda place, old: _cut(place.file("-wal"), _end_of_log(place) - 4120),
    "log of zeros": lambda place, old: _fill(place.file("-wal")),
    "bit of the first frame": lambda place, old: _flip(place.file("-wal"), 32 + 24 + 100),
    "bit in the middle": lambda place, old: _flip(place.file("-wal"), _end_of_log(place) // 2),
    "bit of the last frame": lambda place, old: _flip(place.file("-wal"), _end_of_log(place) - 100),
    "bit of the header": lambda place, old: _flip(place.file("-wal"), 20),
    "bit of a checksum": lambda place, old: _flip(place.file("-wal"), 32 + 20),
}


HARMLESS = {"older database": "while no checkpoint has changed it"}
UNSEEN_WITHIN = {name for name in TRICKS if name.startswith("bit") and "header" not in name}
"""Changes that only the checksums of all frames find, which are computed before a transaction, not after it."""


CASES = [
    pytest.param(name, moment, id=f"{name}, {moment}")
    for name in TRICKS
    for moment in ("between", "within", "after a checkpoint")
    if moment != "within" or name not in UNSEEN_WITHIN
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "moment"), CASES)
def test_charge_after_files_were_overwritten_is_refused(place: Place, name: str, moment: str) -> None:
    for _ in range(4):
        assert place.spend()
    old = place.keep("old")
    if moment == "after a checkpoint":
        assert store_of(place.accountants[0]).clear_log()
    for _ in range(4):
        assert place.spend()
    new = place.keep("new")
    acknowledged = len(place.charged)

    if moment == "within":
        files = store_of(place.accountants[0])._place
        assert files is not None
        check_after = files.check_after

        def trick(*given: Any) -> None:
            files.check_after = check_after  # type: ignore[method-assign]
            TRICKS[name](place, old)
            check_after(*given)

        files.check_after = trick  # type: ignore[method-assign]
    else:
        TRICKS[name](place, old)
    assert place.spend() is place.spend() is (name in HARMLESS and moment != "after a checkpoint")
    place.close()
    if name in HARMLESS or len(place.charged) > acknowledged:
        with suppress(LedgerError), place.crash("crashed") as accountant:
            assert all(is_kept(accountant, key) for key in place.charged[acknowledged:])
    # The older files are gone again: the newest ones open, with all that was acknowledged.
    place.put(new, "", "-wal")
    place.file("-shm").unlink(missing_ok=True)
    with Accountant(place.path, create=False) as accountant:
        assert all(is_kept(accountant, key) for key in place.charged[:acknowledged])
        assert accountant.spend("bob", coin("0.1")).status == "spent"
        check(accountant)


def test_file_put_back_is_written_again(place: Place) -> None:
    """The older pair is gone again while the process still runs: its files are those that it knows."""
    place.spend()
    old = place.keep("old")
    place.spend()
    new = place.keep("new")
    place.put(old, "-wal")
    assert not place.spend()
    place.put(new, "-wal")
    assert place.spend()
    with place.crash("crashed") as accountant:
        assert all(is_kept(accountant, key) for key in place.charged)


# -- sequences ---------------------------------------------------------------------------------------------------

HONEST = st.sampled_from(
    ["spend", "other spends", "checkpoint", "passive", "restart", "reader", "reopen", "vacuum", "backup"]
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    before=st.lists(HONEST, max_size=8),
    between=st.lists(HONEST, max_size=8),
    trick=st.sampled_from([None, *TRICKS]),
    after=st.lists(HONEST, max_size=4),
)
def test_charges_between_any_steps_are_kept_or_refused(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[str],
    between: list[str],
    trick: str | None,
    after: list[str],
) -> None:
    """Honest work is never refused. After a trick, a charge is refused, or it survives a crash."""
    # Not seen at a charge: an older database, once another program's checkpoint let the log begin again. `verify` finds it.
    assume(trick != "older database" or not {"passive", "restart"} & {*between})
    place = Place(tmp_path_factory.mktemp("place"))
    place.accountants.append(Accountant(place.path))
    readers: list[Any] = []
    try:
        for step in before:
            assert _take(place, readers, step), step
        assert place.spend()
        old = place.keep("old")
        for step in between:
            assert _take(place, readers, step), step
        if trick is None:
            assert place.spend()
            assert place.spend(1)
        else:
            TRICKS[trick](place, old)
        acknowledged = len(place.charged)
        for step in after:
            assert _take(place, readers, step) or trick, step
        place.spend()
        place.spend(1)
        event("kept" if len(place.charged) > acknowledged else "refused")
        if len(place.charged) > acknowledged:
            with place.crash("crashed") as accountant:
                assert all(is_kept(accountant, key) for key in place.charged[acknowledged:])
                assert trick or all(is_kept(accountant, key) for key in place.charged)
                check(accountant)
    finally:
        readers.clear()
        place.close()


def _take(place: Place, readers: list[Any], step: str) -> bool:
    """Take one step; return False if the ledger refused."""
    mine, other = place.accountants
    try:
        if step == "spend":
            return place.spend()
        if step == "other spends":
            return place.spend(1)
        if step == "checkpoint":
            store_of(other).clear_log()
        elif step == "backup":
            mine.backup(place.folder / f"backup {len(list(place.folder.iterdir()))}.db")
        elif step == "reader":
            snapshot = store_of(mine).snapshot()
            snapshot.__enter__()
            readers.append(snapshot)
        elif step == "reopen":
            other.close()
            place.accountants[1] = Accountant(place.path)
        else:
            foreign = {"passive": "wal_checkpoint(PASSIVE)", "restart": "wal_checkpoint(RESTART)"}.get(step)
            with closing(sqlite3.connect(place.path, timeout=0.01)) as connection, suppress(sqlite3.Error):
                connection.execute(f"PRAGMA {foreign}" if foreign else "VACUUM").fetchall()
    except LedgerError:
        return False
    return True


# -- a log that grows ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_log_that_grows_is_extended_and_recovers(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader's snapshot lets the log grow; extending it with each commit took a third of the time of a spend."""
    monkeypatch.setattr(wal_integrity, "_GROWING_BYTES", 0)
    monkeypatch.setattr(wal_integrity, "_AHEAD_BYTES", 1 << 20)
    sizes = set()
    with store_of(place.accountants[0]).snapshot():
        for _ in range(40):
            assert place.spend()
            sizes.add(place.file("-wal").stat().st_size)
    assert len(sizes) < 4
    assert place.file("-wal").read_bytes()[-1000:] == bytes(1000)
    place.accountants.append(Accountant(place.path))
    assert place.spend(1)
    assert place.spend()
    with place.crash("crashed") as accountant:
        assert all(is_kept(accountant, key) for key in place.charged)
        check(accountant)


def test_log_that_grows_is_not_extended_on_a_disk_that_is_almost_full(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wal_integrity, "_GROWING_BYTES", 0)
    monkeypatch.setattr(wal_integrity, "_AHEAD_BYTES", 1 << 60)
    for _ in range(3):
        assert place.spend()
    assert place.file("-wal").stat().st_size < 1 << 20
