"""Surveys: what people see of a questionnaire, and the TOML file that defines it.

    [survey]
    name = "health"
    title = "Health and habits"
    organisation = "Institute of Public Health"
    contact = "https://example.org/health"
    purpose = "To plan the clinics of the region."
    epsilon = 2                     # the loss of one person's answers in one round, all questions together
    answer = 1                      # how many questions each person answers; "all" divides epsilon among them
    rounds = 4
    rotate = 12                     # each period asks another twelfth of the users, at the full epsilon
    every = "week"                  # the period: "day", "week", or days such as "28d"
    minimum_group = 20              # no round has fewer reports; the rest waits for the next one
    policy = "default"
    tags = ["purpose:planning"]     # of every question; limits may name them
    languages.de = { title = "Gesundheit und Gewohnheiten" }

    [[question]]
    name = "mood"
    text = "How do you feel today?"
    categories = ["good", "fair", "bad"]
    tags = ["attribute:health"]     # what the answer depends on: all tags, or none
    languages.de = { text = "Wie geht es Ihnen heute?", categories = ["gut", "mittel", "schlecht"] }

    [[question]]
    name = "sleep"
    text = "How many hours did you sleep?"
    kind = "number"
    lower = 0
    upper = 14
    unit = "hours"

    [[question]]
    name = "transport"
    text = "Which of these did you use this week?"
    kind = "tick"                   # tick all that apply
    categories = ["bus", "train", "car", "bicycle"]
    at_most = 2                     # or "any"
    pairs = false                   # true: for options that are ticked together

    [[question]]
    name = "income"
    text = "What did your household earn last year?"
    kind = "quantile"               # quantiles without bins
    lower = 1000
    upper = 1000000
    scale = "log"                   # or "linear"
    quantiles = [0.5, 0.9]
    assumed = [[33000, 0.5], [71000, 0.9], [133000, 0.99]]   # for plans: values, and the share of people at most at each

    [[question]]
    name = "rent"
    text = "What rent did you pay last month?"
    kind = "capped-mean"            # values above the 95 % quantile count as that quantile
    lower = 50
    upper = 20000
    scale = "log"                   # or "linear"

    [[question]]
    name = "satisfied"
    text = "How satisfied are you, from 1 to 5?"
    kind = "scale"                  # whole numbers
    lower = 1
    upper = 5
    report = "mean"                 # or "shares", "top-box", "nps"; the device recodes the answer
    top = 1                         # the answers of the top box

    [[grid]]
    name = "service"
    text = "How do you find these, from 1 to 5?"
    items = ["staff", "price", "hours"]
    lower = 1                       # or categories
    upper = 5
    answer = 1                      # of the items each person answers so many; left out: the number of least variance
    index = false                   # true: the device sends the mean of its answers to all items, one number

A question of kind `choice`, `yes-no` or `tick` with `optional = true` has one more answer, "no answer", which is randomized
too. So has a scale of which the shares or a top box are reported.

Without `mechanism`, a question gets the mechanism with the smallest predicted error. Without `epsilon`, each asked
question gets an equal part of the survey's. A mechanism whose estimates are biased, such as `bounded-laplace`, needs
`biased = true` at the question: no number of respondents makes its error small.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from decimal import ROUND_DOWN, Decimal
from typing import TYPE_CHECKING, Any

from ldp_budget._files import json_digest
from ldp_budget._validation import shown
from ldp_budget.errors import InvalidParameter, NotSupported, UnknownName
from ldp_budget.ledger.calendar import MOST_DAYS, days_in
from ldp_budget.registry.public_definition import FORMAT as CLIENT_FORMAT
from ldp_budget.registry.public_definition import (
    MINIMUM_GROUP,
    MOST_GROUP,
    About,
    definition_of,
    digest_of,
    guarantee_in_words,
)

from .question_selection import MOST_QUESTIONS, RULE
from .questionnaire import Question, Questionnaire
from .survey_questions import AUTO, GRID, MECHANISM_OF, SCALE, YES_NO, YES_OR_NO, SurveyQuestion, plain_languages
from .survey_tables import REMEDY, Table, canonical, languages_in, question_in, tags_in

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike


FORMAT = "ldp-budget survey"
VERSION = 1
PUBLIC_FORMAT = "ldp-budget questionnaire"
PUBLIC_VERSION = 1

ALL = "all"
JOINT = "yes or no"
"""The name of yes/no questions that are randomized together; `joint` of the survey."""
_MOST_ROUNDS = 10_000
_NANO = Decimal("1e-9")
_CLEARLY = 1.05
"""The ratio of variances from which on yes/no questions are randomized together if the file does not say."""
TEXTS = ("title", "organisation", "contact", "purpose")
_SURVEY_KEYS = (
    "name",
    *TEXTS,
    "policy",
    "epsilon",
    "answer",
    "rounds",
    "minimum_group",
    "languages",
    "joint",
    "rotate",
    "every",
    "tags",
)


def equal_part(epsilon: Decimal, parts: int) -> Decimal:
    """Return one of so many equal parts of an ε, rounded down."""
    return (epsilon / parts).quantize(_NANO, ROUND_DOWN).normalize()


@dataclass(frozen=True)
class Survey:
    """The definition of a survey. Read one with `from_toml`.

    `epsilon` is the loss of one person's answers in one round. `answer` is the number of questions that each person
    answers, or "all". `languages`: for each language tag a mapping of `title` and `purpose`. `minimum_group` is the least
    number of reports in a round.
    """

    name: str
    questions: tuple[SurveyQuestion, ...]
    epsilon: Decimal
    answer: int | str = ALL
    title: str = ""
    organisation: str = ""
    contact: str = ""
    purpose: str = ""
    policy: str = "default"
    rounds: int = 1
    languages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    minimum_group: int = MINIMUM_GROUP
    joint: bool = False
    """True if the yes/no questions are randomized together: their report has an ε about each of them that is not divided."""
    rotate: int = 0
    """The number of parts of the users, of which each period asks another one; 0 to ask all in each round."""
    every: str = "week"
    """The period of the rotation: "day", "week", or a number of days such as "28d"."""

    @property
    def period_days(self) -> int:
        """The days of a period of the rotation."""
        return {"day": 1, "week": 7}.get(self.every) or int(self.every[:-1])

    @property
    def least_days_between(self) -> int:
        """The days by which two turns of one person are apart at least, the first included."""
        return (self.rotate - 1) * self.period_days + 1

    @property
    def rounds_each(self) -> int:
        """The most rounds in which one person answers."""
        return self.rounds if not self.rotate else -(-self.rounds // self.rotate)

    @property
    def ask(self) -> int:
        """The number of questions that each person answers, a grid or yes/no questions together counted once."""
        return len(self.slots) if isinstance(self.answer, str) else self.answer

    @functools.cached_property
    def slots(self) -> tuple[SurveyQuestion, ...]:
        """The questions as they are randomized and selected: with `joint`, plain yes/no questions are one."""
        parts = tuple(filter(_is_plain_yes_no, self.questions)) if self.joint else ()
        if len(parts) < 2:
            return self.questions
        together = SurveyQuestion(JOINT, kind=GRID, categories=YES_OR_NO, parts=parts)
        rest = [together if question == parts[0] else question for question in self.questions]
        return tuple(question for question in rest if question not in parts)

    def yes_no_variance(self) -> float:
        """Return the variance of a share of a half of a plain yes/no question, for one respondent, sampling included.

        Raises:
            InvalidParameter: the survey has no such question, or a question has no mechanism.
        """
        from ..planning.margins import Precision

        for said, asked in zip(self.slots, self.questionnaire().questions, strict=True):
            if said.parts or _is_plain_yes_no(said):
                precision = Precision.of(asked.mechanism)
                (s, items), noise = precision.share, (precision.at_zero + precision.at_one) / 2
                return (noise + 0.25) * items * len(self.slots) / (s * self.ask)
        raise InvalidParameter("survey", "one with a yes/no question that is not optional", self.name)

    def with_best_joint(self) -> Survey:
        """Return the survey with its yes/no questions randomized together if that has the lesser variance."""
        together = replace(self, joint=True)
        if len(together.slots) == len(self.questions) or together.ask > len(together.slots):
            return self
        try:
            wins = together.yes_no_variance() * _CLEARLY < self.yes_no_variance()
        except (InvalidParameter, NotSupported, UnknownName):  # said when it is built
            return self
        return together if wins else self

    @property
    def shown(self) -> tuple[SurveyQuestion, ...]:
        """The questions as they are estimated: the items of a grid are some of their own."""
        return tuple(each for question in self.questions for each in question.each)

    @property
    def reports(self) -> dict[str, str]:
        """What is reported of each scale, by the name of the question."""
        return {question.name: question.report for question in self.questions if question.kind == SCALE}

    def epsilons(self) -> list[Decimal]:
        """Return the ε of each question; an equal part is rounded down."""
        equal = equal_part(self.epsilon, self.ask)
        return [equal if question.epsilon is None else question.epsilon for question in self.slots]

    def questionnaire(self) -> Questionnaire:
        """Return the mechanism of the survey. Raises `InvalidParameter` if a question has none, or all cost too much."""
        built = []
        for place, (question, epsilon) in enumerate(zip(self.slots, self.epsilons(), strict=True), 1):
            try:
                made, items = question.build(epsilon), question.item_names
                built.append(Question(question.name, made, question.categories, question.recode, items))
            except (InvalidParameter, NotSupported, UnknownName) as error:
                where = f"mechanism of question {place} ({question.name})"
                if isinstance(error, InvalidParameter) and error.option == MECHANISM_OF.format(question.name):
                    raise InvalidParameter(where, error.expected, error.found, hint=error.hint) from None
                expected = "auto, or a mechanism for these answers (list: ldp-budget mechanisms)"
                raise InvalidParameter(where, expected, f"{question.mechanism}: {error}") from None
        largest = sum(sorted(self.epsilons(), reverse=True)[: self.ask])
        if largest > self.epsilon:
            expected = f"at most {self.epsilon}, the survey's epsilon, for the {self.ask} largest questions together"
            raise InvalidParameter("the questions' epsilon", expected, largest, hint="Lower them, or raise epsilon.")
        return Questionnaire(questions=built, ask=self.ask)

    def about(self) -> About:
        """Return the texts of the survey as those of its collection."""
        return About(
            title=self.title, purpose=self.purpose, contact=self.contact, languages=plain_languages(self.languages)
        )

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the canonical JSON of the definition, texts included."""
        return json_digest(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Return the definition as a JSON object, with the keys of the TOML file."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            **{name: said for name in TEXTS if (said := getattr(self, name))},
            "policy": self.policy,
            "epsilon": str(self.epsilon),
            "answer": self.answer,
            **({"joint": True} if self.joint else {}),
            "rounds": self.rounds,
            **({"rotate": self.rotate, "every": self.every} if self.rotate else {}),
            **({} if self.minimum_group == MINIMUM_GROUP else {"minimum_group": self.minimum_group}),
            **({"languages": plain_languages(self.languages)} if self.languages else {}),
            "questions": [question.to_json() for question in self.questions],
        }

    @classmethod
    def from_json(cls, data: Any, place: str = "the survey") -> Survey:
        """Return the survey that `to_json` wrote. Raises `InvalidParameter`; `place` names it in messages."""
        if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("version") != VERSION:
            raise InvalidParameter(place, f"a {FORMAT} of version {VERSION}", shown(data))
        given = {name: value for name, value in data.items() if name not in ("format", "version", "questions")}
        return _survey(given, data.get("questions"), place)

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> Survey:
        """Return the survey in a TOML file.

        Parameters:
            path: the path of the file.

        Raises:
            InvalidParameter: the file cannot be read, is not TOML, or a key is unknown, missing or invalid.
        """
        import tomllib

        place = str(path)
        try:
            with open(path, "rb") as file:
                data = tomllib.load(file, parse_float=Decimal)
        except OSError as error:
            raise InvalidParameter(place, "a readable file", error.strerror) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            hint = "Texts need quotes, and a key may appear once in a table."
            raise InvalidParameter(place, "a TOML file", error, hint=hint) from None
        data = canonical(data)
        table = Table(place, "", data, ("survey", "question", "grid"))
        grids = table.take("grid", list, "tables of their own: [[grid]]", [])
        asked = data.get("question", [] if grids else None)
        listed = [*asked, *({"kind": GRID, **each} for each in grids)] if isinstance(asked, list) else asked
        given = table.take("survey", dict, "a table")
        found = _survey(given, listed, place)
        return found if "joint" in given else found.with_best_joint()

    def definition(self, fingerprint: str, questionnaire: Questionnaire) -> dict[str, Any]:
        """Return the public definition for clients, with its digest; `fingerprint` is the collection's.

        A question's own definition is that of a collection with its name; its program draws the bytes of its slot.
        """
        questions = [
            {
                **_definition(mine, said),
                "kind": said.asked_as,
                **({"unit": said.unit} if said.unit else {}),
                **({"items": said.shown_items()} if said.kind == GRID else {}),
                "slot": [slot.start, slot.stop - slot.start],
            }
            for mine, said, slot in zip(questionnaire.questions, self.slots, questionnaire.slots, strict=True)
        ]
        definition = {
            "format": PUBLIC_FORMAT,
            "version": PUBLIC_VERSION,
            "client": CLIENT_FORMAT,
            "name": self.name,
            "title": self.title or self.name,
            **{name: getattr(self, name) for name in TEXTS if name != "title"},
            "languages": plain_languages(self.languages),
            "fingerprint": fingerprint,
            "context": questionnaire.fingerprint,
            "mechanism": questionnaire.name,
            "ask": questionnaire.ask,
            "selection": {"rule": RULE, "key": fingerprint},
            "report": {"bytes": questionnaire.row_bytes, "mask": questionnaire.mask_bytes},
            "rounds": self.rounds,
            "questions": [{**question, "digest": digest_of(question)} for question in questions],
            "guarantee": guarantee_in_words(questionnaire.guarantee),
        }
        return {**definition, "digest": digest_of(definition)}


