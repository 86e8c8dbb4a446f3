"""Charts of the page of a survey: estimated shares, means and distributions as bars, each with its margin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ldp_budget.reports.estimation import margin_of_interval, mean_margin

from .summary_blocks import Bar, Block, Chart, Note

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .survey_summary import Question
    from .translations import Texts

    Row = Mapping[str, Any]

_ENDS = ((5, 1), (10, 2), (20, 5), (30, 10), (40, 10), (50, 10), (60, 20), (80, 20), (100, 20))
"""The ends of an axis of shares in percent, each with the step between its marks."""
_MOST_MARKS = 6


@dataclass(frozen=True)
class Scale:
    """An axis from `least` to `most` with the places of its marks."""

    least: float
    most: float
    marks: tuple[float, ...]

    @classmethod
    def of_shares(cls, rows: Iterable[Row]) -> Scale:
        """Return the axis of all answers of a question, its groups included: from 0 to a round end."""
        longest = max((max(each["share"], each.get("share_high", 0.0)) for each in rows), default=1.0)
        most, step = next((each for each in _ENDS if each[0] >= 100 * longest - 1e-9), _ENDS[-1])
        return cls(0.0, most / 100, tuple(at / 100 for at in range(0, most + 1, step)))

    @classmethod
    def of_numbers(cls, least: float, most: float) -> Scale:
        """Return an axis of numbers, with marks at round numbers."""
        width = most - least
        if not width:
            return cls(least, most, (least,))
        power = 10.0 ** math.floor(math.log10(width / _MOST_MARKS))
        step = next(each for each in (power, 2 * power, 5 * power, 10 * power) if width / each <= _MOST_MARKS)
        first, last = math.ceil(least / step - 1e-9), math.floor(most / step + 1e-9)
        return cls(least, most, tuple(at * step for at in range(first, last + 1)))


def shares(say: Texts, question: Question, label: str, answers: Sequence[Row], scale: Scale) -> Chart:
    """Return the shares of answers as bars."""
    bars = tuple(
        Bar(
            question.shown(each["answer"]),
            min(1.0, max(0.0, each["share"])),
            max(0.0, each["share_low"]),
            min(1.0, each["share_high"]),
            (
                say.percent(each["share"]),
                f"± {say.points(each['margin'])}",
                say(
                    "interval",
                    low=say.percent(max(0.0, each["share_low"])),
                    high=say.percent(min(1.0, each["share_high"])),
                ),
                say.whole(each["count"]),
            ),
        )
        for each in answers
    )
    names = tuple(
        map(say, ("column.answer", "column.share", "column.margin_points", "column.interval", "column.people"))
    )
    return _chart(say, label, names, bars, scale, percent=True)


def pairs(say: Texts, question: Question, rows: Sequence[Row]) -> Chart:
    """Return the shares of people who ticked two options together as bars."""
    bars = tuple(
        Bar(
            say("and", first=first, last=last),
            min(1.0, max(0.0, each["share"])),
            each["low"],
            each["high"],
            (
                say.percent(each["share"]),
                f"± {say.points(margin_of_interval(each['share'], each['low'], each['high']))}",
                say("interval", low=say.percent(each["low"]), high=say.percent(each["high"])),
            ),
        )
        for each in rows
        for first, last in [[question.shown(answer) for answer in each["answers"]]]
    )
    names = tuple(map(say, ("column.answers", "column.share", "column.margin_points", "column.interval")))
    scale = Scale.of_shares([{"share": each["high"]} for each in rows])
    return _chart(say, say("results.pairs", question=question.text), names, bars, scale, percent=True)


def _chart(
    say: Texts, label: str, columns: tuple[str, ...], bars: tuple[Bar, ...], scale: Scale, *, percent: bool
) -> Chart:
    marks = tuple((at, f"{round(100 * at)} %" if percent else say.number(at)) for at in scale.marks)
    return Chart(label, columns, bars, scale.least, scale.most, marks)


def mean_blocks(say: Texts, question: Question, row: Row, scale: Scale) -> Iterator[Block]:
    """Yield the mean of a question with numbers, and the distribution if it was estimated."""
    figures = quantile_rows(say, row) or [(say("mean"), row)]
    yield means(say, question, [(name + in_unit(question), each) for name, each in figures], scale)
    if "cap" in row:
        yield Note(say("mean.cap", cap=say.number(row["cap"])))
    if row.get("max_bias"):
        yield Note(say("mean.bias", bias=say.number(row["max_bias"])))
    if "bins" in row:
        bars = tuple(
            Bar(
                say("interval", low=say.number(each["low"]), high=say.number(each["high"])),
                each["share"],
                None,
                None,
                (say.percent(each["share"]),),
            )
            for each in row["bins"]
        )
        names = (say("column.bins") + in_unit(question), say("column.share"))
        label = say("mean.distribution", question=question.text)
        yield _chart(say, label, names, bars, Scale.of_shares(row["bins"]), percent=True)


def quantile_rows(say: Texts, row: Row) -> list[tuple[str, Row]]:
    """Return the quantiles of a question that asks for them, as rows of means with their names; empty for others."""
    found = row.get("quantiles", {})
    return [
        (say("quantile", share=f"{say.number(100 * float(at))} %"), {**each, "mean": each["estimate"]})
        for at, each in found.items()
        if isinstance(each, dict)
    ]


def number_scale(question: Question, rows: Sequence[Row]) -> Scale:
    """Return the axis of the means of a question and its groups: the range of the answers."""
    lows, highs = [row["low"] for row in rows], [row["high"] for row in rows]
    ends = (*getattr(question.collection.mechanism.domain, "ends", ()), min(lows), max(highs))
    return Scale.of_numbers(*ends[:2])


def means(say: Texts, question: Question, rows: Iterable[tuple[str, Row]], scale: Scale) -> Chart:
    """Return means, each with its name, as dots on the range of the answers."""
    bars = tuple(
        Bar(
            name,
            row["mean"],
            min(max(row["low"], scale.least), scale.most),
            max(min(row["high"], scale.most), scale.least),
            (
                say.number(row["mean"]),
                f"± {say.margin(mean_margin(row))}",
                say("interval", low=say.number(row["low"]), high=say.number(row["high"])),
            ),
        )
        for name, row in rows
    )
    names = tuple(map(say, ("column.figure", "column.estimate", "column.margin", "column.interval")))
    return _chart(say, question.text, names, bars, scale, percent=False)


def in_unit(question: Question) -> str:
    """Return the unit of the answers in brackets, after a space; empty without a unit."""
    return f" ({question.unit})" if question.unit else ""


def margin_of_fakes(say: Texts, row: Row) -> Iterator[Note]:
    """Yield how far forged reports can move a count: no proof of identity is in a report."""
    margins = [each["fake_margin"] for each in row["answers"] if "fake_margin" in each]
    if not margins:
        return
    most = max(max(abs(each["most"]), abs(each["least"])) for each in margins)
    forged = max(1, math.ceil(row["reports"] / 100))
    yield Note(
        say(
            "fakes",
            most=say.decimals(math.ceil(10 * most - 1e-9) / 10, 1),
            forged=say.whole(forged),
            points=say.percent(forged * most / row["reports"], "up").removesuffix(" %"),
        )
    )
