"""`ldp-budget report` in other languages, and what it prints on paper."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from case_files import case_text
from command_line import CommandLine
from ldp_budget_surveys.pages.translations import texts

TOML = case_text("cli_report_languages.survey.toml")


def health(command: CommandLine) -> None:
    """A survey of 200 people in German and English."""
    folder = Path(command.ledger).parent
    (folder / "health.toml").write_text(TOML, encoding="utf-8")
    rows = "".join(
        f"u{at},{'good' if at % 3 else 'bad'},{('yes', 'no', '')[at % 3]},{at + 900}\n" for at in range(200)
    )
    (folder / "rows.csv").write_text(f"user,mood,smoke,income\n{rows}")
    command("policy", "set", "default", "--limit", "lifetime=4.5")
    command("survey", "add", folder / "health.toml")
    command("randomize", "health", folder / "rows.csv", "--user-column", "user", "--spend", "--out", folder / "r")


@pytest.fixture
def survey_line(command: CommandLine, begun: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    begun(health, command)
    monkeypatch.chdir(Path(command.ledger).parent)
    return command


def page_of(command: CommandLine, *options: str) -> str:
    command(
        "report", "health", "r", "--invited", "1600", "--no-verify", *options, "--out", "page.html", "--overwrite"
    )
    return Path("page.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_report_in_german_has_its_texts_numbers_and_dates(survey_line: CommandLine) -> None:
    found = survey_line.json("estimate", "health", "r", "--consistent")
    page = page_of(survey_line, "--language", "de")
    assert '<html lang="de">' in page
    assert "<h1>Gesundheit</h1>" in page
    assert "Für die Planung" in page
    assert re.search(r"<h2[^>]*>Wie geht es Ihnen\?</h2>", page)
    for answer, shown in (("good", "gut"), ("bad", "schlecht")):
        (row,) = [each for each in found["mood"]["answers"] if each["answer"] == answer]
        assert f">{shown}</th>" in page
        assert f">{100 * row['share']:.1f} %</td>".replace(".", ",") in page
    # Without words of its own: the question as it is, and its answers.
    assert re.search(r"<h2[^>]*>Do you smoke\?</h2>", page)
    assert ">ja</th>" in page
    assert ">keine Angabe</th>" in page
    (median,) = found["income"]["quantiles"].values()
    assert ">50 %-Quantil (EUR)</th>" in page
    assert f">{texts('de').number(median['estimate'])}</td>" in page
    assert "200 (12,5 % der Eingeladenen)" in page
    assert "ε = 4,5 insgesamt" in page
    assert re.search(r"am \d{1,2}\. [A-Z]\w+ \d{4} \(UTC\)", page)
    assert "1.600" in page


@pytest.mark.slow
def test_report_in_korean_has_its_texts(survey_line: CommandLine) -> None:
    page = page_of(survey_line, "--language", "ko")
    assert '<html lang="ko">' in page
    assert "누가 무엇을 보장하는가" in page
    assert ">아니요</th>" in page
    text = survey_line("report", "health", "r", "--no-verify", "--language", "ko", "--markdown").stdout
    assert "## 기록" in text


def test_report_in_an_unknown_language_is_refused_before_anything_is_written(survey_line: CommandLine) -> None:
    words = ("report", "health", "r", "--language", "fr", "--out", "page.html")
    assert "--language must be one of en, ko, de: got fr" in survey_line.error(*words, code=2)
    assert not Path("page.html").exists()


def test_report_page_prints_its_title_date_and_number_on_each_page(survey_line: CommandLine) -> None:
    page = page_of(survey_line)
    style = page.split("@page {")[1].split("@media print")[0]
    assert r'@top-left { content: "Health\20 \22 and\22 \20 \3c habits\3e "' in style
    assert re.search(r'@bottom-left { content: "\d{1,2}\\20 [A-Z]\w+\\20 \d{4}"', style)
    assert r'@bottom-right { content: "Page\20 " counter(page) "\20 of\20 " counter(pages)' in style
    assert "size:" not in style
    assert "size: letter;" in page_of(survey_line, "--paper", "letter")
    assert page.count("<p>Signature</p>") == 2


def test_report_pdf_without_weasyprint_says_what_to_install(
    survey_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    said = survey_line.error("report", "health", "r", "--out", "page.pdf")
    assert "a PDF file needs the package weasyprint" in said
    assert "pip install 'ldp-budget[pdf]'" in said
    assert not Path("page.pdf").exists()


def test_report_pdf_as_markdown_is_refused(survey_line: CommandLine) -> None:
    said = survey_line.error("report", "health", "r", "--markdown", "--out", "page.pdf", code=2)
    assert "--out must end in .md or .markdown or .txt, because the page is markdown" in said


@pytest.mark.parametrize("out", ["page.docx", "page", "page.pdf.txt"])
def test_report_to_a_file_of_another_kind_is_an_error(survey_line: CommandLine, out: str) -> None:
    said = survey_line.error("report", "health", "r", "--out", out, code=2)
    assert f"--out must end in .html or .htm or .pdf, because the page is html or pdf: got {out}" in said
    assert not Path(out).exists()
