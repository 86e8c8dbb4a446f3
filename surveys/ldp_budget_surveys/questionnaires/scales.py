"""Scales: whole numbers from `lower` to `upper`, and what is reported of them.

A report of the whole scale loses precision where only a part of it is asked for. So the device recodes the answer before it
randomizes it, and its program says how: a mean is that of a number, the top box is a yes or no, and the net promoter score is
the mean of -1, 0 and 1. A function of the answer loses no more than the answer, so the guarantee is that of the mechanism.

    report     recoded to                                         mechanism
    mean       the number itself                                  the one of least variance at worst, over the answers
    shares     none                                               that of a choice
    top-box    is it one of the `top` highest answers?            that of yes or no
    nps        1 for the two highest answers, 0 for the two       rounded-response with three points
               before, -1 for all others
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ldp_budget.sdk.client_program import Program
    from ldp_budget.sdk.mechanism import Mechanism

MEAN, SHARES, TOP_BOX, NPS = REPORTS = ("mean", "shares", "top-box", "nps")
MOST_ANSWERS = 101
"""The most answers of a scale, such as 0 to 100."""
IN_BOX, BELOW = "top box", "other"
PROMOTERS, PASSIVES = 2, 2
"""How many answers from the top promote, and how many below these do neither."""
_RECODED = "recoded"


@dataclass(frozen=True)
class Recode:
    """The answers that a device is asked, and for each of them the value that its mechanism randomizes.

    With `items` each of these has such an answer, and there is a value for each sum of the places of all answers: an index.
    """

    answers: tuple[str, ...]
    values: tuple[float, ...]
    items: tuple[str, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the answers and their values as a JSON object."""
        values = [each if isinstance(each, int) else repr(each) for each in self.values]
        return {"answers": list(self.answers), "values": values} | ({"items": list(self.items)} if self.items else {})

    @classmethod
    def from_json(cls, data: Any) -> Recode | None:
        """Return what `to_json` wrote; None for None. Raises KeyError or TypeError for anything else."""
        if data is None:
            return None
        values = (float(each) if isinstance(each, str) else int(each) for each in data["values"])
        items = data.get("items")
        return cls(tuple(data["answers"]), tuple(values), None if items is None else tuple(items))

    def program(self, mechanism: Mechanism) -> Program:
        """Return the client program of a mechanism whose first step recodes the number of an answer."""
        from ldp_budget.sdk.interpreter import read

        own = mechanism.client_program()
        first, count = self._first()
        steps = [*first, *((name, _renamed(step)) for name, step in own.steps)]
        given = {"kind": "answer", "count": count, "text": False}
        table = [read(own, value) for value in self.values]
        return replace(own, input=given, steps=tuple(steps), tables={**own.tables, "recode": table})

    def _first(self) -> tuple[list[tuple[str, Any]], int]:
        """Return the steps that recode the number of an answer, and how many numbers there are."""
        if self.items is None:
            return [(_RECODED, ["at", "recode", "value"])], len(self.answers)
        size, count = len(self.answers), len(self.items)
        steps: list[tuple[str, Any]] = []
        total: Any = "item0"
        for place in range(count):
            steps.append((f"item{place}", ["mod", ["div", "value", size**place], size]))
            total = total if not place else ["add", total, f"item{place}"]
        return [*steps, ("index", total), (_RECODED, ["at", "recode", "index"])], size**count


def index_values(lower: int, upper: int, items: int) -> tuple[float, ...]:
    """Return the mean of the answers to so many items for each sum of their places."""
    return tuple(lower + total / items for total in range((upper - lower) * items + 1))


def _renamed(expression: Any) -> Any:
    """Return an expression that reads the recoded answer where it read the answer."""
    from ldp_budget.sdk.client_program import OPERATORS  # a charge needs no program

    if isinstance(expression, list):
        label = 1 + OPERATORS[expression[0]].labelled
        return [*expression[:label], *map(_renamed, expression[label:])]
    return _RECODED if expression == "value" else expression


def answers_of(lower: int, upper: int) -> tuple[str, ...]:
    """Return the answers of a scale, in order."""
    return tuple(map(str, range(lower, upper + 1)))


def recoded(report: str, lower: int, upper: int, top: int, missing: tuple[str, ...] = ()) -> Recode | None:
    """Return how the answers of a scale are recoded; None if the report is of the answers themselves.

    Parameters:
        report: one of `REPORTS`.
        lower: the least answer.
        upper: the greatest answer.
        top: the number of answers of the top box.
        missing: the answer of those who give none, if the question is optional.
    """
    scale = range(lower, upper + 1)
    if report == MEAN:
        values = list(scale)
    elif report == TOP_BOX:
        values = [int(each <= upper - top) for each in scale]
    elif report == NPS:
        values = [(each > upper - PROMOTERS) - (each <= upper - PROMOTERS - PASSIVES) for each in scale]
    else:
        return None
    return Recode((*answers_of(lower, upper), *missing), (*values, *(2 for _ in missing)))


def in_report(row: dict[str, Any], report: str) -> dict[str, Any]:
    """Return the row of a scale in `estimate --json`: `top_box` or `nps` with its error and its interval.

    Parameters:
        row: the row of the recoded answers, or of a group of respondents, or a difference of two groups.
        report: one of `REPORTS`.
    """
    if report == NPS and "mean" in row:
        row = {"nps" if name == "mean" else name: value for name, value in row.items()}
    if report == TOP_BOX and "answers" in row:
        box, *others = row["answers"]
        parts = {part: box[f"share_{part}"] for part in ("std_error", "low", "high")}
        row = {name: value for name, value in row.items() if name != "answers"} | {"top_box": box["share"]} | parts
        if len(others) > 1:
            row["no_answer"] = others[-1]["share"]
    if report in (NPS, TOP_BOX):
        for name in ("groups", "differences"):
            if name in row:
                kept = [each for each in row[name] if each.get("answer", IN_BOX) == IN_BOX]
                row[name] = [in_report({k: v for k, v in each.items() if k != "answer"}, report) for each in kept]
    return row