def _definition(mine: Question, said: SurveyQuestion) -> dict[str, Any]:
    parts = mine.name, mine.fingerprint, mine.mechanism, mine.answers, said.about()
    return definition_of(*parts, program=mine.client_program())


def _survey(given: Any, questions: Any, place: str) -> Survey:
    table = Table(place, "[survey]", given, _SURVEY_KEYS)
    if not isinstance(questions, list) or not 1 <= len(questions) <= MOST_QUESTIONS:
        found = (
            None if questions is None else f"{len(questions)} of them" if isinstance(questions, list) else "a table"
        )
        raise InvalidParameter(
            f"{place}: [[question]]", f"1 to {MOST_QUESTIONS} tables, one for each", found, hint=REMEDY
        )
    listed = tuple(question_in(each, number, place) for number, each in enumerate(questions, 1))
    names = [question.name for question in listed]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise InvalidParameter(f"{place}: [[question]] {number + 1} name", "a name of its own", f"{name!r} twice")
    name = table.take("name", str)
    if not name.strip() or ":" in name:
        raise table.invalid("name", "at least one character, without a colon")
    epsilon = table.epsilon()
    if epsilon is None:
        raise table.invalid("epsilon", "a number above 0, the privacy loss of one person's answers in one round")
    answer = table.data.get("answer", ALL)
    rounds = table.take("rounds", int, default=1)
    if not 1 <= rounds <= _MOST_ROUNDS:
        raise table.invalid("rounds", f"a whole number from 1 to {_MOST_ROUNDS}")
    group = table.take("minimum_group", int, default=MINIMUM_GROUP)
    if not 1 <= group <= MOST_GROUP:
        raise table.invalid("minimum_group", f"a whole number from 1 to {MOST_GROUP}")
    rotate, every = _rotation_in(table)
    texts = {key: table.take(key, str, default="") for key in TEXTS}
    policy = table.take("policy", str, default="default")
    languages = dict(languages_in(table, {"title": str, "purpose": str}))
    joint, common = table.flag("joint"), tags_in(table)
    listed = tuple(replace(each, tags=tuple(sorted({*common, *each.tags}))) for each in listed)
    more = {"languages": languages, "minimum_group": group, "joint": joint, "rotate": rotate, "every": every}
    survey = Survey(name, listed, epsilon, answer, policy=policy, rounds=rounds, **more, **texts)
    if joint and len(survey.slots) == len(listed):
        raise table.invalid("joint", "false, or left out, without two yes/no questions that are not optional")
    count = len(survey.slots)
    if answer != ALL and (isinstance(answer, bool) or not isinstance(answer, int) or not 1 <= answer <= count):
        raise table.invalid("answer", f'"all", or how many of the {count} questions each person answers')
    _checked_texts(survey, place)
    return survey


