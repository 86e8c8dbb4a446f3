"""A service whose ledger key is rotated under it: health checks, metrics and problems say so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="no uvicorn: pip install 'ldp-budget[service]'")

from ldp_budget import Accountant
from ldp_budget_service.observability import health
from service_threads import Served


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        with Served(accountant) as made:
            yield made


def test_rotated_ledger_key_is_seen_by_readyz_and_prometheus(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """`/metrics` answered 503 to every key, so Prometheus never saw the failed check."""
    monkeypatch.setattr(health, "_FRESH_SECONDS", 0)
    reader, spender = served.secret("read"), served.secret("spend")
    assert served.ask("GET", "/metrics", secret=reader).status == 200
    served.accountant.ledger.rotate_key()
    served.app.state.keys._keys._held = (*served.app.state.keys._keys._held[:2], float("-inf"))  # a second later
    shown = served.ask("GET", "/metrics", secret=reader).body.decode()
    assert 'ldp_budget_check_ok{check="key"} 0.0\n' in shown
    assert served.ask("GET", "/metrics", secret=spender).status == 403
    assert served.ask("GET", "/metrics", secret=f"{reader}x").status == 401
    answer = served.ask("GET", "/readyz")
    assert (answer.status, answer.json()["checks"]["key"], answer.json()["checks"]["clock"]) == (
        503,
        "failed",
        "unknown",
    )
    assert int(answer.headers["Retry-After"]) >= 1
    answer = served.ask("GET", "/v1/ledger/stats", secret=reader)
    assert (answer.status, answer.json()["type"]) == (503, "/problems/ledger-key-missing")
    assert int(answer.headers["Retry-After"]) >= 1
