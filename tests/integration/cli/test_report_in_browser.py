"""The page of `ldp-budget report` in Chromium: no request, no violation, and no horizontal scroll."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import axe_core
from command_line import CommandLine

SIZES = [(1280, "light"), (390, "dark"), (390, "light"), (1280, "dark")]
LONG = "Verantwortungsbewusstseinsbefragung" * 3
REGION = LONG[:64]
SURVEY = f"""
[survey]
name = "health"
title = "Health <b>"
epsilon = 8
policy = "wide"
[[question]]
name = "smokes"
text = "Do you smoke?"
categories = ["never", "some", "{LONG}", "a", "b", "c"]
[[question]]
name = "sport"
text = "Do you exercise, {LONG}?"
categories = ["yes", "no", "{LONG}"]
[[question]]
name = "trips"
text = "How do you travel?"
categories = ["bus", "train", "bicycle", "car", "foot", "ship"]
[[question]]
name = "work"
text = "How much do you work?"
kind = "number"
lower = 0
upper = 60
unit = "hours a week, {LONG[:20]}"
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The pages of a survey with answers, of one with long words, of numbers, of one without answers, and weighted ones."""
    folder = tmp_path_factory.mktemp("pages")
    command = CommandLine(folder / "budget.db")
    command("policy", "set", "default", "--limit", "lifetime=4", "--limit", "day=2")
    mood = ["--title", 'Well-being <b>&"', "--question", "How have you felt this week?", "--contact", "a@example.org"]
    command("collection", "add", "mood", "oue", "--epsilon", "1", "--categories", "good,fair,bad", *mood)
    command("collection", "add", "long", "grr", "--epsilon", "1", "--categories", f"{LONG},no", "--title", LONG)
    command(
        "collection", "add", "age", "square-wave", "--epsilon", "2", "--lower", "18", "--upper", "70", "--bins", "8"
    )
    rows = "".join(f"u{at},{'good' if at % 3 else 'bad'},{LONG},{18 + at % 50}\n" for at in range(300))
    (folder / "rows.csv").write_text(f"user,mood,long,age\n{rows}")
    made = []
    for name in ("mood", "long", "age"):
        out = folder / f"{name}.reports"
        spend = ["--user-column", "user", "--spend"] if name == "mood" else []
        command("randomize", name, folder / "rows.csv", "--column", name, "--out", out, *spend)
        made.append(folder / f"{name}.html")
        more = ["--organisation", "Example Clinic", "--invited", "500"]
        command("report", name, out, "--out", made[-1], *more)
    made.append(folder / "none.html")
    command("report", "mood", "--out", made[-1])
    for language in ("ko", "de"):
        made.append(folder / f"{language}.html")
        command("report", "mood", folder / "mood.reports", "--language", language, "--out", made[-1])
    made += weighted(command, folder)
    return made


def weighted(command: CommandLine, folder: Path) -> list[Path]:
    """The pages of a weighted survey by group, with a two-way table side by side, and with one that is a list."""
    (folder / "health.toml").write_text(SURVEY)
    (folder / "totals.csv").write_text(f"variable,value,total\nregion,{REGION},700\nregion,<south>,1300\n")
    rows = "".join(
        f"w{at},{REGION if at % 2 else '<south>'},{('never', LONG, 'a')[at % 3]},{('yes', 'no')[at // 3 % 2]},"
        f"{('bus', 'ship')[at // 6 % 2]},{at % 61}\n"
        for at in range(300)
    )
    (folder / "health.csv").write_text(f"user,region,smokes,sport,trips,work\n{rows}")
    command("policy", "set", "wide", "--limit", "lifetime=8")
    command("survey", "add", folder / "health.toml")
    out, public = folder / "health.reports", ("--user-column", "user", "--public", "region")
    command("randomize", "health", folder / "health.csv", *public, "--out", out)
    pages = [folder / "weighted.html", folder / "table.html"]
    rake = ("--rake", folder / "totals.csv", "--by", "region", "--population", "2000", "--table", "smokes,sport")
    command("report", "health", out, *rake, "--out", pages[0])
    command("report", "health", out, "--strata", "region", "--table", "smokes,trips", "--out", pages[1])
    return pages


def test_report_in_browser_fits_the_screen_and_has_no_violation(browser: Any, pages: list[Path], axe: str) -> None:
    for path in pages:
        for width, scheme in SIZES[:2] if path.stem in ("weighted", "table") else SIZES:
            context = browser.new_context(
                viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True
            )
            page, asked = context.new_page(), list[str]()
            page.on("request", lambda request, asked=asked: asked.append(request.url))
            page.goto(path.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), path
            assert axe_core.violations(page, axe) == [], (path.name, width, scheme)
            assert asked == [path.as_uri()]
            if shots := os.environ.get("LDP_BUDGET_TEST_SHOTS"):  # a folder, to look at the pages
                page.screenshot(path=f"{shots}/{path.stem}-{width}-{scheme}.png", full_page=True)
            context.close()


def test_report_in_browser_prints_dark_on_light(browser: Any, pages: list[Path]) -> None:
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(pages[0].as_uri())
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    context.close()
