"""A survey as a form of SurveyJS, which `protect` of the npm package `ldp-budget/surveyjs` accepts with its public definition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..questionnaires.survey_questions import GRID, SCALE, TICK, YES_NO

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..questionnaires.survey_questions import SurveyQuestion
    from ..questionnaires.surveys import Survey

MOST_BUTTONS = 8
"""The most answers that are shown as buttons; more are a list that drops down."""


def surveyjs_form(survey: Survey) -> dict[str, Any]:
    """Return the JSON object of a survey's form. Each person is asked all of it; `protect` hides what a person is not asked.

    Parameters:
        survey: the survey.
    """
    texts = {"title": _text(survey.title, survey.languages, "title")}
    texts["description"] = _text(survey.purpose, survey.languages, "purpose")
    return {
        **{key: text for key, text in texts.items() if text},
        "pages": [{"elements": [_element(each) for each in survey.questions]}],
    }


def _element(question: SurveyQuestion) -> dict[str, Any]:
    said = question.languages
    made = {"name": question.name, "title": _text(question.text or question.name, said, "text")}
    required = {} if question.optional or question.kind == TICK else {"isRequired": True}
    own = (question.categories or ())[: -1 if question.optional else None]
    if question.kind == GRID:
        answers = own or [str(each) for each in range(int(question.lower or 0), int(question.upper or 0) + 1)]
        rows = {"columns": _choices(answers, said, "categories"), "rows": _choices(question.items, said, "items")}
        return {"type": "matrix", **made, **({"eachRowRequired": True} if required else {}), **rows}
    if question.kind == YES_NO:
        yes, no = _choices(("yes", "no"), said, "categories")
        labels = {} if yes == "yes" else {"labelTrue": yes["text"], "labelFalse": no["text"]}
        return {"type": "boolean", **made, **required, **labels}
    if question.kind == SCALE:
        ends = {"rateMin": int(question.lower or 0), "rateMax": int(question.upper or 0)}
        return {"type": "rating", **made, **required, "autoGenerate": True, **ends}
    if question.lower is not None and question.upper is not None:
        limits = {"min": float(question.lower), "max": float(question.upper)}
        return {"type": "text", **made, **required, "inputType": "number", "step": "any", **limits}
    choices = {"choices": _choices(own, said, "categories")}
    if question.kind == TICK:
        most = {"maxSelectedChoices": question.at_most} if question.at_most != "any" else {}
        return {"type": "checkbox", **made, **choices, **most}
    return {"type": "radiogroup" if len(own) <= MOST_BUTTONS else "dropdown", **made, **required, **choices}


def _choices(answers: Sequence[str], said: Mapping[str, Mapping[str, Any]], key: str) -> list[Any]:
    """Return answers or items with their texts in all languages."""
    listed = {tag: words[key] for tag, words in said.items() if key in words}
    texts = [_localized(each, {tag: own[place] for tag, own in listed.items()}) for place, each in enumerate(answers)]
    return [
        each if text == each else {"value": each, "text": text} for each, text in zip(answers, texts, strict=True)
    ]


def _text(text: str, said: Mapping[str, Mapping[str, Any]], key: str) -> str | dict[str, str]:
    """Return a text of the survey file with its translations."""
    return _localized(text, {tag: words[key] for tag, words in said.items() if key in words})


def _localized(text: str, translations: Mapping[str, str]) -> str | dict[str, str]:
    """Return a text as SurveyJS translates it: its language without a tag is English."""
    own = {tag.lower(): each for tag, each in translations.items()}
    first = own.pop("en", text)
    return {"default": first, **own} if own else first
