"""A question *tick all that apply* on the respondents' page, in a real browser, over a real server."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

import axe_core
from chromium import PHONE
from ldp_budget import Accountant, Limit
from ldp_budget_surveys.questionnaires.survey_collection import survey_collection
from ldp_budget_surveys.questionnaires.surveys import Survey, SurveyQuestion
from survey_respondents import ARRIVED, SEND, opened
from survey_site import Site, running

OPTIONS = ("bus", "train", "car", "bicycle", "on foot")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    question = SurveyQuestion(
        "transport",
        "Which of these did you use this week?",
        kind="tick",
        categories=OPTIONS,
        at_most=2,
        languages={
            "ko": {"text": "이번 주에 무엇을 이용하셨나요?", "categories": ["버스", "기차", "차", "자전거", "도보"]}
        },
    )
    survey = Survey("transport", (question,), Decimal(2), title="Transport", minimum_group=1)
    with Accountant(tmp_path_factory.mktemp("ticks") / "budget.db") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon="8")])
        accountant.add_collection(survey_collection(survey))
        asked = SurveyQuestion(
            "used",
            "Used?",
            "tick",
            (*OPTIONS, "no answer"),
            at_most=2,
            optional=True,
            languages={"ko": {"text": "?"}},
        )
        accountant.add_collection(survey_collection(Survey("skipped", (asked,), Decimal(2), minimum_group=1)))
        with running(accountant) as made:
            yield made


def boxes(page: Any) -> list[bool]:
    return [each.is_checked() for each in page.locator("input[type=checkbox]").all()]


def test_tick_page_is_answered_by_keyboard_alone_on_a_phone(site: Site, device: Any) -> None:
    page = opened(device(viewport=PHONE, color_scheme="dark"), site.link("keys", "transport"))
    assert page.inner_text(".question .hint") == "Tick at most 2."
    page.locator("input[type=checkbox]").first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert boxes(page) == [True, True, False, False, False, False]
    page.locator(SEND).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(ARRIVED)
    assert len(site.taken("transport")) == 1
    assert "bus, train" in page.inner_text("body")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_tick_page_refuses_too_many_ticks_and_none_at_all(site: Site, device: Any) -> None:
    page = opened(device(), site.link("many", "transport"))
    before = len(site.taken("transport"))
    page.click(SEND)
    assert "None of these" in page.inner_text(".error")
    for box in page.locator("input[type=checkbox]").all()[:3]:
        box.check()
    page.click(SEND)
    assert page.inner_text(".error") == "You ticked 3. Please tick at most 2. Nothing was sent."
    assert len(site.taken("transport")) == before


def test_tick_page_takes_none_of_these_as_the_empty_set(site: Site, device: Any) -> None:
    page = opened(device(), site.link("nothing", "transport"))
    page.locator("input[type=checkbox]").first.check()
    page.get_by_label("None of these").check()
    assert boxes(page) == [False] * 5 + [True]
    page.locator("input[type=checkbox]").nth(1).check()
    assert boxes(page) == [False, True, False, False, False, False]
    page.get_by_label("None of these").check()
    page.click(SEND)
    page.wait_for_selector(ARRIVED)


def test_tick_page_takes_no_answer_alone_where_the_question_is_optional(site: Site, device: Any) -> None:
    page = opened(device(), site.link("skipped", "skipped"))
    assert page.locator("fieldset label").all_inner_texts()[-2:] == ["None of these", "no answer"]
    page.get_by_label("None of these").check()
    page.get_by_label("no answer").check()
    assert boxes(page) == [False] * 6 + [True]
    page.locator("input[type=checkbox]").first.check()
    assert boxes(page) == [True] + [False] * 6
    page.get_by_label("no answer").check()
    page.click(SEND)
    page.wait_for_selector(ARRIVED)
    assert len(site.taken("skipped")) == 1


@pytest.mark.parametrize("spoken", ["en", "ko"])
def test_tick_page_has_no_axe_violation(site: Site, device: Any, axe: str, spoken: str) -> None:
    page = opened(
        device(reduced_motion="reduce", viewport=PHONE), site.link(f"axe {spoken}", "transport", lang=spoken)
    )
    if spoken == "ko":
        assert "버스" in page.inner_text("fieldset")
        assert "해당 없음" in page.inner_text("fieldset")
    page.evaluate(f"{axe}; void 0")
    page.click(SEND)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        result = page.evaluate("(rules) => axe.run(document, { runOnly: rules })", axe_core.RULES)
        assert [each["id"] for each in result["violations"]] == []
