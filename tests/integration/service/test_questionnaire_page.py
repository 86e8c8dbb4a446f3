"""A survey of several questions on the respondents' page, in a real browser, over a real server."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

from ldp_budget import mechanism
from ldp_budget.registry.public_definition import digest_of
from questionnaire_site import MOODS, answers_of, health, health_ledger
from survey_site import CHROMIUM, Site, chromium, running, tokens

SOURCES = Path(__file__).parents[3] / "clients" / "js" / "src"
ARRIVED, WAITING, REFUSED = (f"h1[data-state={state}]" for state in ("arrived", "waiting", "refused"))
SEND = "button[type=submit]"
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    place = tmp_path_factory.mktemp("survey") / "budget.db"
    with health_ledger(place) as accountant, running(accountant) as made:
        yield made


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=CHROMIUM)
        yield started
        started.close()


@pytest.fixture
def device(browser: Any) -> Iterator[Callable[..., Any]]:
    """Make pages, each of its own device; fail on any script error."""
    contexts, wrong = [], []

    def made(**options: Any) -> Any:
        context = browser.new_context(**{"locale": "en", **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        return page

    yield made
    for context in contexts:
        context.close()
    assert not wrong


def opened(page: Any, link: str) -> Any:
    page.goto(link)
    page.wait_for_selector("body[data-ready]")
    return page


def fill(page: Any) -> Any:
    """Answer every question on the page."""
    for question in page.locator("fieldset.question").all():
        question.locator("input").first.check()
    for field in page.locator("input[type=number]").all():
        field.fill("7.5")
    return page


# -- many respondents ----------------------------------------------------------------------------------------------


class Respondent:
    """A respondent with true answers, who fills the form in one of several ways."""

    def __init__(self, number: int, way: str) -> None:
        self.user, self.way = f"respondent {number}", way
        self.answers = answers_of(number)
        self.receipt: str | None = None
        self.refused = False

    async def take_part(self, page: Any, site: Site) -> None:
        await page.goto(site.link(self.user, "two"))
        await self.choose(page)
        if self.way == "reload":
            await page.reload()
            await self.choose(page)
            await page.click(SEND)
            await page.reload()
            # A reload before a report was stored draws nothing, and the respondent answers again.
            await page.wait_for_selector(f"{SEND}, {ARRIVED}, {WAITING}")
            if await page.locator(SEND).count():
                await self.choose(page)
                await page.click(SEND)
        elif self.way == "offline":
            await page.context.set_offline(True)
            await page.click(SEND)
            await page.wait_for_selector(WAITING)
            assert site.charged(self.user) == 0
            await page.context.set_offline(False)
        elif self.way == "used up":
            assert site.accountant.spend(self.user, site.accountant.collection("one"))
            await page.click(SEND)
        elif self.way == "double click":
            await page.dblclick(SEND)
        else:
            await page.click(SEND)
        await page.wait_for_selector(f"{ARRIVED}, {REFUSED}")
        self.refused = await page.locator(REFUSED).count() > 0
        if not self.refused:
            self.receipt = await page.inner_text("#number")

    async def choose(self, page: Any) -> None:
        await page.wait_for_selector(SEND)
        for name in ("mood", "smoke"):
            choice = page.locator(f"input[type=radio][value={self.answers[name]}]")
            if await choice.count():
                await choice.check()
        hours = page.locator("input[type=number]")
        if await hours.count():
            await hours.fill(str(self.answers["sleep"]))


# A device of its own for each respondent, all in one page: the classes of the page without its form.
DRIVEN = """async ({ people }) => {
    const { Questionnaire } = await import("/js/questionnaire.js");
    const { DeviceBudget } = await import("/js/budget.js");
    const { Outbox } = await import("/js/outbox.js");
    const { fromHex } = await import("/js/bytes.js");
    const survey = new Questionnaire(await (await fetch("/v1/collections/two")).json());
    const { definition } = survey;
    const receipts = [];
    for (const { token, answers } of people) {
        const me = await (await fetch("/v1/me", { headers: { Authorization: `Bearer ${token}` } })).json();
        const asked = survey.asked(fromHex(me.seed)).map((place) => definition.questions[place].name);
        const own = Object.fromEntries(asked.map((name) => [name, answers[name]]));
        const budget = await DeviceBudget.open({ lifetime: "2" }, { name: `device ${me.key}` });
        const outbox = new Outbox(budget);
        // Drawing again under the same key returns the same report, and sending it again the same response.
        const drawn = [await outbox.draw(me.key, survey, own), await outbox.draw(me.key, survey, own)];
        const headers = { Authorization: `Bearer ${token}`, "Idempotency-Key": me.key, "X-Collection": definition.digest };
        const found = [];
        for (const { report } of drawn) {
            const response = await fetch("/v1/collections/two/reports", { method: "POST", headers, body: report });
            found.push((await response.json()).receipt);
        }
        const { lifetime } = await budget.balance();
        receipts.push({ found, left: lifetime.left });
        budget.close();
    }
    return receipts;
}"""


def all_take_part(site: Site, respondents: list[Respondent], at_once: int) -> None:
    """Let every respondent take part: by the form, except those with the way `client`."""
    program = chromium()
    from playwright.async_api import async_playwright

    async def served(route: Any) -> None:
        name = route.request.url.rpartition("/")[2]
        await route.fulfill(body=(SOURCES / name).read_text(), content_type="text/javascript")

    async def drive(browser: Any, driven: list[Respondent]) -> None:
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
            waiting = iter([each for each in respondents if each.way != "client"])

            async def one_after_the_other() -> None:
                context = await browser.new_context(locale="en")
                page = await context.new_page()
                page.set_default_timeout(60_000)
                inside = await context.new_cdp_session(page)
                for respondent in waiting:
                    await respondent.take_part(page, site)
                    # The next respondent has another device.
                    await page.goto(f"{site.origin}/static/survey.svg")
                    kinds = {"origin": site.origin, "storageTypes": "indexeddb"}
                    await inside.send("Storage.clearDataForOrigin", kinds)

            driven = [each for each in respondents if each.way == "client"]
            await asyncio.gather(*(one_after_the_other() for _ in range(at_once)), drive(browser, driven))
            await browser.close()

    asyncio.run(play())


def test_questionnaire_of_two_hundred_respondents_has_one_charge_and_report_each(tmp_path: Path) -> None:
    counts = {"plain": 15, "double click": 10, "reload": 20, "offline": 10, "used up": 5, "client": 140}
    ways = [way for way, count in counts.items() for _ in range(count)]
    respondents = [Respondent(number, way) for number, way in enumerate(ways)]
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
