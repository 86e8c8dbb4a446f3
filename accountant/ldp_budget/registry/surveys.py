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
    minimum_group = 20              # no round has fewer reports; the rest waits for the next one
    policy = "default"
    languages.de = { title = "Gesundheit und Gewohnheiten" }

    [[question]]
    name = "mood"
    text = "How do you feel today?"
    categories = ["good", "fair", "bad"]
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

A question of kind `choice` or `yes-no` with `optional = true` has one more answer, "no answer", which is randomized too. So
has a scale of which the shares or a top box are reported.

Without `mechanism`, a question gets the mechanism with the smallest predicted error. Without `epsilon`, each asked
question gets an equal part of the survey's. A mechanism whose estimates are biased, such as `bounded-laplace`, needs
`biased = true` at the question: no number of respondents makes its error small.
"""

from __future__ import annotations

import functools
import hashlib
import math
from dataclasses import dataclass, field, replace
from decimal import ROUND_DOWN, Decimal
from typing import TYPE_CHECKING, Any

from .._files import canonical_json
from .._number_parsing import value_of
from .._validation import canonical_text, shown
from ..errors import InvalidParameter, LdpBudgetError, NotSupported, UnknownName
from ..sdk.domain import Categories, check_categories
from ..sdk.frequency_oracle import FrequencyMechanism
from ..sdk.numeric_mechanism import NumericMechanism
from .plugins import mechanism as find_mechanism
from .plugins import mechanisms
from .public_definition import FORMAT as CLIENT_FORMAT
from .public_definition import MINIMUM_GROUP, MOST_GROUP, About, definition_of, digest_of, guarantee_in_words
from .question_selection import MOST_QUESTIONS, RULE
from .questionnaire import Question, Questionnaire, check_question_name
from .scales import (
    BELOW,
    IN_BOX,
    MEAN,
    MOST_ANSWERS,
    NPS,
    PASSIVES,
    PROMOTERS,
    REPORTS,
    SHARES,
    TOP_BOX,
    Recode,
    answers_of,
    index_values,
    recoded,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from os import PathLike

    from ..sdk.mechanism import Mechanism

FORMAT = "ldp-budget survey"
VERSION = 1
PUBLIC_FORMAT = "ldp-budget questionnaire"
PUBLIC_VERSION = 1

AUTO = "auto"
ALL = "all"
CHOICE, YES_NO, NUMBER, TICK, QUANTILE, SCALE, GRID, CAPPED_MEAN = KINDS = (
    *("choice", "yes-no", "number", "tick", "quantile", "scale", "grid", "capped-mean"),
)
_WITHOUT_BINS = (QUANTILE, CAPPED_MEAN)
JOINT = "yes or no"
"""The name of yes/no questions that are randomized together; `joint` of the survey."""
_SCALES = ("linear", "log")
ANY = "any"
"""`at_most` of a question with any number of ticks."""
_YES_NO = ("yes", "no")
NO_ANSWER = "no answer"
"""The last answer of an optional question: it is randomized like any other, so no report shows who skipped it."""
_NO_ANSWERS = {"de": "keine Angabe", "ko": "응답하지 않음"}
_MOST_ROUNDS = 10_000
_MOST_UNIT = 40
"""The most characters of a unit."""
_NANO = Decimal("1e-9")
_REMEDY = "See: ldp-budget survey add --help"


@dataclass(frozen=True)
class SurveyQuestion:
    """A question as people see it, and how it is randomized.

    `languages`: for each language tag a mapping of `text` and `categories`. `mechanism` is a name, or `auto`.
    `epsilon` is None for an equal part of the survey's. `unit` is that of a number, for tables and reports. `biased` allows a
    mechanism whose estimates are biased. `at_most` is the most ticks of *tick all that apply*, a number or `any`; `pairs` chooses
    the design for options that are ticked together.
    """

    name: str
    text: str = ""
    kind: str = CHOICE
    categories: tuple[str, ...] | None = None
    lower: Decimal | None = None
    upper: Decimal | None = None
    mechanism: str = AUTO
    epsilon: Decimal | None = None
    languages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    unit: str = ""
    biased: bool = False
    at_most: int | str = ANY
    pairs: bool = False
    scale: str = _SCALES[0]
    quantiles: tuple[Decimal, ...] = (Decimal("0.5"),)
    optional: bool = False
    report: str = MEAN
    top: int = 1
    items: tuple[str, ...] = ()
    asked: int | None = None
    parts: tuple[SurveyQuestion, ...] = ()
    index: bool = False
    """True if the device sends the mean of the answers to all items of a grid, one number."""

    @property
    def item_names(self) -> tuple[str, ...] | None:
        """The names of the items of a grid, or of questions that are randomized together, as they are estimated."""
        return tuple(part.name for part in self.each) if self.kind == GRID and not self.index else None

    @property
    def each(self) -> tuple[SurveyQuestion, ...]:
        """The questions as they are estimated: the items of a grid, and any other question itself."""
        if self.kind != GRID or self.index:
            return (self,)
        return self.parts or tuple(self._item(place) for place in range(len(self.items)))

    def _item(self, place: int) -> SurveyQuestion:
        languages = {
            tag: {
                "text": ": ".join(
                    filter(None, (words.get("text", self.text), _at(words, "items", place) or self.items[place]))
                ),
                **({"categories": words["categories"]} if "categories" in words else {}),
            }
            for tag, words in self.languages.items()
        }
        item = self.items[place]
        text = f"{self.text}: {item}" if self.text else item
        name = f"{self.name}/{item}"
        return SurveyQuestion(name, text, categories=self.categories, languages=languages, optional=self.optional)

    def shown_items(self) -> list[dict[str, Any]]:
        """Return the items for a client: the name of each, its text, and its text in other languages."""
        if self.parts:
            said = [(part.name, part.text or part.name, part.languages) for part in self.parts]
            told = [{tag: words["text"] for tag, words in each.items() if "text" in words} for _, _, each in said]
        else:
            said = [(f"{self.name}/{item}", item, {}) for item in self.items]
            told = [
                {tag: _at(words, "items", place) for tag, words in self.languages.items() if "items" in words}
                for place in range(len(self.items))
            ]
        return [
            {"name": name, "text": text, "languages": own} for (name, text, _), own in zip(said, told, strict=True)
        ]

    @property
    def recode(self) -> Recode | None:
        """How the device recodes the answers of a scale; None if it does not."""
        if self.index:
            items = tuple(f"{self.name}/{item}" for item in self.items)
            return Recode(answers_of(*self._ends), self._values, items)
        if self.kind != SCALE:
            return None
        return recoded(self.report, *self._ends, self.top, (NO_ANSWER,) if self.optional else ())

    @property
    def answers(self) -> tuple[str, ...] | None:
        """The answers that people see; None where they give a number."""
        return self.categories if self.recode is None else self.recode.answers

    @property
    def shown_unit(self) -> str:
        """The unit of the figure that is reported."""
        return "net promoter score" if self.kind == SCALE and self.report == NPS else self.unit

    @property
    def _ends(self) -> tuple[int, int]:
        assert self.lower is not None
        assert self.upper is not None
        return int(self.lower), int(self.upper)

    @property
    def _values(self) -> tuple[float, ...]:
        """The numbers that the mechanism of a scale or an index randomizes, of which a mean is reported."""
        lower, upper = self._ends
        if self.index:
            return index_values(lower, upper, len(self.items))
        return (-1, 0, 1) if self.report == NPS else tuple(range(lower, upper + 1))

    def build(self, epsilon: Decimal) -> Mechanism:
        """Return the mechanism of the question at `epsilon`. Raises `InvalidParameter`, `NotSupported` or `UnknownName`."""
        if self.mechanism != AUTO:
            made = _for(find_mechanism(self.mechanism), self, epsilon)
            if not self.biased and isinstance(made, NumericMechanism) and made.biased:
                raise _biased(self, made)
            return made
        if self.kind == TICK:
            return best_ticks(self, epsilon)
        if self.index:
            return best_for_mean(epsilon, self._values)
        if self.kind == GRID:
            return _for(find_mechanism(GRID), self, epsilon)
        if self.kind in _WITHOUT_BINS:
            return best_thresholds(self, epsilon)
        if self.kind == SCALE and self.categories is None:
            return best_for_mean(epsilon, self._values)
        return best_mechanism(self.categories and len(self.categories), self.lower, self.upper, epsilon)

    @property
    def asked_as(self) -> str:
        """The kind by which a client asks: a quantile is asked as a number, and optional yes or no as a choice."""
        return (
            NUMBER if self.kind in _WITHOUT_BINS else CHOICE if self.kind == YES_NO and self.optional else self.kind
        )

    def about(self) -> About:
        """Return the texts of the question for a client."""
        texts = {
            tag: {
                **({"question": words["text"]} if "text" in words else {}),
                **({"answers": self._named(tag, self._own)} if self.lower is not None and self.optional else {}),
                **({"answers": self._named(tag, words["categories"])} if "categories" in words else {}),
            }
            for tag, words in self.languages.items()
        }
        return About(title=self.text or self.name, question=self.text, languages=texts)

    def to_json(self) -> dict[str, Any]:
        """Return the question as a JSON object, with the keys of the TOML file."""
        given = {
            "name": self.name,
            "text": self.text,
            "kind": self.kind,
            "categories": None if self._has_numbers or self.kind == YES_NO else list(self._own),
            "items": list(self.items) or None,
            "answer": self.asked,
            "index": self.index or None,
            "lower": None if self.lower is None else str(self.lower),
            "upper": None if self.upper is None else str(self.upper),
            "unit": self.unit,
            "biased": self.biased or None,
            "mechanism": None if self.mechanism == AUTO else self.mechanism,
            "epsilon": None if self.epsilon is None else str(self.epsilon),
            "at_most": self.at_most if self.kind == TICK else None,
            "pairs": self.pairs or None,
            "scale": self.scale if self.kind in _WITHOUT_BINS else None,
            "quantiles": [str(each) for each in self.quantiles] if self.kind == QUANTILE else None,
            "optional": self.optional or None,
            "report": self.report if self.kind == SCALE else None,
            "top": self.top if self.kind == SCALE and self.report == TOP_BOX else None,
            "languages": _plain(self.languages),
        }
        return {name: value for name, value in given.items() if value not in (None, "", {})}

    @property
    def _has_numbers(self) -> bool:
        """True if the answers are numbers, or those of a range of whole numbers."""
        return self.categories is None or self.lower is not None

    @property
    def _own(self) -> tuple[str, ...]:
        """The answers of the file, without that of an optional question."""
        return (self.answers or ())[: -1 if self.optional else None]

    def _named(self, language: str, categories: Any) -> list[str]:
        """Return the answers in a language, with that of an optional question."""
        more = _NO_ANSWERS.get(language.partition("-")[0], NO_ANSWER)
        return [*categories, more] if self.optional else list(categories)


def _at(words: Mapping[str, Any], name: str, place: int) -> str:
    """Return a text of a list of translations; empty if there is none."""
    listed = words.get(name, ())
    return str(listed[place]) if place < len(listed) else ""


def _for(kind: type[Mechanism], question: SurveyQuestion, epsilon: Decimal) -> Mechanism:
    if question.kind == GRID and not question.index:
        if kind.name != GRID:
            raise NotSupported(f"{kind.name} does not randomize several items together")
        count, answers = len(question.item_names or ()), len(question.categories or ())
        return kind(epsilon=epsilon, items=count, domain_size=answers, asked=question.asked)
    if question.kind == TICK:
        if not hasattr(kind, "for_ticks"):
            raise NotSupported(f"{kind.name} does not randomize a set of ticks")
        most = None if isinstance(question.at_most, str) else question.at_most
        found: Mechanism = kind.for_ticks(epsilon, len(question.categories or ()), most, pairs=question.pairs)
        return found
    if question.kind == CAPPED_MEAN:
        if not hasattr(kind, "for_capped_mean"):
            raise NotSupported(f"{kind.name} does not report the mean of capped values")
        capped: Mechanism = kind.for_capped_mean(epsilon, question.lower, question.upper, scale=question.scale)
        return capped
    if question.kind == QUANTILE:
        if not hasattr(kind, "for_quantiles"):
            raise NotSupported(f"{kind.name} does not report the quantiles of a number without bins")
        made: Mechanism = kind.for_quantiles(
            epsilon, question.lower, question.upper, scale=question.scale, quantiles=question.quantiles
        )
        return made
    if question.categories is not None and issubclass(kind, FrequencyMechanism):
        return kind.for_answers(epsilon, len(question.categories))
    if question.categories is None and issubclass(kind, NumericMechanism):
        lower, upper = question.lower, question.upper
        if question.kind in (SCALE, GRID):
            lower, upper = Decimal(question._values[0]), Decimal(question._values[-1])
        return kind.for_range(epsilon, lower, upper)
    raise NotSupported(f"{kind.name} does not randomize {'a choice' if question.categories else 'a number'}")


def best_thresholds(question: SurveyQuestion, epsilon: Decimal) -> Mechanism:
    """Return the first installed mechanism for quantiles or a capped mean. Raises `NotSupported` if there is none."""
    for kind in mechanisms():
        if hasattr(kind, "for_quantiles"):
            return _for(kind, question, epsilon)
    raise NotSupported("no installed mechanism reports the quantiles of a number without bins")


def best_ticks(question: SurveyQuestion, epsilon: Decimal) -> Mechanism:
    """Return the mechanism of sets of ticks with the smallest predicted error at worst.

    Raises:
        InvalidParameter: the sets are too many, or the number of ticks is out of range.
        NotSupported: no installed mechanism takes sets of ticks.
    """
    kinds: list[Any] = [kind for kind in mechanisms() if hasattr(kind, "for_ticks")]
    if not kinds:
        raise NotSupported("no installed mechanism randomizes a set of ticks")
    made: list[Any] = [_for(kind, question, epsilon) for kind in kinds]
    found: Mechanism = min(made, key=lambda each: each.share_errors(1)[0])
    return found


_BIASED = "mechanism of question {}"


def _biased(question: SurveyQuestion, made: NumericMechanism) -> InvalidParameter:
    """Return the error for a biased mechanism that the question does not allow."""
    most = max(abs(made.error_at(value)[0]) for value in made.landmarks())
    unit = f" {question.unit}" if question.unit else ""
    return InvalidParameter(
        _BIASED.format(question.name),
        "without bias",
        f"{made.name}, whose mean is off by up to {most:.3g}{unit} however many people answer",
        hint="Leave out mechanism for the best unbiased one. To accept the bias: biased = true in the question.",
    )


def best_for_mean(epsilon: Decimal, values: tuple[float, ...]) -> Mechanism:
    """Return the mechanism of numbers whose variance is least at worst over these values.

    Parameters:
        epsilon: the ε of one report.
        values: the values, ascending and equally spaced.

    Raises:
        NotSupported: there is no such mechanism.
    """
    lower, upper = Decimal(values[0]), Decimal(values[-1])
    made: list[Any] = [best_mechanism(None, lower, upper, epsilon)]
    cells = len(values) - 1
    rounded = find_mechanism("rounded-response")
    if epsilon <= 20:
        # With these points a value is never rounded.
        counts = [count for count in range(2, 33) if cells % (count - 1) == 0]
        made += [rounded(epsilon=epsilon, lower=lower, upper=upper, points=count) for count in counts]
    found: Mechanism = min(made, key=lambda each: max(each.error_at(value)[1] for value in values))
    return found


@functools.lru_cache(maxsize=256)
def best_mechanism(answers: int | None, lower: Decimal | None, upper: Decimal | None, epsilon: Decimal) -> Mechanism:
    """Return the mechanism with the smallest predicted error at worst, of those that a questionnaire can hold.

    It has a client program, does not memoize, is unbiased and keeps a pure ε.
    """
    ranked: list[tuple[float, int, Mechanism]] = []
    for place, kind in enumerate(mechanisms()):
        try:
            if answers is not None and issubclass(kind, FrequencyMechanism):
                made: Any = kind.for_answers(epsilon, answers)
                error = made.share_errors(1)[0] if made.domain == Categories(answers) else math.inf
            elif answers is None and issubclass(kind, NumericMechanism) and not kind.biased:
                made = kind.for_range(epsilon, lower, upper)
                error = made.mean_error(1)
            else:
                continue
            if math.isfinite(error) and not made.repeats and made.guarantee.loss() == (epsilon, 0):
                ranked.append((float(f"{error:.9g}"), place, made))
        except LdpBudgetError:
            continue
    for _, _, made in sorted(ranked, key=lambda each: each[:2]):
        try:
            made.client_program()
        except NotSupported:
            continue
        found: Mechanism = made
        return found
    raise NotSupported(f"no installed mechanism randomizes such a question at ε = {epsilon}")


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
        together = SurveyQuestion(JOINT, kind=GRID, categories=_YES_NO, parts=parts)
        rest = [together if question == parts[0] else question for question in self.questions]
        return tuple(question for question in rest if question not in parts)

    def yes_no_variance(self) -> float:
        """Return the variance of a share of a half of a plain yes/no question, for one respondent, sampling included.

        Raises:
            InvalidParameter: the survey has no such question, or a question has no mechanism.
        """
        from .margins import Precision

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
        equal = (self.epsilon / self.ask).quantize(_NANO, ROUND_DOWN).normalize()
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
                if isinstance(error, InvalidParameter) and error.option == _BIASED.format(question.name):
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
        return About(title=self.title, purpose=self.purpose, contact=self.contact, languages=_plain(self.languages))

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the canonical JSON of the definition, texts included."""
        return hashlib.sha256(canonical_json(self.to_json()).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the definition as a JSON object, with the keys of the TOML file."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            **{name: said for name in _TEXTS if (said := getattr(self, name))},
            "policy": self.policy,
            "epsilon": str(self.epsilon),
            "answer": self.answer,
            **({"joint": True} if self.joint else {}),
            "rounds": self.rounds,
            **({} if self.minimum_group == MINIMUM_GROUP else {"minimum_group": self.minimum_group}),
            **({"languages": _plain(self.languages)} if self.languages else {}),
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
        data = _canonical(data)
        table = _Table(place, "", data, ("survey", "question", "grid"))
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
            **{name: getattr(self, name) for name in _TEXTS if name != "title"},
            "languages": _plain(self.languages),
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


_CLEARLY = 1.05
"""The ratio of variances from which on yes/no questions are randomized together if the file does not say."""
_TEXTS = ("title", "organisation", "contact", "purpose")


def _plain(languages: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        tag: {name: list(said) if isinstance(said, tuple) else said for name, said in words.items()}
        for tag, words in languages.items()
    }


# -- reading ---------------------------------------------------------------------------------------------------------

_SURVEY_KEYS = ("name", *_TEXTS, "policy", "epsilon", "answer", "rounds", "minimum_group", "languages", "joint")
_QUESTION_KEYS = (
    *("name", "text", "kind", "categories", "lower", "upper", "unit", "mechanism", "biased", "epsilon", "languages"),
    *("at_most", "pairs", "scale", "quantiles", "optional", "report", "top", "items", "answer", "index"),
)
_QUESTION_WORDS: dict[str, type] = {"text": str, "categories": list}
_GRID_WORDS: dict[str, type] = {**_QUESTION_WORDS, "items": list}
_WORDS = {str: "a text in quotes", dict: "a table", list: "a list", int: "a whole number"}


def _canonical(data: Any) -> Any:
    """Return the values of a file with each text in the form in which texts are compared."""
    if isinstance(data, str):
        return canonical_text(data)
    if isinstance(data, list):
        return [_canonical(each) for each in data]
    return {name: _canonical(each) for name, each in data.items()} if isinstance(data, dict) else data


class _Table:
    """A table of the file. Its messages name the file, the table and the key."""

    def __init__(self, place: str, name: str, data: Any, keys: tuple[str, ...]) -> None:
        self.place, self.name = place, name
        if not isinstance(data, dict):
            raise InvalidParameter(self.where(""), "a table", shown(data))
        self.data = data
        for key in data:
            if key not in keys:
                from difflib import get_close_matches

                close = get_close_matches(key, keys, 1)
                hint = f"Did you mean {close[0]}?" if close else "Remove the key."
                where = self.where("").rstrip(": ")
                raise InvalidParameter(where, f"a table of {', '.join(keys)}", f"the key {key!r}", hint=hint)

    def where(self, key: str) -> str:
        return f"{self.place}: {' '.join(part for part in (self.name, key) if part)}"

    def invalid(self, key: str, expected: str, hint: str = "") -> InvalidParameter:
        value = self.data.get(key)
        return InvalidParameter(
            self.where(key), expected, None if value is None else _found(value), hint=hint or _REMEDY
        )

    def take(self, key: str, kind: type, expected: str = "", default: Any = None) -> Any:
        """Return the value of a key. Raises `InvalidParameter` if it has another type, or is missing without a default."""
        value = self.data.get(key, default)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.invalid(key, expected or _WORDS[kind])
        return value

    def number(self, key: str, expected: str = "a number") -> Decimal | None:
        """Return a finite number, also one in quotes; None if the key is missing."""
        value = self.data.get(key)
        if value is None:
            return None
        if isinstance(value, str):
            number = value_of(value)
        else:
            is_plain = isinstance(value, int | Decimal) and not isinstance(value, bool)
            number = Decimal(value) if is_plain else None
        if number is None or not number.is_finite():
            raise self.invalid(key, expected)
        return number

    def flag(self, key: str) -> bool:
        value = self.data.get(key, False)
        if not isinstance(value, bool):
            raise self.invalid(key, "true or false")
        return value

    def epsilon(self) -> Decimal | None:
        value = self.number("epsilon", "a number above 0")
        if value is not None and value <= 0:
            raise self.invalid("epsilon", "a number above 0")
        return value


def _found(value: Any) -> str:
    return str(value) if isinstance(value, Decimal) else shown(value)


def _survey(given: Any, questions: Any, place: str) -> Survey:
    table = _Table(place, "[survey]", given, _SURVEY_KEYS)
    if not isinstance(questions, list) or not 1 <= len(questions) <= MOST_QUESTIONS:
        found = (
            None if questions is None else f"{len(questions)} of them" if isinstance(questions, list) else "a table"
        )
        raise InvalidParameter(
            f"{place}: [[question]]", f"1 to {MOST_QUESTIONS} tables, one for each", found, hint=_REMEDY
        )
    listed = tuple(_question(each, number, place) for number, each in enumerate(questions, 1))
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
    texts = {key: table.take(key, str, default="") for key in _TEXTS}
    policy = table.take("policy", str, default="default")
    languages = dict(_languages(table, {"title": str, "purpose": str}))
    joint = table.flag("joint")
    more = {"languages": languages, "minimum_group": group, "joint": joint}
    survey = Survey(name, listed, epsilon, answer, policy=policy, rounds=rounds, **more, **texts)
    if joint and len(survey.slots) == len(listed):
        raise table.invalid("joint", "false, or left out, without two yes/no questions that are not optional")
    count = len(survey.slots)
    if answer != ALL and (isinstance(answer, bool) or not isinstance(answer, int) or not 1 <= answer <= count):
        raise table.invalid("answer", f'"all", or how many of the {count} questions each person answers')
    _checked_texts(survey, place)
    return survey


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


def _languages(table: _Table, kinds: dict[str, type]) -> Iterator[tuple[str, dict[str, Any]]]:
    for tag, words in table.take("languages", dict, default={}).items():
        own = _Table(table.place, f"{table.name} languages.{tag}", words, tuple(kinds))
        yield tag, {name: own.take(name, kinds[name]) for name in words}


def _question(given: Any, number: int, place: str) -> SurveyQuestion:
    is_grid = isinstance(given, dict) and given.get("kind") == GRID
    shown_as = f"[[grid]] {given.get('name', number)}" if is_grid else f"[[question]] {number}"
    table = _Table(place, shown_as, given, _QUESTION_KEYS)
    name = table.take("name", str)
    try:
        check_question_name(name)
    except InvalidParameter as error:
        raise table.invalid("name", error.expected) from None
    kind = table.take("kind", str, default=NUMBER if "lower" in table.data else CHOICE)
    if kind not in KINDS:
        raise table.invalid("kind", f"one of {', '.join(KINDS)}")
    numeric = kind in (NUMBER, SCALE, *_WITHOUT_BINS) or (kind == GRID and "categories" not in table.data)
    foreign: tuple[str, ...] = ("categories",) if numeric or kind == YES_NO else ("lower", "upper")
    foreign += () if kind == TICK else ("at_most", "pairs")
    foreign += () if kind == QUANTILE else ("quantiles",)
    foreign += () if kind in _WITHOUT_BINS else ("scale",)
    foreign += () if kind == SCALE else ("report", "top")
    foreign += () if kind == GRID else ("items", "answer", "index")
    for key in foreign if numeric and kind not in (SCALE, GRID) else (*foreign, "unit"):
        if key in table.data:
            raise table.invalid(key, f"left out of a question of kind {kind}", "Change kind, or remove the key.")
    lower, upper = (_end(table, key) if numeric else None for key in ("lower", "upper"))
    if lower is not None and upper is not None and lower >= upper:
        raise table.invalid("upper", f"greater than lower, {lower}", "Exchange the two, or correct one.")
    unit = table.take("unit", str, default="")
    if len(unit) > _MOST_UNIT or not unit.isprintable():
        raise table.invalid("unit", f"a text of at most {_MOST_UNIT} characters on one line, such as hours")
    report, top, index = MEAN, 1, table.flag("index")
    if index and "categories" in table.data:
        raise table.invalid("index", "false, or left out, without lower and upper, because it is a mean of numbers")
    if index and "answer" in table.data:
        raise table.invalid("answer", "left out of a grid with an index, which needs the answers to all items")
    if numeric and kind in (SCALE, GRID):
        numbers = _whole_numbers(table, lower, upper)
        report, top = _reported(table, len(numbers)) if kind == SCALE else (MEAN if index else SHARES, 1)
        categories = {SHARES: numbers, TOP_BOX: (IN_BOX, BELOW)}.get(report)
    else:
        categories = None if numeric else _YES_NO if kind == YES_NO else _categories(table)
    optional = table.flag("optional")
    if optional:
        if categories is None or kind == TICK:
            hint = "Ask in categories, or leave optional out: a number has no place for an answer that is missing."
            hint = 'Take report = "shares" or "top-box", or leave optional out.' if kind == SCALE else hint
            raise table.invalid("optional", "false, or left out, for a number, a mean or a list of ticks", hint)
        if NO_ANSWER in categories:
            raise table.invalid("categories", f"without {NO_ANSWER!r}, which optional = true adds", "Remove it.")
        categories = (*categories, NO_ANSWER)
    return SurveyQuestion(
        name,
        table.take("text", str, default=""),
        kind,
        categories,
        lower,
        upper,
        table.take("mechanism", str, default=AUTO),
        table.epsilon(),
        dict(_languages(table, _GRID_WORDS if kind == GRID else _QUESTION_WORDS)),
        unit,
        table.flag("biased"),
        _at_most(table, categories or ()) if kind == TICK else ANY,
        table.flag("pairs"),
        _scale(table),
        _probabilities(table),
        optional,
        report if kind == SCALE else MEAN,
        top,
        *(_items(table, name) if kind == GRID else ((), None)),
        index=index,
    )


def _items(table: _Table, grid: str) -> tuple[tuple[str, ...], int | None]:
    """Return the items of a grid, and how many of them each person answers; None for the number of least variance."""
    expected = "a list of at least two distinct items in quotes"
    items = table.take("items", list, expected)
    if len(items) < 2 or not all(isinstance(item, str) and item.strip() for item in items):
        raise table.invalid("items", expected)
    try:
        check_categories(items)
        for item in items:
            check_question_name(f"{grid}/{item}")
    except InvalidParameter as error:
        raise InvalidParameter(table.where("items"), error.expected, error.found, hint=error.hint) from None
    answer = table.data.get("answer")
    if answer is not None and (type(answer) is not int or not 1 <= answer <= len(items)):
        raise table.invalid("answer", f"how many of the {len(items)} items each person answers, or left out")
    return tuple(items), answer


def _whole_numbers(table: _Table, lower: Decimal | None, upper: Decimal | None) -> tuple[str, ...]:
    """Return the answers of a scale of whole numbers."""
    for key, end in (("lower", lower), ("upper", upper)):
        if end is None or end != int(end):
            raise table.invalid(key, "a whole number, because the answers of a scale are whole numbers")
    assert lower is not None
    assert upper is not None
    count = int(upper) - int(lower) + 1
    if count > MOST_ANSWERS:
        raise table.invalid("upper", f"such that the scale has at most {MOST_ANSWERS} answers, and not {count}")
    return answers_of(int(lower), int(upper))


def _reported(table: _Table, count: int) -> tuple[str, int]:
    """Return what is reported of a scale with so many answers, and how many of these its top box holds."""
    report, top = table.take("report", str, default=MEAN), table.take("top", int, default=1)
    if report not in REPORTS:
        raise table.invalid("report", f"one of {', '.join(REPORTS)}")
    if report == NPS and count <= PROMOTERS + PASSIVES:
        raise table.invalid(
            "report", "another one for a scale of so few answers: nps is for 0 to 10", "Take top-box."
        )
    if report != TOP_BOX and "top" in table.data:
        raise table.invalid("top", 'left out, unless report = "top-box"', "Remove the key, or change report.")
    if not 1 <= top < count:
        raise table.invalid("top", f"a whole number from 1 to {count - 1}, fewer than the answers of the scale")
    return report, top


def _scale(table: _Table) -> str:
    found: str = table.take("scale", str, default=_SCALES[0])
    if found not in _SCALES:
        raise table.invalid("scale", f"one of {', '.join(_SCALES)}")
    return found


def _probabilities(table: _Table) -> tuple[Decimal, ...]:
    found = table.take("quantiles", list, default=["0.5"])
    numbers = [
        each if isinstance(each, Decimal) else value_of(each) if isinstance(each, str) else None for each in found
    ]
    if not numbers or not all(each is not None and each.is_finite() and 0 < each < 1 for each in numbers):
        raise table.invalid("quantiles", "a list of numbers above 0 and below 1, such as [0.5, 0.9]")
    return tuple(sorted({each for each in numbers if each is not None}))


def _at_most(table: _Table, categories: tuple[str, ...]) -> int | str:
    found = table.data.get("at_most", ANY)
    if found == ANY or (type(found) is int and 1 <= found <= len(categories)):
        return found  # type: ignore[no-any-return]
    raise table.invalid("at_most", f'"any", or a whole number from 1 to the number of options, {len(categories)}')


def _end(table: _Table, key: str) -> Decimal:
    value = table.number(key)
    if value is None:
        raise table.invalid(key, "a number, one end of the range of the answers")
    return value


def _categories(table: _Table) -> tuple[str, ...]:
    expected = "a list of at least two distinct answers in quotes"
    names = table.take("categories", list, expected)
    if len(names) < 2 or not all(isinstance(name, str) and name.strip() for name in names):
        raise table.invalid("categories", expected)
    try:
        check_categories(names)
    except InvalidParameter as error:
        hint = error.hint or "Remove one of them."
        raise InvalidParameter(table.where("categories"), expected, error.found, hint=hint) from None
    return tuple(names)
