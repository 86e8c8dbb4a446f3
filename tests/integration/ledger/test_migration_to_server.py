"""Moves to a server, and moves whose process is killed."""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import move_killer
from contract.acts import check, coin
from fixed_clock import Clock
from ldp_budget import Accountant, LedgerError
from ldp_budget.errors import LedgerMissing
from migration_story import Story, check_story, places, said, small
from postgres_places import new_ledger
from postgres_servers import shared_server


@pytest.fixture(autouse=True)
def own_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the keys of ledgers on servers in a folder of the test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("LDP_BUDGET_KEY", raising=False)


# -- what is refused ------------------------------------------------------------------------------------------


def test_move_to_a_server_with_another_key_is_refused(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(tmp_path / "first.db", clock)
    there, key = new_ledger(2), tmp_path / "named.key"
    key.write_bytes(bytes(32))
    key.chmod(0o600)
    monkeypatch.setenv("LDP_BUDGET_KEY", str(key))
    with Accountant(tmp_path / "first.db", clock=clock) as accountant:
        with pytest.raises(
            LedgerError, match=r"its key file .*named.key must have the key of the ledger that is copied to it"
        ):
            accountant.ledger.move_to(there)
        with pytest.raises(LedgerMissing):
            Accountant(there, create=False)
        assert accountant.spend("alice", coin("0.001"))
        key.write_bytes((tmp_path / "first.db.key").read_bytes())
        with Accountant(there, clock=clock):
            pass  # made, and empty
        assert accountant.ledger.move_to(there).accounts == 5


@pytest.mark.parametrize("twin_first", [False, True])
def test_copy_of_a_database_that_a_move_has_filled_never_opens(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, twin_first: bool
) -> None:
    """The database was copied with its server's tools before the move opened it."""
    small(tmp_path / "first.db", clock)
    address = new_ledger(2)
    name = urlsplit(address).path[1:]
    with Accountant(tmp_path / "first.db", clock=clock) as accountant:
        with monkeypatch.context() as patch:
            patch.setattr("ldp_budget.accounting.ledger_move.open_target", lambda *given: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                accountant.ledger.move_to(address)
        server = shared_server(None)
        assert server is not None
        server.run(f"CREATE DATABASE {name}_twin TEMPLATE {name}")
        twin = address.replace(name, f"{name}_twin")
        for place in (twin, address) * 2 if twin_first else (address, twin) * 2:
            if place is twin:
                with pytest.raises(LedgerError, match=r"it is a duplicate of .*, and can never be used"):
                    accountant.ledger.move_to(place)
            else:
                accountant.ledger.move_to(place)
        check(accountant)
    with Accountant(address, create=False, clock=clock) as opened:
        check(opened)
        assert opened.spend("alice", coin("0.001"))
    with Accountant(twin, create=False, clock=clock) as copy, pytest.raises(LedgerError, match="is being filled"):
        copy.spend("alice", coin("0.001"))


@pytest.fixture
def story(tmp_path: Path, clock: Clock) -> Story:
    """Told in a file."""
    with Accountant(tmp_path / "first.db", clock=clock) as accountant:
        return Story(accountant, clock)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["file", "3 partitions"])
def test_move_whose_process_is_killed_at_random_is_started_again(
    tmp_path: Path, clock: Clock, story: Story, kind: str
) -> None:
    here, make = str(tmp_path / "first.db"), places(tmp_path)[kind]
    there = [make(f"copy-{number}") for number in range(12)]
    seed = str(random.randrange(10**9))
    print("seed", seed)
    command = [sys.executable, move_killer.__file__, here, seed, clock.now.isoformat(), *there]
    assert int(subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout) > 0
    with Accountant(here, create=False, clock=clock) as accountant:
        before = said(accountant)
        opened = []
        for place in (make("last"), *there):
            with suppress(LedgerError):
                accountant.ledger.move_to(place)
                opened.append(place)
    (last,) = opened
    with Accountant(last, create=False, clock=clock) as accountant:
        assert said(accountant) == before
        check_story(accountant, story, clock)
        check(accountant)
