"""The guides of telemetry and of SurveyJS, command by command in a small clone, with Chromium as the devices."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from chromium import devices
from doc_blocks import Shell, blocks, page_environment
from typed_guides import ROOT, clone_of_clients, follow, free_ports

GUIDES = ROOT / "docs" / "guides"
EXAMPLES = ROOT / "clients" / "examples"


def typed(name: str, port: str, folder: Path, take_part: Any) -> list[str]:
    """Type the commands of a guide, with devices that take part once its server answers; what prints something else."""
    clone = clone_of_clients(folder)
    (own,) = free_ports(1)
    steps = blocks((GUIDES / f"{name}.md").read_text(encoding="utf-8").replace(port, own))
    with Shell(clone, **page_environment(clone)) as shell:
        wrong = follow(shell, steps, "curl --silent")
        if not wrong:
            take_part(f"http://127.0.0.1:{own}/")
        return wrong + follow(shell, steps, None)


def test_guide_to_telemetry_works_as_printed(tmp_path: Path, browser: Any) -> None:
    def choose(address: str) -> None:
        for plan in ("team", "firm", None, None):
            with devices(browser, 20_000) as device:
                page = device()
                page.goto(address)
                page.wait_for_function("document.querySelector('#said').textContent.startsWith('A day')")
                if plan is not None:
                    page.click(f"button:text-is('{plan}')")
                    page.wait_for_timeout(500)
                with page.expect_request(lambda request: "ldp_report" in (request.post_data or "")) as sent:
                    page.goto(f"{address}?days=1")
                assert sent.value.response().status == 200

    assert typed("telemetry", "5180", tmp_path, choose) == []


def test_guide_to_surveyjs_works_as_printed(tmp_path: Path, browser: Any) -> None:
    def answer(address: str) -> None:
        for place, person in enumerate(("ana", "ben", "chi", "dan")):
            with devices(browser, 20_000) as device:
                page = device()
                page.goto(f"{address}?person={person}")
                page.click("label:has-text('fair')")
                page.click("text=Yes" if place % 2 else "text=No")
                page.click("label:has-text('train')")
                page.click("input[value=Next]")
                page.fill("input[type=text]", "Ulm")
                with page.expect_response("**/answers"):
                    page.click("input[value=Complete]")

    assert typed("surveyjs", "5181", tmp_path, answer) == []


@pytest.mark.parametrize(("name", "file"), [("telemetry", "telemetry/shop.js"), ("surveyjs", "surveyjs/health.js")])
def test_road_guide_shows_the_code_of_its_example(name: str, file: str) -> None:
    code = (EXAMPLES / file).read_text(encoding="utf-8")
    shown = [
        block.text for block in blocks((GUIDES / f"{name}.md").read_text(encoding="utf-8")) if block.kind == "js"
    ]
    assert len([text for text in shown if text in code]) == 2
    assert re.search(r"^package-lock=false$", (EXAMPLES / Path(file).parent / ".npmrc").read_text(), re.MULTILINE)
