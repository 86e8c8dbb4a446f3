"""Charts of the page of a survey: estimated shares, means and distributions as bars."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .summary_blocks import Bar, Block, Chart, Note, number, percent, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .survey_summary import Question

_ENDS = (0.05, 0.1, 0.2, 0.25, 0.5, 0.75, 1.0)
_INTERVAL = "95 % confidence interval"


def shares(label: str, answers: Sequence[Mapping[str, Any]], *, longest: float = 0.0) -> Chart:
    """Return the shares of answers as bars; the axis reaches at least to the `longest` share."""
    bars = tuple(
        Bar(
            each["answer"],
            min(1.0, max(0.0, each["share"])),
            max(0.0, each["share_low"]),
            min(1.0, each["share_high"]),
            percent(each["share"]),
            f"{percent(max(0.0, each['share_low']))} to {percent(min(1.0, each['share_high']))}",
            whole(each["count"]),
        )
        for each in answers
    )
    return _axis(label, ("Answer", "Share", _INTERVAL, "People"), bars, longest)


def _axis(label: str, columns: tuple[str, ...], bars: tuple[Bar, ...], longest: float = 0.0) -> Chart:
    """Return bars of shares with an axis from 0 to a round end."""
    longest = max((longest, *(bar.value if bar.high is None else bar.high for bar in bars))) if bars else 1.0
    most = next((end for end in _ENDS if end >= longest), 1.0)
    marks = tuple((part * most / 2, f"{100 * part * most / 2:g} %") for part in range(3))
    return Chart(label, columns, bars, 0.0, most, marks)


def mean_blocks(question: Question, row: Mapping[str, Any]) -> Iterator[Block]:
    """Yield the mean of a question with numbers, and the distribution if it was estimated."""
    yield means(question, [("Mean", row)])
    if row.get("max_bias"):
        yield Note(f"The method may shift the mean by up to {number(row['max_bias'])}; the interval excludes that.")
    if "bins" in row:
        bars = tuple(
            Bar(
                f"{number(each['low'])} to {number(each['high'])}",
                each["share"],
                None,
                None,
                percent(each["share"]),
                "",
            )
            for each in row["bins"]
        )
        yield _axis(f"{question.text}: distribution", ("From, to" + in_unit(question), "Share"), bars)


def means(question: Question, rows: Iterable[tuple[str, Mapping[str, Any]]]) -> Chart:
    """Return means, each with its name, as dots on the range of the answers."""
    listed = list(rows)
    lows, highs = [row["low"] for _, row in listed], [row["high"] for _, row in listed]
    least, most = (*getattr(question.collection.mechanism.domain, "ends", ()), min(lows), max(highs))[:2]
    bars = tuple(
        Bar(
            name + in_unit(question),
            row["mean"],
            min(max(row["low"], least), most),
            max(min(row["high"], most), least),
            number(row["mean"]),
            f"{number(row['low'])} to {number(row['high'])}",
        )
        for name, row in listed
    )
    marks = tuple((least + part * (most - least) / 2, number(least + part * (most - least) / 2)) for part in range(3))
    return Chart(question.text, ("Figure", "Estimate", _INTERVAL), bars, least, most, marks)


def in_unit(question: Question) -> str:
    """Return the unit of the answers in brackets, after a space; empty without a unit."""
    return f" ({question.unit})" if question.unit else ""


def margin_of_fakes(row: Mapping[str, Any]) -> Iterator[Note]:
    """Yield how far forged reports can move a count: no proof of identity is in a report."""
    margins = [each["fake_margin"] for each in row["answers"] if "fake_margin" in each]
    if not margins:
        return
    most = max(max(abs(margin["most"]), abs(margin["least"])) for margin in margins)
    forged = max(1, math.ceil(row["reports"] / 100))
    points = percent(forged * most / row["reports"], "up").removesuffix(" %")
    yield Note(
        f"Margin against fake reports: one forged report moves an estimated number by at most "
        f"{math.ceil(10 * most - 1e-9) / 10:.1f} people. If 1 % of the reports ({whole(forged)}) were forged, a share "
        f"could be wrong by up to {points} percentage points. The intervals do not include this."
    )
