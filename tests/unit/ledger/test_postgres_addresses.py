"""Malformed URLs of a ledger on PostgreSQL: no message shows them, as they may contain a password."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from command_line import CommandLine
from ldp_budget import Accountant, InvalidParameter, LedgerError
from ldp_budget_postgres import pool

MALFORMED = [
    "postgresql://u:S3CRET@[127.0.0.1/x",
    "postgresql://u:S3CRET@[::1/x",
    "postgresql://u:S3CRET@[::1]x/y",
    "postgresql://u:S3CRET@::1]/y",
    "postgresql://u:S3CRET@h:port/x",
    "postgresql://u:S3CRET",
    "postgresql://u:S3CRET/x",
    "postgresql:///u:S3CRET@h/x",
    "postgresql:/u:S3CRET@h/x",
    "postgresql:u:S3CRET@h/x",
    "postgres:u:S3CRET@h/x",
    "postgres://u:S3CRET@h:x/y",
    "POSTGRESQL://u:S3CRET@[h/x",
    "postgresql://u:S3CRET@127.0.0.1:1/x?%zz",
    "postgresql://u:%zzS3CRET@h/x",
    "postgresql://h/x?password=S3CRET&foo",
    "postgresql://h/x?passwrd=S3CRET",
    "postgresql://h/x?password=S3CRET%zz",
    "postgresql://h/x?password:S3CRET",
    "postgresql://u:S3CRET\0@h/x",
    "postgresql://u:S3CRET%00@h/x",
    "postgresql://u:S3CRET\ud800@h/x",
    "postgresql://u:S3CRET x@h/x",
    "postgresql://u:x S3CRET@h/x",
    "postgresql://u:S3CRET\n@h/x",
    " postgresql://u:S3CRET@127.0.0.1:1/x",
    "postgresql+psycopg://u:S3CRET@h/x",
    "postgresql://u:S3CRET@127.0.0.1:1,[::1:2/x",
    "host=127.0.0.1 port=1 password=S3CRET",
    "dbname=x password = S3CRET",
    "mysql://u:S3CRET@h/x",
    "https://u:S3CRET@[h/x",
    "http://u:S3CRET@h:x/y",
]


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
