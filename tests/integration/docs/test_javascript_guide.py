"""The guide to randomizing on devices, command by command in a small clone, with Chromium as the respondents."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

import axe_core
from chromium import devices
from doc_blocks import Shell, blocks, page_environment
from typed_guides import clone_of_clients, follow, free_ports

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "guides" / "devices.md"
EXAMPLES = ROOT / "clients" / "examples"
SERVICE, PAGES = "8000", "5173"
SAID = "document.querySelector('[role=status]').textContent"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return clone_of_clients(tmp_path)


def test_guide_to_devices_works_as_printed(clone: Path, browser: Any, axe: str) -> None:
    service, pages = free_ports(2)
    text = GUIDE.read_text(encoding="utf-8").replace(SERVICE, service).replace(PAGES, pages)
    config = clone / "clients" / "examples" / "config.js"
    config.write_text(config.read_text().replace(SERVICE, service))
    steps = blocks(text)
    with Shell(clone, **page_environment(clone)) as shell:
        assert follow(shell, steps, "http.server") == []
        with (clone / "clients" / "examples" / "links.csv").open() as file:
            links = [row["link"] for row in csv.DictReader(file)]
        assert len(links) == 4
        for place, link in enumerate(links):
            scheme = "dark" if place % 2 else "light"
            with devices(browser, 20_000) as device:
                page = device(color_scheme=scheme, viewport={"width": 390, "height": 844})
                take_part(page, link if place < 2 else link.replace("plain.html", "react.html"), "yes", axe)
        assert follow(shell, steps, None) == []


def take_part(page: Any, link: str, answer: str, axe: str) -> None:
    """Answer once; the first two attempts to send fail, and a reload neither draws nor sends again."""
    sent: list[bytes] = []

    def reports(route: Any) -> None:
        if route.request.method != "POST":
            route.continue_()
            return
        sent.append(route.request.post_data_buffer + route.request.headers["idempotency-key"].encode())
        if len(sent) == 1:
            route.abort()
        elif len(sent) == 2:
            route.fulfill(status=503, headers={"Retry-After": "1", "Access-Control-Allow-Origin": "*"}, body="{}")
        else:
            route.continue_()

    page.route("**/reports", reports)
    page.goto(link)
    page.wait_for_selector(f"button:text-is('{answer}')")
    assert page.inner_text("h1") == "Did you come by car today?"
    assert "2.72 times as likely" in page.inner_text("main")
    assert axe_core.violations(page, axe) == []
    page.click(f"button:text-is('{answer}')")
    page.wait_for_function(f"{SAID} === 'Your answer has arrived.'")
    assert (len(sent), len(set(sent))) == (3, 1)
    page.reload()
    page.wait_for_function(f"{SAID} === 'Your answer has arrived.'")
    assert page.locator("button").count() == 0
    assert len(sent) == 3


def test_guide_shows_the_code_of_the_example() -> None:
    code = (EXAMPLES / "reports.js").read_text(encoding="utf-8")
    shown = [block.text for block in blocks(GUIDE.read_text(encoding="utf-8")) if block.kind == "js"]
    assert len(shown) == 3
    assert not [text for text in shown if text not in code]


def test_example_locks_no_download_addresses() -> None:
    assert not list(EXAMPLES.glob("*lock*"))
    assert re.search(r"^package-lock=false$", (EXAMPLES / ".npmrc").read_text(), re.MULTILINE)
