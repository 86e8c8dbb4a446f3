"""SQL that estimates the shares of a collection from its reports in a warehouse.

The SQL sorts reports into cells: a group, the bytes of a report in hexadecimal, and sums of weights. For each cell and answer it
reads whether the report says the answer, with chance p if its respondent holds it, else q. The rest follows from sums, as
in `estimate`. `shares.sql` is the same in all dialects; the template of a dialect defines its cells and the macro.
"""

from __future__ import annotations

import json
import re
from importlib import resources
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.errors import NotSupported
from ldp_budget.sdk.estimates import SupportLaw

from ..contributions import columns_of
from .report_digits import read_by_sql

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ldp_budget.registry.collections import Collection

MOST_ANSWERS = 1_000
_MOST_NAME = 63  # bytes of a name in PostgreSQL


def macros(collection: Collection, dialect: str) -> str:
    """Return SQL that defines `NAME_shares(reports[, weight][, by])`: a row for each answer, or each group and answer.

    Parameters:
        collection: a collection of one question.
        dialect: `duckdb`, `postgres`, `bigquery` or `dbt`.

    Raises:
        NotSupported: SQL cannot read the reports, or cannot estimate from them.
    """
    name = collection.name
    mechanism: Any = collection.mechanism
    table = f"Write a table with ldp-budget contributions {name} FILES --out x.parquet, and average its columns."
    if mechanism.components:
        raise NotSupported("SQL cannot read a report of several questions", hint=table)
    if mechanism.repeats:
        raise NotSupported(
            f"{mechanism.name} memoizes: reports of one person depend on each other, which SQL cannot see", hint=table
        )
    ((_, columns),) = columns_of(collection, ())
    if any(each.p is None for each in columns):
        raise NotSupported(
            f"SQL counts answers, and a report of {mechanism.name} says more than 0 or 1 of an answer", hint=table
        )
    if len(columns) > MOST_ANSWERS:
        raise NotSupported(f"SQL lists the answers, at most {MOST_ANSWERS}: got {len(columns)} answers", hint=table)
    try:
        reports = read_by_sql(mechanism, columns)
    except NotSupported as error:
        raise NotSupported(str(error), hint=table) from None
    called = f"{name}_shares"
    if dialect in ("bigquery", "dbt"):
        called = re.sub(r"\W|^(?=\d)", "_", called, flags=re.ASCII)
    elif len(called.encode()) > _MOST_NAME:
        raise NotSupported(f"a name in SQL has at most {_MOST_NAME} bytes: got {called!r}")
    law = SupportLaw.of(mechanism.support_probabilities, 1)
    laws = np.broadcast_arrays(law.noise, law.gap, law.at_zero, law.at_one, np.empty(len(columns)))[:4]
    literal = _LITERALS[dialect]
    number = "%r" if dialect == "bigquery" else "%r::float8"
    rows = [
        f"({place}, {literal(str(column.answer))}, {digit}, '{code}', {', '.join(number % float(each) for each in own)})"
        for place, (column, (digit, code), *own) in enumerate(zip(columns, reports.codes, *laws, strict=True))
    ]
    parts = {
        "answers": ",\n  ".join(rows),
        "name": called if dialect == "dbt" else _named(called),
        "cells": _named(f"{name}_cells"),
        "says": reports.says,
        "valid": reports.valid,
        "number": reports.number("hex(report)"),
        "numberliteral": _literal(reports.number("to_hex(report::bigint)")),
        "alone": '{{ "true" if not (weight or by) else "false" }}'
        if dialect == "dbt"
        else 'weight is null and "by" is null',
    }
    parts["comment"] = " ".join(parts["name"].split())  # a line break would end the comment
    parts["tag"] = next(tag for tag in map("$ldp{}$".format, count()) if tag not in parts["answers"])
    parts["shares"] = _filled("shares", parts)
    if dialect == "bigquery":  # no answer is in the parts that are quoted
        parts |= {part: parts[part].replace('"', "`") for part in ("name", "shares")}
    return _filled("heading", parts) + _filled(dialect, parts)


def _filled(file: str, parts: Mapping[str, str]) -> str:
    """Return a template in which each @part@ is filled in, once: a part may hold the mark of another one."""
    text = resources.files(__package__).joinpath(f"{file}.sql").read_text(encoding="utf-8")
    return re.sub("@([a-z]+)@", lambda mark: parts[mark[1]], text)


def _named(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _postgres_literal(text: str) -> str:
    """Return a literal that means the same with every setting of standard_conforming_strings."""
    return "E" + _literal(text.replace("\\", "\\\\")) if "\\" in text else _literal(text)


_LITERALS: dict[str, Callable[[str], str]] = {
    "duckdb": _literal,
    "postgres": _postgres_literal,
    "bigquery": lambda text: json.dumps(text, ensure_ascii=False),
    "dbt": lambda text: _literal(text).replace("{", '{{ "{" }}'),
}
