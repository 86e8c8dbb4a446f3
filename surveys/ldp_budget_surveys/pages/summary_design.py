"""The design of a survey on its page: how the results are weighted, groups and their differences, a two-way table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .summary_blocks import Block, Facts, Grid, Heading, Note, Section, number, p_value, percent, plural, whole
from .summary_charts import in_unit, means, shares

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .survey_summary import Question, Summary, Weighting

    Row = Mapping[str, Any]

_MOST_COLUMNS = 5
"""The most answers side by side in a two-way table; a table with more lists its cells."""
_NOT_CORRECTED = (
    "p-values here, not corrected for their number: of twenty, expect one below 0.05 without any difference."
)


# -- how the results are weighted ----------------------------------------------------------------------------


def population(weighting: Weighting) -> str:
    """Return whom the weighted estimates describe."""
    if weighting.people is None and weighting.population is not None:
        return f"the population of {whole(weighting.population)} people"
    if weighting.people is None:
        return "the population from which the respondents were drawn"
    return f"the population of {whole(weighting.people)} people"


def how_weighted(summary: Summary, weighting: Weighting) -> Section:
    """Return the section that explains the weights, with the design effect and the effective sample size."""
    asked = [(each, each.row) for each in summary.subject.questions if each.row is not None]
    rows = [
        (each.text, whole(row["respondents"]), f"{row['design_effect']:.2f}", _effective(row)) for each, row in asked
    ]
    facts = [
        (name, said)
        for name, said in (
            ("Weights", _source(weighting)),
            ("Known totals", ", ".join(weighting.totals)),
            ("Strata", ", ".join(weighting.strata)),
            ("Clusters", weighting.clusters or ""),
            ("Design effect of unequal weights alone", f"{weighting.kish:.2f} (Kish)"),
        )
        if said
    ]
    return Section(
        "design",
        "How the results are weighted",
        (
            Note(" ".join(_sentences(weighting))),
            Facts(tuple(facts)),
            Note(
                "The design effect is the variance of a result over its variance in a simple random sample with as many "
                "answers. The effective sample size is the size of the simple random sample that is as precise."
            ),
            Grid(("Question", "Answers", "Design effect", "Effective sample size"), tuple(rows), answers=True),
            Note(
                "A forged report counts with its weight. A page without weights shows the margin against fake reports."
            ),
        ),
    )


def _effective(row: Row) -> str:
    """Return the answers over the design effect, rounded down."""
    effect = row["design_effect"]
    return whole(math.floor(row["respondents"] / effect)) if effect > 0 else "not defined"


def _source(weighting: Weighting) -> str:
    """Return where the weights are from."""
    if not weighting.weights:
        return ""
    if isinstance(weighting.weights, str):
        return f"the public column {weighting.weights}"
    return f"a table by {', '.join(weighting.weights)}"


def _sentences(weighting: Weighting) -> Iterator[str]:
    """Yield the sentences that say how the answers are weighted, and how the respondents were drawn."""
    source = _source(weighting)
    if source:
        yield f"Each answer counts with the weight of its respondent, from {source}."
    if weighting.totals:
        yield (
            f"The weights are adjusted (raked) until the respondents agree with the known totals of the population: "
            f"{', '.join(weighting.totals)}."
        )
    if not source and not weighting.totals:
        yield "All answers have the same weight."
    if weighting.strata:
        yield f"The sample was drawn separately in each stratum: {', '.join(weighting.strata)}."
    if weighting.clusters:
        yield f"The sample was drawn in whole clusters: {weighting.clusters}."
    if weighting.population is not None:
        yield (
            f"The sample was drawn from {whole(weighting.population)} people: so the part of the variance that is from sampling "
            "is smaller (finite population correction), and the part that is from the noise is not."
        )
    yield (
        f"The results describe {population(weighting)}. The intervals include the chance of the sample and the noise that "
        "protects the answers."
    )


# -- results -------------------------------------------------------------------------------------------------


def within_bounds(answers: Sequence[Row]) -> tuple[list[Row], bool]:
    """Return the rows of answers with shares within 0 and 1, and True if one was outside."""
    inside: list[Row] = []
    for each in answers:
        share = _inside(each["share"])
        count = each["count"] * (share / each["share"] if share else 0.0)
        inside.append({**each, "share": share, "count": count})
    return inside, any(old["share"] != new["share"] for old, new in zip(answers, inside, strict=True))


def _inside(share: float) -> float:
    """Return a share within 0 and 1, as its interval is."""
    return min(1.0, max(0.0, share))


OUTSIDE = Note(
    "The noise can move an estimate below 0 or above 100 %. It is shown as 0 or 100 %; the interval is not changed."
)


def group_blocks(question: Question, row: Row, by: str | None) -> Iterator[Block]:
    """Yield the estimates of each group, and the differences between the groups; nothing without groups."""
    groups = row.get("groups", ())
    if not groups:
        return
    if "answers" in row:
        rows = [within_bounds(group["answers"])[0] for group in groups]
        longest = max(each["share_high"] for inside in rows for each in inside)
        for group, inside in zip(groups, rows, strict=True):
            name = f"{by}: {group['group']}"
            yield Heading(f"{name} ({plural(group['respondents'], 'answer')})")
            yield shares(f"{question.text} {name}", inside, longest=longest)
    else:
        yield Heading(f"Mean by {by}")
        named = ((f"{each['group']}, {plural(each['respondents'], 'answer')}", each) for each in groups)
        yield means(question, named)
    if row["differences"]:
        yield from _differences(question, row["differences"])


def _differences(question: Question, rows: Sequence[Row]) -> Iterator[Block]:
    named = "answer" in rows[0]
    unit = " (percentage points)" if named else in_unit(question)
    tests = f"{whole(len(rows))} {_NOT_CORRECTED}" if len(rows) > 1 else "There is 1 such test for this question."
    yield Heading("Differences between groups")
    yield Note(
        "Each difference is that of the first group less the second. The p-value is the probability of a difference as "
        f"large or larger by chance, if the population has none (Student's t-test). {tests}"
    )

    def shown(value: float) -> str:
        return percent(value).removesuffix(" %") if named else number(value)

    yield Grid(
        (
            "Groups",
            *(("Answer",) if named else ()),
            f"Difference{unit}",
            "95 % confidence interval",
            "p-value",
        ),
        tuple(
            (
                f"Difference between {each['group']} and {each['other']}",
                *((each["answer"],) if named else ()),
                shown(each["difference"]),
                f"{shown(each['low'])} to {shown(each['high'])}",
                p_value(each["p_value"]),
            )
            for each in rows
        ),
        answers=True,
    )


# -- two-way table -------------------------------------------------------------------------------------------


def two_way_section(summary: Summary, weighting: Weighting) -> Iterator[Section]:
    """Yield the section of the two-way table, if one was asked for."""
    table = weighting.table
    if table is None:
        return
    texts = {each.collection.name: each.text for each in summary.subject.questions}
    yield Section(
        "table",
        "Two-way table",
        (
            Note(
                f"{plural(table['respondents'], 'person', 'people')} answered both. Each cell is the share of people who give "
                f"both answers, estimated for {population(weighting)}; its 95 % confidence interval is in brackets. Where others "
                "answered one of the questions alone, the shares of all answers differ a little from the results above. The "
                f"design effect of the table is {table['design_effect']:.2f}, the effective sample size {_effective(table)}."
            ),
            *_cells(table, texts),
            Note(f"Test of independence: {_independence(table)}"),
        ),
    )


def _independence(table: Row) -> str:
    """Return the result of the test of independence in words."""
    if table["p_value"] is None:
        return f"not made, because {table['untested'].rstrip('.')}."
    freedom = table["freedom"]
    related = (
        "A p-value below 0.05 speaks for a relation; it does not say which answer causes the other."
        if table["p_value"] < 0.05
        else "A p-value of 0.05 or more shows no relation. It does not prove that there is none."
    )
    if table["is_rough"]:
        related += (
            f" A cell would hold only {table['least_expected']:.1f} people if the answers were independent, so p is a rough "
            "guide. Joining rare answers makes it a good one."
        )
    return (
        "if the answers to the two questions were independent, a table that differs from independence as much as this one, "
        f"or more, would have the probability p {_equals(table['p_value'])} (F = {table['statistic']:.2f} with "
        f"{freedom[0]:.1f} and {freedom[1]:.0f} degrees of freedom, corrected for the design after Rao and Scott). {related}"
    )


def _equals(value: float) -> str:
    text = p_value(value)
    return text if text.startswith("<") else f"= {text}"


def _cells(table: Row, texts: Mapping[str, str]) -> Iterator[Block]:
    """Yield the cells and the margins: side by side where the answers to a question fit, else as a list."""
    one, two = table["table"]
    margins = {(each["question"], each["answer"]): _cell(each) for each in table["margins"]}
    rows, columns = ([answer for name, answer in margins if name == which] for which in (one, two))
    cells = {(each[one], each[two]): _cell(each) for each in table["cells"]}
    if len(columns) > _MOST_COLUMNS >= len(rows):
        one, two, rows, columns = two, one, columns, rows
        cells = {(column, row): said for (row, column), said in cells.items()}
    if len(columns) > _MOST_COLUMNS:
        yield Grid(
            (texts[one], texts[two], "Share and 95 % confidence interval"),
            (
                *((row, column, said) for (row, column), said in cells.items()),
                *((row, "All answers", margins[one, row]) for row in rows),
                *(("All answers", column, margins[two, column]) for column in columns),
            ),
            answers=True,
        )
        return
    yield Facts((("Rows", texts[one]), ("Columns", texts[two])))
    yield Grid(
        ("Answer", *columns, "All answers"),
        (
            *((row, *(cells[row, column] for column in columns), margins[one, row]) for row in rows),
            ("All answers", *(margins[two, column] for column in columns), "100.0 %"),
        ),
        answers=True,
    )


def _cell(row: Row) -> str:
    share, low, high = map(percent, (_inside(row["share"]), row["low"], row["high"]))
    return f"{share} ({low.removesuffix(' %')} to {high.removesuffix(' %')})"
