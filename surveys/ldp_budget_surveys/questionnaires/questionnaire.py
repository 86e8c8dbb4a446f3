"""Questionnaires: several questions as one mechanism, with one guarantee, of which each respondent answers k of m.

A report is one row of bytes. Its size is always the same, so it reveals nothing:

    mask            ceil(m/8) bytes: bit i % 8 of byte i // 8 is one if question i was asked; the other bits are zero
    slot 0 … m-1    the bytes of that question's report as its client program lays it out; zeros if it was not asked

**Guarantee.** The asked questions are public and independent of the answers. Given them, the reports of the k asked
questions are independent, so the loss of a row is the composition of k of the questions' guarantees, at worst of the
largest k: `Copies(k, G)` where all questions have the guarantee G, and else the sum of the k largest ε and of the k
largest δ, rounded up. A question that was not asked loses nothing. There is no amplification by sampling, because the
choice is visible in the row.
"""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from ldp_budget._validation import canonical_text, check_many, shown
from ldp_budget.errors import InvalidParameter, LdpBudgetError, NotSupported, OutsideDomain
from ldp_budget.guarantees import ANY_INPUTS, Approximate, Copies, Pure, SymmetricPair, Unbounded
from ldp_budget.guarantees.fixed_point import UP
from ldp_budget.registry.plugins import RESERVED_NAME
from ldp_budget.registry.plugins import mechanism as find_mechanism
from ldp_budget.sdk.domain import Categories, Interval, codes_of
from ldp_budget.sdk.mechanism import Mechanism
from ldp_budget.sdk.parameters import Field, integer

from .question_selection import MOST_QUESTIONS, chosen_questions, mask_of, random_seed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.guarantees import Guarantee
    from ldp_budget.sampling.rng import RandomSource
    from ldp_budget.sdk.client_program import Program
    from ldp_budget.sdk.estimates import Estimate

    from .questionnaire_estimates import QuestionnaireAggregate, QuestionnaireEstimate
    from .scales import Recode

_RESERVED = frozenset(
    (
        *("asked", "charged", "uncharged", "reports", "respondents", "round", "rounds"),
        *("design_effect", "public", "survey", "table", "weight", "weights"),
    )
)
"""Names that no question may have: `estimate --json` uses them, next to the names of the questions."""
_MOST_NAME = 64
NO_ANSWER = "no answer"
"""The last answer of an optional question: it is randomized like any other, so no report shows who skipped it."""


