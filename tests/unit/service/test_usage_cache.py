"""The cache of usage statistics: a slow result is reused in proportion to its time; with 0 seconds none is."""

from __future__ import annotations

import time
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

from ldp_budget import Accountant, mechanism
from ldp_budget_service.usage_cache import UsageCache

RR = mechanism("randomized-response")


def slow_statistics(accountant: Accountant, monkeypatch: pytest.MonkeyPatch, seconds: float) -> UsageCache:
    """Return a cache over a ledger whose summary takes 50 ms, as that of a large ledger does."""
    made = UsageCache(accountant, seconds)
    overview = made._overview
    summary = overview.summary

    def slow() -> Any:
        time.sleep(0.05)
        return summary()

    monkeypatch.setattr(overview, "summary", slow)
    return made


def positions(accountant: Accountant, cache: UsageCache) -> list[str]:
    """Return the positions of two results, with a charge between them."""
    accountant.set_policy("default", ["lifetime=4"])
    first = cache.get("summary").position
    accountant.spend("alice", RR(epsilon="1"), key="a")
    return [first, cache.get("summary").position]


def test_a_slow_result_is_reused_longer_than_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with Accountant(":memory:") as accountant:
        first, second = positions(accountant, slow_statistics(accountant, monkeypatch, 1e-3))
        assert first == second != accountant.position()


def test_zero_seconds_compute_each_result(monkeypatch: pytest.MonkeyPatch) -> None:
    with Accountant(":memory:") as accountant:
        first, second = positions(accountant, slow_statistics(accountant, monkeypatch, 0))
        assert first != second == accountant.position()
