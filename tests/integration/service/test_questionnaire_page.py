"""A survey of several questions on the respondents' page, in a real browser, over a real server."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from case_files import case_text

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

import axe_core
from chromium import CHROMIUM, PHONE, chromium
from ldp_budget.registry.public_definition import digest_of
from questionnaire_site import MOODS, answers_of, health_ledger
from survey_respondents import ARRIVED, SEND, Respondent, let_take_part, opened
from survey_site import Site, running, tokens

SOURCES = Path(__file__).parents[3] / "clients" / "js" / "src"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    place = tmp_path_factory.mktemp("survey") / "budget.db"
    with health_ledger(place) as accountant, running(accountant) as made:
        yield made


def fill(page: Any) -> Any:
    """Answer every question on the page."""
    for question in page.locator("fieldset.question").all():
        question.locator("input").first.check()
    for field in page.locator("input[type=number]").all():
        field.fill("7.5")
    return page


# -- many respondents ----------------------------------------------------------------------------------------------


class Patient(Respondent):
    """A respondent of the questionnaire with two of three questions."""

    def __init__(self, number: int, way: str) -> None:
        super().__init__(number, way)
        self.answers = answers_of(number)

    def link(self, site: Site) -> str:
        return site.link(self.user, "two")

    async def choose(self, page: Any) -> None:
        await page.wait_for_selector(SEND)
        for name in ("mood", "smoke"):
            choice = page.locator(f"input[type=radio][value={self.answers[name]}]")
            if await choice.count():
                await choice.check()
        hours = page.locator("input[type=number]")
        if await hours.count():
            await hours.fill(str(self.answers["sleep"]))

    def use_up(self, site: Site) -> None:
        assert site.accountant.spend(self.user, site.accountant.collection("one"))


# A device of its own for each respondent, all in one page: the classes of the page without its form.
DRIVEN = case_text("integration_questionnaire_page.driven.mjs")


def all_take_part(site: Site, respondents: list[Patient], at_once: int) -> None:
    """Let every respondent take part: by the form, except those with the way `client`."""
    program = chromium()
    from playwright.async_api import async_playwright

    async def served(route: Any) -> None:
        name = route.request.url.rpartition("/")[2]
        await route.fulfill(body=(SOURCES / name).read_text(), content_type="text/javascript")

    async def drive(browser: Any, driven: list[Patient]) -> None:
        page = await (await browser.new_context()).new_page()
        await page.route(re.compile(r"/js/\w+\.js$"), served)
        await page.goto(f"{site.origin}/me")
        held = tokens(site.accountant, [each.user for each in driven], "two")
        people = [{"token": token, "answers": each.answers} for token, each in zip(held, driven, strict=True)]
        for each, made in zip(driven, await page.evaluate(DRIVEN, {"people": people}), strict=True):
            first, again = made["found"]
            assert (again, made["left"]) == (first, "0")
            each.receipt = first

    async def play() -> None:
        async with async_playwright() as driver:
            browser = await driver.chromium.launch(executable_path=program, args=CHROMIUM)
            by_form = [each for each in respondents if each.way != "client"]
            driven = [each for each in respondents if each.way == "client"]
            await asyncio.gather(let_take_part(browser, site, by_form, at_once, 60_000), drive(browser, driven))
            await browser.close()

    asyncio.run(play())


def test_questionnaire_of_two_hundred_respondents_has_one_charge_and_report_each(tmp_path: Path) -> None:
    counts = {"plain": 15, "double click": 10, "reload": 20, "offline": 10, "used up": 5, "client": 140}
    ways = [way for way, count in counts.items() for _ in range(count)]
    respondents = [Patient(number, way) for number, way in enumerate(ways)]
    with health_ledger(tmp_path / "budget.db") as accountant, running(accountant) as site:
        all_take_part(site, respondents, at_once=3)
        took_part = [each for each in respondents if not each.refused]
        assert [each.way for each in respondents if each.refused] == ["used up"] * 5
        receipts = {each.receipt for each in took_part}
        reports = site.taken("two")
        assert (len(receipts), len(took_part), len(reports), None in receipts) == (195, 195, 195, False)
        # Those who were refused have the one charge that used up their budget.
        assert {site.charged(each.user) for each in respondents} == {1}
        collection = accountant.collection("two")
        rows = np.frombuffer(b"".join(reports), np.uint8).reshape(len(reports), -1)
        masks = collection.masks([each.user for each in took_part])
        assert sorted(rows[:, 0].tolist()) == sorted(int(mask) for mask in masks)
        found = collection.mechanism.estimate(rows).questions
        low, high = found["mood"].interval(1 - 1e-9)
        true = [sum(each.answers["mood"] == mood for each in took_part) for mood in MOODS]
        assert ((low <= true) & (true <= high)).all(), (low, true, high)
        assert accountant.verify()


# -- the form ------------------------------------------------------------------------------------------------------


def stored(page: Any) -> Any:
    """Return the number of reports and ε on the device."""
    return page.evaluate(
        """() => new Promise((done) => {
            const request = indexedDB.open("ldp-budget");
            request.onsuccess = () => {
                const stores = request.result.transaction(["outbox", "budget"]);
                const count = stores.objectStore("outbox").count();
                const budget = stores.objectStore("budget").get("device");
                budget.onsuccess = () => done([count.result, budget.result.spent.lifetime / 1e9]);
            };
        })"""
    )


@pytest.mark.parametrize(
    ("contact", "href"),
    [
        ("https://example.org/health", "https://example.org/health"),
        ("mailto:ask@example.org", "mailto:ask@example.org"),
        ("javascript:alert(1)", None),
        ("http://example.org", None),
        ('<a href="https://example.org">desk</a>', None),
        ("mobility desk, room 4", None),
    ],
)
def test_questionnaire_page_links_contacts_of_mail_and_https_only(
    site: Site, device: Any, contact: str, href: str | None
) -> None:
    made = site.accountant.collection("all").definition()
    made["contact"] = contact
    made["digest"] = digest_of(made)
    page = device()
    page.route(re.compile(r"/v1/collections/all$"), lambda route: route.fulfill(json=made))
    opened(page, site.page("all"))
    assert contact.removeprefix("mailto:") in page.inner_text(".contact")
    links = page.locator(".contact a")
    assert [link.get_attribute("href") for link in links.all()] == ([href] if href else [])


def test_questionnaire_page_asks_the_questions_of_the_person(site: Site, device: Any) -> None:
    definition = site.accountant.collection("one").definition()
    texts = [question["question"] for question in definition["questions"]]
    seen = set()
    for number in range(6):
        user = f"selected {number}"
        page = opened(device(), site.link(user, "one"))
        [place] = [place for place in range(3) if site.accountant.collection("one").masks([user])[0] >> place & 1]
        assert page.locator("legend, .question > label:not(.choice)").all_inner_texts() == [texts[place]]
        selection = page.inner_text("#selection")
        assert "You are asked 1 of them, the same one each time. A fixed computation selects it," in selection
        assert page.inner_text("form").count("stays on this device") == 1, "the line above the button repeated it"
        seen.add(place)
    assert len(seen) > 1


# -- what the page confirms ----------------------------------------------------------------------------------------


def understated(definition: dict[str, Any]) -> None:
    """A survey of three questions that states less than they lose together."""
    definition["guarantee"]["epsilon"] = "1.9"


def unrandomized(definition: dict[str, Any]) -> None:
    """A question that keeps its answer more often than it states."""
    question = definition["questions"][0]
    question["steps"][0] = ["kept", ["bits", str(2**64 - 1), 1]]
    question["digest"] = digest_of(question)


@pytest.mark.parametrize("attack", [understated, unrandomized])
def test_questionnaire_page_sends_nothing_if_the_loss_is_not_confirmed(site: Site, device: Any, attack: Any) -> None:
    made = site.accountant.collection("all").definition()
    attack(made)
    made["digest"] = digest_of(made)
    page = device()
    page.route(re.compile(r"/v1/collections/all$"), lambda route: route.fulfill(json=made))
    page.route(
        re.compile(r"/v1/me$"), lambda route: route.fulfill(json={**route.fetch().json(), "digest": made["digest"]})
    )
    opened(page, site.link(f"believing {attack.__name__}", "all", agreed=False))
    assert page.locator("h1[data-problem=unconfirmed]").count() == 1
    assert (page.locator(SEND).count(), stored(page)) == (0, [0, 0])


# -- a phone, and accessibility ------------------------------------------------------------------------------------


@pytest.mark.parametrize("spoken", ["en", "ko", "de"])
def test_questionnaire_page_has_no_axe_violation(site: Site, device: Any, axe: str, spoken: str) -> None:
    page = device(reduced_motion="reduce", viewport=PHONE)

    def violations(view: str) -> list[Any]:
        if not page.evaluate("'axe' in window"):
            page.evaluate(f"{axe}; void 0")
        found = []
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            result = page.evaluate("(rules) => axe.run(document, { runOnly: rules })", axe_core.RULES)
            assert len(result["passes"]) > 20
            found += [(view, scheme, each["id"], each["nodes"][0]["html"]) for each in result["violations"]]
        return found

    opened(page, site.link(f"axe {spoken}", "all", lang=spoken))
    for summary in page.locator("summary").all():
        summary.click()
    found = violations("asking")
    page.click(SEND)
    found += violations("errors")
    fill(page)
    page.click(SEND)
    page.wait_for_selector(ARRIVED)
    assert found + violations("sent") == []
