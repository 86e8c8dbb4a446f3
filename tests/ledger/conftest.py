"""Fixtures for ledgers on PostgreSQL: the folder of their keys, and a server that a test may damage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from postgres_servers import Server, find_binaries, reason_for_none


@pytest.fixture
def own_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the keys of ledgers in a folder of the test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("LDP_BUDGET_KEY", raising=False)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server that a test may do to what it likes."""
    pytest.importorskip("psycopg")
    binaries = find_binaries()
    if binaries is None:
        pytest.skip(reason_for_none())
    with Server(tmp_path / "server", binaries) as made:
        yield made


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the wait for a server that is gone."""
    from ldp_budget.ledger.postgres import pool, store

    monkeypatch.setattr(pool, "WAIT_SECONDS", 1.0)
    monkeypatch.setattr(store, "WAIT_SECONDS", 1.0)
