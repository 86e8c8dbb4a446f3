"""Texts of the dashboard and the privacy officer's page: every language has the same keys and placeholders."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

from ldp_budget_service.html_pages import LANGUAGES, page, texts


@pytest.mark.parametrize("language", LANGUAGES)
def test_office_texts_have_the_keys_and_placeholders_of_english(language: str) -> None:
    english, other = texts("office.en"), texts(f"office.{language}")
    assert other.keys() == english.keys()
    for key, text in other.items():
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", english[key])), key
        assert text.strip(), key


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ["dashboard", "officer"])
def test_office_page_names_its_language_and_its_texts(language: str, name: str) -> None:
    html = page(name, f"office.{language}")
    assert f'<html lang="{language}">' in html
    assert f"/static/texts/office.{language}.json" in html
    assert "{{" not in html
