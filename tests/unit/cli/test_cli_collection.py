"""`collection`, `randomize` and `estimate`: from a column of answers to shares with intervals, or a clear error."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from command_line import CommandLine
from ldp_budget import Accountant, NotSupported, mechanism
from ldp_budget.registry.collections import Collection
from ldp_budget.registry.plugins import Registry
from ldp_budget.registry.public_definition import digest_of

PARTIES = [
    "strong-democrat",
    "weak-democrat",
    "lean-democrat",
    "independent",
    "lean-republican",
    "weak-republican",
    "strong-republican",
]


def seven_parties(command: CommandLine) -> None:
    command("policy", "set", "default", "--limit", "lifetime=1")
    command("collection", "add", "party", "oue", "--epsilon", "1", "--categories", ",".join(PARTIES))


@pytest.fixture
def party(command: CommandLine, begun: Any) -> CommandLine:
    """A ledger with a collection of seven parties."""
    begun(seven_parties, command)
    return command


def table(path: Path, **columns: list[Any]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


# -- the set-up ----------------------------------------------------------------------------------------------


def test_name_of_mechanism_and_collection_is_an_error_naming_both(party: CommandLine) -> None:
    with Accountant(party.ledger) as accountant:
        # As if the mechanism's plugin had been installed later.
        accountant.add_collection(Collection("oue", mechanism("oue")(epsilon="0.5", domain_size=3)))
    message = party.error("spend", "alice", "oue", "--epsilon", "1", "--domain-size", "3", code=2)
    assert "'oue' is both the mechanism oue and a collection" in message
    assert party.json("spend", "alice", "collection:oue")["cost"]["epsilon"] == 0.5


def test_collection_without_its_plugin_is_shown_but_not_used(
    party: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = party.json("collection", "show", "party")
    source = table(tmp_path / "answers.csv", party=PARTIES)
    party("randomize", "party", source, "--column", "party", "--out", tmp_path / "r")
    monkeypatch.setattr("ldp_budget.registry.plugins.registry", lambda: Registry([]))
    assert party.json("collection", "show", "party") == definition
    shown = party("collection", "show", "party")
    assert definition["fingerprint"] in shown.stdout
    missing = "collection party needs the mechanism oue, which no installed plugin provides"
    assert missing in shown.stderr
    for use in (
        ["spend", "alice", "collection:party"],
        ["estimate", "party", tmp_path / "r"],
        ["randomize", "party", source, "--column", "party", "--out", tmp_path / "s"],
    ):
        assert missing in party.error(*use)


# -- the whole way -------------------------------------------------------------------------------------------


def test_randomize_with_a_definition_file_needs_no_ledger(party: CommandLine, tmp_path: Path) -> None:
    definition = tmp_path / "party.json"
    definition.write_text(party("collection", "show", "party", "--json").stdout)
    source = table(tmp_path / "answers.csv", party=PARTIES)
    nowhere = tmp_path / "nowhere.db"
    party("--ledger", nowhere, "randomize", definition, source, "--column", "party", "--out", tmp_path / "r")
    assert not nowhere.exists()
    assert party.json("estimate", "party", tmp_path / "r")["reports"] == 7
    changed = json.loads(definition.read_text())
    changed["declared"]["epsilon"] = "9"
    definition.write_text(json.dumps(changed))
    assert "does not match its fingerprint" in party.error("estimate", definition, tmp_path / "r")


# -- charging ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_randomize_with_spend_charges_users_and_drops_the_refused(party: CommandLine, tmp_path: Path) -> None:
    party("spend", "bob", "oue", "--epsilon", "0.5", "--domain-size", "2")
    source = table(tmp_path / "answers.csv", user=["alice", "bob", "carol", "carol"], party=PARTIES[:4])
    arguments = ["randomize", "party", source, "--column", "party", "--user-column", "user", "--spend"]
    written = party.json(*arguments, "--out", tmp_path / "r")
    assert (written["reports"], written["refused"]) == (2, 2), "carol answered twice"
    assert party.json("estimate", "party", tmp_path / "r")["reports"] == 2
    for user, epsilon in (("alice", 1), ("bob", 0.5), ("carol", 1)):
        assert party.json("balance", user)["limits"][0]["spent"]["epsilon"] == epsilon
    assert party.json(*arguments, "--out", tmp_path / "s")["reports"] == 0
    assert "there are no reports" in party.error("estimate", "party", tmp_path / "s")


def test_randomize_with_spend_into_a_finished_file_charges_no_user(party: CommandLine, tmp_path: Path) -> None:
    party("policy", "set", "default", "--limit", "lifetime=9")
    source = table(tmp_path / "answers.csv", user=["alice", "bob"], party=PARTIES[:2])
    arguments = ["randomize", "party", source, "--column", "party", "--out", tmp_path / "r", "--user-column", "user"]
    party(*arguments, "--spend")
    before = (tmp_path / "r").read_bytes()
    message = party.error(*arguments, "--spend")
    assert f"--out: {tmp_path / 'r'} exists. No user was charged" in message
    assert "name another file." in message
    assert (tmp_path / "r").read_bytes() == before
    assert party.json("balance", "alice")["limits"][0]["spent"]["epsilon"] == 1


@pytest.mark.parametrize("name", ["r", "r.parquet"])
def test_randomize_without_spend_never_replaces_what_users_were_charged_for(
    party: CommandLine, tmp_path: Path, name: str
) -> None:
    """The same command without `--spend` replaced a file that users had been charged for, without a word."""
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow", reason="no pyarrow: pip install 'ldp-budget[interop]'")
    party("policy", "set", "default", "--limit", "lifetime=9")
    source = table(tmp_path / "answers.csv", user=["alice", "bob"], party=PARTIES[:2])
    arguments = ["randomize", "party", source, "--column", "party", "--out", tmp_path / name]
    party(*arguments, "--user-column", "user", "--spend")
    before = (tmp_path / name).read_bytes()
    assert f"{name} exists. Nothing was written" in party.error(*arguments)
    assert "users were charged for the reports in" in party.error(*arguments, "--overwrite")
    (tmp_path / f"{name}.partial").write_bytes(b"")
    assert f"{name}.partial is an interrupted run" in party.error(*arguments, "--overwrite")
    assert (tmp_path / name).read_bytes() == before
    assert "does not go with --spend" in party.error(
        *arguments, "--user-column", "user", "--spend", "--overwrite", code=2
    )


@pytest.mark.parametrize("name", ["r", "r.parquet"])
def test_randomize_replaces_an_uncharged_file_with_overwrite_alone(
    party: CommandLine, tmp_path: Path, name: str
) -> None:
    """A report file was replaced by any run that named it."""
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow", reason="no pyarrow: pip install 'ldp-budget[interop]'")
    source = table(tmp_path / "answers.csv", party=PARTIES * 20)
    arguments = ["randomize", "party", source, "--column", "party", "--out", tmp_path / name]
    party(*arguments)
    before = (tmp_path / name).read_bytes()
    assert "add --overwrite to replace it" in party.error(*arguments)
    assert (tmp_path / name).read_bytes() == before
    party(*arguments, "--overwrite")
    assert (tmp_path / name).read_bytes() != before
    (tmp_path / "notes").write_text("of another program")
    party(*arguments[:-1], tmp_path / "notes", "--overwrite")


@pytest.mark.slow
def test_estimate_of_charged_and_uncharged_reports_is_refused_unless_mixed(
    party: CommandLine, tmp_path: Path
) -> None:
    """`estimate party a b` added reports that users were charged for to uncharged reports."""
    pytest.importorskip("pyarrow", reason="no pyarrow: pip install 'ldp-budget[interop]'")
    party("policy", "set", "default", "--limit", "lifetime=9")
    source = table(tmp_path / "answers.csv", user=["alice", "bob"], party=PARTIES[:2])
    charged = ["--user-column", "user", "--spend"]
    (tmp_path / "parts").mkdir()
    for name, options in {"a": charged, "b": [], "parts/0.parquet": charged, "parts/1.parquet": []}.items():
        party("randomize", "party", source, "--column", "party", "--out", tmp_path / name, *options)
    for files in ([tmp_path / "a", tmp_path / "b"], [tmp_path / "parts"], [tmp_path / "a", tmp_path / "parts"]):
        told = party.error("estimate", "party", *files)
        assert "reports were not charged to their users, and the others were" in told
        assert "add --mixed" in told
        shown = party("estimate", "party", *files, "--mixed", "--json")
        assert "were not charged to their users: the estimate is of a mix" in shown.stderr
        row = json.loads(shown.stdout)
        assert (row["charged"], row["uncharged"]) == ((4, 2) if len(files) > 1 and files[1].is_dir() else (2, 2))
    for files in ([tmp_path / "a"], [tmp_path / "b"], [tmp_path / "b", tmp_path / "parts" / "1.parquet"]):
        shown = party("estimate", "party", *files, "--mixed", "--json")
        assert "the estimate is of a mix" not in shown.stderr
        assert "charged" not in json.loads(shown.stdout)


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"user": ["alice", ""]}, 1, "column user, row 2 below the header"),
        ({"party": ["independent", "other"]}, 1, "column party, row 2 below the header"),
        ({"options": ["--policy", "none"]}, 1, "no policy is named 'none'"),
        ({"options": ["--spend", "--user-column", "name"]}, 2, "has no column 'name'. Columns: user, party"),
        ({"options": ["--spend"]}, 2, "--user-column is missing: --spend needs the column of the users"),
        ({"out": "nowhere/r"}, 1, "nowhere does not exist. Nothing was written and no user was charged"),
        ({"out": "folder"}, 1, "cannot be written"),
    ],
)
def test_randomize_that_fails_charges_no_user(
    party: CommandLine, tmp_path: Path, changes: dict[str, Any], code: int, said: str
) -> None:
    (tmp_path / "folder").mkdir()
    users, answers = changes.get("user", ["alice", "bob"]), changes.get("party", ["independent"] * 2)
    source = table(tmp_path / "answers.csv", user=users, party=answers)
    options = ["--spend", "--user-column", "user"]
    if "options" in changes:
        options = changes["options"] if code == 2 else [*options, *changes["options"]]
    before = names(tmp_path)
    out = tmp_path / changes.get("out", "r")
    message = party("randomize", "party", source, "--column", "party", "--out", out, *options, code=code).stderr
    assert said in message
    assert party.json("balance", "alice")["limits"][0]["spent"]["epsilon"] == 0
    assert names(tmp_path) == before


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "party\nindependent\nother\n",
            "row 2 below the header: 'other' is not an answer: the domain is one of strong-democrat, ",
        ),
        ("party\nindependent\nIndependent\n", "'Independent' is not an answer"),
        ("party\nindependent\nindependents\n", "'independents' is not an answer"),
        ('party\nindependent\n""\n', "row 2 below the header: the answer is empty"),
        ('party,x\n"",1\n"",2\n', "row 1 below the header: the answer is empty"),
        ("party\nnan\n", "'nan' is not an answer"),
        ("party\n", "has no rows below its header"),
        ("age,party\n7\n", "line 2: 1 cell instead of 2, as in the header"),
        ("party,age\nindependent,7,8\n", "line 2: 3 cells instead of 2, as in the header"),
        ('party\n"independent\n', "line 2: unclosed quote"),
        (b"party\n\xff\n", "is not a CSV file in UTF-8"),
    ],
)
def test_randomize_with_an_invalid_answer_writes_nothing(
    party: CommandLine, tmp_path: Path, text: str | bytes, said: str
) -> None:
    source = tmp_path / "answers.csv"
    source.write_bytes(text if isinstance(text, bytes) else text.encode())
    before = names(tmp_path)
    message = party.error("randomize", "party", source, "--column", "party", "--out", tmp_path / "r", "--json")
    assert re.search(said, message), message
    assert "answers.csv" in message
    assert names(tmp_path) == before


def test_estimate_of_other_or_damaged_reports_is_refused(party: CommandLine, tmp_path: Path) -> None:
    source = table(tmp_path / "answers.csv", party=PARTIES)
    party("randomize", "party", source, "--column", "party", "--out", tmp_path / "r")
    party("collection", "add", "other", "oue", "--epsilon", "2", "--categories", ",".join(PARTIES))
    message = party.error("estimate", "other", tmp_path / "r", "--json")
    assert "its reports were made for collection party with fingerprint" in message
    whole = (tmp_path / "r").read_bytes()
    (tmp_path / "r").write_bytes(whole[:-1])
    assert "it is truncated" in party.error("estimate", "party", tmp_path / "r", "--json")
    (tmp_path / "r").write_bytes(source.read_bytes())
    assert "it does not start with" in party.error("estimate", "party", tmp_path / "r", "--json")


def test_collection_show_client_in_a_sandbox_keeps_its_digest(command: CommandLine) -> None:
    command("ledger", "init", "--sandbox")
    added = command.json("collection", "add", "party", "oue", "--epsilon", 1, "--domain-size", 3)
    definition = json.loads(command("collection", "show", "party", "--client").stdout)
    assert digest_of(definition) == definition["digest"] == added["client"]


def test_collection_with_a_changed_client_is_refused(command: CommandLine) -> None:
    command("collection", "add", "party", "oue", "--epsilon", 1, "--domain-size", 3)
    with Accountant(command.ledger) as accountant:
        made = replace(accountant.collection("party"), client="0" * 64)
    with pytest.raises(NotSupported, match=f"stored with the client {'0' * 64}, and the installed version of oue"):
        made.definition()
