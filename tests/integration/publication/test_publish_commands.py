"""The commands from the answers to a checked publication, on a file and on a server with several partitions."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from command_line import CommandLine
from ldp_budget.registry.public_definition import digest_of
from ldp_budget.reports.inbox import Marks
from ldp_budget_verify import shipped_checkers
from ldp_budget_verify.commands.check import check_published
from postgres_places import new_ledger
from published_survey import PublishedSurvey, a_collection


def _collect(command: CommandLine, folder: Path, people: int = 24) -> None:
    command("policy", "set", "default", "--limit", "lifetime=2", "--limit", "day=1.5")
    command(
        "collection",
        "add",
        "commute",
        "grr",
        "--epsilon",
        "1",
        "--categories",
        "car,train,bike",
        "--minimum-group",
        "1",
    )
    rows = [f"user{place},{('car', 'train', 'bike')[place % 3]}" for place in range(people)]
    (folder / "answers.csv").write_text("\n".join(["user,way", *rows]) + "\n")
    options = ("--column", "way", "--user-column", "user", "--spend", "--receipts", folder / "receipts")
    command("randomize", "commute", folder / "answers.csv", *options, "--out", folder / "commute.reports")


def _publish_and_check(command: CommandLine, folder: Path) -> None:
    key = command("publish", "key", "new", "--name", "log").stdout.strip()
    assert command("publish", "key", "show").stdout.strip() == key
    done = command.json("publish", "commute", "--out", folder / "site")
    assert {name: done["statement"][name] for name in ("accounts", "charges", "reports")} == {
        "accounts": 24,
        "charges": 24,
        "reports": 24,
    }
    for user in ("user0", "user7", "user23"):
        receipt, proof = folder / "receipts" / f"{user}.json", folder / f"{user}.proof"
        proof.write_text(command("prove", "commute", receipt).stdout)
        options = ("--key", key, "--receipt", receipt, "--proof", proof)
        assert "yours is one of them" in command("check", folder / "site", *options).stdout
        assert len(proof.read_bytes()) <= 1500
    wrong = ("--key", key, "--receipt", folder / "receipts" / "user0.json", "--proof", folder / "user7.proof")
    assert command("check", folder / "site", *wrong, code=1).stdout.startswith("REFUSED: your charge is not")
    assert command("ledger", "verify").stdout.startswith("holds: ")


def test_commands_with_a_file_publish_and_prove(command: CommandLine, tmp_path: Path) -> None:
    _collect(command, tmp_path)
    _publish_and_check(command, tmp_path)


def test_commands_with_a_postgres_ledger_publish_and_prove(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    command = CommandLine(new_ledger(4))
    command("ledger", "init")
    _collect(command, tmp_path)
    _publish_and_check(command, tmp_path)
    command("erase", "user7", "--yes")
    assert "An erased user has no proof" in command.error("prove", "commute", tmp_path / "receipts" / "user7.json")


def test_inbox_with_marks_of_a_device_is_provable(command: CommandLine, tmp_path: Path) -> None:
    command("policy", "set", "default", "--limit", "lifetime=2")
    command(
        "collection",
        "add",
        "commute",
        "grr",
        "--epsilon",
        "1",
        "--categories",
        "car,train,bike",
        "--minimum-group",
        "1",
    )
    secret = os.urandom(16)
    marks = {name: mark.hex() for name, mark in Marks.of(secret)._asdict().items()}
    lines = [{"user": "ada", "key": "k", "report": "02", "marks": marks}, {"user": "bob", "key": "k", "report": "01"}]
    bad = [{"user": "eve", "key": "k", "report": "01", "marks": wrong} for wrong in ({"report": "00"}, "x", 5)]
    bad += [{"user": "eve", "key": "k", "report": "01", "marks": {"report": "00", "charge": "00"}}]
    file = tmp_path / "reports.ndjson"
    file.write_text("\n".join(map(json.dumps, [*lines, *bad])))
    assert command.json("inbox", "take", "commute", file) == {"taken": 2, "repeated": 0, "refused": 0, "invalid": 4}
    key = command("publish", "key", "new").stdout.strip()
    statement = command.json("publish", "commute", "--out", tmp_path / "site")["statement"]
    costs = {"epsilon": 10**9, "delta": 0, "rho": None, "mu_squared": None}
    receipt = {
        **{"format": "ldp-budget receipt", "version": 1, "collection": "commute", "client": statement["client"]},
        **{"secret": secret.hex(), "report": "02", "costs": costs},
        "promise": command.json("publish", "key", "promise", "commute"),
    }
    (tmp_path / "receipt").write_text(json.dumps(receipt))
    (tmp_path / "proof").write_text(command("prove", "commute", tmp_path / "receipt").stdout)
    options = ("--key", key, "--receipt", tmp_path / "receipt", "--proof", tmp_path / "proof")
    assert "yours is one of them" in command("check", tmp_path / "site", *options).stdout


@pytest.mark.parametrize(
    ("outcome", "code", "line"),
    [
        (None, 0, "program   a report is at most e^1 times as likely as with another answer"),
        (NotImplementedError("a hash\nlog  all is well"), 1, r"program   not checked: a hash\u{a}log  all is well"),
        (ValueError("too likely\x1b"), 1, r"REFUSED: the program: too likely\u{1b}"),
    ],
)
def test_check_with_a_checker_of_laws_prints_its_verdict(
    outcome: Exception | None,
    code: int,
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Law:
        def check(self, data: bytes) -> tuple[dict[str, dict[str, str]], int]:
            if outcome is not None:
                raise outcome
            return {"guarantee": {"epsilon": "1"}}, 1

    collection = a_collection("q", "pgr", 4)  # a program that the checker of books leaves to that of laws
    real, survey = shipped_checkers.checker, PublishedSurvey(tmp_path, asked=5, users=5, collection=collection)
    monkeypatch.setattr(shipped_checkers, "checker", lambda name: real(name) if name == "check_books" else Law())
    assert check_published(survey.site, [survey.key.verifier_key]) == code
    printed = capsys.readouterr().out
    assert line in printed.splitlines()
    assert ("NOT ALL CHECKED: program" in printed) == isinstance(outcome, NotImplementedError)


def test_check_of_a_file_that_is_too_large_is_refused(command: CommandLine, tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(2**40)
    assert "has more than 16777216 bytes" in command.error("check", tmp_path / "large")


def test_check_of_a_definition_whose_name_breaks_a_line_is_refused_in_one_line(
    command: CommandLine, tmp_path: Path
) -> None:
    definition = {**a_collection("mood", "grr", 3).definition(), "name": "mood\nProved: every report\x1b[8m\u202e"}
    definition["digest"] = digest_of(definition)
    (tmp_path / "mood.json").write_text(json.dumps(definition, sort_keys=True, separators=(",", ":")))
    said = command.error("check", tmp_path / "mood.json")
    assert "is REFUSED" in said
    assert not any(line.startswith("Proved") for line in said.splitlines())


def test_check_names_the_parts_that_were_not_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    survey = PublishedSurvey(tmp_path, asked=5, users=5)
    key, user = survey.key.verifier_key, survey.names[0]
    missing = "not given a receipt and its proof, a witness's key, an earlier checkpoint: nothing is proved about it"
    assert check_published(survey.site, [key]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == missing
    receipt, proof, seen = str(survey.receipt(user)), str(survey.write_proof(user)), str(survey.site / "checkpoint")
    assert check_published(survey.site, [key], [receipt], proof, seen) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "not given a witness's key: nothing is proved about it"
