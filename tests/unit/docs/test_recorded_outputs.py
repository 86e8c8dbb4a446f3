"""Outputs that pages show: the parts that recording does not compare, because they differ in each run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RECEIPT = re.compile(r"\(receipt (\d+-[0-9a-f]{20})\)(.*)")
SURVEY = re.compile(r"^One run printed:\n\n```text\n(.*?)```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_stored_answer_of_a_key_shows_the_receipt_of_the_first_answer(page: Path) -> None:
    seen = set[str]()
    for receipt, more in RECEIPT.findall(page.read_text(encoding="utf-8")):
        if "stored answer of this key" in more:
            assert receipt in seen, f"{page.name} shows {receipt} for the first time in a stored answer"
        seen.add(receipt)


def test_estimate_of_the_readme_has_the_lines_of_a_run() -> None:
    """The block shows one run, and the noise is new in each: only the words are compared."""
    recorded = (ROOT / "docs" / "guides" / "devices.md").read_text(encoding="utf-8")
    [shown] = SURVEY.findall(
        (ROOT / "README.md").read_text(encoding="utf-8").replace("The noise is new in each run. ", "")
    )
    first, second, header, *rows = shown.splitlines()
    assert re.fullmatch(r"\d+ reports; 95 % confidence intervals", first)
    assert second in recorded.splitlines()
    assert header.split() == ["answer", "count", "share", "low", "high", "unbiased"]
    assert [row.split()[0] for row in rows] == ["no", "yes"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_recorded_output_shows_no_failed_test_run(page: Path) -> None:
    assert re.search(r"^=+ FAILURES =+$|^\d+ failed", page.read_text(encoding="utf-8"), re.MULTILINE) is None
