"""The tables of a survey file, read key by key: each question, and the values of the keys that all tables have."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ldp_budget._number_parsing import value_of
from ldp_budget._tags import check_tags
from ldp_budget._validation import canonical_text, shown
from ldp_budget.errors import InvalidParameter
from ldp_budget.sdk.domain import check_categories

from .questionnaire import NO_ANSWER, check_question_name
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
    answers_of,
)
from .survey_questions import (
    ANY,
    AUTO,
    AXES,
    CHOICE,
    GRID,
    KINDS,
    NUMBER,
    QUANTILE,
    SCALE,
    TICK,
    WITHOUT_BINS,
    YES_NO,
    YES_OR_NO,
    SurveyQuestion,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


_MOST_UNIT = 40
"""The most characters of a unit."""
REMEDY = "See: ldp-budget survey add --help"
_QUESTION_KEYS = (
    *("name", "text", "kind", "categories", "lower", "upper", "unit", "mechanism", "biased", "epsilon", "languages"),
    *("at_most", "pairs", "scale", "quantiles", "optional", "report", "top", "items", "answer", "index"),
    *("assumed", "tags"),
)
_QUESTION_WORDS: dict[str, type] = {"text": str, "categories": list}
_GRID_WORDS: dict[str, type] = {**_QUESTION_WORDS, "items": list}
_WORDS = {str: "a text in quotes", dict: "a table", list: "a list", int: "a whole number"}


def canonical(data: Any) -> Any:
    """Return the values of a file with each text in the form in which texts are compared."""
    if isinstance(data, str):
        return canonical_text(data)
    if isinstance(data, list):
        return [canonical(each) for each in data]
    return {name: canonical(each) for name, each in data.items()} if isinstance(data, dict) else data


class Table:
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
            self.where(key), expected, None if value is None else _found(value), hint=hint or REMEDY
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
        number = None if value is None else number_of(value)
        if value is not None and number is None:
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


def number_of(value: Any) -> Decimal | None:
    """Return a finite number of a file, also one in quotes; None for anything else."""
    if isinstance(value, str):
        number = value_of(value)
    else:
        number = Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else None
    return number if number is not None and number.is_finite() else None


def _found(value: Any) -> str:
    return str(value) if isinstance(value, Decimal) else shown(value)


def languages_in(table: Table, kinds: dict[str, type]) -> Iterator[tuple[str, dict[str, Any]]]:
    for tag, words in table.take("languages", dict, default={}).items():
        own = Table(table.place, f"{table.name} languages.{tag}", words, tuple(kinds))
        yield tag, {name: own.take(name, kinds[name]) for name in words}


def question_in(given: Any, number: int, place: str) -> SurveyQuestion:
    is_grid = isinstance(given, dict) and given.get("kind") == GRID
    shown_as = f"[[grid]] {given.get('name', number)}" if is_grid else f"[[question]] {number}"
    table = Table(place, shown_as, given, _QUESTION_KEYS)
    name = table.take("name", str)
    try:
        check_question_name(name)
    except InvalidParameter as error:
        raise table.invalid("name", error.expected) from None
    kind = table.take("kind", str, default=NUMBER if "lower" in table.data else CHOICE)
    if kind not in KINDS:
        raise table.invalid("kind", f"one of {', '.join(KINDS)}")
    numeric = kind in (NUMBER, SCALE, *WITHOUT_BINS) or (kind == GRID and "categories" not in table.data)
    foreign: tuple[str, ...] = ("categories",) if numeric or kind == YES_NO else ("lower", "upper")
    foreign += () if kind == TICK else ("at_most", "pairs")
    foreign += () if kind == QUANTILE else ("quantiles",)
    foreign += () if kind in WITHOUT_BINS else ("scale", "assumed")
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
        categories = None if numeric else YES_OR_NO if kind == YES_NO else _categories(table)
    optional = table.flag("optional")
    if optional:
        if categories is None:
            hint = "Ask in categories, or leave optional out: a number has no place for an answer that is missing."
            hint = 'Take report = "shares" or "top-box", or leave optional out.' if kind == SCALE else hint
            raise table.invalid("optional", "false, or left out, for a number or a mean", hint)
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
        dict(languages_in(table, _GRID_WORDS if kind == GRID else _QUESTION_WORDS)),
        unit,
        table.flag("biased"),
        _at_most(table, len(categories or ()) - optional) if kind == TICK else ANY,
        table.flag("pairs"),
        _scale(table),
        _probabilities(table),
        optional,
        report if kind == SCALE else MEAN,
        top,
        *(_items(table, name) if kind == GRID else ((), None)),
        index=index,
        assumed=_assumed(table, lower, upper),
        tags=tags_in(table),
    )


def _assumed(table: Table, lower: Decimal | None, upper: Decimal | None) -> tuple[tuple[Decimal, Decimal], ...]:
    """Return the points of the distribution that a plan assumes."""
    points = [
        tuple(map(number_of, each)) if isinstance(each, list) and len(each) == 2 else (None, None)
        for each in table.take("assumed", list, default=[])
    ]
    known = [(value, share) for value, share in points if value is not None and share is not None]
    ascending = all(a < c and b <= d for (a, b), (c, d) in pairwise(known))
    inside = all(
        0 <= share <= 1 and lower <= value <= upper
        for value, share in known
        if lower is not None and upper is not None
    )
    if len(known) < len(points) or not ascending or not inside:
        expected = "a list of values in the range, ascending, each with the share of people at most at it: [[20000, 0.25], …]"
        raise table.invalid("assumed", expected)
    return tuple(known)


def tags_in(table: Table) -> tuple[str, ...]:
    """Return the tags of a question, or of all questions of a survey."""
    try:
        return check_tags(table.take("tags", list, default=[]))
    except InvalidParameter as error:
        raise InvalidParameter(table.where("tags"), error.expected, error.found) from None


def _items(table: Table, grid: str) -> tuple[tuple[str, ...], int | None]:
    """Return the items of a grid, and how many of them each person answers; None for the number of least variance."""
    expected = "a list of at least two distinct items in quotes"
    items = _texts(table, "items", expected)
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


def _whole_numbers(table: Table, lower: Decimal | None, upper: Decimal | None) -> tuple[str, ...]:
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


def _reported(table: Table, count: int) -> tuple[str, int]:
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


def _scale(table: Table) -> str:
    found: str = table.take("scale", str, default=AXES[0])
    if found not in AXES:
        raise table.invalid("scale", f"one of {', '.join(AXES)}")
    return found


def _probabilities(table: Table) -> tuple[Decimal, ...]:
    found = table.take("quantiles", list, default=["0.5"])
    numbers = [
        each if isinstance(each, Decimal) else value_of(each) if isinstance(each, str) else None for each in found
    ]
    if not numbers or not all(each is not None and each.is_finite() and 0 < each < 1 for each in numbers):
        raise table.invalid("quantiles", "a list of numbers above 0 and below 1, such as [0.5, 0.9]")
    return tuple(sorted({each for each in numbers if each is not None}))


def _at_most(table: Table, options: int) -> int | str:
    found = table.data.get("at_most", ANY)
    if found == ANY or (type(found) is int and 1 <= found <= options):
        return found  # type: ignore[no-any-return]
    raise table.invalid("at_most", f'"any", or a whole number from 1 to the number of options, {options}')


def _end(table: Table, key: str) -> Decimal:
    value = table.number(key)
    if value is None:
        raise table.invalid(key, "a number, one end of the range of the answers")
    return value


def _categories(table: Table) -> tuple[str, ...]:
    expected = "a list of at least two distinct answers in quotes"
    names = _texts(table, "categories", expected)
    try:
        check_categories(names)
    except InvalidParameter as error:
        hint = error.hint or "Remove one of them."
        raise InvalidParameter(table.where("categories"), expected, error.found, hint=hint) from None
    return tuple(names)


def _texts(table: Table, key: str, expected: str) -> list[str]:
    """Return a list of at least two texts."""
    texts: list[str] = table.take(key, list, expected)
    if len(texts) < 2 or not all(isinstance(text, str) and text.strip() for text in texts):
        raise table.invalid(key, expected)
    return texts
