"""Tables of the estimates of a designed survey, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ldp_budget.reports.estimation import mean_margin, share_margin
from ldp_budget_cli.output import counted, rounded
from ldp_budget_cli.tables import KEPT, print_row_table, print_table

from .count_tables import margin_header, mean_cells, note_cap, note_outside, points, print_pairs, three_digits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Row = dict[str, Any]

_NUMBERS = ("mean", "std_error", "low", "high")


def _questions(row: Row) -> list[tuple[str | None, Row]]:
    """Return the questions of a result with their names; the only question of a collection has None."""
    if "answers" in row or "mean" in row:
        return [(None, row)]
    return [(name, each) for name, each in row.items() if isinstance(each, dict) and "design_effect" in each]


def flat_rows(row: Row) -> Iterator[Row]:
    """Yield one row for each estimate: of answers, groups, differences, or the cells and margins of a table."""
    if "cells" in row:
        yield from row["cells"]
        for margin in row["margins"]:
            yield {margin["question"]: margin["answer"]} | {
                name: value for name, value in margin.items() if name not in ("question", "answer")
            }
        return
    for name, question in _questions(row):
        shared = {} if name is None else {"question": name}
        yield from (shared | each for each in _estimates(question))
        for group in question.get("groups", ()):
            yield from (shared | {"group": group["group"]} | each for each in _estimates(group))
        for gap in question.get("differences", ()):
            yield shared | gap


def _estimates(row: Row) -> list[Row]:
    if "answers" in row:
        return list(row["answers"])
    return [{name: row[name] for name in ("top_box", "nps", *_NUMBERS) if name in row}]


def print_design(row: Row, level: float, units: Mapping[str, str]) -> None:
    """Print the estimates of a survey: each question with its groups and differences, or a two-way table.

    `units` holds the unit of each question with numbers that has one.
    """
    weighted = "" if row["weighted"] is None else f", weighted to {rounded(row['weighted'], 0)}"
    of = f" of {counted(row['population'], 'person', 'people')}" if "population" in row else ""
    click.echo(
        f"{counted(row['respondents'], 'respondent')}{of}{weighted}; {100 * level:.12g} % confidence intervals for the "
        "population: sampling and noise"
    )
    if "cells" in row:
        _print_table(row, level)
        return
    for name, question in _questions(row):
        if name is not None:
            unit = f" ({units[name]})" if name in units else ""
            click.echo(f"\n{name}{unit}: {counted(question['respondents'], 'respondent')}")
        click.echo(
            f"Design effect {rounded(question['design_effect'], 2)} (of unequal weights alone: "
            f"{rounded(row['kish_design_effect'], 2)})"
        )
        _print_estimates(question, level)
        for group in question.get("groups", ()):
            click.echo(f"\n{group['group']}: {counted(group['respondents'], 'respondent')}")
            _print_estimates(group, level)
        if question.get("differences"):
            click.echo("\nDifferences; p-values are not adjusted for their number")
            _print_differences(question["differences"], level)


def _percent(value: float) -> str:
    return f"{rounded(100 * value, 1)} %"


def _p(value: float) -> str:
    return "< 0.0001" if value < 0.0001 else rounded(value, 4)


def _compared(value: float) -> str:
    text = _p(value)
    return text if text.startswith("<") else f"= {text}"


def _print_estimates(row: Row, level: float) -> None:
    if "answers" in row:
        _print_shares(row["answers"], level)
        if "pairs" in row:
            print_pairs(row["pairs"], level)
        return
    print_row_table([mean_cells({name: row[name] for name in _NUMBERS}, level)])
    note_cap(row)
    note_outside([row], "mean", "low", "high")
    if "quantiles" in row:
        click.echo("")
        print_row_table(quantile_rows(row))


def quantile_rows(row: Row) -> list[Row]:
    """Return the quantiles of an estimate, each with its interval."""
    ends = row.get("quantile_intervals", {})
    return [
        {"quantile": name, "value": value["estimate"], "low": value["low"], "high": value["high"]}
        if isinstance(value, dict)
        else {"quantile": name, "value": value, "low": ends[name][0], "high": ends[name][1]}
        for name, value in row["quantiles"].items()
    ]


def _print_shares(rows: list[Row], level: float) -> None:
    """Print answers with their shares cut to 0 to 100 %, and the unbiased counts if one was cut."""
    is_cut = any(each["share"] != _possible(each["share"]) for each in rows)
    cells = [
        (
            each["answer"],
            rounded(each["count"] * _possible(each["share"]) / each["share"] if each["share"] else each["count"], 0),
            _percent(_possible(each["share"])),
            points(share_margin(each, 1)),
            *(_percent(_possible(each[part])) for part in ("share_low", "share_high")),
            *((rounded(each["count"], 0),) if is_cut else ()),
        )
        for each in rows
    ]
    header = ("answer", "count", "share", margin_header(level), "low", "high")
    print_table((*header, *(("unbiased",) if is_cut else ())), cells)
    if is_cut:
        click.echo(
            "Shares are cut to 0 to 100 %. The noise moved an unbiased count (last column) beyond what is possible"
        )


def _possible(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def _print_differences(rows: list[Row], level: float) -> None:
    shares = "answer" in rows[0]

    def figure(value: float) -> Any:
        return f"{rounded(100 * value, 1)} pp" if shares else value

    header = (
        "groups",
        *(("answer",) if shares else ()),
        "difference",
        margin_header(level),
        "low",
        "high",
        "p-value",
    )
    print_table(
        header,
        [
            (
                f"{each['group']} - {each['other']}",
                *((each["answer"],) if shares else ()),
                figure(each["difference"]),
                points(margin) if shares else f"±{KEPT}{three_digits(margin)}",
                *(figure(each[part]) for part in ("low", "high")),
                _p(each["p_value"]),
            )
            for each, margin in ((each, mean_margin(each, "difference")) for each in rows)
        ],
    )


def _print_table(row: Row, level: float) -> None:
    """Print the shares of the cells with their intervals, the margins, and the test of independence."""
    first, second = row["table"]
    click.echo(f"Design effect {rounded(row['design_effect'], 2)}")
    click.echo(f"\n{first} by {second}")
    shown = ("share", margin_header(level), "low", "high")
    print_table((first, second, *shown), [_cells(each, first, second) for each in row["cells"]])
    click.echo("\nEach question alone")
    print_table(
        ("question", "answer", *shown),
        [_cells(each, "question", "answer") for each in row["margins"]],
    )
    if any(each["share"] != _possible(each["share"]) for each in (*row["cells"], *row["margins"])):
        click.echo(
            "Shares are cut to 0 to 100 %. The noise moved an unbiased one beyond what is possible; --json has it"
        )
    _print_independence(row)


def _print_independence(row: Row) -> None:
    """Print the test of independence of a two-way table, or why there is none."""
    first, second = row["table"]
    if row["p_value"] is None:
        click.echo(f"\nIndependence of {first} and {second}: not tested. {row['untested']}")
        return
    freedom = row["freedom"]
    click.echo(
        f"\nIndependence of {first} and {second}: F = {rounded(row['statistic'], 2)} with {rounded(freedom[0], 1)} and "
        f"{rounded(freedom[1], 0)} degrees of freedom, p {_compared(row['p_value'])}"
    )
    if row["is_rough"]:
        click.echo(
            f"Warning: a cell would hold {rounded(row['least_expected'], 1)} respondents if the answers were independent. "
            "That is too few: p is a rough guide. Join rare answers, or ask more people.",
            err=True,
        )


def _cells(row: Mapping[str, Any], *names: str) -> tuple[str, ...]:
    low, high = (_percent(_possible(row[part])) for part in ("low", "high"))
    margin = points(mean_margin(row, "share"))
    return (*(row[name] for name in names), _percent(_possible(row["share"])), margin, low, high)
