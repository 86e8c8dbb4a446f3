"""Turns over HTTP: a survey with a rotation takes reports from those whose turn it is, and says when others are asked."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from fixed_clock import Clock

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
from fastapi.testclient import TestClient

from ldp_budget import Accountant, Limit
from ldp_budget_service import create_app
from ldp_budget_service.invitations import Invitations
from ldp_budget_surveys.questionnaires.survey_collection import survey_collection
from ldp_budget_surveys.questionnaires.surveys import Survey
from ldp_budget_surveys.rotation import Rotation

SURVEY = Survey.from_json(
    {
        **{"format": "ldp-budget survey", "version": 1, "name": "health", "epsilon": "1", "rotate": 4},
        "questions": [{"name": "smoke", "kind": "yes-no"}],
    }
)
USERS = [f"m{number}" for number in range(120)]
"""So many that each turn has some, whatever the ledger's key is."""


@pytest.fixture
def panel(accountant: Accountant, clock: Clock) -> Accountant:
    accountant.set_policy("default", [Limit("lifetime", epsilon="4"), Limit("22d", epsilon="1")])
    accountant.add_collection(survey_collection(SURVEY))
    return accountant


def answer(panel: Accountant, user: str, round: str = "1") -> tuple[Any, Any]:
    """What a device sees of a respondent's turn, and what the service says to the report."""
    until = panel.now() + timedelta(days=60)
    [(_, token)] = Invitations(panel).invite("health", [user], until, round=round)
    client, bearer = TestClient(create_app(panel)), {"Authorization": f"Bearer {token}"}
    me = client.get("/v1/me", headers=bearer).json()
    report = bytes(panel.collection("health").mechanism.randomize([{"smoke": "yes"}])[0])
    headers = {"Content-Type": "application/octet-stream", "Idempotency-Key": me["key"], "X-Collection": me["digest"]}
    return me, client.post("/v1/collections/health/reports", content=report, headers={**headers, **bearer})


def turns(panel: Accountant) -> dict[str, bool]:
    rotation = Rotation.of(panel, SURVEY, panel.policy("default"))
    assert rotation is not None
    period = rotation.period_at(panel.now())
    return dict(zip(USERS, rotation.turns(USERS, period), strict=True))


def test_report_is_taken_from_those_whose_turn_it_is_alone(panel: Accountant) -> None:
    found = turns(panel)
    some = [user for which in (True, False) for user in [user for user in USERS if found[user] is which][:3]]
    assert len(some) == 6
    for user, asked in ((user, found[user]) for user in some):
        me, said = answer(panel, user)
        assert me["turn"]["now"] is asked
        assert said.status_code == (200 if asked else 409)
        assert len(list(panel.history(user))) == int(asked)
        if not asked:
            assert said.json()["type"].endswith("/not-your-turn")
            assert f"from {me['turn']['first']} to {me['turn']['last']}" in said.json()["detail"]


def test_turn_that_is_stated_comes(panel: Accountant, clock: Clock) -> None:
    user = next(user for user, asked in turns(panel).items() if not asked)
    me, _ = answer(panel, user)
    first = date.fromisoformat(me["turn"]["first"])
    clock.now = datetime(first.year, first.month, first.day, tzinfo=UTC)
    me, said = answer(panel, user, "2")
    assert me["turn"] == {"now": True, "first": str(first), "last": str(first + timedelta(days=6))}
    assert said.status_code == 200


def test_retry_after_the_turn_gets_the_stored_response(panel: Accountant, clock: Clock) -> None:
    user = next(user for user, asked in turns(panel).items() if asked)
    _, taken = answer(panel, user)
    clock.advance(days=7)
    me, said = answer(panel, user)
    assert (me["turn"]["now"], said.status_code) == (False, 200)
    assert said.json()["receipt"] == taken.json()["receipt"]
    assert len(list(panel.history(user))) == 1
    _, other = answer(panel, user, "2")
    assert (other.status_code, len(list(panel.history(user)))) == (409, 1)


def test_survey_without_a_rotation_states_no_turn(accountant: Accountant) -> None:
    accountant.set_policy("default", [Limit("lifetime", epsilon="4")])
    plain = replace(SURVEY, rotate=0)
    accountant.add_collection(survey_collection(plain))
    me, said = answer(accountant, "m1")
    assert "turn" not in me
    assert said.status_code == 200
