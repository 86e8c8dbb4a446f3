"""The published estimate: exact counts from the reports, and the number of fake reports that could turn the order.

The probabilities come from the client program of the definition. Only programs whose estimate a checker of a few lines
can work out are in: independent bits, one drawn answer, and two coins. For all others the estimate is None.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ldp_budget.accounting.stored_reports import MARK_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_ONE = 2**64
_MOST_ANSWERS = 4096
_LARGEST = 2**53 - 1
"""Checkers read no larger whole number."""


class Law(NamedTuple):
    """The kind of a report, and the probabilities that it names the true answer and another one."""

    kind: str
    answers: int
    p: Fraction
    q: Fraction


def law_of(definition: Mapping[str, Any]) -> Law | None:
    """Return the law of a client program; None if its estimate is not published."""
    if "steps" not in definition:
        return None  # a questionnaire has a program for each question
    asked, steps, parts = definition["input"], definition["steps"], definition["report"]["parts"]
    if asked["kind"] != "answer" or definition["memo"] or definition["tables"] or asked["count"] > _MOST_ANSWERS:
        return None
    count, drawn = asked["count"], [expression for _, expression in steps]
    chances = [Fraction(int(each[1]), _ONE) for each in drawn if each[0] in ("bit", "bits")]
    names, shape = [name for name, _ in steps], [part[:1] + part[2:] for part in parts]
    if names == ["others", "own", "row"] and shape == [["packed", count]]:
        return Law("bits", count, chances[1], chances[0])
    if names == ["kept", "others", "moved", "drawn"] and shape in ([["uint", 1, 1]], [["uint", 2, 1]]):
        return Law("answer", count, chances[0], (1 - chances[0]) / (count - 1))
    if names == ["if_yes", "if_no", "report"] and count == 2:
        return Law("yes", count, *chances)
    return None


def estimate_of(definition: Mapping[str, Any], records: NDArray[np.uint8]) -> dict[str, Any] | None:
    """Return the estimate from records of a mark and a report, shape (n, 16 + width).

    None without a law, or if a count is too large for a checker.
    """
    law = law_of(definition)
    if law is None:
        return None
    support, reports = _support(law, records[:, MARK_BYTES:]), len(records)
    counts = [(each - reports * law.q) / (law.p - law.q) for each in support]
    if law.kind == "yes":  # a report of "no" names no answer
        counts[0] = reports - counts[1]
    first, second = sorted(range(law.answers), key=lambda answer: (-support[answer], answer))[:2]
    thousandths = [round(1000 * each) for each in counts]
    if any(abs(each) > _LARGEST for each in thousandths):
        return None
    return {
        "counts": thousandths,
        "fakes": -((support[second] - support[first]) // 2),
        "first": first,
        "second": second,
    }


def _support(law: Law, reports: NDArray[np.uint8]) -> list[int]:
    """Return the number of reports that name each answer."""
    if law.kind == "bits":
        columns = [np.bincount(column, minlength=256) for column in reports.T]
        bits = [(np.arange(256) >> bit & 1).astype(bool) for bit in range(8)]
        return [int(columns[answer // 8][bits[answer % 8]].sum()) for answer in range(law.answers)]
    answers = sum(column.astype(np.int64) << 8 * place for place, column in enumerate(reports.T))
    return [int(count) for count in np.bincount(answers, minlength=law.answers)]
