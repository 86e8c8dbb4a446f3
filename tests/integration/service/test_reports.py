"""Reports over HTTP: charged to their collection and stored once; estimates of many reports, never of one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
from fastapi.testclient import TestClient

from ldp_budget import Accountant, Collection, mechanism
from ldp_budget.reports.estimation import estimate_files, estimate_row
from ldp_budget.reports.inbox import Inbox
from ldp_budget_service import create_app
from ldp_budget_service.api_keys import ApiKeys
from postgres_places import new_ledger

PARTY = Collection("a party/1", mechanism("oue")(epsilon="1", domain_size=3), ("a", "b", "c"))
WORDS = Collection("words", mechanism("cms")(epsilon="1", hashes=4, width=16))
HEIGHT = Collection("height", mechanism("laplace")(epsilon="0.5", lower=140, upper=210))
HERE = "/v1/collections/a%20party%2F1"


class Site:
    """Two instances of a service that share a ledger, which need not be on one machine."""

    def __init__(self, accountant: Accountant, other: Accountant | None = None) -> None:
        self.accountant = accountant
        accountant.set_policy("default", ["lifetime=2"])
        accountant.set_policy("other", ["lifetime=9"])
        for collection in (PARTY, WORDS, HEIGHT):
            accountant.add_collection(collection)
        secret = ApiKeys(accountant).create("devices", ["collect", "read", "admin"])[1]
        bearer = {"Authorization": f"Bearer {secret}"}
        apps = [create_app(each) for each in (accountant, other or accountant)]
        self.clients = [TestClient(app, headers=bearer) for app in apps]

    def send(self, user: str, key: str, report: bytes, *, of: Collection = PARTY, at: int = 0, **more: Any) -> Any:
        path = f"/v1/collections/{of.name.replace('/', '%2F')}/reports"
        digest = of.definition()["digest"]
        headers = {"X-User": user, "Idempotency-Key": key, "X-Collection": digest, **more.pop("headers", {})}
        return self.clients[at].post(path, content=report, headers=headers, **more)

    def fill(self, count: int, *, of: Collection = PARTY, seed: int = 1, key: str = "k", **more: Any) -> None:
        draws = of.mechanism.randomize(np.arange(count) % 3, rng=seed)
        for number in range(count):
            assert (
                self.send(f"user {number}", key, draws[number].tobytes(), of=of, at=number % 2, **more).status_code
                == 200
            )

    def estimate(self, query: str = "", of: str = HERE) -> Any:
        return self.clients[0].get(f"{of}/estimate{query}")


@pytest.fixture
def site(accountant: Accountant) -> Iterator[Site]:
    made = Site(accountant)
    with ExitStack() as running:  # one loop for all requests of a client
        for client in made.clients:
            running.enter_context(client)
        yield made


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"].rpartition("/")[2]


def test_report_is_charged_to_its_user_and_collection_and_stored_once(site: Site) -> None:
    first = site.send("Zo%C3%AB", "k", b"\2")
    assert (first.status_code, first.json()["status"], first.json()["user"]) == (200, "spent", "Zoë")
    assert "Journal-Position" in first.headers
    again = site.send("Zo%C3%AB", "k", b"\2", at=1)
    assert (again.json()["receipt"], again.headers["Idempotency-Replayed"]) == (first.json()["receipt"], "true")
    [row] = site.accountant.history("Zoë")
    assert (row["collection"], row["by"]) == (PARTY.name, "devices")
    assert site.accountant.reports.waiting(PARTY.name) == 1


def test_report_malformed_costs_nothing(site: Site) -> None:
    assert code(site.send("a", "k", b"\2", headers={"X-Collection": "0" * 64})) == (409, "wrong-collection")
    told = site.send("a", "k", b"\2", headers={"X-Collection": "0" * 64}).json()["detail"]
    assert "0" * 64 in told
    assert PARTY.definition()["digest"] in told
    for missing in ("X-Collection", "X-User", "Idempotency-Key"):
        assert code(site.send("a", "k", b"\2", headers={missing: ""})) == (400, "invalid-parameter")
    assert code(site.send("%ff", "k", b"\2")) == (400, "invalid-parameter")
    assert code(site.send("a", "k", b"")) == (400, "malformed")
    assert code(site.send("a", "k", b"\2\2")) == (400, "not-supported")
    assert code(site.send("a", "k", b"\x88")) == (400, "not-supported")
    assert code(site.send("a", "k", b"\2", params={"policy": "none"})) == (404, "unknown-name")
    assert site.accountant.stats()["users"] == 0


def test_report_refused_is_not_stored(site: Site) -> None:
    assert site.send("a", "1", b"\1").status_code == 200
    again = site.send("a", "1", b"\2", at=1)  # the answer does not say that another report was the first
    assert (again.status_code, again.content) == (200, site.send("a", "1", b"\1", at=1).content)
    assert site.send("a", "2", b"\1").status_code == 200
    refused = site.send("a", "3", b"\1")
    assert code(refused) == (409, "budget-exceeded")
    assert refused.json()["failed"][0]["period"] == "lifetime"
    assert site.send("a", "4", b"\1", params={"policy": "other"}).status_code == 200
    assert site.accountant.reports.waiting(PARTY.name) == 3


def test_estimate_equals_that_of_the_command(site: Site, tmp_path: Path) -> None:
    site.fill(60)
    sealed = site.clients[1].post(f"{HERE}/rounds", json={"round": "2026-W47"})
    assert sealed.json() == {"round": "2026-W47", "reports": 60}
    assert code(site.clients[0].post(f"{HERE}/rounds", json={"round": "2026-W47"})) == (409, "name-taken")
    file = str(tmp_path / "W47.reports")
    Inbox(site.accountant, PARTY).write("2026-W47", file)
    expected = estimate_row(PARTY, estimate_files(PARTY, [file]))
    for query in ("", "?round=2026-W47"):
        assert site.estimate(query).json() == expected
    narrow = site.estimate("?confidence=0.5&top=1&adjust=simplex").json()
    assert [each["answer"] for each in narrow["answers"]] == [
        max(expected["answers"], key=lambda row: row["count"])["answer"]
    ]
    assert narrow["answers"][0]["adjusted_count"] >= 0
    assert [row["answer"] for row in site.estimate("?candidates=c&candidates=a").json()["answers"]] == ["c", "a"]


def test_instances_on_a_server_share_reports_and_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A retry at an instance with a folder of its own was a conflict (422), though the report was charged and kept."""
    pytest.importorskip("psycopg")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("LDP_BUDGET_KEY", raising=False)
    address = new_ledger(4)
    with Accountant(address) as one, Accountant(address) as other, ExitStack() as running:
        site = Site(one, other)
        for client in site.clients:
            running.enter_context(client)
        site.fill(20)
        first = site.send("user 3", "k", b"\1", at=0)
        assert first.content == site.send("user 3", "k", b"\2", at=1).content
        assert (one.reports.waiting(PARTY.name), len(one.history("user 3"))) == (20, 1)
        sealed = site.clients[1].post(f"{HERE}/rounds", json={"round": "1"})
        assert sealed.json() == {"round": "1", "reports": 20}
        told = [client.get(f"{HERE}/estimate?round=1").json() for client in site.clients]
        assert told[0] == told[1]
        assert told[0]["reports"] == 20
        assert one.verify().ok
