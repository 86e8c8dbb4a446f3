"""`--at`, and a ledger made with `ledger init --sandbox`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from command_line import CommandLine

RR = ("rr", "--epsilon", "1")


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


# -- it says what it is in every output ---------------------------------------------------------------------------
