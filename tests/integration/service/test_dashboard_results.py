"""The dashboard's results and the officer's form, in Chromium: titles, languages, empty states, rates and a preview."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import count
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

import axe_core
from ldp_budget import Accountant
from ldp_budget.reports.inbox import Inbox
from ldp_budget_service.api_keys import ApiKeys
from ldp_budget_surveys.questionnaires.survey_collection import survey_collection
from ldp_budget_surveys.questionnaires.surveys import Survey, SurveyQuestion
from survey_site import Site, ledger, running

MOOD = {"text": "Wie geht es Ihnen?", "categories": ["gut", "schlecht"]}
QUESTION = "How did you come to work today?"
HEALTH = Survey(
    "health",
    (
        SurveyQuestion("mood", "How are you?", categories=("good", "bad"), languages={"de": MOOD}),
        SurveyQuestion("sleep", "Hours of sleep", "number", None, Decimal(0), Decimal(14)),
    ),
    epsilon=Decimal(2),
    title="Health",
    languages={"de": {"title": "Gesundheit"}},
)
Open = Callable[..., Any]
numbers = count()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A service of several surveys; the first one has a sealed round of 60 answers."""
    with ledger() as accountant:
        commute = accountant.collection("commute")
        inbox = Inbox(accountant, commute)
        values = np.arange(60) % 3
        for number, report in enumerate(commute.randomize(values)):
            inbox.take(f"user {number}", f"key {number}", report.tobytes())
        accountant.spend("user 1", commute, reports=9, key="too much")
        inbox.seal("monday")
        health = survey_collection(HEALTH)
        accountant.add_collection(health)
        inbox = Inbox(accountant, health)
        for number in range(40):
            user = f"person {number}"
            values = health.select_questions(health.read_values([{"mood": "good", "sleep": "7"}]), [user])
            inbox.take(user, f"health {number}", health.randomize(values)[0].tobytes())
        inbox.seal("monday")
        with running(accountant, usage_seconds=0) as made:
            yield made


@pytest.fixture(scope="module")
def empty_site() -> Iterator[Site]:
    with Accountant(":memory:") as accountant, running(accountant, usage_seconds=0) as made:
        yield made


@pytest.fixture
def opened(browser: Any) -> Iterator[Open]:
    """Open a page with a key; fail on script errors."""
    contexts, wrong = [], list[str]()

    def open_page(site: Site, path: str = "/", locale: str = "en", **options: Any) -> Any:
        secret = ApiKeys(site.accountant).create(f"key-{next(numbers)}", ["admin"])[1]
        contexts.append(browser.new_context(locale=locale, **options))
        page = contexts[-1].new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(f"{site.origin}{path}")
        page.wait_for_selector("#sign-in:not([hidden])")
        page.fill("#key", secret)
        page.keyboard.press("Enter")
        page.wait_for_selector("html[data-ready=true]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def choose(page: Any, name: str = "commute") -> None:
    page.select_option("#collection", name)
    page.wait_for_selector("#collections svg .dot")


def test_dashboard_shows_results_first_with_titles_as_typed(site: Site, opened: Open) -> None:
    page = opened(site)
    assert page.eval_on_selector_all("#content .card", "(cards) => cards.map((card) => card.id)")[0] == "collections"
    options = page.locator("#collection option").all_inner_texts()
    assert {"Getting to work", "Height", "A word"} < set(options)
    choose(page)
    assert page.inner_text("#collections h3") == QUESTION
    assert "Getting to work, monday: 60 reports" in page.inner_text("#collections figcaption")
    assert page.locator("#collections svg .share").count() == 4
    assert "Share of the answers" in page.inner_text("#collections figure")


@pytest.mark.parametrize(
    ("language", "title", "option", "answer"),
    [("ko", "결과", "출근길", "자전거"), ("de", "Ergebnisse", "Getting to work", "zu Fuß")],
)
def test_dashboard_speaks_the_language_of_the_browser(
    site: Site, opened: Open, language: str, title: str, option: str, answer: str
) -> None:
    for page in (opened(site, locale=language), opened(site, f"/?lang={language}")):
        assert page.locator("html").get_attribute("lang") == language
        assert page.inner_text("#collections-title") == title
        assert option in page.locator("#collection option").all_inner_texts()
        choose(page)
        assert answer in page.inner_text("#collections figure")
    assert page.locator("nav a[aria-current]").get_attribute("href") == f"/?lang={language}"


def test_dashboard_shows_each_question_of_a_survey(site: Site, opened: Open) -> None:
    page = opened(site, locale="de")
    options = page.locator("#collection option").all_inner_texts()
    assert [each for each in options if each.startswith("Gesundheit")] == [
        "Gesundheit: Wie geht es Ihnen?",
        "Gesundheit: Hours of sleep",
    ]
    choose(page, "health\nmood")
    page.wait_for_selector("#collections h3:text-is('Wie geht es Ihnen?')")
    page.wait_for_selector("#collections figure:has-text('gut')")
    assert page.locator("#collections svg .share").count() == 2
    choose(page, "health\nsleep")
    page.wait_for_selector("#collections h3:text-is('Hours of sleep')")
    page.wait_for_selector("#collections figure:has-text('Mittelwert')")
    assert page.locator("#collections svg .dot").count() == 1
    assert "questions = mood sleep" in page.inner_text("#mechanisms")


def test_officer_form_edits_limits_as_fields_with_a_preview(site: Site, opened: Open) -> None:
    page = opened(site, "/officer")
    page.click("summary")
    page.select_option("#proposed-policy", "default")
    rows = page.locator(".limit-row")
    assert [row.locator("[name=epsilon]").input_value() for row in rows.all()] == ["4", "2"]
    rows.nth(0).locator("[name=epsilon]").fill("5")
    rows.nth(1).get_by_role("button", name="Remove this limit").click()
    page.click("text=Add a limit")
    rows.nth(1).locator("[name=period]").select_option("week")
    rows.nth(1).locator("[name=epsilon]").fill("0.5")
    assert page.locator(".limits-field li").all_inner_texts() == [
        "lifetime: ε = 5, δ = 0.00001 (basic) — allows more (Now: ε = 4, δ = 0.00001)",
        "week: ε = 0.5 (basic) — new limit",
        "day: ε = 2, δ = 0.00001 (basic) — removed: allows more",
    ]
    page.fill("#proposed-reason", "a second wave")
    page.click("#propose button.primary")
    said = page.wait_for_selector("#proposals-said:has-text('waits for a second person')").inner_text()
    mine = page.locator(f"[data-proposal='{said.split()[1]}']").inner_text()
    assert "lifetime: ε = 5, δ = 0.00001 (basic)" in mine
    assert "week: ε = 0.5 (basic)" in mine


@pytest.mark.parametrize("path", ["/", "/officer"])
def test_office_page_fits_a_phone_and_has_no_violation(
    site: Site, empty_site: Site, opened: Open, axe: str, path: str
) -> None:
    for language, where in (("en", site), ("de", site), ("ko", site), ("de", empty_site)):
        for width, scheme in ((390, "light"), (1280, "dark")):
            page = opened(where, path, language, viewport={"width": width, "height": 800}, color_scheme=scheme)
            if path == "/officer":
                page.click("summary")
            elif where is site:
                choose(page)
            assert axe_core.violations(page, axe) == [], (language, width)
            assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
            if shots := os.environ.get("LDP_BUDGET_TEST_SHOTS"):  # a folder, to look at the pages
                name = f"{path.strip('/') or 'dashboard'}-{language}-{width}-{'empty' if where is empty_site else 'full'}"
                page.screenshot(path=f"{shots}/{name}.png", full_page=True)
