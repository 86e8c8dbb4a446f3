"""`collection show --sql`: what it refuses, and texts that could end a literal, a comment or a template's mark."""

from __future__ import annotations

from typing import Any

import pytest

import ldp_budget
from command_line import CommandLine
from ldp_budget import Collection
from ldp_budget.errors import NotSupported
from ldp_budget_surveys.sql_macros import macros

DIALECTS = ("duckdb", "postgres", "bigquery", "dbt")


def of(mechanism: str, name: str = "mood", answers: tuple[str, ...] | None = None, **options: Any) -> Collection:
    return Collection(name, ldp_budget.mechanism(mechanism).calibrate(**options), answers)


@pytest.mark.parametrize(
    ("collection", "why"),
    [
        (of("laplace", epsilon=1, lower=0, upper=10), "a report of laplace says more than 0 or 1"),
        (of("ticks", epsilon=1, domain_size=5), "a report of ticks says more than 0 or 1"),
        (of("pgr", epsilon=1, domain_size=5), "cannot read a report of pgr: it is neither answers nor a bit"),
        (of("olh", epsilon=1, domain_size=5).agreed(), "cannot read a report of olh"),
        (of("loloha", epsilon_lifetime=2, epsilon_first=1, domain_size=5).agreed(), "loloha memoizes"),
        (of("oue", epsilon=1, domain_size=1_001), "at most 1000: got 1001 answers"),
    ],
)
def test_sql_of_reports_that_it_cannot_read_is_refused_with_the_reason_and_another_way(
    collection: Collection, why: str
) -> None:
    with pytest.raises(NotSupported, match=why) as refused:
        macros(collection, "duckdb")
    assert "ldp-budget contributions mood FILES --out x.parquet" in str(refused.value)


def test_sql_of_reports_in_another_form_is_refused_before_any_report_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It drew 52,428 reports of olh, which took a minute, and refused them by their form."""
    hashed = of("olh", epsilon=1, domain_size=5).agreed()
    monkeypatch.setattr(type(hashed.mechanism), "randomize", lambda *_, **__: pytest.fail("reports were drawn"))
    with pytest.raises(NotSupported, match="cannot read a report of olh"):
        macros(hashed, "duckdb")


def test_sql_of_a_name_that_postgres_would_cut_is_refused() -> None:
    long = of("grr", "n" * 57, epsilon=1, domain_size=2)
    with pytest.raises(NotSupported, match="at most 63 bytes"):
        macros(long, "postgres")
    assert "n" * 57 + "_shares" in macros(long, "bigquery")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_sql_of_a_name_with_quotes_and_line_breaks_keeps_them_in_the_name(dialect: str) -> None:
    text = macros(of("grr", 'my "mood"\n; drop table x', epsilon=1, domain_size=2), dialect)
    comments, macro = text.splitlines()[:5], text.splitlines()[5:]
    assert all(line.startswith("--") for line in comments)
    if dialect in ("bigquery", "dbt"):
        assert "my__mood____drop_table_x_shares" in macro[0]
    else:
        assert '"my ""mood""' in macro[0]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_sql_of_an_answer_with_marks_of_the_templates_does_not_fill_them_in(dialect: str) -> None:
    text = macros(of("grr", answers=("@name@ @shares@", "$ldp0$"), epsilon=1, domain_size=2), dialect)
    assert text.count("@name@ @shares@") == 1
    if dialect == "postgres":
        assert text.count("$ldp1$") == 2


def test_collection_show_refuses_another_dialect(command: CommandLine) -> None:
    assert "'oracle' is not one of 'duckdb', 'postgres', 'bigquery', 'dbt'" in command.error(
        "collection", "show", "mood", "--sql", "oracle", code=2
    )
