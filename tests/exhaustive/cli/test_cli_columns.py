"""Parquet and Arrow files, and addresses: the same checks, the same users and the same reports as from CSV."""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from command_line import CommandLine
from ldp_budget import Accountant, mechanism
from ldp_budget.registry.collections import Collection
from ldp_budget.reports.estimation import plain_rows

fsspec = pytest.importorskip("fsspec", reason="no fsspec: pip install 'ldp-budget[interop]'")
pa = pytest.importorskip("pyarrow", reason="no pyarrow: pip install 'ldp-budget[interop]'")
feather = pytest.importorskip("pyarrow.feather", reason="no pyarrow: pip install 'ldp-budget[interop]'")
parquet = pytest.importorskip("pyarrow.parquet", reason="no pyarrow: pip install 'ldp-budget[interop]'")

PEOPLE = {"user": ["ann", "bob", "cy"], "answer": ["yes", "no", "no"], "age": [20.5, 33.0, 70.0]}


@pytest.fixture(scope="module")
def ledger_files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A ledger with a poll and a range of ages."""
    path = tmp_path_factory.mktemp("ledger") / "budget.db"
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        accountant.add_collection(Collection("poll", mechanism("oue")(epsilon=1, domain_size=2), ("yes", "no")))
        accountant.add_collection(Collection("age", mechanism("laplace")(epsilon=1, lower=18, upper=70)))
    return sorted(path.parent.iterdir())


@pytest.fixture
def survey(
    ledger_files: list[Path], command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    """That ledger in the folder of the test."""
    for file in ledger_files:
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    return command


@pytest.fixture
def randomize(survey: CommandLine) -> Callable[..., Any]:
    """Randomize the column of a file."""

    def run(file: str, column: str = "answer", *options: str, collection: str = "poll", **how: Any) -> Any:
        words = ["--column", column, "--out", "r", *([] if "--spend" in options else ["--overwrite"]), *options]
        return survey("randomize", collection, file, *words, **how)

    return run


@pytest.fixture
def memory() -> Any:
    """The file system behind memory://, empty."""
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def stream(table: Any, path: str) -> None:
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)


WRITERS: dict[str, Callable[[Any, str], Any]] = {
    "people.parquet": parquet.write_table,
    "people.feather": feather.write_feather,
    "plain.arrow": lambda table, path: feather.write_feather(table, path, compression="uncompressed"),
    "people.arrows": stream,
    "a-liar.csv": parquet.write_table,
    "no-suffix": stream,
}


@pytest.mark.parametrize("name", WRITERS)
def test_randomize_reads_a_file_by_its_content(survey: CommandLine, randomize: Callable[..., Any], name: str) -> None:
    WRITERS[name](pa.table(PEOPLE), name)
    assert "3 reports written to r" in randomize(name).stderr
    assert "3 reports written to r" in randomize(name, "age", collection="age").stderr
    assert survey.json("spend-many", name, "poll") == {"spent": 3, "refused": 0, "repeated": 0}
    assert [row["user"] for row in survey.json("balance", "--users", name)] == ["ann", "bob", "cy"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_odd_rows_have_equal_results_in_every_kind_of_file(randomize: Callable[..., Any], kind: str) -> None:
    rows = [("ann", "yes"), ("", "yes"), ("bob", ""), ("cy", "maybe"), ("ann", "no"), ("dee", "n/a"), ("eve", "no")]
    if kind == "csv":
        Path("p.csv").write_text("user,answer\n" + "".join(f"{user},{answer}\n" for user, answer in rows))
    else:
        cells = [[cell or None for cell in column] for column in zip(*rows, strict=True)]
        parquet.write_table(pa.table(dict(zip(("user", "answer"), cells, strict=True))), "p.parquet")
    options = ["--user-column", "user", "--spend", "--once", "--skip-invalid", "--missing", "n/a", "--json"]
    said = randomize(f"p.{kind}", "answer", *options)
    assert '"reports": 2' in said.stdout
    assert '"skipped": 3' in said.stdout
    assert "1 row left out: the answer is missing" in said.stderr
    assert "1 row left out: a repeated user (--once)" in said.stderr
    with open("r.skipped.csv", newline="", encoding="utf-8") as file:
        told = list(csv.DictReader(file))
    assert [row["row"] for row in told] == ["2", "3", "4", "6"]
    assert [row["line"] for row in told] == (["3", "4", "5", "7"] if kind == "csv" else [""] * 4)
    assert told[0]["reason"] == "the user is missing"
    assert told[1]["reason"] == "the answer is empty: the domain is one of yes, no"


def test_randomize_with_a_wrong_cell_names_its_row(randomize: Callable[..., Any]) -> None:
    many = 70_000  # more than are read at a time
    parquet.write_table(pa.table({"user": range(many), "answer": ["yes"] * (many - 1) + [None]}), "p.parquet")
    said = randomize("p.parquet", code=1).stderr
    assert "p.parquet, row 70000, column answer: the answer is empty: the domain is one of yes, no. Nothing" in said
    assert not os.path.exists("r")
    randomize("p.parquet", "answer", "--missing", "")
    assert not [name for name in os.listdir() if name.endswith(".new")]


FINE = {
    "large": pa.array(["yes", "no"], pa.large_string()),
    "view": pa.array(["yes", "no"], pa.string_view()),
    "category": pa.array(["yes", "no"]).dictionary_encode(),
    "chunks": pa.chunked_array([["yes"], ["no"]]),
}
USERS = {
    "int64": pa.array([7, 8]),
    "uint64": pa.array([7, 8], pa.uint64()),
    "codes": pa.array([7, 8]).dictionary_encode(),
}
REFUSED = {
    "double": pa.array([1.0, 2.0]),
    "bool": pa.array([True, False]),
    "timestamp[us, tz=UTC]": pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * 2),
    "struct<a: int64>": pa.array([{"a": 1}] * 2),
    "list<item: string>": pa.array([["yes"]] * 2),
    "binary": pa.array([b"yes", b"no"]),
    "decimal128(3, 1)": pa.array([Decimal("20.5")] * 2),
}
ANSWERS = ("double", "bool", "decimal128(3, 1)")
"""Types that no column of users has, and a column of answers may have."""


