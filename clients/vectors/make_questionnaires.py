"""Makes the vectors for clients of surveys: selections of questions, and reports from given bytes.

    python clients/vectors/make_questionnaires.py

writes `questionnaires.json`: for each survey its public definition, selections `{"user", "seed", "asked"}`, and reports
`{"asked", "answers", "stream", "report"}`. The questions of one report draw from one stream, in their order.
"""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parents[1] / "tests" / "helpers"))

from client_cases import Recorder  # noqa: E402 - from the folder above
from ldp_budget.registry.collections import Collection  # noqa: E402
from ldp_budget.sampling.rng import open_stream  # noqa: E402
from ldp_budget_surveys.questionnaires.question_selection import chosen_questions, mask_of  # noqa: E402
from ldp_budget_surveys.questionnaires.questionnaire import Questionnaire  # noqa: E402
from ldp_budget_surveys.questionnaires.scales import answers_of  # noqa: E402
from ldp_budget_surveys.questionnaires.survey_collection import survey_collection  # noqa: E402
from ldp_budget_surveys.questionnaires.surveys import Survey, SurveyQuestion  # noqa: E402

FILE = FOLDER / "questionnaires.json"
USERS = ("alice", "bob", "정민", " padded\u00a0", "e\u0301lise", "0")
COUNT = 12

_CHOICES = (("good", "fair", "bad"), ("none", "some", "much", "all"), tuple(f"region {i}" for i in range(40)))


def _question(place: int) -> SurveyQuestion:
    """A question of another kind for each remainder of its place."""
    name = f"q{place}"
    if place % 5 == 3:
        return SurveyQuestion(name, kind="yes-no", categories=("yes", "no"), mechanism="randomized-response")
    if place % 5 == 4:
        return SurveyQuestion(name, kind="number", lower=Decimal(0), upper=Decimal(24), mechanism="laplace")
    mechanism = ("auto", "oue", "pgr")[place % 5]
    return SurveyQuestion(name, "How much?", categories=_CHOICES[place % 5], mechanism=mechanism)


def _scales(epsilon: int) -> Collection:
    """A survey with a scale for each report."""
    ends = {"lower": Decimal(0), "upper": Decimal(10)}
    listed = (
        SurveyQuestion("mean", kind="scale", report="mean", **ends),
        SurveyQuestion("nps", kind="scale", report="nps", **ends),
        SurveyQuestion("box", kind="scale", report="top-box", top=3, categories=("top box", "other"), **ends),
        SurveyQuestion("shares", kind="scale", report="shares", categories=answers_of(0, 10), **ends),
    )
    return survey_collection(Survey(f"scales-{epsilon}", listed, Decimal(epsilon), 2))


def _grids(epsilon: int) -> Collection:
    """A survey with yes/no questions that are randomized together, and two grids."""
    answers = ("never", "sometimes", "often")
    listed = (
        *(SurveyQuestion(name, kind="yes-no", categories=("yes", "no")) for name in ("smoke", "drink", "sport")),
        SurveyQuestion("often", kind="grid", categories=answers, items=("fish", "meat", "eggs", "bread")),
        SurveyQuestion("good", kind="grid", categories=answers_of(0, 10), items=("staff", "price"), asked=1),
        SurveyQuestion("index", kind="grid", lower=Decimal(1), upper=Decimal(5), items=("a", "b", "c"), index=True),
    )
    return survey_collection(Survey(f"grids-{epsilon}", listed, Decimal(epsilon), 2, joint=True))


def surveys() -> list[Collection]:
    """The surveys of the vectors: one of three questions, all of five, five of nineteen; then of scales, and of grids."""
    made = []
    for questions, answer in ((3, 1), (5, "all"), (19, 5)):
        listed = tuple(map(_question, range(questions)))
        made.append(
            survey_collection(Survey(f"survey-{questions}", listed, Decimal(2), answer, title="Ein Fragebogen"))
        )
    return [*made, _scales(2), _scales(8), _grids(2), _grids(9)]


def selections(collection: Collection) -> list[dict[str, Any]]:
    """The questions that are selected for each user."""
    questionnaire = collection.mechanism
    assert isinstance(questionnaire, Questionnaire)
    found = []
    for user in USERS:
        seed = collection.seed(user)
        asked = chosen_questions(seed, len(questionnaire.questions), questionnaire.ask)
        found.append({"user": user, "seed": seed.hex(), "asked": list(asked)})
    return found


def reports(collection: Collection, count: int = COUNT) -> list[dict[str, Any]]:
    """Reports from recorded streams, of other answers each time."""
    questionnaire = collection.mechanism
    assert isinstance(questionnaire, Questionnaire)
    made = []
    for number in range(count):
        asked = chosen_questions(bytes([number]) * 32, len(questionnaire.questions), questionnaire.ask)
        answers: dict[str, Any] = {}
        for place in asked:
            question = questionnaire.questions[place]
            if question.asked_items is not None and question.answers is not None:
                chosen = question.answers
                answers[question.name] = {
                    item: chosen[(number + row) % len(chosen)] for row, item in enumerate(question.asked_items)
                }
                continue
            answers[question.name] = (
                number * 1.5 if question.answers is None else question.answers[number % len(question.answers)]
            )
        values = collection.read_values([answers])
        values["asked"] = mask_of(asked)
        stream = Recorder(open_stream(number))
        report = questionnaire.randomize(values, rng=stream)[0].tobytes()
        written = {"asked": list(asked), "answers": answers, "stream": stream.read_so_far.hex()}
        made.append({**written, "report": report.hex()})
    return made


def made() -> list[dict[str, Any]]:
    """The content of the file."""
    return [
        {"definition": each.definition(), "selections": selections(each), "reports": reports(each)}
        for each in surveys()
    ]


if __name__ == "__main__":
    text = json.dumps(made(), ensure_ascii=True, separators=(",", ":"))
    FILE.write_text(text.replace('{"asked"', '\n{"asked"').replace('{"user"', '\n{"user"') + "\n")
