"""Surveys of three questions for the tests of the respondents' page."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

from ldp_budget import Accountant, Collection, Limit
from ldp_budget_surveys.questionnaires.survey_collection import survey_collection
from ldp_budget_surveys.questionnaires.surveys import Survey, SurveyQuestion

MOODS = ("good", "fair", "bad")
QUESTIONS = (
    SurveyQuestion(
        "mood",
        "How do you feel today?",
        categories=MOODS,
        languages={
            "de": {"text": "Wie geht es Ihnen heute?", "categories": ["gut", "mittel", "schlecht"]},
            "ko": {"text": "오늘 기분이 어떠세요?", "categories": ["좋음", "보통", "나쁨"]},
        },
    ),
    SurveyQuestion("smoke", "Do you smoke?", kind="yes-no", categories=("yes", "no")),
    SurveyQuestion(
        "sleep", "How many hours did you sleep?", kind="number", lower=Decimal(0), upper=Decimal(14), unit="hours"
    ),
)


def health(name: str, answer: int | str, **texts: Any) -> Collection:
    """A survey of which each person answers `answer` questions, at ε = 2."""
    given: dict[str, Any] = {
        "title": "Health and habits",
        "organisation": "Institute of Public Health",
        "contact": "https://example.org/health",
        "purpose": "To plan the clinics of the region.",
        "languages": {"de": {"title": "Gesundheit und Gewohnheiten"}},
        **texts,
    }
    return survey_collection(Survey(name, QUESTIONS, Decimal(2), answer, **{"minimum_group": 1, **given}))


def health_ledger(place: Path | str) -> Accountant:
    """A ledger with surveys that ask each person 1, 2 or all of three questions; ε = 8 in all and 2 a month."""
    accountant = Accountant(place)
    accountant.set_policy("default", [Limit("lifetime", epsilon="8"), Limit("month", epsilon="2")])
    for collection in (health("one", 1), health("two", 2), health("all", "all", contact="ask@example.org")):
        accountant.add_collection(collection)
    return accountant


def answers_of(number: int) -> dict[str, Any]:
    """The true answers of a respondent."""
    return {
        "mood": MOODS[(0, 0, 0, 1, 2)[number % 5]],
        "smoke": ("yes", "no", "no")[number % 3],
        "sleep": 5 + number % 5,
    }
