"""`--at`, and a ledger made with `ledger init --sandbox`."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from command_line import CommandLine

RR = ("rr", "--epsilon", "1")
SMALL = ("rr", "--epsilon", "0.25")


def of_2028(command: CommandLine) -> None:
    command("ledger", "init", "--sandbox")
    command("policy", "set", "default", "--limit", "lifetime=4", "--limit", "day=1", "--at", "2028-01-01")


@pytest.fixture
def sandbox(command: CommandLine, begun: Any) -> CommandLine:
    """Commands on a sandbox, with a policy of New Year's Day 2028."""
    begun(of_2028, command)
    return command


def files(command: CommandLine) -> dict[str, bytes]:
    folder = Path(command.ledger).parent
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


@pytest.mark.slow
def test_sandbox_plays_a_whole_survey(sandbox: CommandLine) -> None:
    assert sandbox("spend", "alice", *RR, "--at", "2028-02-28T23:59").stdout.startswith("spent: alice")
    assert (
        sandbox("spend", "alice", *RR, "--at", "2028-02-28T23:59:59.999999", code=3).stderr.count("refused: alice")
        == 1
    )
    assert sandbox("--at", "2028-02-29", "spend", "alice", *RR).stdout.startswith("spent: alice")
    assert sandbox.json("spend", "alice", *RR, "--at=2028-03-01T00:30+01:00", code=3)["status"] == "refused"
    assert sandbox.json("spend", "alice", *RR, "--at=2028-03-01T00:30Z")["status"] == "spent"
    at = [row["at"] for row in sandbox.json("history", "alice")]
    assert at == ["2028-02-28T23:59:00Z", "2028-02-29T00:00:00Z", "2028-03-01T00:30:00Z"]


