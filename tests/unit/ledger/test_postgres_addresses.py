"""Malformed URLs of a ledger on PostgreSQL: no message shows them, as they may contain a password."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from case_files import case_table
from command_line import CommandLine
from ldp_budget import Accountant, InvalidParameter, LedgerError
from ldp_budget_postgres import pool

MALFORMED = case_table("postgres_addresses", "MALFORMED")


@pytest.mark.slow
@pytest.mark.parametrize("text", MALFORMED)
def test_malformed_url_shows_no_password(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """`postgresql://u:PASSWORD@[127…` was printed whole; `host=… password=…` became the name of a file."""
    pytest.importorskip("psycopg")
    monkeypatch.chdir(tmp_path)
    with pytest.raises((InvalidParameter, LedgerError)) as told:
        Accountant(text)
    shown = "".join(traceback.format_exception(told.value)) + repr(vars(told.value)) + caplog.text
    assert "S3CRET" not in shown
    assert not list(tmp_path.iterdir())


def test_malformed_url_shows_no_password_on_the_command_line(command: CommandLine) -> None:
    for text in ("postgresql://u:S3CRET@[127.0.0.1/x", "postgresql:u:S3CRET@h/x"):
        for words in (("balance", "alice"), ("ledger", "init")):
            assert "S3CRET" not in command("--ledger", text, *words, code=2).output


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("postgresql://u:p%40%20x@[::1]:5432/ledger", "postgresql://[::1]:5432/ledger"),
        ("postgresql://u@one:1,two:2/ledger?target_session_attrs=primary", "postgresql://one:1,two:2/ledger"),
        ("postgresql://%2Fvar%2Frun/ledger", "postgresql://%2Fvar%2Frun/ledger"),
        ("postgres:///ledger?host=/tmp", "postgresql:///ledger"),
        ("postgresql://u:ü@h/x", "postgresql://h/x"),
    ],
)
def test_url_of_any_form_of_libpq_is_accepted(text: str, name: str) -> None:
    assert pool.read(text).name == name


@pytest.mark.parametrize("name", ["partitions", "connections"])
@pytest.mark.parametrize("number", ["0", "00", "-1", "+1", "1.5", "", "١", "1000000"])
def test_url_with_a_number_out_of_range_is_refused(name: str, number: str) -> None:
    """A ledger of no partitions had no place for a charge."""
    with pytest.raises(InvalidParameter, match=rf"{name} from 1 to \d+.*got {name}="):
        pool.read(f"postgresql://h/x?{name}={number}")


def test_url_with_the_least_numbers_is_accepted() -> None:
    found = pool.read("postgresql://h/x?partitions=1&connections=1")
    assert (found.partitions, found.connections) == (1, 1)
