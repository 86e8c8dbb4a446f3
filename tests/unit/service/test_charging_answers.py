"""The two routes that charge, against the recorded answers of the FastAPI routes that they were."""

from __future__ import annotations

import json

import pytest

from charging_requests import FILE, NOW, opened, play, requests


@pytest.fixture(scope="module")
def played() -> dict[str, list[object]]:
    return play()


@pytest.mark.slow
def test_charging_requests_are_answered_and_logged_as_recorded(played: dict[str, list[object]]) -> None:
    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    accountant, secrets = opened([NOW])
    accountant.close()
    asked = list(requests(secrets))
    assert len(asked) == len(recorded["answers"]) == len(played["answers"])
    for request, before, now in zip(asked, recorded["answers"], played["answers"], strict=True):
        assert now == before, request


@pytest.mark.slow
def test_charging_requests_are_counted_as_recorded(played: dict[str, list[object]]) -> None:
    assert played["metrics"] == json.loads(FILE.read_text(encoding="utf-8"))["metrics"]


def test_recorded_answers_have_every_kind_of_status() -> None:
    statuses = [answer[0] for answer in json.loads(FILE.read_text(encoding="utf-8"))["answers"]]
    assert {200, 204, 400, 401, 403, 404, 405, 409, 413, 422, 500} <= set(statuses)
