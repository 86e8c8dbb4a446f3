"""The design of a survey on its page: how the results are weighted, groups and their differences, a two-way table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ldp_budget.reports.estimation import mean_margin

from .summary_blocks import Block, Facts, Grid, Heading, Marked, Note, Section
from .summary_charts import Scale, means, shares
from .summary_precision import open_answers, with_margins
from .translations import margin_places

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .survey_summary import Question, Summary, Weighting
    from .translations import Texts

    Row = Mapping[str, Any]

_MOST_COLUMNS = 5
"""The most answers, or pairs of groups, side by side; a two-way table with more lists its cells."""
_STANDS_OUT = 0.05
_REASONS = {"the answers do not vary, so their independence cannot be tested": "table.constant"}


# -- how the results are weighted ----------------------------------------------------------------------------


def population(say: Texts, weighting: Weighting) -> str:
    """Return whom the weighted estimates describe."""
    people = weighting.population if weighting.people is None else weighting.people
    return say("population.drawn") if people is None else say("population.of", people=say.whole(people))


def how_weighted(say: Texts, summary: Summary, weighting: Weighting) -> Section:
    """Return the section that explains the weights, with the design effect of each question and its open answers."""
    asked = [(each, each.row) for each in summary.subject.questions if each.row is not None]
    rows = [
        (each.text, say.whole(row["respondents"]), say.decimals(row["design_effect"], 2), _open(say, row))
        for each, row in asked
    ]
    facts = [
        (say(f"design.{name}"), said)
        for name, said in (
            ("weights", _source(say, weighting)),
            ("totals", ", ".join(weighting.totals)),
            ("strata", ", ".join(weighting.strata)),
            ("clusters", weighting.clusters or ""),
            ("kish", say("design.kish_figure", effect=say.decimals(weighting.kish, 2))),
        )
        if said
    ]
    header = ("column.question", "column.answers", "column.design_effect", "column.open_answers")
    return Section(
        "design",
        say("design.title"),
        (
            Note(" ".join(_sentences(say, weighting))),
            Facts(tuple(facts)),
            Note(say("design.meaning")),
            Grid(tuple(map(say, header)), tuple(rows), answers=True),
            Note(say("design.forged")),
        ),
    )


def _open(say: Texts, row: Row) -> str:
    number = open_answers(row, weighted=True)
    return say("open.unknown") if number is None else say.whole(number)


def _source(say: Texts, weighting: Weighting) -> str:
    """Return where the weights are from."""
    if not weighting.weights:
        return ""
    if isinstance(weighting.weights, str):
        return say("weights.column", name=weighting.weights)
    return say("weights.table", names=", ".join(weighting.weights))


def _sentences(say: Texts, weighting: Weighting) -> Iterator[str]:
    """Yield the sentences that say how the answers are weighted, and how the respondents were drawn."""
    source = _source(say, weighting)
    if source:
        yield say("weights.each", source=source)
    if weighting.totals:
        yield say("weights.raked", totals=", ".join(weighting.totals))
    if not source and not weighting.totals:
        yield say("weights.equal")
    if weighting.strata:
        yield say("weights.strata", strata=", ".join(weighting.strata))
    if weighting.clusters:
        yield say("weights.clusters", clusters=weighting.clusters)
    if weighting.population is not None:
        yield say("weights.population", people=say.whole(weighting.population))
    yield say("weights.describe", population=population(say, weighting))


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


def group_blocks(say: Texts, question: Question, row: Row, by: str | None, scale: Scale) -> Iterator[Block]:
    """Yield the estimates of each group, and the differences between the groups; nothing without groups."""
    groups = row.get("groups", ())
    if not groups:
        return
    if "answers" in row:
        for group in groups:
            name = f"{by}: {group['group']}"
            yield Heading(f"{name} ({say.count('answers', group['respondents'])})")
            inside, _ = within_bounds(with_margins(group["answers"], group["respondents"]))
            yield shares(say, question, f"{question.text} {name}", inside, scale)
    else:
        yield Heading(say("groups.mean", by=by))
        named = ((f"{each['group']}, {say.count('answers', each['respondents'])}", each) for each in groups)
        yield means(say, question, named, scale)
    if row["differences"]:
        yield from _differences(say, question, row["differences"])


def _differences(say: Texts, question: Question, rows: Sequence[Row]) -> Iterator[Block]:
    """Yield the differences as tables with a row for each answer and a column for each two groups."""
    named = "answer" in rows[0]
    unit = say("differences.points") if named else question.unit
    yield Heading(say("differences.title") + (f" ({unit})" if unit else ""))
    yield Note(f"{say('differences.meaning')} {say.count('differences.tests', len(rows))}")
    out = standing_out([each["p_value"] for each in rows])
    cells: dict[str, dict[str, str]] = {}
    for each, stands in zip(rows, out, strict=True):
        pair = f"{each['group']} − {each['other']}"
        answer = question.shown(each["answer"]) if named else say("mean")
        cells.setdefault(pair, {})[answer] = _signed(say, each, share=named, stands=stands)
    pairs = list(cells)
    for start in range(0, len(pairs), _MOST_COLUMNS):
        side = pairs[start : start + _MOST_COLUMNS]
        yield Grid(
            (say("column.answer" if named else "column.figure"), *side),
            tuple((answer, *(cells[pair][answer] for pair in side)) for answer in cells[side[0]]),
            answers=True,
        )


def _signed(say: Texts, row: Row, *, share: bool, stands: bool) -> str:
    """Return a difference with its sign and its margin; marked if it stands out."""
    scale, error = 100.0 if share else 1.0, mean_margin(row, "difference")
    places = 1 if share else margin_places(error)
    value = say.decimals(scale * abs(row["difference"]), places)
    sign = "" if not any(digit in value for digit in "123456789") else "+" if row["difference"] > 0 else "−"
    text = f"{sign}{value} ± {say.decimals(scale * error, places)}"
    return Marked(f"{text} *") if stands else text


def standing_out(p_values: Sequence[float]) -> list[bool]:
    """Return which of several tests stand out at the 5 % level, all together: Holm's correction.

    References:
        S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6 (1979).
    """
    found, count = [False] * len(p_values), len(p_values)
    for done, place in enumerate(sorted(range(count), key=lambda each: p_values[each])):
        if p_values[place] > _STANDS_OUT / (count - done):
            break
        found[place] = True
    return found


# -- two-way table -------------------------------------------------------------------------------------------


def two_way_section(say: Texts, summary: Summary, weighting: Weighting) -> Iterator[Section]:
    """Yield the section of the two-way table, if one was asked for."""
    table = weighting.table
    if table is None:
        return
    questions = {each.collection.name: each for each in summary.subject.questions}
    people = say.count("people", table["respondents"])
    about = say(
        "table.about",
        people=people,
        population=population(say, weighting),
        effect=say.decimals(table["design_effect"], 2),
        open=_open(say, table),
    )
    yield Section(
        "table",
        say("table.title"),
        (
            Note(about),
            *_cells(say, table, questions),
            Note(say("table.independence", result=_independence(say, table))),
        ),
    )


def _independence(say: Texts, table: Row) -> str:
    """Return the result of the test of independence in words."""
    if table["p_value"] is None:
        reason = table["untested"].rstrip(".")
        return say("table.untested", reason=say(_REASONS[reason]) if reason in _REASONS else reason)
    freedom, p_value = table["freedom"], say.p_value(table["p_value"])
    sentences = [
        say(
            "table.test",
            p=p_value if p_value.startswith("<") else f"= {p_value}",
            statistic=say.decimals(table["statistic"], 2),
            first=say.decimals(freedom[0], 1),
            second=say.decimals(freedom[1], 0),
        ),
        say("table.related" if table["p_value"] < 0.05 else "table.unrelated"),
    ]
    if table["is_rough"]:
        sentences.append(say("table.rough", expected=say.decimals(table["least_expected"], 1)))
    return " ".join(sentences)


def _cells(say: Texts, table: Row, questions: Mapping[str, Question]) -> Iterator[Block]:
    """Yield the cells and the margins: side by side where the answers to a question fit, else as a list."""
    one, two = (questions[name] for name in table["table"])
    first, second = table["table"]
    margins = {(each["question"], each["answer"]): _cell(say, each) for each in table["margins"]}
    rows, columns = ([answer for name, answer in margins if name == which] for which in (first, second))
    cells = {(each[first], each[second]): _cell(say, each) for each in table["cells"]}
    if len(columns) > _MOST_COLUMNS >= len(rows):
        one, two, first, second, rows, columns = two, one, second, first, columns, rows
        cells = {(column, row): said for (row, column), said in cells.items()}
    every = say("table.all")
    if len(columns) > _MOST_COLUMNS:
        yield Grid(
            (one.text, two.text, say("table.cell")),
            (
                *((one.shown(row), two.shown(column), said) for (row, column), said in cells.items()),
                *((one.shown(row), every, margins[first, row]) for row in rows),
                *((every, two.shown(column), margins[second, column]) for column in columns),
            ),
            answers=True,
        )
        return
    yield Facts(((say("table.rows"), one.text), (say("table.columns"), two.text)))
    yield Grid(
        (say("column.answer"), *map(two.shown, columns), every),
        (
            *((one.shown(row), *(cells[row, column] for column in columns), margins[first, row]) for row in rows),
            (every, *(margins[second, column] for column in columns), say.percent(1.0)),
        ),
        answers=True,
    )


def _cell(say: Texts, row: Row) -> str:
    low, high = say.points(row["low"]), say.points(row["high"])
    return f"{say.percent(_inside(row['share']))} ({say('interval', low=low, high=high)})"
