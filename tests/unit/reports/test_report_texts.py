"""Texts of reports: every language has the same keys and placeholders, and its own form of numbers and dates."""

from __future__ import annotations

import ast
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

import ldp_budget_surveys.pages as pages
from ldp_budget import InvalidParameter
from ldp_budget_surveys.pages.translations import LANGUAGES, margin_places, texts


def plain(language: str) -> dict[str, str]:
    """The texts of a language without the forms for one, which not every language has."""
    return {key: text for key, text in texts(language).said.items() if not key.endswith(".one")}


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_have_the_keys_and_placeholders_of_english(language: str) -> None:
    english, other = plain("en"), plain(language)
    assert other.keys() == english.keys()
    for key, text in other.items():
        assert set(re.findall(r"\{\w*\}", text)) == set(re.findall(r"\{\w*\}", english[key])), key
        assert text.strip(), key


def test_texts_are_those_that_the_pages_use() -> None:
    used, begun = set[str](), set[str]()
    for path in Path(pages.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                used.add(node.value)
            if isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
                begun.add(str(node.values[0].value))
    known = plain("en")
    unused = [key for key in known if key not in used and key.rpartition(".")[0] + "." not in begun]
    assert unused == []
    parts = {key.split(".")[0] for key in known if "." in key}
    keys = [each for each in used if re.fullmatch(r"[a-z]+[.][a-z_0-9]+", each) and each.split(".")[0] in parts]
    assert [key for key in keys if key not in known] == []
    assert len(keys) > 100


@pytest.mark.parametrize(
    ("language", "shown"),
    [
        ("en", ("1,234", "12.3 %", "1,234.5", "ε 0.1235", "7 March 2026, 09:05 UTC", "1 answer", "2 answers")),
        ("ko", ("1,234", "12.3 %", "1,234.5", "ε 0.1235", "2026년 3월 7일 09:05 UTC", "응답 1건", "응답 2건")),
        ("de", ("1.234", "12,3 %", "1.234,5", "ε 0,1235", "7. März 2026, 09:05 UTC", "1 Antwort", "2 Antworten")),
    ],
)
def test_texts_write_numbers_and_dates_as_the_language_does(language: str, shown: tuple[str, ...]) -> None:
    say = texts(language)
    at = datetime(2026, 3, 7, 9, 5, tzinfo=UTC)
    figures = (say.whole(1234), say.percent(0.1234), say.decimals(1234.5, 1), f"ε {say.loss(0.12341)}")
    assert (*figures, say.moment(at), say.count("answers", 1), say.count("answers", 2)) == shown


def test_texts_of_another_language_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="language must be one of en, ko, de: got fr"):
        texts("fr")


@pytest.mark.parametrize(
    ("margin", "places"), [(0.0123, 3), (0.5, 2), (1.22, 1), (9.99, 1), (12.0, 0), (1234.0, 0), (0.0, 0)]
)
def test_margin_has_two_digits(margin: float, places: int) -> None:
    assert margin_places(margin) == places
