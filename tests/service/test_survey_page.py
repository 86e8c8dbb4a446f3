"""The survey page in a real browser, over a real server: what leaves a device, how often, and what it is told."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

from ldp_budget.access.invitations import Invitations
from survey_site import CHROMIUM, WAYS, Site, chromium, ledger, running

REPORTS = re.compile(r"/v1/collections/[^/]+/reports$")
ARRIVED, WAITING, REFUSED = (f"h1[data-state={state}]" for state in ("arrived", "waiting", "refused"))
SEND = "button[type=submit]"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("survey")
    with ledger(folder / "budget.db") as accountant, running(accountant, folder / "inboxes") as made:
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
    """Makes pages, each of a device of its own, in which nothing may go wrong that nobody is told of."""
    contexts, wrong = [], []

    def made(**options: Any) -> Any:
        context = browser.new_context(locale="en", **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
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


def answered(page: Any, link: str, answer: str = "bike") -> Any:
    opened(page, link)
    page.get_by_label(answer).check()
    page.click(SEND)
    return page


def sent_by(page: Any) -> list[Any]:
    """The requests that carry a report, as they are made from now on."""
    found: list[Any] = []
    page.on("request", lambda request: found.append(request) if REPORTS.search(request.url) else None)
    return found


def entries(page: Any) -> Any:
    """What is kept on the device."""
    return page.evaluate(
        """() => new Promise((done) => {
            const request = indexedDB.open("ldp-budget");
            request.onsuccess = () => {
                const stores = request.result.transaction(["outbox", "budget"]);
                const kept = stores.objectStore("outbox").getAll();
                const budget = stores.objectStore("budget").get("device");
                budget.onsuccess = () => {
                    request.result.close();
                    const spent = budget.result.spent.lifetime / 1e9;
                    done({ spent, kept: kept.result.map((each) => ({ ...each, report: each.report && [...each.report] })) });
                };
            };
        })"""
    )


# -- many respondents ----------------------------------------------------------------------------------------------


class Respondent:
    """Somebody who answers, in one of several ways, in a browser of their own."""

    def __init__(self, number: int, way: str) -> None:
        self.user, self.way = f"respondent {number}", way
        self.answer = WAYS[(0, 1, 1, 2, 3, 3, 3)[number % 7]]
        self.receipt: str | None = None
        self.refused = False

    async def take_part(self, browser: Any, site: Site) -> None:
        context = await browser.new_context(locale="en")
        try:
            page = await context.new_page()
            page.set_default_timeout(30_000)
            await page.goto(site.link(self.user))
            await self.play(page, site)
            await page.wait_for_selector(f"{ARRIVED}, {REFUSED}")
            self.refused = await page.locator(REFUSED).count() > 0
            if not self.refused:
                self.receipt = await page.inner_text("#number")
        finally:
            await context.close()

    async def play(self, page: Any, site: Site) -> None:
        await self.choose(page)
        if self.way == "reload":
            await page.reload()
            await self.choose(page)
            await page.click(SEND)
            await page.reload()
            # Where the reload came before anything was kept, nothing was drawn, and they answer again.
            await page.wait_for_selector(f"{SEND}, {ARRIVED}, {WAITING}")
            if await page.locator(SEND).count():
                await self.choose(page)
                await page.click(SEND)
        elif self.way == "double-click":
            await page.dblclick(SEND)
        elif self.way == "offline":
            await page.context.set_offline(True)
            await page.click(SEND)
            await page.wait_for_selector(WAITING)
            assert site.charged(self.user) == 0
            await page.context.set_offline(False)
        elif self.way == "used up":
            spent = site.accountant.spend(self.user, site.accountant.collection("commute").mechanism, reports=2)
            assert spent.status == "spent"
            await page.click(SEND)
        else:
            await page.click(SEND)

    async def choose(self, page: Any) -> None:
        await page.get_by_label(self.answer).check()


def all_take_part(site: Site, respondents: list[Respondent], at_once: int) -> None:
    program = chromium()
    from playwright.async_api import async_playwright

    async def play() -> None:
        async with async_playwright() as driver:
            browser = await driver.chromium.launch(executable_path=program, args=CHROMIUM)
            waiting = iter(respondents)

            async def one_after_the_other() -> None:
                for respondent in waiting:
                    await respondent.take_part(browser, site)

            await asyncio.gather(*(one_after_the_other() for _ in range(at_once)))
            await browser.close()

    asyncio.run(play())


def check_all(site: Site, respondents: list[Respondent], refused: int) -> None:
    """One receipt, one charge and one report of everybody but those who were refused, and a true estimate."""
    took_part = [each for each in respondents if not each.refused]
    assert [each.way for each in respondents if each.refused] == ["used up"] * refused
    assert len({each.receipt for each in took_part}) == len(took_part) == len(respondents) - refused
    assert {site.charged(each.user) for each in took_part} == {1}
    taken = site.taken()
    assert len(taken) == len(took_part)
    mechanism = site.accountant.collection("commute").mechanism
    reports = np.frombuffer(b"".join(taken), np.uint8).reshape(len(taken), 1)
    low, high = mechanism.estimate(reports).interval(1 - 1e-9)
    true = [sum(each.answer == way for each in took_part) for way in WAYS]
    assert all(low <= true) and all(true <= high), (low, true, high)


def ways(**counts: int) -> list[Respondent]:
    named = [
        way.replace("_", " ").replace("double ", "double-") for way, count in counts.items() for _ in range(count)
    ]
    return [Respondent(number, way) for number, way in enumerate(named)]


@pytest.fixture
def own_site(tmp_path: Path) -> Iterator[Site]:
    with ledger(tmp_path / "budget.db") as accountant, running(accountant, tmp_path / "inboxes") as made:
        yield made


def test_five_respondents_answer_each_in_another_way(own_site: Site) -> None:
    respondents = ways(plain=1, reload=1, double_click=1, offline=1, used_up=1)
    all_take_part(own_site, respondents, at_once=3)
    check_all(own_site, respondents, refused=1)


@pytest.mark.slow
def test_two_hundred_respondents_are_195_receipts_and_one_report_each(own_site: Site) -> None:
    respondents = ways(plain=155, reload=20, double_click=10, offline=10, used_up=5)
    all_take_part(own_site, respondents, at_once=6)
    check_all(own_site, respondents, refused=5)
