"""PDF files of `ldp-budget report`: sizes of paper, page breaks, and letters without a font."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from command_line import CommandLine
from ldp_budget_surveys.pages.pdf import pdf

try:
    weasyprint: Any = pytest.importorskip("weasyprint")
except OSError as missing:
    pytest.skip(f"no Pango: {missing}", allow_module_level=True)

SURVEY = """
[survey]
name = "health"
title = "Health and habits in the region"
organisation = "Institute of Public Health"
purpose = "To plan the clinics."
epsilon = 4
answer = 2
[[question]]
name = "mood"
text = "How do you feel today?"
categories = ["good", "fair", "bad"]
[[question]]
name = "travel"
text = "How do you usually travel to work?"
categories = ["on foot", "bicycle", "bus", "train", "car", "not at all"]
[[question]]
name = "sleep"
text = "How many hours did you sleep?"
kind = "number"
lower = 0
upper = 14
unit = "hours"
"""


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A survey of 600 people in four regions."""
    folder = tmp_path_factory.mktemp("pdf")
    command = CommandLine(folder / "budget.db")
    (folder / "health.toml").write_text(SURVEY)
    travel = ("on foot", "bicycle", "bus", "train", "car", "not at all")
    rows = "".join(
        f"u{at},{('North', 'East', 'South', 'West')[at % 4]},{('good', 'fair', 'bad')[at % 3]},{travel[at % 6]},{at % 14}\n"
        for at in range(600)
    )
    (folder / "rows.csv").write_text(f"user,region,mood,travel,sleep\n{rows}")
    command("policy", "set", "default", "--limit", "lifetime=8")
    command("survey", "add", folder / "health.toml")
    words = ("--user-column", "user", "--public", "region", "--spend", "--out", folder / "r")
    command("randomize", "health", folder / "rows.csv", *words)
    return command


def page_of(command: CommandLine, *words: str, files: bool = True) -> str:
    folder = Path(command.ledger).parent
    out = folder / "page.html"
    given = [folder / "r"] if files else []
    command("report", "health", *given, *words, "--invited", "900", "--out", out, "--overwrite")
    return out.read_text(encoding="utf-8")


@pytest.mark.parametrize(("paper", "box"), [("a4", "595.2"), ("letter", "612")])
def test_pdf_has_the_size_of_the_paper(command: CommandLine, paper: str, box: str) -> None:
    folder = Path(command.ledger).parent
    out = folder / f"{paper}.pdf"
    command("report", "health", folder / "r", "--paper", paper, "--out", out)
    found = out.read_bytes()
    assert found.startswith(b"%PDF-")
    streams = re.findall(rb"/FlateDecode.*?stream\n(.*?)\nendstream", found, re.DOTALL)
    assert any(re.search(rb"/MediaBox \[0 0 " + box.encode(), zlib.decompress(each)) for each in streams)


@pytest.mark.some(4)
@pytest.mark.parametrize("paper", ["a4", "letter"])
@pytest.mark.parametrize("language", ["en", "de", "ko"])
@pytest.mark.parametrize(
    "design", [("--by", "region", "--table", "mood,travel"), (), None], ids=["groups", "plain", "plan"]
)
def test_pdf_splits_no_table_and_has_no_half_empty_page(
    command: CommandLine, language: str, paper: str, design: tuple[str, ...] | None
) -> None:
    page = page_of(command, "--language", language, "--paper", paper, *(design or ()), files=design is not None)
    document = weasyprint.HTML(string=page).render()
    seen: Counter[Any] = Counter()
    for number, each in enumerate(document.pages, 1):
        box = each._page_box
        boxes = [found for found in box.descendants() if found.element is not None]
        seen.update({found.element for found in boxes if found.element_tag in ("table", "figure")})
        lowest = max(found.position_y + found.height for found in boxes if isinstance(found.height, float))
        used = (lowest - box.content_box_y()) / box.height
        assert number == len(document.pages) or used > 0.5, (number, used)
        headings = [found for found in boxes if found.element_tag in ("h2", "h3")]
        assert all(found.position_y + found.height < lowest - 10 for found in headings), (
            f"a heading ends page {number}"
        )
        assert len(texts_of(box, "@bottom-right")) == len(texts_of(box, "@top-left")) == 1
    assert set(seen.values()) == {1}


def texts_of(box: Any, margin: str) -> list[str]:
    """The text in a margin of a page."""
    found = [each for each in box.children if getattr(each, "at_keyword", None) == margin]
    return ["".join(text.text for text in each.descendants() if hasattr(text, "text")) for each in found]


def test_pdf_without_a_font_for_a_letter_is_refused(command: CommandLine) -> None:
    folder = Path(command.ledger).parent
    out = folder / "page.pdf"
    words = (
        "report",
        "health",
        folder / "r",
        "--organisation",
        "A\ufdd0",
        "--out",
        out,
    )  # no font has a noncharacter
    assert "no installed font has these letters of the page" in command.error(*words)
    assert not out.exists()


def test_pdf_loads_nothing(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    name = (tmp_path / "secret.txt").as_uri()
    found = pdf(
        f'<html><body><img src="{name}"><link rel=attachment href="{name}"><a href="{name}">A</a></body></html>'
    )
    assert b"EmbeddedFile" not in found
