"""`ldp-budget statement USER`: one page about a user, whose figures are those of the ledger."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from command_line import CommandLine


@pytest.fixture
def charged(command: CommandLine) -> CommandLine:
    command("policy", "set", "default", "--limit", "lifetime=4", "--limit", "day=2")
    command("collection", "add", "mood", "oue", "--epsilon", "0.5", "--categories", "good,fair,bad")
    command("spend", "alice", "mood")
    command("policy", "set", "default", "--limit", "lifetime=5", "--limit", "day=3")
    command("spend", "alice", "rr", "--epsilon", "1")
    command("spend", "<b>bob</b>", "gaussian", "--epsilon", "1", "--delta", "1e-6", code=3)
    return command


def test_statement_has_every_charge_with_its_policy_version_and_the_totals(charged: CommandLine) -> None:
    found = json.loads(charged("statement", "alice", "--json").stdout)
    assert [(each["what"], each["cost"]["epsilon"], each["policy_version"]) for each in found["charges"]] == [
        ("mood", 0.5, 1),
        ("randomized-response", 1.0, 2),
    ]
    assert [(row["policy"], row["period"], row["spent"]["epsilon"]) for row in found["limits"]] == [
        ("default", "lifetime", 1.5),
        ("default", "day", 1.5),
    ]
    assert found["verified"] is True
    assert found["head"] == json.loads(charged("ledger", "verify", "--json").stdout)["head"]


@pytest.mark.parametrize(
    ("language", "title", "belief"),
    [
        ("en", "Statement for alice", "73.2 %"),
        ("ko", "alice 님의 내역서", "73.2 %"),
        ("de", "Auskunft über alice", "73.2 %"),
    ],
)
def test_statement_page_is_in_its_language(
    charged: CommandLine, tmp_path: Path, language: str, title: str, belief: str
) -> None:
    file = tmp_path / "alice.html"
    charged("statement", "alice", "--out", file, "--language", language)
    page = file.read_text(encoding="utf-8")
    assert f'<html lang="{language}">' in page
    assert title in page
    assert belief in page
    assert "src=" not in page
    assert file.stat().st_mode & 0o077 == 0


def test_statement_page_escapes_the_name_of_the_user(charged: CommandLine, tmp_path: Path) -> None:
    charged("statement", "<b>bob</b>", "--out", tmp_path / "bob.html")
    page = (tmp_path / "bob.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;bob&lt;/b&gt;" in page
    assert "<b>bob" not in page
    assert "The ledger records no charge for this user." in page


def test_statement_of_an_erased_user_says_what_is_no_longer_known(charged: CommandLine, tmp_path: Path) -> None:
    charged("erase", "alice", "--yes")
    found = json.loads(charged("statement", "alice", "--out", tmp_path / "alice.html", "--json").stdout)
    assert found["erased"]
    assert found["charges"] == []
    page = (tmp_path / "alice.html").read_text(encoding="utf-8")
    assert "This user was erased from the ledger." in page
    assert "What was charged" not in page


def test_statement_gives_no_belief_for_charges_with_a_delta(command: CommandLine, tmp_path: Path) -> None:
    command("policy", "set", "default", "--limit", "lifetime=4,1e-5")
    command("spend", "alice", "gaussian", "--epsilon", "1", "--delta", "1e-6")
    command("statement", "alice", "--out", tmp_path / "alice.html")
    page = (tmp_path / "alice.html").read_text(encoding="utf-8")
    assert "Some charges have a δ above 0" in page
    assert "50 %" not in page


def test_statement_of_a_reservation_that_was_voided_is_given_back(charged: CommandLine) -> None:
    receipt = json.loads(charged("reserve", "carol", "mood", "--json").stdout)["receipt"]
    charged("void", receipt)
    [row] = json.loads(charged("statement", "carol", "--json").stdout)["charges"]
    assert row["given_back"]


def test_statement_of_a_changed_ledger_warns_and_exits_with_1(charged: CommandLine, tmp_path: Path) -> None:
    with closing(sqlite3.connect(charged.ledger)) as database, database:
        database.execute("update journal set epsilon = epsilon + 1 where entry = (select max(entry) from journal)")
    result = charged("statement", "alice", "--out", tmp_path / "alice.html", code=1)
    assert "Do not rely on this statement" in result.stderr or "the ledger" in result.stderr


@pytest.mark.parametrize("out", ["alice.pdf", "alice", "alice.html.txt"])
def test_statement_to_a_file_of_another_kind_is_an_error(charged: CommandLine, tmp_path: Path, out: str) -> None:
    assert "--out must end in .html or .htm" in charged("statement", "alice", "--out", tmp_path / out, code=2).stderr
    assert not (tmp_path / out).exists()


def test_statement_never_replaces_a_file_unless_asked(charged: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "alice.html"
    file.write_text("mine", encoding="utf-8")
    charged("statement", "alice", "--out", file, code=1)
    assert file.read_text(encoding="utf-8") == "mine"
    charged("statement", "alice", "--out", file, "--overwrite")
    assert "mine" not in file.read_text(encoding="utf-8")
