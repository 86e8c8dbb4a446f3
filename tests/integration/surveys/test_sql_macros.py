"""`collection show --sql`: DuckDB, PostgreSQL and dbt find the estimates of `estimate`; BigQuery's text is parsed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ldp_budget
from command_line import CommandLine
from federated_environment import Environment
from ldp_budget import Accountant, Collection
from ldp_budget.reports.public_attributes import PublicAttributes
from ldp_budget_surveys.partitions import PartitionWriter
from postgres_servers import reason_for_none, shared_server

REGIONS = ("east", "north's", 'so"uth')
WEIGHTS = ("0", "1", "2.5", "4")
HOSTILE = (
    "'); drop table reports; --",
    'a "quoted" answer, with a comma',
    "two\nlines",
    "{{ none }} {% raw %} {# no #} @answers@",
    "back\\slash\\'",
    "$ldp0$ %s",
)
"""Answers that SQL, Jinja or a template would read as their own."""


def added(command: CommandLine, mechanism: str, epsilon: str, answers: tuple[str, ...], name: str = "mood") -> Any:
    """Return a new collection of the ledger, with these answers."""
    made = ldp_budget.mechanism(mechanism).calibrate(epsilon=epsilon, domain_size=len(answers))
    with Accountant(command.ledger) as accountant:
        accountant.add_collection(Collection(name, made, answers).agreed())
        return accountant.collection(name)


def partition(folder: Path, collection: Any, people: int) -> tuple[Path, Any, list[tuple[str, str]]]:
    """Write a partition of the reports of so many people; return its path, its reports, and the region and weight of each."""
    pytest.importorskip("pyarrow", reason="Parquet needs the extra arrow, which interop has")
    places = np.arange(people)
    d = collection.mechanism.domain.size
    reports = collection.mechanism.randomize(places % 7 % d, rng=7)
    public = PublicAttributes(
        ("region", "w"),
        tuple((region, weight) for region in REGIONS for weight in WEIGHTS),
        places % 3 * len(WEIGHTS) + places // 3 % len(WEIGHTS),
    )
    with PartitionWriter(folder / "mood.parquet", collection, public=public.names) as writer:
        writer.write(reports, public)
    return folder / "mood.parquet", reports, [public.combinations[code] for code in public.codes.tolist()]


def expected(
    command: CommandLine, path: Path, *, weighted: bool = False, groups: bool = False
) -> list[tuple[Any, ...]]:
    """Return (answer, count, share, std_error, group, share_std_error) of each row that `estimate` prints."""
    options = [*(["--weights", "w"] if weighted else []), *(["--by", "region"] if groups else [])]
    found = command.json("estimate", "mood", path, *options)
    parts = found["groups"] if groups else [found | {"group": ""}]
    return [
        (
            each["answer"],
            each["count"],
            each["share"],
            each.get("std_error", each["share_std_error"] * each["count"] / each["share"]),
            part["group"],
            each["share_std_error"],
        )
        for part in parts
        for each in part["answers"]
    ]


FORMS = {
    "one answer": ("grr", "1"),
    "a bit for each answer": ("oue", "1"),
    "several answers": ("subset-selection", "0.5"),
}
COLUMNS = [
    "answer",
    "count",
    "share",
    "std_error",
    "group",
    "respondents",
    "population_share_error",
    "respondents_share_error",
    "left_out",
]


def same(rows: list[tuple[Any, ...]], wanted: list[tuple[Any, ...]], error: int) -> bool:
    """Return True if rows have the figures of `expected`; `error` is the column that has its error of a share."""
    assert [(row[0], row[4]) for row in rows] == [(row[0], row[4]) for row in wanted]
    for row, known in zip(rows, wanted, strict=True):
        assert row[1:4] == pytest.approx(known[1:4], rel=1e-10)
        assert row[error] == pytest.approx(known[5], rel=1e-10)
        assert row[8] == 0
    return True


def duckdb_with(sql: str, path: Path | None = None) -> Any:
    """Return a connection of DuckDB in memory with the macros, and a view `reports` of a partition."""
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is in the extra interop")
    made = duckdb.connect()
    made.execute(sql)
    if path is not None:
        made.execute(f"create view reports as select * from '{path}'")
    return made


def new_database() -> str:
    """Return the address of a new database of the tests' server. Skips without a server."""
    server = shared_server()
    if server is None:
        pytest.skip(reason_for_none())
    return server.create_database()


