"""Grids, scales and joint yes/no questions on the respondents' page, in a real browser, over a real server."""

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
    with Accountant(tmp_path_factory.mktemp("grids") / "budget.db") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon="60")])
        accountant.add_collection(survey_collection(service()))
        with running(accountant) as made:
            yield made


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


@pytest.mark.parametrize("spoken", ["en", "ko"])
def test_grid_page_has_no_axe_violation(site: Site, device: Any, axe: str, spoken: str) -> None:
    page = opened(device(reduced_motion="reduce", viewport=PHONE), site.link(f"axe {spoken}", "service", lang=spoken))
    if spoken == "ko":
        assert page.locator(".item legend").all_inner_texts()[1:3] == ["술을 드시나요?", "직원"]
        assert "예" in page.locator(".grid").first.inner_text()
    page.evaluate(f"{axe}; void 0")
    page.click(SEND)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        result = page.evaluate("(rules) => axe.run(document, { runOnly: rules })", axe_core.RULES)
        assert [each["id"] for each in result["violations"]] == []
