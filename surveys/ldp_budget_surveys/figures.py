"""Figures of an estimate, one row each, whatever the kind of survey: what a spreadsheet or a DataFrame shows of its JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ldp_budget.reports.estimation import mean_margin, share_margin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_KINDS = ("share", "mean", "top_box", "nps", "difference", "estimate")
SHARES = ("share", "top box", "nps", "difference of shares")
"""The figures that are parts of 1."""
COLUMNS = {
    "round": "The report file.",
    "question": "The question; in a two-way table both.",
    "group": "The group of respondents.",
    "other": "The group that is subtracted from it.",
    "answer": "The answer, or two that were given together.",
    "figure": "What is estimated: a share, a mean, a quantile, a difference of two groups.",
    "estimate": "The estimate. Unless it is consistent, it is unbiased, and noise can move a share below 0 % or above 100 %.",
    "margin": "The distance from the unbiased estimate to the farther end of its interval.",
    "low": "The lower end of the confidence interval.",
    "high": "The upper end of the confidence interval.",
    "count": "The estimated number of respondents.",
    "p_value": "The chance of a difference at least as large if there were none. It is not adjusted for the number of rows.",
}
"""The columns of the rows, each with its meaning."""
_OF = ("round", "question", "group", "other", "answer")
_INTERVAL = ("estimate", "low", "high")


def figures(found: Mapping[str, Any], **of: Any) -> Iterator[dict[str, Any]]:
    """Yield a row for each figure in the JSON of an estimate, with some of `COLUMNS`.

    Parameters:
        found: the object that `estimate --json` prints, or a part of it.
        of: what is known of the part: its round, question or group, and the number of `reports`.
    """
    of = of | {name: found[name] for name in _OF if isinstance(found.get(name), str)}
    of |= {"reports": found.get("respondents", found.get("reports", of.get("reports")))}
    if "table" in found:
        of["question"] = " and ".join(found["table"])
    kind = next((name for name in _KINDS if isinstance(found.get(name), float | int)), None)
    if kind is not None:
        yield _figure(found, kind, of)
    for name, each in found.items():
        if isinstance(each, list) and each and isinstance(each[0], dict):
            for part in each:
                yield from figures(_part(name, part, found), **of)
        elif name == "quantiles" and "asked" not in each:
            ends = found.get("quantile_intervals", {})
            for level, value in each.items():
                part = value if isinstance(value, dict) else dict(zip(_INTERVAL, (value, *ends[level]), strict=True))
                yield _figure(part, "estimate", of) | {"figure": f"quantile {level}"}
        elif isinstance(each, dict):
            yield from figures(each, **of | {"question": name})


def form_of(row: Mapping[str, Any], column: str) -> str:
    """Return the number format of a figure in a spreadsheet: two digits of its margin.

    Parameters:
        row: a row of `figures`.
        column: one of its columns.
    """
    if column in ("count", "p_value"):
        return "#,##0" if column == "count" else "0.0000"
    margin = row.get("margin")
    if row["figure"] in SHARES:
        return "0.0%"
    digits = max(0, 1 - math.floor(math.log10(margin))) if margin and math.isfinite(margin) else 3
    return f"#,##0.{'0' * digits}".removesuffix(".")


def _part(name: str, part: dict[str, Any], whole: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of a list with one name of its answer: a pair and a cell have two, a bin has two ends."""
    if name == "bins":
        return {"answer": f"{part['low']:g} to {part['high']:g}", "share": part["share"]}
    if name in ("pairs", "cells"):
        both = part["answers"] if name == "pairs" else [part[each] for each in whole["table"]]
        return {**part, "answer": " and ".join(both)}
    return part


def _figure(row: Mapping[str, Any], kind: str, of: Mapping[str, Any]) -> dict[str, Any]:
    own = f"{kind}_" if f"{kind}_low" in row else ""
    low, high = row.get(f"{own}low"), row.get(f"{own}high")
    margin = None if low is None else share_margin(row, of["reports"]) if own else mean_margin(row, kind)
    return {
        **{name: of[name] for name in _OF if name in of},
        "figure": "difference of shares" if kind == "difference" and "answer" in row else kind.replace("_", " "),
        **dict(zip(_INTERVAL, (row[kind], low, high), strict=True)),
        "margin": margin,
        **{name: row[name] for name in ("count", "p_value") if name in row},
    }
