"""For ledgers on PostgreSQL behind a service: where their keys lie."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def own_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of ledgers lie in the user's folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("LDP_BUDGET_KEY", raising=False)