@pytest.mark.parametrize("form", FORMS)
def test_duckdb_macro_finds_the_estimates_of_the_command_in_ten_digits(
    command: CommandLine, tmp_path: Path, form: str
) -> None:
    path, _, _ = partition(tmp_path, added(command, *FORMS[form], HOSTILE), 100_000)
    warehouse = duckdb_with(command("collection", "show", "mood", "--sql", "duckdb").stdout, path)
    alone = warehouse.execute("select * from mood_shares('reports')")
    assert [each[0] for each in alone.description] == COLUMNS
    assert same(alone.fetchall(), expected(command, path), error=7)
    weighted = warehouse.execute("select * from mood_shares('reports', weight := 'w')").fetchall()
    assert same(weighted, expected(command, path, weighted=True), error=6)
    grouped = warehouse.execute("select * from mood_shares('reports', weight := 'w', by := 'region')").fetchall()
    assert same(grouped, expected(command, path, weighted=True, groups=True), error=6)
    unweighted = warehouse.execute("select * from mood_shares('reports', by := 'region')").fetchall()
    assert same(unweighted, expected(command, path, groups=True), error=6)


def test_duckdb_macro_reads_answers_of_two_bytes_as_bytes_numbers_and_hexadecimal_text(
    command: CommandLine, tmp_path: Path
) -> None:
    answers = tuple(f"answer {each}" for each in range(300))
    path, reports, _ = partition(tmp_path, added(command, "grr", "8", answers), 20_000)
    warehouse = duckdb_with(command("collection", "show", "mood", "--sql", "duckdb").stdout, path)
    import pyarrow

    numbers = pyarrow.table({"report": reports.astype(np.int32)})
    texts = pyarrow.table({"report": [each.tobytes().hex().upper() for each in reports.astype("<u2")]})
    warehouse.register("numbers", numbers)
    warehouse.register("texts", texts)
    wanted = expected(command, path)
    for table in ("reports", "numbers", "texts"):
        assert same(warehouse.execute(f"select * from mood_shares('{table}')").fetchall(), wanted, error=7)


def test_duckdb_macro_counts_rows_that_are_no_reports_and_leaves_them_out(
    command: CommandLine, tmp_path: Path
) -> None:
    path, _, _ = partition(tmp_path, added(command, "grr", "1", HOSTILE), 1_000)
    warehouse = duckdb_with(command("collection", "show", "mood", "--sql", "duckdb").stdout, path)
    warehouse.execute("create table more as select report, 1::double as w from reports")
    wanted = [row[:4] for row in warehouse.execute("select * from mood_shares('more')").fetchall()]
    for report, weight in (("'\\x06'", 1), ("'\\x00\\x00'", 1), ("null", 1), ("''", 1), ("'\\x01'", -1)):
        warehouse.execute(f"insert into more values ({report}::blob, {weight})")
    warehouse.execute("insert into more values ('\\x01'::blob, null), ('\\x01'::blob, 'nan'::double)")
    unweighted = warehouse.execute("select * from mood_shares('more')").fetchall()
    assert {row[8] for row in unweighted} == {4}
    assert [row[5] for row in unweighted] == [1_003] * len(HOSTILE)
    weighted = warehouse.execute("select * from mood_shares('more', weight := 'w')").fetchall()
    assert {row[8] for row in weighted} == {7}
    assert [row[:3] for row in weighted] == [pytest.approx(row[:3]) for row in wanted]


def test_duckdb_macro_quotes_a_column_and_a_table_with_quotes_in_their_names(
    command: CommandLine, tmp_path: Path
) -> None:
    path, _, _ = partition(tmp_path, added(command, "oue", "1", HOSTILE), 1_000)
    warehouse = duckdb_with(command("collection", "show", "mood", "--sql", "duckdb").stdout)
    warehouse.execute(f"""create view "it's" as select report, region as "a ""b'", w as "c'd" from '{path}'""")
    call = """select * from mood_shares('"it''s"', weight := 'c''d', by := 'a "b''')"""
    assert same(warehouse.execute(call).fetchall(), expected(command, path, weighted=True, groups=True), error=6)


