"""Every Korean text of the repository keeps to the words and the form of address of `docs/korean-terms.md`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TERMS = ROOT / "docs" / "korean-terms.md"
FOLDERS = ("accountant", "cli", "clients", "docs", "plugins", "service", "surveys", "verify")
ENDINGS = (".md", ".json", ".html", ".js", ".mjs", ".py", ".toml", ".txt")
HANGUL = re.compile("[가-힣]")


def rows(page: str) -> list[list[str]]:
    """The cells of the tables of the page, without their heads."""
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[-1] != "not" and not set(row[0]) <= {"-"}]


def avoided(page: str) -> list[str]:
    """The words that no Korean text may have."""
    return [word for row in rows(page) for word in row[-1].split(", ") if word]


def texts() -> list[Path]:
    """The files with Korean in them; the page of the terms names the words to avoid."""
    found = [ROOT / "README.ko.md"]
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            ours = "node_modules" not in path.parts and path.suffix in ENDINGS and path != TERMS
            if ours and path.is_file() and HANGUL.search(path.read_text(encoding="utf-8")):
                found.append(path)
    return found


def faults(text: str, words: list[str]) -> list[str]:
    return [word for word in words if word in text]


@pytest.mark.slow
def test_korean_texts_have_no_word_that_the_terms_avoid() -> None:
    words = avoided(TERMS.read_text(encoding="utf-8"))
    assert {"당신", "프라이버시 책임자", "십시오", "매겨"} <= set(words)
    found = texts()
    names = {path.name for path in found}
    assert {"README.ko.md", "survey.ko.json", "office.ko.json", "ko.json", "quickstart.md", "check.html"} <= names
    wrong = {
        str(path.relative_to(ROOT)): hits
        for path in found
        if (hits := faults(path.read_text(encoding="utf-8"), words))
    }
    assert wrong == {}, "use the word that docs/korean-terms.md decides"
