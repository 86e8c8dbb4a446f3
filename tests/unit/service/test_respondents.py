"""The rights of a respondent's invitation over HTTP: `/v1/me`, one report, and nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from fixed_clock import Clock

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
from fastapi.testclient import TestClient

from ldp_budget import Accountant, Collection, mechanism
from ldp_budget_service import create_app
from ldp_budget_service.invitations import Invitations
from survey_site import tokens, with_surveys


@pytest.fixture
def accountant(accountant: Accountant) -> Accountant:
    """A ledger with surveys."""
    return with_surveys(accountant)


@pytest.fixture
def client(accountant: Accountant) -> TestClient:
    return TestClient(create_app(accountant))


class Device:
    """A respondent with an invitation, and the requests of the device."""

    def __init__(self, client: TestClient, accountant: Accountant, user: str = "alice", **more: Any) -> None:
        [self.token] = tokens(accountant, [user], **more)
        self.client, self.bearer = client, {"Authorization": f"Bearer {self.token}"}

    def me(self) -> Any:
        return self.client.get("/v1/me", headers=self.bearer)

    def send(self, report: bytes = b"\x02", collection: str = "commute", **headers: str) -> Any:
        me = self.me().json()
        given = {
            "Content-Type": "application/octet-stream",
            "Idempotency-Key": me["key"],
            "X-Collection": me["digest"],
        }
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post(
            f"/v1/collections/{collection}/reports", content=report, headers={**given, **self.bearer, **named}
        )


@pytest.fixture
def device(client: TestClient, accountant: Accountant) -> Device:
    return Device(client, accountant)


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"].rpartition("/")[2]


def test_me_shows_budget_cost_and_charges(device: Device) -> None:
    before = device.me().json()
    assert [(limit["period"], limit["spent"]["epsilon"]) for limit in before["limits"]] == [
        ("lifetime", 0),
        ("day", 0),
    ]
    assert before["quote"] == {"cost": {"epsilon": 1.0, "delta": 0.0}, "binding": [], "affordable_reports": 2}
    assert before["charges"] == []
    assert device.send().status_code == 200
    after = device.me().json()
    assert [limit["spent"]["epsilon"] for limit in after["limits"]] == [1, 1]
    [charge] = after["charges"]
    assert (charge["kind"], charge["mechanism"], charge["epsilon"]) == ("spent", "oue", 1)
    assert "Journal-Position" not in device.me().headers


def test_me_does_not_name_the_user_and_is_not_cached(device: Device) -> None:
    answer = device.me()
    assert "alice" not in answer.text
    assert answer.headers["Cache-Control"] == "no-store"


def test_me_without_a_valid_invitation_is_unauthorized(
    client: TestClient, accountant: Accountant, device: Device, clock: Clock
) -> None:
    for bearer in ({}, {"Authorization": "Bearer x"}, {"Authorization": device.token}, {"Authorization": "Bearer "}):
        assert code(client.get("/v1/me", headers=bearer)) == (401, "unauthorized")
    Invitations(accountant).revoke("commute")
    clock.advance(seconds=2)
    assert code(device.me()) == (401, "unauthorized")
    later = Device(client, accountant)
    assert later.me().status_code == 200
    clock.advance(days=1)
    assert code(later.me()) == (401, "unauthorized")


@pytest.mark.slow
def test_report_sent_again_is_charged_and_stored_once(
    device: Device, client: TestClient, accountant: Accountant
) -> None:
    first, again = device.send(), device.send()
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json()["receipt"] == again.json()["receipt"]
    assert ("Idempotency-Replayed" in first.headers, again.headers["Idempotency-Replayed"]) == (False, "true")
    assert len(accountant.history("alice")) == 1
    # Another link to the same round is the same report. Another report under it gets the same answer, and is dropped.
    other = Device(client, accountant)
    assert other.send().json()["receipt"] == first.json()["receipt"]
    conflicting = other.send(b"\x03")
    assert (conflicting.status_code, conflicting.content) == (200, again.content)
    assert len(accountant.history("alice")) == 1
    assert Device(client, accountant, round="2").send().json()["receipt"] != first.json()["receipt"]


@pytest.mark.slow
def test_invitation_is_for_one_report_of_one_collection(device: Device, accountant: Accountant) -> None:
    assert code(device.send(Idempotency_Key="another")) == (403, "forbidden")
    assert code(device.send(collection="many", report=bytes(4))) == (403, "forbidden")
    assert code(device.send(X_Collection="0" * 64)) == (409, "wrong-collection")
    assert code(device.send(Idempotency_Key="")) == (400, "invalid-parameter")
    assert accountant.history("alice") == []


def test_erased_respondent_has_no_budget(device: Device, accountant: Accountant) -> None:
    accountant.erase("alice", unknown=True)
    me = device.me().json()
    assert (me["erased"], me["limits"], me["charges"]) == (True, [], [])
    assert code(device.send()) == (409, "budget-exceeded")


def test_invitation_that_expires_while_a_report_waits_is_unauthorized(device: Device, clock: Clock) -> None:
    sent = device.send()
    clock.advance(seconds=timedelta(days=1).total_seconds())
    answer = device.client.post(
        "/v1/collections/commute/reports", content=b"\x02", headers={**device.bearer, "X-Collection": "0"}
    )
    assert (sent.status_code, code(answer)) == (200, (401, "unauthorized"))


def test_me_shows_no_charges_of_other_collections(device: Device, accountant: Accountant) -> None:
    """The link to one survey showed which other surveys the respondent had answered."""
    coin = mechanism("randomized-response")(epsilon="0.1")
    accountant.spend("alice", Collection("health", coin))
    accountant.spend("alice", coin)
    device.send()
    assert [charge["collection"] for charge in device.me().json()["charges"]] == ["commute"]


def test_invitation_cannot_set_public_attributes(device: Device, accountant: Accountant) -> None:
    body = b'{"report": "02", "public": {"region": "north"}}'
    refused = device.send(body, Content_Type="application/json")
    assert code(refused) == (403, "forbidden")
    assert "an invitation cannot set them" in refused.json()["detail"]
    assert (accountant.reports.waiting("commute"), accountant.stats()["users"]) == (0, 0)
    assert device.send(b'{"report": "02"}', Content_Type="application/json").status_code == 200
