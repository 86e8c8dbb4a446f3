"""A service whose ledger is upgraded by a newer version under it: problems, health checks and metrics say so."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="no uvicorn: pip install 'ldp-budget[service]'")

import made_up_version
from ldp_budget import Accountant
from ldp_budget_service.observability import health
from postgres_places import new_ledger
from service_threads import Served


@pytest.fixture(params=["file", "server"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path, own_keys: None) -> str:
    return new_ledger(2) if request.param == "server" else str(tmp_path / "budget.db")


@pytest.fixture
def served(ledger: str) -> Iterator[Served]:
    with Accountant(ledger) as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        with Served(accountant) as made:
            yield made


def test_service_of_an_earlier_version_refuses_charges_and_is_not_ready(
    ledger: str, served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(health, "_FRESH_SECONDS", 0)
    secret, reader = served.secret("spend"), served.secret("read")
    charge = {"user": "ann", "mechanism": {"name": "rr", "epsilon": "0.001"}}
    assert served.ask("POST", "/v1/spends", charge, secret, Idempotency_Key="1").status == 200
    assert served.ask("GET", "/readyz").status == 200
    subprocess.run([sys.executable, made_up_version.__file__, "upgrade", ledger, "post"], check=True, timeout=100)
    for key in ("1", "2"):
        refused = served.ask("POST", "/v1/spends", charge, secret, Idempotency_Key=key)
        problem = refused.json()
        assert (refused.status, problem["type"]) == (503, "/problems/ledger-upgraded")
        assert problem["found"] == problem["known"] + 1
        assert (
            "its tables were upgraded, and this service has an earlier version. Nothing was charged"
            in problem["detail"]
        )
        assert int(refused.headers["Retry-After"]) >= 10, "only the operator can end it"
    assert served.ask("GET", "/v1/users/ann/balance", secret=reader).status == 503
    ready = served.ask("GET", "/readyz")
    assert (ready.status, ready.json()["checks"]["schema"]) == (503, "failed")
    assert 'ldp_budget_check_ok{check="schema"} 0.0\n' in served.ask("GET", "/metrics", secret=reader).body.decode()
    assert "Install the newer ldp-budget, and start this process again" in "".join(
        str(vars(each)) for each in caplog.records
    )
