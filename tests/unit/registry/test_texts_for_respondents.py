"""Texts for respondents: plain strings, so that every language writes and hashes them alike."""

from __future__ import annotations

from typing import Any

import pytest

from ldp_budget import InvalidParameter, mechanism
from ldp_budget.guarantees import Memoised
from ldp_budget.registry.public_definition import About, guarantee_in_words


@pytest.mark.parametrize(
    ("languages", "why"),
    [
        (["ko"], "a dict from language tags"),
        (None, "a dict from language tags"),
        ({"😀": {"title": "a"}}, "a dict from language tags, such as ko and de-AT"),
        ({"__proto__": {"title": "a"}}, "a dict from language tags"),
        ({10: {"title": "a"}}, "a dict from language tags"),
        ({"ko": "title"}, "a dict of title, question, purpose, answers for ko"),
        ({"ko": {"contact": "a"}}, "a dict of title, question, purpose, answers for ko"),
        ({"ko": {"title": 1.5}}, "texts with a string as title in ko"),
        ({"ko": {"question": ["a"]}}, "texts with a string as question in ko"),
        ({"ko": {"answers": [1.0, 2.0]}}, "texts with a list of strings as answers in ko"),
        ({"ko": {"answers": "ab"}}, "texts with a list of strings as answers in ko"),
        ({"ko": {"answers": 5}}, "texts with a list of strings as answers in ko"),
        ({"ko": {"answers": ["a", "\ud800"]}}, "texts with a list of strings as answers in ko"),
    ],
)
def test_about_languages_accept_texts_only(languages: Any, why: str) -> None:
    with pytest.raises(InvalidParameter, match=f"languages must be {why}"):
        About(languages=languages)


@pytest.mark.parametrize("title", ["\ud800", 5, None])
def test_about_title_must_be_a_text(title: Any) -> None:
    with pytest.raises(InvalidParameter, match="title must be a string"):
        About(title)


def test_about_with_any_letters_is_accepted() -> None:
    words = {"title": "여론 조사 😀\u2028", "answers": ["a", "b"]}
    assert (
        About("x", languages={"ko": words, "de-AT": words, "zh-Hant-TW": words}).to_json()["languages"]["ko"] == words
    )


def test_public_guarantee_states_only_bounded_figures() -> None:
    """However many reports: of all there can be where that is bounded, else of those of one answer."""
    rappor = mechanism("rappor")(bits=32, hashes=2, cohorts=8, f="0.5", p="0.5", q="0.75")
    assert "However many reports of one and the same answer are sent" in guarantee_in_words(rappor.guarantee)["words"]
    bounded = Memoised(("1", "2"), "2", values=3)
    assert (
        "However many reports are sent, together they are at most 404 times" in guarantee_in_words(bounded)["words"]
    )
