"""A survey over HTTP and in both stores: definition, seed, intake with the selected questions, and estimate."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
from fastapi.testclient import TestClient

from ldp_budget import Accountant
from ldp_budget.registry.collections import Collection
from ldp_budget_service import create_app
from ldp_budget_service.api_keys import ApiKeys
from ldp_budget_service.invitations import Invitations
from ldp_budget_surveys.questionnaires.question_selection import chosen_questions, mask_of
from ldp_budget_surveys.questionnaires.survey_collection import survey_collection
from ldp_budget_surveys.questionnaires.surveys import Survey, SurveyQuestion
from postgres_places import new_ledger

HEALTH = survey_collection(
    Survey(
        "health",
        (
            SurveyQuestion("mood", "How do you feel?", categories=("good", "fair", "bad")),
            SurveyQuestion("smoke", kind="yes-no", categories=("yes", "no")),
            SurveyQuestion("sleep", kind="number", lower=Decimal(0), upper=Decimal(14)),
        ),
        Decimal(2),
        1,
        organisation="Institute of Public Health",
    )
)
ANSWERS = {"mood": "good", "smoke": "no", "sleep": "7.5"}


@pytest.fixture(params=["sqlite", "postgres"])
def accountant(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Accountant]:
    if request.param == "postgres":
        pytest.importorskip("psycopg")
    with Accountant(str(tmp_path / "budget.db") if request.param == "sqlite" else new_ledger(4)) as made:
        made.set_policy("default", ["lifetime=4"])
        made.add_collection(HEALTH)
        yield made


def report(mask: int, collection: Collection = HEALTH) -> bytes:
    values = collection.mechanism.read_values([ANSWERS])  # type: ignore[list-item]
    values["asked"] = mask
    data: bytes = collection.randomize(values)[0].tobytes()
    return data


def test_survey_is_stored_and_charged_once_in_every_store(accountant: Accountant) -> None:
    assert accountant.collection("health") == HEALTH
    assert [each["survey"]["organisation"] for each in accountant.collections()] == ["Institute of Public Health"]
    assert [bool(accountant.spend("alice", HEALTH)) for _ in range(3)] == [True, True, False]
    assert accountant.verify()


def test_reports_with_the_selected_questions_are_taken_and_estimated(accountant: Accountant) -> None:
    secret = ApiKeys(accountant).create("devices", ["collect", "read", "admin"])[1]
    client = TestClient(create_app(accountant), headers={"Authorization": f"Bearer {secret}"})
    public = client.get("/v1/collections/health").json()
    assert public == HEALTH.definition()

    def send(user: str, mask: int) -> Any:
        headers = {"X-User": user, "Idempotency-Key": "one", "X-Collection": public["digest"]}
        return client.post("/v1/collections/health/reports", content=report(mask), headers=headers)

    users = [f"user {number}" for number in range(60)]
    for user, mask in zip(users, HEALTH.masks(users), strict=True):
        assert send(user, mask).status_code == 200
    refused = send("mallory", HEALTH.masks(["mallory"])[0] * 2 % 7)
    assert refused.status_code == 400
    assert "other questions" in refused.json()["detail"]
    assert accountant.balance("mallory").limits[0].spent.epsilon == 0
    assert client.post("/v1/collections/health/rounds", json={"round": "one"}).status_code == 200
    found = client.get("/v1/collections/health/estimate").json()
    assert sum(found[name]["asked"] for name in ANSWERS) == found["respondents"]


def test_device_with_an_invitation_gets_the_seed_and_not_the_name(accountant: Accountant) -> None:
    client = TestClient(create_app(accountant))
    expires = datetime.now(UTC) + timedelta(days=1)
    [(_, token)] = Invitations(accountant).invite("health", ["alice"], expires)
    bearer = {"Authorization": f"Bearer {token}"}
    me = client.get("/v1/me", headers=bearer).json()
    assert "alice" not in str(me)
    mask = mask_of(chosen_questions(bytes.fromhex(me["seed"]), 3, 1))
    assert mask == HEALTH.masks(["alice"])[0]
    headers = {**bearer, "Idempotency-Key": me["key"], "X-Collection": me["digest"]}
    assert client.post("/v1/collections/health/reports", content=report(mask), headers=headers).status_code == 200
