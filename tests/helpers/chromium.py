"""The system's Chromium, driven by Playwright, and its contexts as devices of different people."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CHROMIUM = [
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-quic"),
]


PHONE = {"width": 390, "height": 844}
"""The view of a small phone."""


def chromium() -> str:
    """The browser; without it, or what drives it, the test is skipped."""
    pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install playwright")
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("no Chromium on this machine")
    return found


@contextmanager
def launched() -> Iterator[Any]:
    """Start the browser; end it at the end."""
    program = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=CHROMIUM)
        yield started
        started.close()


@contextmanager
def devices(browser: Any, milliseconds: int = 10_000) -> Iterator[Callable[..., Any]]:
    """Make pages, each of its own device, with a limit for each step; fail at the end on any script error."""
    contexts, wrong = [], []

    def made(**options: Any) -> Any:
        context = browser.new_context(**{"locale": "en", **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(milliseconds)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        return page

    yield made
    for context in contexts:
        context.close()
    assert not wrong, wrong