@dataclass(frozen=True)
class Question:
    """A question of a questionnaire: its name, its mechanism, and the names of the answers unless these are numbers.

    `recode` says how a device recodes other answers to these. `items`: the names of the items or questions that are asked
    together, each with these answers.
    """

    name: str
    mechanism: Mechanism
    categories: tuple[str, ...] | None
    recode: Recode | None = None
    items: tuple[str, ...] | None = None

    @property
    def domain(self) -> Categories | Interval:
        """The answers of the question."""
        domain = self.mechanism.domain
        assert domain is not None
        return domain

    @property
    def fingerprint(self) -> str:
        """The fingerprint of a collection with this name, mechanism and categories."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the question as a JSON object."""
        return {
            "name": self.name,
            "mechanism": self.mechanism.name,
            "declared": self.mechanism.declared,
            "categories": None if self.categories is None else list(self.categories),
            **({} if self.recode is None else {"recode": self.recode.to_json()}),
            **({} if self.items is None else {"items": list(self.items)}),
        }

    @property
    def asked_items(self) -> tuple[str, ...] | None:
        """The names of the items that a device asks, also where it sends one index of them; None for a single question."""
        return self.items if self.recode is None else self.recode.items

    @property
    def answers(self) -> tuple[str, ...] | None:
        """The names of the answers that a device is asked, unless these are numbers."""
        return self.categories if self.recode is None else self.recode.answers

    def client_program(self) -> Program:
        """Return the program with which a device randomizes an answer."""
        return self.mechanism.client_program() if self.recode is None else self.recode.program(self.mechanism)

    @functools.cached_property
    def layout(self) -> tuple[np.dtype[Any], tuple[int, ...], int]:
        """The element type, the shape and the size in bytes of a report."""
        return self.mechanism.report_layout()

    @functools.cached_property
    def codes(self) -> dict[str, int]:
        """The number of each text that counts as an answer of a choice."""
        return codes_of(self.answers or ())

    def number_of(self, answer: Any, position: int) -> float:
        """Return an answer as the number that the mechanism randomizes. Raises `OutsideDomain`."""
        from ldp_budget.sdk.tick_sets import TickSets

        if self.asked_items is not None:
            return self._number_of_all(answer, position)
        if self.categories is not None and isinstance(self.domain, TickSets):
            try:
                number = int(self.domain.named([answer], self.categories)[0])
                ticks = self.domain.ticks_of(number)
                if len(ticks) > 1 and self.categories[ticks[-1]] == NO_ANSWER:
                    raise OutsideDomain(f"{NO_ANSWER} alone, or other options", answer, position)
                return float(number)
            except OutsideDomain as error:
                raise OutsideDomain(f"{error.domain} ({self.name})", answer, position, hint=error.hint) from None
        if self.answers is not None:
            return self.code_of(answer, position)
        try:
            return float(self.mechanism.read_values([canonical_text(str(answer))])[0])
        except OutsideDomain as error:
            raise OutsideDomain(f"{error.domain} ({self.name})", answer, position, hint=error.hint) from None

    def _number_of_all(self, answers: Any, position: int) -> float:
        """Return the answers to all items, in order or by name, as one number."""
        from ldp_budget.sdk.grid_answers import GridAnswers

        domain, items = self.domain, self.asked_items or ()
        given = [answers.get(item) for item in items] if hasattr(answers, "get") else answers
        if not isinstance(given, list | tuple) or len(given) != len(items):
            raise OutsideDomain(f"an answer to each of {', '.join(items)} ({self.name})", answers, position)
        numbers = []
        for item, each in zip(items, given, strict=True):
            numbers.append(self._place_of(each, position, item))
        if self.recode is not None:
            return float(self.recode.values[sum(numbers)])
        assert isinstance(domain, GridAnswers)
        return float(domain.number_of(numbers))

    def code_of(self, answer: Any, position: int) -> float:
        """Return the number of one of the listed answers, or of what it is recoded to. Raises `OutsideDomain`."""
        code = self._place_of(answer, position, self.name)
        return float(code if self.recode is None else self.recode.values[code])

    def _place_of(self, answer: Any, position: int, asked: str) -> int:
        """Return the place of one of the listed answers; `asked` names what is asked in the error, an `OutsideDomain`."""
        names = self.answers or ()
        text = canonical_text(answer) if isinstance(answer, str) else answer
        if not isinstance(text, str) or text not in self.codes:
            text = _whole(text)
        if not isinstance(text, str) or text not in self.codes:
            from ldp_budget._lookalikes import difference

            domain = f"one of {', '.join(names)} ({asked})"
            raise OutsideDomain(domain, answer, position, hint=difference(text, names))
        return self.codes[text]

    def views(self, place: int) -> list[View]:
        """Return what is estimated of the question: itself, or each item of a grid; `place` is its number."""
        mechanism: Any = self.mechanism
        if self.items is None:
            if self.recode is not None and hasattr(mechanism, "on"):
                mechanism = mechanism.on(self.recode.values)
            return [View(self.name, mechanism, self.categories, place, None)]
        part = mechanism.part()
        return [View(item, part, self.categories, place, number) for number, item in enumerate(self.items)]

    def check(self, numbers: Any, positions: Any) -> Any:
        """Return answers as the mechanism takes them; `positions` number their rows. Raises `OutsideDomain`."""
        import numpy as np

        try:
            return self.domain.check(numbers)
        except OutsideDomain as error:
            at = int(positions[error.position or 0])
            found = "no answer" if np.isnan(numbers[error.position or 0]) else error.found
            raise OutsideDomain(f"{error.domain} ({self.name})", found, at) from None