@pytest.mark.parametrize("kind", FINE)
def test_columns_of_text_in_any_layout_are_read(randomize: Callable[..., Any], kind: str) -> None:
    feather.write_feather(pa.table({"answer": FINE[kind]}), "p.arrow")
    assert "2 reports written" in randomize("p.arrow").stderr


@pytest.mark.parametrize("kind", USERS)
def test_whole_numbers_name_users_by_their_decimals(survey: CommandLine, kind: str) -> None:
    feather.write_feather(pa.table({"id": USERS[kind]}), "p.arrow")
    survey("spend-many", "p.arrow", "poll")
    assert survey.json("balance", "7")["limits"][0]["spent"]["epsilon"] == 1


@pytest.mark.parametrize("kind", REFUSED)
def test_column_of_an_unsupported_type_is_refused(
    survey: CommandLine, randomize: Callable[..., Any], kind: str
) -> None:
    feather.write_feather(pa.table({"user": REFUSED[kind]}), "p.arrow")
    wanted = f"p.arrow: column user must be text or whole numbers: got the type {kind}"
    assert wanted in survey("spend-many", "p.arrow", "poll", code=1).stderr
    if kind not in ANSWERS:
        wanted = f"p.arrow: column user must be text or numbers: got the type {kind}"
        assert wanted in randomize("p.arrow", "user", code=1).stderr
        assert wanted in randomize("p.arrow", "user", "--clip", collection="age", code=1).stderr


def test_column_of_numbers_or_truth_values_has_answers(survey: CommandLine, randomize: Callable[..., Any]) -> None:
    feather.write_feather(pa.table({name: REFUSED[name] for name in ANSWERS}), "p.arrow")
    assert "2 reports written" in randomize("p.arrow", "bool").stderr
    for numbers in ("double", "decimal128(3, 1)"):
        assert "is not an answer: the domain is one of yes, no" in randomize("p.arrow", numbers, code=1).stderr
        assert "2 reports written" in randomize("p.arrow", numbers, "--clip", collection="age").stderr
    assert (
        "must be text or numbers: got the type bool"
        in randomize("p.arrow", "bool", "--clip", collection="age", code=1).stderr
    )


def _truncated(name: str, cut: int) -> Callable[[], object]:
    def write() -> None:
        WRITERS[name](pa.table(PEOPLE), name)
        Path("bad.parquet").write_bytes(Path(name).read_bytes()[:-cut])

    return write


def _bytes(content: bytes) -> Callable[[], object]:
    return lambda: Path("bad.parquet").write_bytes(content)


def _no_utf8() -> None:
    buffers = [None, pa.py_buffer(b"\0\0\0\0\3\0\0\0"), pa.py_buffer(b"\xff\xfe\xfd")]
    parquet.write_table(pa.table({"answer": pa.Array.from_buffers(pa.string(), 1, buffers)}), "bad.parquet")


