"""Kinds of questions on the respondents' page, in a real browser, over a real server: ticks, grids, scales, and turns."""

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
from ldp_budget_surveys.rotation import Rotation
from survey_respondents import ARRIVED, SEND, opened
from survey_site import Site, running

OPTIONS = ("bus", "train", "car", "bicycle", "on foot")


PANEL = Survey.from_json(
    {
        **{"format": "ldp-budget survey", "version": 1, "name": "panel", "epsilon": "1", "rotate": 4, "every": "90d"},
        "questions": [{"name": "smoke", "kind": "yes-no"}],
    }
)


def ticks() -> list[Survey]:
    """A survey with a tick question, and one in which it is optional."""
    used = SurveyQuestion(
        "transport",
        "Which of these did you use this week?",
        kind="tick",
        categories=OPTIONS,
        at_most=2,
        languages={
            "ko": {"text": "이번 주에 무엇을 이용하셨나요?", "categories": ["버스", "기차", "차", "자전거", "도보"]}
        },
    )
    asked = SurveyQuestion(
        "used",
        "Used?",
        "tick",
        (*OPTIONS, "no answer"),
        at_most=2,
        optional=True,
        languages={"ko": {"text": "?"}},
    )
    title = {"title": "Transport", "minimum_group": 1}
    return [
        Survey("transport", (used,), Decimal(2), **title),  # type: ignore[arg-type]
        Survey("skipped", (asked,), Decimal(2), minimum_group=1),
    ]


def service() -> Survey:
    ends = {"lower": Decimal(1), "upper": Decimal(5)}
    grid = SurveyQuestion(
        "good",
        "How good are these?",
        kind="grid",
        categories=("1", "2", "3", "4", "5"),
        items=("staff", "price", "hours"),
        languages={"ko": {"text": "다음은 어떠셨나요?", "items": ["직원", "가격", "시간"]}},
        **ends,
    )
    joint = (
        SurveyQuestion(name, text, kind="yes-no", categories=("yes", "no"), languages={"ko": {"text": korean}})
        for name, text, korean in (
            ("smoke", "Do you smoke?", "담배를 피우시나요?"),
            ("drink", "Do you drink?", "술을 드시나요?"),
        )
    )
    mood = SurveyQuestion("mood", "How are you, from 1 to 5?", kind="scale", **ends)
    return Survey("service", (*joint, mood, grid), Decimal(6), title="Service", minimum_group=1, joint=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Accountant(tmp_path_factory.mktemp("questions") / "budget.db") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon="60")])
        for survey in (*ticks(), service(), PANEL):
            accountant.add_collection(survey_collection(survey))
        with running(accountant) as made:
            yield made


# -- ticks -----------------------------------------------------------------------------------------------------------


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


# -- grids -----------------------------------------------------------------------------------------------------------


def test_grid_page_is_answered_by_keyboard_alone_on_a_dark_phone(site: Site, device: Any) -> None:
    page = opened(device(viewport=PHONE, color_scheme="dark"), site.link("keys", "service"))
    assert page.locator(".item legend").all_inner_texts() == [
        *("Do you smoke?", "Do you drink?"),
        *("staff", "price", "hours"),
    ]
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.locator("input[type=radio]").first.focus()
    for _ in range(6):
        page.keyboard.press("Space")
        page.keyboard.press("Tab")
    page.locator(SEND).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(ARRIVED)
    assert len(site.taken("service")) == 1
    assert "do you smoke?: yes, do you drink?: " in page.text_content("body").lower()


def test_grid_page_names_the_rows_without_an_answer_and_goes_to_the_first(site: Site, device: Any) -> None:
    page = opened(device(), site.link("rows", "service"))
    before = len(site.taken("service"))
    for legend in ("Do you smoke?", "Do you drink?"):
        page.get_by_role("group", name=legend).get_by_label("No").check()
    page.get_by_role("group", name="How are you").get_by_label("3").check()
    page.get_by_role("group", name="staff").get_by_label("4").check()
    page.click(SEND)
    assert page.locator(".grid .error").last.inner_text() == (
        "Please choose one answer in each row. Rows without one: 2. Nothing was sent."
    )
    focused = page.evaluate("document.activeElement.closest('.item').querySelector('legend').textContent")
    assert focused == "price"
    assert len(site.taken("service")) == before


@pytest.mark.parametrize(
    ("survey", "spoken", "said"),
    [
        ("transport", "en", ["Which of these did you use this week?", "None of these"]),
        ("transport", "ko", ["버스", "해당 없음"]),
        ("service", "en", ["Do you drink?", "staff"]),
        ("service", "ko", ["술을 드시나요?", "직원", "예"]),
    ],
)
def test_page_of_each_kind_speaks_the_language_and_has_no_axe_violation(
    site: Site, device: Any, axe: str, survey: str, spoken: str, said: list[str]
) -> None:
    page = opened(device(reduced_motion="reduce", viewport=PHONE), site.link(f"axe {spoken}", survey, lang=spoken))
    assert [text for text in said if text not in page.text_content("body")] == []
    page.evaluate(f"{axe}; void 0")
    page.click(SEND)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        result = page.evaluate("(rules) => axe.run(document, { runOnly: rules })", axe_core.RULES)
        assert [each["id"] for each in result["violations"]] == []


# -- turns -----------------------------------------------------------------------------------------------------------


def user(site: Site, *, asked: bool) -> str:
    """The first user whose turn it is, or is not."""
    accountant = site.accountant
    rotation = Rotation.of(accountant, PANEL, accountant.policy("default"))
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