class View(NamedTuple):
    """A question as it is estimated: the mechanism of its reports, the place of its slot, and its number among the items there."""

    name: str
    mechanism: Mechanism
    categories: tuple[str, ...] | None
    place: int
    item: int | None


def _whole(answer: Any) -> Any:
    """Return a whole number as the answer of a scale is written: 4.0 is 4. Anything else is returned unchanged."""
    from ldp_budget._number_parsing import number_in

    try:
        number = number_in(answer)
    except (TypeError, ValueError):
        return answer
    return str(int(number)) if not isinstance(answer, bool) and number.is_integer() else answer


class Questions(Field[tuple[Question, ...]]):
    """The questions in order: objects with name, mechanism, declared and categories."""

    @property
    def expected(self) -> str:
        return f"a list of 1 to {MOST_QUESTIONS} questions: name, mechanism, declared and categories"

    def parse(self, value: Any) -> tuple[Question, ...]:
        listed = list(check_many(self.name, value, self.expected))
        if not 1 <= len(listed) <= MOST_QUESTIONS:
            raise self.invalid(f"{len(listed)} questions")
        questions = tuple(each if isinstance(each, Question) else self._read(each) for each in listed)
        names: list[str] = []
        for question in questions:
            self._check(question)
            for name in dict.fromkeys((question.name, *(question.asked_items or ()))):
                if name in names:
                    raise InvalidParameter(self.name, "questions with distinct names", f"{name!r} twice")
                names.append(name)
        return questions

    def to_json(self, value: tuple[Question, ...]) -> list[dict[str, Any]]:
        return [question.to_json() for question in value]

    def _read(self, value: Any) -> Question:
        from .scales import Recode  # a spend does not need it

        try:
            made = find_mechanism(value["mechanism"])(**value["declared"])
            names = value["categories"]
            recode = Recode.from_json(value.get("recode"))
            items = None if value.get("items") is None else tuple(value["items"])
            return Question(value["name"], made, None if names is None else tuple(names), recode, items)
        except (KeyError, TypeError) as error:
            raise self.invalid(f"{shown(value)} ({error})") from None

    def _check(self, question: Question) -> None:
        check_question_name(question.name)
        mechanism, categories = question.mechanism, question.categories
        where = f"{self.name}: the mechanism of {question.name}"
        domain = mechanism.domain
        from ldp_budget.sdk.grid_answers import GridAnswers

        if isinstance(domain, GridAnswers):
            if question.items is None or len(question.items) != domain.items or categories is None:
                raise InvalidParameter(where, f"one with {domain.items} items", shown(question.items))
            for item in question.items:
                check_question_name(item)
            if len(set(categories)) != domain.domain_size:
                expected = f"{domain.domain_size} names"
                raise InvalidParameter(f"{self.name}: categories of {question.name}", expected, shown(categories))
        elif isinstance(domain, Categories):
            if not domain.listed or categories is None or len(set(categories)) != domain.names:
                found = "none" if categories is None else shown(list(categories))
                raise InvalidParameter(f"{self.name}: categories of {question.name}", f"{domain.names} names", found)
        elif domain is None or categories is not None:
            raise InvalidParameter(where, "one with a client, and categories only if it asks for one", mechanism.name)
        guarantee = mechanism.guarantee
        if guarantee.loss() is None:
            raise InvalidParameter(where, "one with an ε, so that losses add up", mechanism.name)
        if mechanism.repeats or guarantee.relation != ANY_INPUTS:
            raise InvalidParameter(where, "one that does not memoize, because a row is charged once", mechanism.name)
        try:
            mechanism.report_layout()
        except NotSupported as error:
            raise InvalidParameter(where, "one with a client program", f"{mechanism.name} ({error})") from None