@pytest.mark.exhaustive
def test_plot_of_a_sandbox_is_marked(sandbox: CommandLine, command: CommandLine, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    sandbox("collection", "add", "poll", "oue", "--epsilon", "1", "--categories", "yes,no", "--at", "2028-01-02")
    (tmp_path / "answers.csv").write_text("user,answer\nalice,yes\n", encoding="utf-8")
    told = ("--column", "answer", "--user-column", "user", "--spend", "--out", tmp_path / "one")
    sandbox("randomize", "poll", tmp_path / "answers.csv", *told, "--at", "2028-01-02")
    of_a_sandbox = (("estimate", "poll", tmp_path / "one"), ("balance", "alice"))
    for number, words in enumerate((*of_a_sandbox, (*of_a_sandbox[0], "--by-round"))):
        sandbox(*words, "--plot", tmp_path / f"{number}.svg")
        assert "Sandbox: " in (tmp_path / f"{number}.svg").read_text(encoding="utf-8")
    command("compare", "--epsilon", "1", "--domain-size", "4", "--users", "10", "--plot", tmp_path / "none.svg")
    assert "Sandbox" not in (tmp_path / "none.svg").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("agreed_on", ["the ledger", "a file"])
def test_reports_of_a_sandbox_are_refused_elsewhere(sandbox: CommandLine, tmp_path: Path, agreed_on: str) -> None:
    poll = ("collection", "add", "poll", "oue", "--epsilon", "1", "--categories", "yes,no")
    sandbox(*poll)
    (tmp_path / "answers.csv").write_text("user,answer\nalice,yes\n", encoding="utf-8")
    collection = "poll"
    if agreed_on == "a file":
        collection = str(tmp_path / "poll.json")
        Path(collection).write_text(sandbox("collection", "show", "poll", "--json").stdout, encoding="utf-8")
    out = tmp_path / "poll.reports"
    sandbox("randomize", collection, tmp_path / "answers.csv", "--column", "answer", "--out", out)
    assert sandbox.json("estimate", "poll", out)["reports"] == 1
    real = CommandLine(tmp_path / "real.db")
    real(*poll)
    assert "it was made in a sandbox, so its reports can only be used there" in real.error("estimate", "poll", out)


def test_reservation_expires_at_the_given_time(sandbox: CommandLine) -> None:
    receipt = sandbox.json("reserve", "alice", *RR, "--expires", "60", "--at", "2028-01-01T10:00")["receipt"]
    assert sandbox.json("commit", receipt, "--at", "2028-01-01T10:01")["status"] == "expired"


@pytest.mark.parametrize("before", ["spend", "balance", "history", "quote", "reserve"])
def test_time_before_the_newest_entry_is_refused(sandbox: CommandLine, before: str) -> None:
    sandbox("reserve", "alice", *RR, "--at", "2028-05-01T12:00")
    words = (before, "alice", *(RR if before in ("spend", "quote", "reserve") else ()))
    told = sandbox.error(*words, "--at", "2028-04-30")
    assert "before the newest entry of 2028-05-01 12:00:00+00:00. Nothing was charged" in told
    assert told.endswith(" Add --at 2028-05-01T12:00:00+00:00 or later\n")
    assert "repair" not in told


def test_repair_clock_of_a_sandbox_takes_the_given_time(sandbox: CommandLine) -> None:
    sandbox("spend", "alice", *RR, "--at", "2030-01-01")
    assert sandbox("ledger", "repair-clock", "--yes", "--at", "2028-06-01").stdout == "repaired\n"
    assert sandbox.json("balance", "alice", "--at", "2028-06-01")["limits"][1]["resets_at"] == "2028-06-02T00:00:00Z"


@pytest.mark.parametrize(
    "time",
    ["", "tomorrow", "2028-02-30", "2027-02-29", "1969-12-31", "9998-01-01", "2028-01-01T25:00", "12:00", "-1"],
)
def test_at_with_an_invalid_time_is_wrong_usage(sandbox: CommandLine, time: str) -> None:
    before = files(sandbox)
    told = sandbox.error("spend", "alice", *RR, "--at", time, code=2)
    assert "--at must be an ISO time from 1970 to 9997: got " in told
    assert f"got {time!r}" in told
    assert files(sandbox) == before


@pytest.mark.parametrize("time", ["0001-01-01T00:00+14:00", "9999-12-31T23:59-12:00"])
def test_at_with_a_time_off_the_calendar_is_wrong_usage(sandbox: CommandLine, time: str) -> None:
    assert f"got '{time}'" in sandbox.error("balance", "alice", "--at", time, code=2)


def test_at_without_a_value_is_wrong_usage(sandbox: CommandLine) -> None:
    assert "--at has no value. Write: --at 2027-03-01" in sandbox.error("balance", "alice", "--at", code=2)
    assert "'--at' requires an argument" in sandbox.error("--at", code=2)


@pytest.mark.parametrize(
    "words",
    [
        ("policy", "set", "default", "--limit", "lifetime=9"),
        ("spend", "alice", *RR),
        ("balance", "alice"),
        ("erase", "alice", "--yes"),
        ("ledger", "stats"),
        ("ledger", "repair-clock", "--yes"),
        ("collection", "list"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_at_with_a_real_ledger_is_refused(command: CommandLine, words: tuple[str, ...]) -> None:
    command("policy", "set", "default", "--limit", "lifetime=4")
    before = files(command)
    told = command.error(*words, "--at", "2099-01-01", code=2)
    assert "--at works with a sandbox ledger only" in told
    assert "Nothing was changed" in told
    assert files(command) == before


def test_at_creates_no_ledger(command: CommandLine) -> None:
    for words in (("policy", "set", "default", "--limit", "lifetime=4"), ("collection", "add", "party", *RR)):
        told = command.error(*words, "--at", "2028-01-01")
        assert "does not exist. --at needs a sandbox. Create one: ldp-budget ledger init --sandbox" in told
    assert "--at needs --sandbox" in command.error("ledger", "init", "--at", "2028-01-01", code=2)
    assert files(command) == {}
    assert command.json("ledger", "init", "--sandbox", "--at", "2028-01-01")["created"]


@pytest.mark.parametrize("kind", [(), ("--sandbox",)], ids=["counts", "sandbox"])
@pytest.mark.parametrize("there", [(), ("--sandbox",)], ids=["counts", "sandbox"])
def test_ledger_init_on_a_ledger_changes_nothing(
    command: CommandLine, kind: tuple[str, ...], there: tuple[str, ...]
) -> None:
    made = command("ledger", "init", *there)
    assert made.stdout.startswith(f"created {command.ledger} and its key file {command.ledger}.key. Back up both")
    before = files(command)
    told = command.error("ledger", "init", *kind)
    found = "a sandbox" if there else "a ledger"
    assert f"is {found} already. It was not changed" in told
    assert files(command) == before


# -- it says what it is in every output ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("policy", "list"),
        ("policy", "show", "default"),
        ("quote", "alice", *SMALL),
        ("spend", "alice", *SMALL),
        ("reserve", "alice", *SMALL),
        ("balance", "alice"),
        ("history", "alice"),
        ("erase", "alice", "--yes", "--unknown"),
        ("collection", "add", "party", *RR),
        ("collection", "list"),
        ("ledger", "stats"),
        ("ledger", "verify"),
        ("ledger", "checkpoint"),
        ("ledger", "repair-clock", "--yes"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_every_output_of_a_sandbox_is_marked(sandbox: CommandLine, words: tuple[str, ...]) -> None:
    sandbox("spend", "alice", *SMALL, "--at", "2028-01-01")
    said = f"Sandbox: nothing counts in {sandbox.ledger}\n"
    at = () if words[:2] == ("erase", "alice") else ("--at", "2028-01-02")
    printed = sandbox(*words, "--json", *at)
    assert printed.stderr == said
    value = json.loads(printed.stdout)
    for row in value if isinstance(value, list) else [value]:
        assert row["sandbox"] is True
    if "erase" not in words:
        assert sandbox(*words, *at).stderr.startswith(said)


def test_rows_and_files_of_a_sandbox_are_marked(sandbox: CommandLine, tmp_path: Path) -> None:
    sandbox("spend", "alice", *RR, "--at", "2028-01-01")
    for words in (("history", "alice", "--nl"), ("ledger", "export")):
        lines = [json.loads(line) for line in sandbox(*words).stdout.splitlines()]
        assert lines
        assert all(line["sandbox"] is True for line in lines)
    rows = list(csv.DictReader(io.StringIO(sandbox("ledger", "export", "--csv").stdout)))
    assert [row["sandbox"] for row in rows] == ["True", "True"]
    assert sandbox.json("ledger", "backup", tmp_path / "backup.db")["sandbox"] is True
    (tmp_path / "users.csv").write_text("user\nbob\n")
    assert sandbox.json("spend-many", tmp_path / "users.csv", *RR, "--at", "2028-01-02")["sandbox"] is True


def test_output_of_a_real_ledger_has_no_mark(command: CommandLine) -> None:
    assert command.json("ledger", "init") == {"ledger": str(command.ledger), "created": True}
    command("policy", "set", "default", "--limit", "lifetime=4")
    assert command("spend", "alice", *RR).stderr == ""
    assert "sandbox" not in command.json("balance", "alice")
    assert all("sandbox" not in row for row in command.json("history", "alice"))


def test_collection_of_a_sandbox_works_for_clients(sandbox: CommandLine, tmp_path: Path) -> None:
    shown = sandbox("collection", "add", "party", "oue", "--epsilon", "1", "--domain-size", "2", "--json").stdout
    (tmp_path / "party.json").write_text(shown)
    (tmp_path / "answers.csv").write_text("a\n0\n1\n")
    out = tmp_path / "reports"
    CommandLine(tmp_path / "none.db")(
        "randomize", tmp_path / "party.json", tmp_path / "answers.csv", "--column", "a", "--out", out
    )
    assert out.exists()
