"""`spend-many`: every user of a file or a stream is charged, and errors name the wrong input."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import CommandLine
from ldp_budget.accounting import bulk_run

OUE = ["oue", "--epsilon", "0.6", "--domain-size", "3"]


@pytest.fixture
def budget(command: CommandLine) -> CommandLine:
    """A ledger with a lifetime limit of 1."""
    command("policy", "set", "default", "--limit", "lifetime=1")
    return command


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text("id,town\nann,Ulm\nbob,Bonn\nann,Ulm\n")
    return path


def spent(budget: CommandLine, user: str) -> float:
    epsilon: float = budget.json("balance", user)["limits"][0]["spent"]["epsilon"]
    return epsilon


def test_spend_many_charges_every_user_of_a_file(budget: CommandLine, people: Path) -> None:
    done = budget("spend-many", people, *OUE)
    assert done.stdout == "spent: 2, refused: 1, repeated: 0\n"
    assert "charging" in done.stderr
    assert (spent(budget, "ann"), spent(budget, "bob")) == (0.6, 0.6)


def test_spend_many_reads_a_stream(budget: CommandLine) -> None:
    done = budget("spend-many", "-", *OUE, input="id\na\nb\n")
    assert done.stdout == "spent: 2, refused: 0, repeated: 0\n"
    assert "charging" in done.stderr
    assert spent(budget, "a") == 0.6


def test_spend_many_with_refused_to_writes_the_refused_users(
    budget: CommandLine, people: Path, tmp_path: Path
) -> None:
    refused = tmp_path / "refused.csv"
    refused.write_text("an older one\n")
    budget("spend-many", people, *OUE, "--refused-to", refused)
    assert refused.read_text().splitlines() == ["user", "ann"]
    assert sorted(path.name for path in tmp_path.glob("refused*")) == ["refused.csv"]


@pytest.mark.parametrize(
    ("text", "options", "code", "said"),
    [
        (None, [], 1, "Cannot read {}: No such file or directory"),
        ("", [], 1, "{} is empty: it has no header line"),
        ("id\na\n", ["--user-column", "nope"], 2, "{} has no column 'nope'. Columns: id"),
        ("id,id\na,a\n", ["--user-column", "id"], 2, "{} has 2 columns named 'id'"),
        ('id\na\n""\n', [], 1, "{}, line 3, column id: the user is missing"),
        ("id,town\na,Ulm\nb\n", [], 1, "{}, line 3: 1 cell instead of 2, as in the header"),
        ("id\na\n", ["--policy", "nope"], 1, "no policy is named 'nope'"),
    ],
)
def test_spend_many_with_a_wrong_list_keeps_the_older_file(
    budget: CommandLine, tmp_path: Path, text: str | None, options: list[str], code: int, said: str
) -> None:
    source, refused = tmp_path / "users.csv", tmp_path / "refused.csv"
    if text is not None:
        source.write_text(text)
    refused.write_text("an older one\n")
    message = budget.error("spend-many", source, *OUE, *options, "--refused-to", refused, code=code)
    assert said.format(source) in message
    assert "charging" not in message
    assert refused.read_text() == "an older one\n"
    assert not list(tmp_path.glob("*.new"))
    assert spent(budget, "a") == 0


@pytest.mark.parametrize(
    ("place", "why"), [("", "it is not a regular file"), ("no/r.csv", "No such file or directory")]
)
def test_spend_many_with_an_unwritable_refused_to_charges_no_user(
    budget: CommandLine, people: Path, tmp_path: Path, place: str, why: str
) -> None:
    path = tmp_path / place
    message = budget.error("spend-many", people, *OUE, "--refused-to", path)
    assert f"--refused-to: cannot write {path}: {why}" in message
    assert spent(budget, "ann") == 0


@pytest.mark.slow
def test_shards_of_a_run_charge_every_user_once(
    budget: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_run, "BATCH", 2)
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["id", *"abcdefg"]))
    run = ["spend-many", path, *OUE, "--key", "monday", "--shard"]
    assert budget(*run, "2/3").stdout == "spent: 2, refused: 0, repeated: 0\n"
    assert budget(*run, "1/3").stdout == "spent: 3, refused: 0, repeated: 0\n"
    assert [spent(budget, user) for user in "abcdefg"] == [0.6, 0.6, 0.6, 0.6, 0, 0, 0.6]
    # The run continues whole, or in other shards.
    assert budget(*run[:-1]).stdout == "spent: 2, refused: 0, repeated: 5\n"
    assert budget(*run, "1/2").stdout == "spent: 0, refused: 0, repeated: 4\n"


@pytest.mark.parametrize("shard", ["0/2", "3/2", "2", "1/0", "a/b", "1/2/3", "-1/2", "²/3"])
def test_invalid_shard_is_wrong_usage(budget: CommandLine, people: Path, shard: str) -> None:
    done = budget("spend-many", people, *OUE, "--key", "monday", "--shard", shard, code=2)
    assert f"--shard must be I/N, two whole numbers with I from 1 to N, such as 2/4: got {shard}" in done.stderr
    assert spent(budget, "ann") == 0


def test_shard_needs_a_key_and_may_be_empty(budget: CommandLine, people: Path) -> None:
    assert "--shard needs --key RUN" in budget("spend-many", people, *OUE, "--shard", "1/2", code=2).stderr
    done = budget("spend-many", people, *OUE, "--key", "monday", "--shard", "2/2")
    assert done.stdout == "spent: 0, refused: 0, repeated: 0\n"
    assert done.stderr.endswith(f"no batch of column id of {people} is in shard 2/2, so no user was charged\n")


@pytest.fixture
def team(budget: CommandLine) -> CommandLine:
    """The ledger has an API key with the name team."""
    budget("api-key", "create", "team", "--scope", "spend")
    return budget


def test_spend_many_with_a_caller_is_the_run_of_that_api_key(team: CommandLine, people: Path) -> None:
    arguments = ["spend-many", people, *OUE, "--key", "monday", "--caller", "team"]
    assert team(*arguments).stdout.startswith("spent: 2, refused: 1, repeated: 0")
    assert team(*arguments).stdout.startswith("spent: 0, refused: 1, repeated: 2")
    assert "another caller" not in team(*arguments).stderr
    assert team.json("history", "bob")[0]["by"] == "team"


def test_spend_many_without_a_caller_notes_that_a_service_charges_again(team: CommandLine, people: Path) -> None:
    done = team("spend-many", people, *OUE, "--key", "monday")
    assert "Through a service, --key monday is a run of another caller" in done.stderr
    assert "--caller NAME" in done.stderr


def test_spend_many_with_a_wrong_caller_charges_no_user(team: CommandLine, people: Path) -> None:
    assert "'nobody'. API keys: team" in team.error(
        "spend-many", people, *OUE, "--key", "monday", "--caller", "nobody"
    )
    assert "--caller needs --key" in team.error("spend-many", people, *OUE, "--caller", "team", code=2)
    assert team.json("ledger", "stats")["entries_by_kind"].get("spent", 0) == 0


def test_spend_many_with_a_key_and_no_api_keys_prints_no_note(budget: CommandLine, people: Path) -> None:
    assert "another caller" not in budget("spend-many", people, *OUE, "--key", "monday").stderr
