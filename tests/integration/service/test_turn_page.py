"""A survey with a rotation on the respondents' page, in a real browser: who is not asked sees when, and sends nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

from ldp_budget import Accountant, Limit
from ldp_budget_surveys.questionnaires.survey_collection import survey_collection
from ldp_budget_surveys.questionnaires.surveys import Survey
from ldp_budget_surveys.rotation import Rotation
from survey_respondents import SEND, opened
from survey_site import Site, running

SURVEY = Survey.from_json(
    {
        **{"format": "ldp-budget survey", "version": 1, "name": "panel", "epsilon": "1", "rotate": 4, "every": "90d"},
        "questions": [{"name": "smoke", "kind": "yes-no"}],
    }
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Accountant(tmp_path_factory.mktemp("turns") / "budget.db") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon="8")])
        accountant.add_collection(survey_collection(SURVEY))
        with running(accountant) as made:
            yield made


def user(site: Site, *, asked: bool) -> str:
    """The first user whose turn it is, or is not."""
    accountant = site.accountant
    rotation = Rotation.of(accountant, SURVEY, accountant.policy("default"))
    assert rotation is not None
    period = rotation.period_at(accountant.now())
    return next(name for name in (f"m{number}" for number in range(100)) if rotation.asks(name, period) is asked)


def test_page_asks_only_those_whose_turn_it_is(site: Site, device: Any) -> None:
    page = opened(device(), site.link(user(site, asked=True), "panel"))
    assert page.locator(SEND).count() == 1
    page = opened(device(), site.link(user(site, asked=False), "panel"))
    assert page.locator(SEND).count() == 0
    said = page.inner_text("[data-notice=turn]")
    assert "It is not your turn yet" in said
    assert "This survey asks you from" in said
    assert "{" not in said
