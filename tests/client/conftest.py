"""Fixtures for ledgers on PostgreSQL behind a service: the folder of their keys."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def own_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the keys of ledgers in a folder of the test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("LDP_BUDGET_KEY", raising=False)