def _twins() -> None:
    arrays = [pa.array(["yes"]), pa.array(["no"])]
    parquet.write_table(pa.Table.from_arrays(arrays, ["answer", "answer"]), "bad.parquet")


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (_truncated("people.parquet", 20), "cannot be read: Parquet magic bytes not found"),
        (_truncated("people.feather", 20), "cannot be read"),
        (_truncated("people.arrows", 8), "cannot be read after row 3: it ends without the mark of its end"),
        (_bytes(b""), "it is named like a Parquet file, but is empty"),
        (_bytes(b"\x1f\x8b\x08\0 zipped"), "it is a file compressed by gzip, and not a table"),
        (_bytes(b"\0\1\2\3"), "it is named like a Parquet file, but begins with"),
        (_bytes(b"PARE" + bytes(60)), "it is an encrypted Parquet file, which cannot be read"),
        (_no_utf8, "text that is not UTF-8"),
        (_twins, "bad.parquet has 2 columns named 'answer'"),
        (lambda: parquet.write_table(pa.table({"age": [1]}), "bad.parquet"), "has no column 'answer'. Columns: age"),
        (lambda: parquet.write_table(pa.table(PEOPLE).slice(0, 0), "bad.parquet"), "bad.parquet has no rows"),
    ],
)
def test_damaged_file_names_the_fault(randomize: Callable[..., Any], write: Callable[[], object], said: str) -> None:
    write()
    result = randomize("bad.parquet", code=2 if "column" in said else 1)
    assert said in result.stderr
    assert not os.path.exists("r")


def test_standard_input_takes_streams_but_no_parquet_pipe(survey: CommandLine) -> None:
    words = ["randomize", "poll", "-", "--column", "answer", "--out", "r", "--overwrite"]
    for name in ("people.arrows", "people.parquet"):
        WRITERS[name](pa.table(PEOPLE), name)
        assert "3 reports written" in survey(*words, input=Path(name).read_bytes()).stderr
    reading, writing = os.pipe()
    os.write(writing, Path("people.parquet").read_bytes())
    os.close(writing)
    words[2] = f"/dev/fd/{reading}"
    assert "cannot be read from a pipe" in survey(*words, code=1).stderr


# -- addresses ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["people.parquet", "people.feather", "people.arrows", "people.csv"])
def test_file_at_a_url_is_read(survey: CommandLine, randomize: Callable[..., Any], memory: Any, name: str) -> None:
    if name == "people.csv":
        Path(name).write_text("user,answer\nann,yes\nbob,no\ncy,no\n")
    else:
        WRITERS[name](pa.table(PEOPLE), name)
    memory.put_file(name, f"/of/{name}")
    assert "3 reports written" in randomize(f"memory://of/{name}").stderr
    assert survey.json("spend-many", f"memory://of/{name}", "poll")["spent"] == 3
    assert "3 reports written" in randomize(f"file://{Path(name).resolve()}").stderr


def test_output_files_are_written_to_their_urls(survey: CommandLine, memory: Any) -> None:
    parquet.write_table(pa.table({"user": ["ann", "bob"], "answer": ["yes", None]}), "p.parquet")
    words = [
        "p.parquet",
        "--column",
        "answer",
        "--out",
        "memory://r",
        "--skip-invalid",
        "--skipped-to",
        "memory://s.pq",
    ]
    assert "1 report written to memory://r" in survey("randomize", "poll", *words).stderr
    with memory.open("/s.pq") as file:
        assert parquet.read_table(file).to_pylist() == [
            {
                "line": None,
                "row": 2,
                "column": "answer",
                "reason": "the answer is empty: the domain is one of yes, no",
            }
        ]
    printed = survey.json("estimate", "poll", "memory://r", "--rows-to", "memory://e.arrow")
    with memory.open("/e.arrow") as file:
        assert pa.ipc.open_file(file).read_all().to_pylist() == list(plain_rows(printed["answers"]))
    survey("estimate", "poll", "memory://r", "--rows-to", "e.csv")
    assert (
        Path("e.csv").read_text().splitlines()
        == survey("estimate", "poll", "memory://r", "--csv").stdout.splitlines()
    )


def test_randomize_with_spend_refuses_a_url_for_out(survey: CommandLine) -> None:
    parquet.write_table(pa.table(PEOPLE), "p.parquet")
    words = ["randomize", "poll", "p.parquet", "--column", "answer", "--user-column", "user", "--spend", "--out"]
    said = survey(*words, "memory://r", code=2).stderr
    assert "--out must be a path on this machine" in said
    assert survey.json("balance", "ann")["limits"][0]["spent"]["epsilon"] == 0


def test_url_without_atomic_writes_is_refused(randomize: Callable[..., Any], survey: CommandLine) -> None:
    parquet.write_table(pa.table(PEOPLE), "p.parquet")
    words = ["randomize", "poll", "p.parquet", "--column", "answer", "--out", "sftp://host/r"]
    assert "cannot be written to, because files there may appear in parts" in survey(*words, code=1).stderr