def check_question_name(name: Any) -> str:
    """Return the name of a question. Raises `InvalidParameter`."""
    expected = f"1 to {_MOST_NAME} printable characters without : = and , and none of {', '.join(sorted(_RESERVED))}"
    valid = isinstance(name, str) and name == name.strip() and name.isprintable() and 1 <= len(name) <= _MOST_NAME
    if not valid or name in _RESERVED or set(name) & set(":=,"):
        raise InvalidParameter("the name of a question", expected, shown(name))
    return str(name)


def _questions(help: str) -> Field[tuple[Question, ...]]:
    return Questions(help)


class Questionnaire(Mechanism):
    """Several questions in one report, of which each respondent answers `ask`.

    The values of `randomize` are an array of `value_type`: for each question the answer as a number, NaN without an
    answer, and in `asked` the bit mask of the asked questions, or 0 to draw them.

    Parameters:
        questions: the questions in order, as `Question` or as JSON objects.
        ask: the number of questions that one respondent answers.

    Raises:
        InvalidParameter: a question is not valid, two have one name, or `ask` exceeds their number.
    """

    name = RESERVED_NAME
    summary = "several questions in one report, of which each respondent answers some"
    source = "composition of independent reports; docs/reference/questionnaires.md"
    targets = ()

    questions = _questions("the questions in order")
    ask = integer("number of questions that one respondent answers", at_least=1, at_most=MOST_QUESTIONS)

    def check(self) -> None:
        if self.ask > len(self.questions):
            raise InvalidParameter("ask", f"a whole number from 1 to {len(self.questions)}", self.ask)

    @functools.cached_property
    def guarantee(self) -> Guarantee:
        """The composition of the `ask` largest guarantees."""
        return composed([question.mechanism.guarantee for question in self.questions], self.ask)

    @functools.cached_property
    def views(self) -> tuple[View, ...]:
        """The questions as they are estimated: the items of a grid are some of their own."""
        return tuple(view for place, question in enumerate(self.questions) for view in question.views(place))

    @property
    def components(self) -> tuple[Mechanism, ...]:
        return tuple(question.mechanism for question in self.questions)

    # -- the row ----------------------------------------------------------------------------------------

    @property
    def mask_bytes(self) -> int:
        """The size of the mask in bytes."""
        return (len(self.questions) + 7) // 8

    @property
    def row_bytes(self) -> int:
        """The size of a report in bytes."""
        return self.mask_bytes + sum(question.layout[2] for question in self.questions)

    @functools.cached_property
    def slots(self) -> tuple[slice, ...]:
        """The bytes of each question in a row."""
        start, slots = self.mask_bytes, []
        for question in self.questions:
            slots.append(slice(start, start + question.layout[2]))
            start = slots[-1].stop
        return tuple(slots)

    @property
    def value_type(self) -> np.dtype[Any]:
        """The element type of the values that `randomize` takes: `asked`, and `q0`, `q1`, … with the answers."""
        import numpy as np

        return np.dtype([("asked", "<u8"), *((f"q{place}", "<f8") for place in range(len(self.questions)))])

    def report_layout(self) -> tuple[np.dtype[Any], tuple[int, ...], int]:
        import numpy as np

        return np.dtype(np.uint8), (self.row_bytes,), self.row_bytes

    def unpack(self, reports: Any) -> tuple[NDArray[np.bool_], list[NDArray[Any]]]:
        """Return which questions each report answers, (n, m), and for each question the reports of those who answer it.

        Raises:
            NotSupported: no client sends these reports.
        """
        import numpy as np

        from ldp_budget.sdk.interpreter import as_reports

        rows = as_reports(reports)
        if rows.dtype != np.uint8 or rows.shape[1:] != (self.row_bytes,):
            raise NotSupported(f"reports must be uint8 (n, {self.row_bytes}): got {rows.dtype} {rows.shape}")
        bits = np.unpackbits(rows[:, : self.mask_bytes], axis=1, bitorder="little").astype(np.bool_)
        asked = bits[:, : len(self.questions)]
        if (asked.sum(axis=1) != self.ask).any() or bits[:, len(self.questions) :].any():
            raise NotSupported(f"a report must answer {self.ask} of {len(self.questions)} questions: one does not")
        parts = []
        for place, question in enumerate(self.questions):
            slot, here = rows[:, self.slots[place]], asked[:, place]
            if slot[~here].any():
                raise NotSupported(
                    f"a report that does not answer {question.name} must have zeros there: one has not"
                )
            dtype, shape, _ = question.layout
            part = np.ascontiguousarray(slot[here]).reshape(-1).view(dtype).reshape(-1, *shape)
            parts.append(part.astype(dtype.newbyteorder("="), copy=False))
        return asked, parts

    # -- client -----------------------------------------------------------------------------------------

    def values(self, rows: Iterable[tuple[float, ...]]) -> NDArray[Any]:
        """Return an array of `value_type` from rows of a mask and the answers as numbers.

        Parameters:
            rows: for each respondent the mask of the asked questions, and a number for each question.
        """
        import numpy as np

        return np.array(list(rows), dtype=self.value_type)

    def read_values(self, texts: Any) -> NDArray[Any]:
        """Return the answers of respondents as `randomize` takes them, with `asked` 0.

        Parameters:
            texts: a list with a mapping for each respondent: the answer to each question by its name. Without an answer
                it is None or left out.

        Raises:
            OutsideDomain: an answer is not one of its question; raised for the first.
            InvalidParameter: `texts` are not mappings, or name an unknown question.
        """
        import numpy as np

        rows = list(check_many("texts", texts, "a mapping from questions to answers for each respondent"))
        values = np.zeros(len(rows), dtype=self.value_type)
        for place in range(len(self.questions)):
            values[f"q{place}"] = np.nan
        places = {question.name: place for place, question in enumerate(self.questions)}
        whole = {item: place for place, each in enumerate(self.questions) for item in each.asked_items or ()}
        for number, row in enumerate(rows):
            if not hasattr(row, "items"):
                raise InvalidParameter("texts", "a mapping from questions to answers for each respondent", shown(row))
            if whole:
                row = self._with_grids(row, whole)
            for name, answer in row.items():
                if name not in places:
                    raise InvalidParameter("texts", f"answers to {', '.join(places)}", shown(name))
                if answer is not None:
                    place = places[name]
                    values[f"q{place}"][number] = self.questions[place].number_of(answer, number)
        return values

    def _with_grids(self, row: Any, whole: dict[str, int]) -> dict[str, Any]:
        """Return the answers of a respondent with those to items under the name of what they are asked together in."""
        found: dict[str, Any] = {}
        for name, answer in row.items():
            if name in whole:
                found.setdefault(self.questions[whole[name]].name, {})[name] = answer
            else:
                found[name] = answer
        return found

    def randomize(self, values: Any, *, rng: RandomSource = None, secrets: Any = None) -> NDArray[np.uint8]:
        """Return the reports of respondents, as `Mechanism.randomize` does. `secrets` are not needed, and not used."""
        import numpy as np

        from ldp_budget.sampling.rng import open_stream

        given = np.asarray(values)
        if given.dtype != self.value_type or given.ndim != 1:
            given = self.read_values(values)
        asked = self._asked(given["asked"])
        answers = []
        for place, question in enumerate(self.questions):
            here = np.flatnonzero(asked[:, place])
            answers.append((here, question.check(given[f"q{place}"][here], here)))
        stream = open_stream(rng)
        rows = np.zeros((len(given), self.row_bytes), dtype=np.uint8)
        rows[:, : self.mask_bytes] = np.packbits(asked, axis=1, bitorder="little")
        for slot, question, (here, own) in zip(self.slots, self.questions, answers, strict=True):
            if len(here):
                drawn = np.asarray(question.mechanism.randomize(own, rng=stream))
                data = np.ascontiguousarray(drawn, dtype=question.layout[0]).reshape(-1).view(np.uint8)
                rows[here, slot] = data.reshape(len(here), -1)
        return rows

    def _asked(self, masks: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return which questions each respondent answers, (n, m); draw them where the mask is 0."""
        import numpy as np

        questions = len(self.questions)
        drawn = masks.copy()
        for row in np.flatnonzero(masks == 0):
            drawn[row] = mask_of(chosen_questions(random_seed(), questions, self.ask))
        places = np.arange(questions, dtype=np.uint64)
        asked: NDArray[np.bool_] = (drawn[:, None] >> places & np.uint64(1)).astype(np.bool_)
        beyond = drawn >> np.uint64(questions) if questions < MOST_QUESTIONS else np.zeros_like(drawn)
        if (asked.sum(axis=1) != self.ask).any() or beyond.any():
            raise InvalidParameter("values", f"masks of {self.ask} of {questions} questions", "another mask")
        return asked

    # -- server -----------------------------------------------------------------------------------------

    def aggregate(self, reports: Any) -> QuestionnaireAggregate:
        from .questionnaire_estimates import QuestionnaireAggregate

        asked, parts = self.unpack(reports)
        totals = []
        for question, part in zip(self.questions, parts, strict=True):
            try:
                totals.append(question.mechanism.aggregate(part))
            except LdpBudgetError as error:
                raise NotSupported(f"question {question.name}: {error}") from None
        return QuestionnaireAggregate(self.fingerprint, len(asked), tuple(totals))

    def estimate(self, reports: Any) -> QuestionnaireEstimate:
        """Return an estimate for each question, about all who reported; see `sdk.subsampled_estimates`.

        Parameters:
            reports: as `unpack` takes them; or an aggregate.

        Raises:
            NotSupported: `reports` are not reports of this questionnaire, or there are none.
        """
        from .questionnaire_estimates import QuestionnaireEstimate
        from .subsampled_estimates import expanded

        total = self.total(reports)
        found: dict[str, Estimate | None] = {}
        asked: dict[str, int] = {}
        for view in self.views:
            part: Any = total.parts[view.place]
            if view.item is not None:
                grid: Any = self.questions[view.place].mechanism
                part = grid.total_of(part, view.item)
            own = view.mechanism.estimate(part).named(view.categories) if part.reports else None
            found[view.name] = own and expanded(own, total.reports, view.mechanism, part)
            asked[view.name] = part.reports
        return QuestionnaireEstimate(total.reports, found, asked)


def composed(guarantees: Sequence[Guarantee], count: int) -> Guarantee:
    """Return a guarantee of `count` independent reports, each with another one of the guarantees, at worst.

    For reports that all are ε-LDP with the same ε it is that of `count` such reports, which has a smaller ρ and μ than
    the sum of the ε alone.
    """
    first = guarantees[0]
    if any(each != first for each in guarantees):
        losses = [each.loss() or (Decimal(0), Decimal(1)) for each in guarantees]
        if any(delta for _, delta in losses):
            return _sum(losses, count)
        if any(epsilon != losses[0][0] for epsilon, _ in losses):
            return _sum(losses, count)
        # Erasing less often dominates erasing more often, and randomized response at ε dominates every ε-LDP report.
        pairs = [each.tau for each in guarantees if isinstance(each, SymmetricPair)]
        first = SymmetricPair(losses[0][0], max(pairs)) if len(pairs) == len(guarantees) else Pure(losses[0][0])
    return first if count == 1 else Copies(count, first)


def _sum(losses: Sequence[tuple[Decimal, Decimal]], count: int) -> Guarantee:
    epsilon, delta = (
        functools.reduce(UP.add, sorted((loss[kind] for loss in losses), reverse=True)[:count]) for kind in (0, 1)
    )
    if delta >= 1:
        return Unbounded()
    try:
        return Approximate(epsilon, delta) if delta else Pure(epsilon)
    except ValueError:  # beyond the largest ε
        return Unbounded()