@pytest.mark.exhaustive
def test_duckdb_macro_finds_the_counts_of_ten_million_reports(command: CommandLine, tmp_path: Path) -> None:
    collection = added(command, "grr", "1", tuple("abcdefgh"))
    path, reports, _ = partition(tmp_path, collection, 10**7)
    known = collection.mechanism.estimate(reports)
    warehouse = duckdb_with(command("collection", "show", "mood", "--sql", "duckdb").stdout, path)
    rows = warehouse.execute("select * from mood_shares('reports')").fetchall()
    assert [row[1] for row in rows] == pytest.approx(known.counts, rel=1e-10)
    assert [row[3] for row in rows] == pytest.approx(known.std_errors, rel=1e-10)
    assert all(row[6] > row[7] for row in rows[:7])  # nobody holds the last answer
    grouped = warehouse.execute("select * from mood_shares('reports', weight := 'w', by := 'region')").fetchall()
    assert same(grouped, expected(command, path, weighted=True, groups=True), error=6)


@pytest.mark.parametrize("form", FORMS)
def test_postgres_function_finds_the_estimates_of_the_command_in_ten_digits(
    command: CommandLine, tmp_path: Path, form: str
) -> None:
    psycopg = pytest.importorskip("psycopg")
    path, reports, public = partition(tmp_path, added(command, *FORMS[form], HOSTILE), 100_000)
    size = reports[0].nbytes
    data = reports.tobytes()
    with psycopg.connect(new_database(), autocommit=True) as warehouse:
        warehouse.execute(command("collection", "show", "mood", "--sql", "postgres").stdout)
        warehouse.execute("""create table reports (report bytea, "the region" text, w text)""")
        with warehouse.cursor().copy("copy reports from stdin") as copy:
            for place, (region, weight) in enumerate(public):
                copy.write_row((data[place * size : (place + 1) * size], region, weight))
        alone = warehouse.execute("select * from mood_shares('reports')")
        assert alone.description is not None
        assert [each.name for each in alone.description] == COLUMNS
        assert same(alone.fetchall(), expected(command, path), error=7)
        call = "select * from mood_shares('reports', weight := 'w', by := 'the region')"
        wanted = expected(command, path, weighted=True, groups=True)
        assert same(warehouse.execute(call).fetchall(), wanted, error=6)
        warehouse.execute("create view texts as select upper(encode(report, 'hex')) as report from reports")
        assert same(warehouse.execute("select * from mood_shares('texts')").fetchall(), expected(command, path), 7)
        for setting in ("on", "off"):  # a backslash in an answer means the same
            warehouse.execute(f"set standard_conforming_strings = {setting}")
            warehouse.execute(command("collection", "show", "mood", "--sql", "postgres").stdout)
            rows = warehouse.execute("select answer from mood_shares('reports')").fetchall()
            assert [row[0] for row in rows] == list(HOSTILE)


def test_postgres_function_reads_whole_numbers(command: CommandLine, tmp_path: Path) -> None:
    psycopg = pytest.importorskip("psycopg")
    answers = tuple(f"answer {each}" for each in range(300))
    path, reports, _ = partition(tmp_path, added(command, "grr", "8", answers), 2_000)
    with psycopg.connect(new_database(), autocommit=True) as warehouse:
        warehouse.execute(command("collection", "show", "mood", "--sql", "postgres").stdout)
        warehouse.execute("create table reports (report integer)")
        warehouse.execute("insert into reports select unnest(%s::integer[])", (reports.tolist(),))
        rows = warehouse.execute("select * from mood_shares('reports')").fetchall()
        assert same(rows, expected(command, path), error=7)
        warehouse.execute("insert into reports values (300), (-1), (65536), (2147483647), (null)")
        assert {row[0] for row in warehouse.execute("select left_out from mood_shares('reports')")} == {5}