def _rotation_in(table: Table) -> tuple[int, str]:
    """Return `rotate` and `every` of a survey: 0 and a week without a rotation."""
    if "rotate" not in table.data:
        if "every" in table.data:
            raise table.invalid("every", "left out without rotate, the number of parts that take turns")
        return 0, "week"
    rotate, every = table.take("rotate", int), table.take("every", str, default="week")
    days = {"day": 1, "week": 7}.get(every) or days_in(every)
    if not days:
        raise table.invalid("every", f'"day", "week", or 2 to {MOST_DAYS} days such as "28d"')
    most = (MOST_DAYS - 1) // days + 1
    if not 2 <= rotate <= most:
        raise table.invalid("rotate", f"a whole number from 2 to {most}, so that a sliding limit can enforce it")
    return rotate, every


def _is_plain_yes_no(question: SurveyQuestion) -> bool:
    return (
        question.kind == YES_NO and not question.optional and question.mechanism == AUTO and question.epsilon is None
    )


def _checked_texts(survey: Survey, place: str) -> None:
    """Raise `InvalidParameter` if a language tag or a text cannot be shown."""
    try:
        survey.about()
        for question in survey.questions:
            question.about().check(question.answers)
    except InvalidParameter as error:
        raise InvalidParameter(f"{place}: {error.option}", error.expected, error.found) from None
