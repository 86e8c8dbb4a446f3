"""The page about stability agrees with the code: versions of files, exit codes, and where each promise is recorded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ldp_budget.ledger.sqlite import schema as sqlite
from ldp_budget.registry import certification, collections
from ldp_budget.reports import charged_release, partial_aggregate, report_file
from ldp_budget.sdk import client_program
from ldp_budget_cli import errors
from ldp_budget_postgres import schema as postgres
from ldp_budget_surveys import partitions
from ldp_budget_surveys.questionnaires import surveys
from ldp_budget_verify import total_certificate

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "reference" / "stability.md").read_text(encoding="utf-8")


def rows(head: str) -> list[list[str]]:
    """The cells of the table with this beginning of its head."""
    below = PAGE.partition(f"\n{head}")[2].splitlines()[2:]
    end = next(at for at, line in enumerate(below) if not line.startswith("|"))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in below[:end]]


def number(magic: str | bytes) -> int:
    text = magic.decode() if isinstance(magic, bytes) else magic
    return int(text.split()[-1])


@pytest.mark.parametrize(
    ("what", "version"),
    [
        ("tables of a ledger in SQLite", sqlite.SCHEMA_VERSION),
        ("tables of a ledger on PostgreSQL", postgres.SCHEMA_VERSION),
        ("collection (`collection show --json`)", collections.VERSION),
        ("public definition (`--client`) and client program", client_program.VERSION),
        ("report file", number(report_file.MAGIC)),
        ("what an interrupted `randomize` has drawn (`OUT.partial`)", number(charged_release._MAGIC)),
        ("partition (`.parquet`)", partitions._VERSION),
        ("partial aggregate", number(partial_aggregate.MAGIC)),
        ("survey file and questionnaire", surveys.VERSION),
        ("survey file and questionnaire", surveys.PUBLIC_VERSION),
        ("certificates", number(certification._FORMAT)),
        ("certificate of a total (`--certificate`)", total_certificate.VERSION),
    ],
)
def test_file_versions_of_the_page_are_those_that_are_written(what: str, version: int) -> None:
    said = {name: cells[1] for cells in rows("| what |") for name in cells[0].split("; ")}
    assert len(said) == 15
    assert said[what] == str(version)


def test_exit_codes_of_the_page_are_those_of_the_commands() -> None:
    [cells] = [cells for cells in rows("| subject |") if cells[0] == "exit codes"]
    codes = {int(code) for code in re.findall(r"\b(\d) ", cells[1])}
    assert codes == {0, 1, *(failure.exit_code for failure in errors.FAILURES.values())}