def test_bigquery_procedure_is_parsed_and_its_query_is_that_of_duckdb(command: CommandLine, tmp_path: Path) -> None:
    sqlglot = pytest.importorskip("sqlglot", reason="sqlglot is in the extra interop")
    path, _, _ = partition(tmp_path, added(command, "oue", "1", HOSTILE), 10_000)
    text = command("collection", "show", "mood", "--sql", "bigquery").stdout
    head, body = text.split("begin\n", 1)
    assert head.count("create or replace procedure `mood_shares`(reports string, weight string, `by` string)") == 1
    cells, query = (
        each for each in sqlglot.parse(body.rpartition("end;")[0], dialect="bigquery") if each is not None
    )
    (made,) = re.findall(r'"""(.*)"""', body, re.DOTALL)
    assert sqlglot.parse_one(made.replace("%s", "x"), dialect="bigquery").key == "create"
    assert cells.sql().lower().startswith("execute immediate")
    assert query.key == "select"
    assert set(HOSTILE) <= {each.this for each in query.find_all(sqlglot.exp.Literal) if each.is_string}
    warehouse = duckdb_with("select 1", path)
    warehouse.execute(
        "create table cells as select '' as grp, lower(hex(report)) as hex, count(*)::double as n, n as w, n as ww "
        "from reports group by hex(report)"
    )
    own = query.sql(dialect="duckdb").replace("weight IS NULL", "true").replace('"by" IS NULL', "true")
    assert same(warehouse.execute(own).fetchall(), expected(command, path), error=7)


def test_dbt_macro_rendered_by_jinja_finds_the_estimates_of_the_command(command: CommandLine, tmp_path: Path) -> None:
    jinja2 = pytest.importorskip("jinja2")
    path, _, _ = partition(tmp_path, added(command, "oue", "1", HOSTILE), 10_000)
    text = command("collection", "show", "mood", "--sql", "dbt").stdout
    known = {"adapter": SimpleNamespace(quote='"{}"'.format), "target": SimpleNamespace(type="duckdb")}
    macro = jinja2.Environment().from_string(text, globals=known).module.mood_shares
    warehouse = duckdb_with("select 1", path)
    assert same(warehouse.execute(macro("reports")).fetchall(), expected(command, path), error=7)
    grouped = warehouse.execute(macro("reports", weight="w", by="region")).fetchall()
    assert same(grouped, expected(command, path, weighted=True, groups=True), error=6)


PROJECT = "name: survey\nversion: '1.0'\nprofile: survey\nmodels:\n  survey:\n    +materialized: table\n"
PROFILE = "survey:\n  target: dev\n  outputs:\n    dev:\n      type: duckdb\n      path: warehouse.duckdb\n"


@pytest.mark.exhaustive
def test_dbt_macro_makes_a_table_of_the_estimates_of_the_command(command: CommandLine, tmp_path: Path) -> None:
    path, _, _ = partition(tmp_path, added(command, "grr", "1", HOSTILE), 10_000)
    # From 1.12 on dbt-core downloads a program while it is built.
    environment = Environment(tmp_path / "environment", "dbt-core<1.12", "dbt-duckdb")
    project = tmp_path / "project"
    for name, text in {
        "dbt_project.yml": PROJECT,
        "profiles.yml": PROFILE,
        "macros/mood.sql": command("collection", "show", "mood", "--sql", "dbt").stdout,
        "models/reports.sql": f"select * from '{path}'",
        "models/alone.sql": "{{ mood_shares(ref('reports')) }}",
        "models/groups.sql": "{{ mood_shares(ref('reports'), weight='w', by='region') }}",
    }.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [environment.bin / "dbt", "--no-send-anonymous-usage-stats", "run", "--profiles-dir", "."],
        cwd=project,
        env={**environment.env, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is in the extra interop")
    warehouse = duckdb.connect(str(project / "warehouse.duckdb"), read_only=True)
    assert same(warehouse.execute("select * from alone").fetchall(), expected(command, path), error=7)
    grouped = warehouse.execute("select * from groups").fetchall()
    assert same(grouped, expected(command, path, weighted=True, groups=True), error=6)
