"""Administrative records over HTTP: the library's own kinds are refused, and a malformed record stops no caller."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

from ldp_budget import Accountant
from ldp_budget.accounting.admin_records import _SHAPES
from service_farm import MECHANISM
from service_threads import Served


@pytest.fixture
def served() -> Iterator[Served]:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        with Served(accountant) as made:
            yield made


def spend(served: Served, secret: str, key: str) -> int:
    body = {"user": "alice", "mechanism": MECHANISM}
    return served.ask("POST", "/v1/spends", body, secret, Idempotency_Key=key).status


def test_admin_record_of_a_reserved_kind_is_refused(served: Served) -> None:
    """After one `POST /v1/ledger/records` of the kind `key` each request was a 500, also after a restart."""
    secret = served.secret("admin")
    for kind in _SHAPES:
        body: dict[str, Any] = {"kind": kind, "name": "x", "body": {"until": "2026-01-01T00:00:00"}, "expected": 1}
        answer = served.ask("POST", "/v1/ledger/records", body, secret)
        assert (answer.status, answer.json()["type"]) == (400, "/problems/invalid-parameter"), kind
    assert spend(served, secret, "k") == 200


@pytest.mark.parametrize("path", ["keys", "keys:revoke"])
def test_key_that_cannot_be_read_is_refused(served: Served, path: str) -> None:
    secret = served.secret("admin")
    good = {"name": "new", "scopes": ["read"], "hash": "0" * 64, "expected": 1}
    if path == "keys":
        wrong: list[dict[str, Any]] = [
            {"name": ""},
            {"scopes": []},
            {"scopes": ["root"]},
            {"hash": "0"},
            {"expires": "2030-01-01T00:00:00"},
            {"until": "soon"},
            {"share": "team", "scopes": ["policy"]},
            {"share": "team", "scopes": ["admin"]},
            {"starts": "0001-01-01T00:00:00+14:00"},  # in no year of UTC: the page of keys was a 500 from then on
            {"expires": "9999-12-31T23:59:59-14:00"},
            {"policies": []},
        ]
    else:
        good, wrong = {"name": "new", "expected": 1}, [{}, {"name": "../x"}]
    for change in wrong:
        answer = served.ask("POST", f"/v1/ledger/{path}", {**good, **change}, secret)
        assert answer.status in (400, 404), (change, answer.body)
    assert len(served.accountant.records()) == 1


def test_another_instance_holds_a_new_demand_of_approvals_at_once(tmp_path: Path) -> None:
    """Within a second of the demand another instance made a second key, which approved the first one's proposal."""
    with ExitStack() as stack:
        one, other = (
            stack.enter_context(Served(stack.enter_context(Accountant(tmp_path / "budget.db")))) for _ in range(2)
        )
        one.accountant.set_policy("default", ["lifetime=1"])
        secret = one.secret("admin")
        assert other.ask("GET", "/v1/proposals", secret=secret).json()["demanded"] is False
        assert one.ask("PUT", "/v1/approvals", {"demanded": True}, secret).status == 200
        key = {"name": "second", "scopes": ["policy"], "hash": "0" * 64, "expected": 2}
        assert other.ask("POST", "/v1/ledger/keys", key, secret).json()["type"] == "/problems/approval-conflict"
        raised = other.ask("PUT", "/v1/policies/default", {"limits": ["lifetime=2"]}, secret)
        assert raised.json()["type"] == "/problems/approval-needed"
        assert one.accountant.policy().version == 1
