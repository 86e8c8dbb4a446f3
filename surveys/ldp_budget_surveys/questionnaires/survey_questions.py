"""A question of a survey: what people see of it, and the mechanism that it gets."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ldp_budget.errors import InvalidParameter, LdpBudgetError, NotSupported
from ldp_budget.registry.plugins import mechanism as find_mechanism
from ldp_budget.registry.plugins import mechanisms
from ldp_budget.registry.public_definition import About
from ldp_budget.sdk.domain import Categories
from ldp_budget.sdk.frequency_oracle import FrequencyMechanism
from ldp_budget.sdk.numeric_mechanism import NumericMechanism

from .questionnaire import NO_ANSWER
from .scales import (
    MEAN,
    NPS,
    TOP_BOX,
    Recode,
    answers_of,
    index_values,
    recoded,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ldp_budget.sdk.mechanism import Mechanism

AUTO = "auto"
CHOICE, YES_NO, NUMBER, TICK, QUANTILE, SCALE, GRID, CAPPED_MEAN = KINDS = (
    *("choice", "yes-no", "number", "tick", "quantile", "scale", "grid", "capped-mean"),
)
WITHOUT_BINS = (QUANTILE, CAPPED_MEAN)
AXES = ("linear", "log")
ANY = "any"
"""`at_most` of a question with any number of ticks."""
YES_OR_NO = ("yes", "no")
_NO_ANSWERS = {"de": "keine Angabe", "ko": "응답하지 않음"}


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
    scale: str = AXES[0]
    quantiles: tuple[Decimal, ...] = (Decimal("0.5"),)
    optional: bool = False
    report: str = MEAN
    top: int = 1
    items: tuple[str, ...] = ()
    asked: int | None = None
    parts: tuple[SurveyQuestion, ...] = ()
    index: bool = False
    """True if the device sends the mean of the answers to all items of a grid, one number."""
    assumed: tuple[tuple[Decimal, Decimal], ...] = ()
    """For plans of quantiles and capped means: values, each with the share of people at most at it."""
    tags: tuple[str, ...] = ()
    """What the question is about or for, such as `attribute:health`; all items of a grid have them."""

    @property
    def depends_on(self) -> tuple[str, ...]:
        """The tags of all that the report depends on: of questions that are randomized together, those of each.

        Empty if nothing is known of one of them.
        """
        if not self.parts:
            return self.tags
        return (
            tuple(sorted({tag for part in self.parts for tag in part.tags}))
            if all(p.tags for p in self.parts)
            else ()
        )

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
        if self.kind in WITHOUT_BINS:
            return best_thresholds(self, epsilon)
        if self.kind == SCALE and self.categories is None:
            return best_for_mean(epsilon, self._values)
        return best_mechanism(self.categories and len(self.categories), self.lower, self.upper, epsilon)

    @property
    def asked_as(self) -> str:
        """The kind by which a client asks: a quantile is asked as a number, and optional yes or no as a choice."""
        return NUMBER if self.kind in WITHOUT_BINS else CHOICE if self.kind == YES_NO and self.optional else self.kind

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
            "tags": list(self.tags) or None,
            "biased": self.biased or None,
            "mechanism": None if self.mechanism == AUTO else self.mechanism,
            "epsilon": None if self.epsilon is None else str(self.epsilon),
            "at_most": self.at_most if self.kind == TICK else None,
            "pairs": self.pairs or None,
            "scale": self.scale if self.kind in WITHOUT_BINS else None,
            "quantiles": [str(each) for each in self.quantiles] if self.kind == QUANTILE else None,
            "assumed": [[str(value), str(share)] for value, share in self.assumed] or None,
            "optional": self.optional or None,
            "report": self.report if self.kind == SCALE else None,
            "top": self.top if self.kind == SCALE and self.report == TOP_BOX else None,
            "languages": plain_languages(self.languages),
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


MECHANISM_OF = "mechanism of question {}"


def _biased(question: SurveyQuestion, made: NumericMechanism) -> InvalidParameter:
    """Return the error for a biased mechanism that the question does not allow."""
    most = max(abs(made.error_at(value)[0]) for value in made.landmarks())
    unit = f" {question.unit}" if question.unit else ""
    return InvalidParameter(
        MECHANISM_OF.format(question.name),
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


def plain_languages(languages: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        tag: {name: list(said) if isinstance(said, tuple) else said for name, said in words.items()}
        for tag, words in languages.items()
    }
