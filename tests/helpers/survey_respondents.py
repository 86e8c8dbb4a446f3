"""Respondents of a survey page, who answer in one of several ways, one after the other in a few contexts of Chromium."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from survey_site import Site

ARRIVED, WAITING, REFUSED = (f"h1[data-state={state}]" for state in ("arrived", "waiting", "refused"))
SEND = "button[type=submit]"


def opened(page: Any, link: str) -> Any:
    """Open the survey page of a link, and wait until it can be answered."""
    page.goto(link)
    page.wait_for_selector("body[data-ready]")
    return page


class Respondent:
    """A respondent with a true answer; `way` is plain, reload, double click, offline or used up."""

    def __init__(self, number: int, way: str) -> None:
        self.user, self.way = f"respondent {number}", way
        self.receipt: str | None = None
        self.refused = False

    def link(self, site: Site) -> str:
        """Return the link of the invitation."""
        raise NotImplementedError

    async def choose(self, page: Any) -> None:
        """Fill the form with the true answer."""
        raise NotImplementedError

    def use_up(self, site: Site) -> None:
        """Spend the budget, so that the report is refused."""
        raise NotImplementedError

    async def take_part(self, page: Any, site: Site) -> None:
        """Open the page, answer, and keep the receipt or the refusal."""
        await page.goto(self.link(site))
        await self._send(page, site)
        await page.wait_for_selector(f"{ARRIVED}, {REFUSED}")
        self.refused = await page.locator(REFUSED).count() > 0
        if not self.refused:
            self.receipt = await page.inner_text("#number")

    async def _send(self, page: Any, site: Site) -> None:
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
        elif self.way == "double click":
            await page.dblclick(SEND)
        elif self.way == "offline":
            await page.context.set_offline(True)
            await page.click(SEND)
            await page.wait_for_selector(WAITING)
            assert site.charged(self.user) == 0
            await page.context.set_offline(False)
        elif self.way == "used up":
            self.use_up(site)
            await page.click(SEND)
        else:
            await page.click(SEND)


async def let_take_part(
    browser: Any, site: Site, respondents: Iterable[Respondent], at_once: int, milliseconds: int
) -> None:
    """Let respondents take part, some at once; `milliseconds` is the limit of each step."""
    waiting = iter(respondents)

    async def one_after_the_other() -> None:
        context = await browser.new_context(locale="en")
        page = await context.new_page()
        page.set_default_timeout(milliseconds)
        inside = await context.new_cdp_session(page)
        for respondent in waiting:
            await respondent.take_part(page, site)
            # The next respondent has another device. A new context, or a page of another site, would be a new process
            # of the browser, which takes several times as long.
            await page.goto(f"{site.origin}/static/survey.svg")
            await inside.send("Storage.clearDataForOrigin", {"origin": site.origin, "storageTypes": "indexeddb"})

    await asyncio.gather(*(one_after_the_other() for _ in range(at_once)))
