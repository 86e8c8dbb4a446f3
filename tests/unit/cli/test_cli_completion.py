"""Shell completion: also without a ledger, and without creating one."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from command_line import CommandLine
from ldp_budget_cli.app import COMMANDS, cli
from ldp_budget_cli.bash_completion import BashCompletion


def offered(*words: str) -> list[str]:
    """Return the words that may replace the last word."""
    *before, incomplete = words
    complete = ShellComplete(cli, {}, "ldp-budget", "_LDP_BUDGET_COMPLETE")
    return [item.value for item in complete.get_completions(before, incomplete)]


@pytest.fixture
def ledger(command: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    command("policy", "set", "default", "--limit", "lifetime=4")
    command("policy", "set", "daily", "--limit", "lifetime=4")
    command("collection", "add", "party", "oue", "--epsilon", "1", "--categories", "a,b")
    monkeypatch.setenv("LDP_BUDGET_LEDGER", str(command.ledger))


def test_completion_offers_commands_mechanisms_collections_and_policies(ledger: None) -> None:
    assert offered("") == list(COMMANDS)
    assert offered("rese") == ["reserve", "reservations"]
    assert offered("ledger", "re") == ["repair-clock", "restore"]
    assert offered("spend", "alice", "pa") == ["party"]
    assert {"oue", "rappor", "party"} <= set(offered("spend", "alice", ""))
    assert offered("spend", "alice", "collection:") == ["collection:party"]
    for words in (("collection", "show"), ("estimate",), ("randomize",)):
        assert offered(*words, "") == ["party"]
        assert offered(*words, "collection:p") == ["collection:party"]
    for words in (("policy", "show"), ("balance", "--policy"), ("spend", "alice", "party", "--policy")):
        assert offered(*words, "d") == ["daily", "default"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ldp-budget spend alice collection : pa", ["party"]),
        ("ldp-budget spend alice collection :", ["party"]),
        ("ldp-budget spend alice collection:pa", ["party"]),
        ("ldp-budget estimate collection : p", ["party"]),
        ("ldp-budget collection show pa", ["party"]),
        ("ldp-budget collection", ["collection"]),
    ],
)
def test_completion_in_bash_joins_the_words_of_a_collection(
    ledger: None, monkeypatch: pytest.MonkeyPatch, line: str, expected: list[str]
) -> None:
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    found = BashCompletion(cli, {}, "ldp-budget", "_LDP_BUDGET_COMPLETE").complete()
    assert [each.partition(",")[2] for each in found.splitlines()] == expected


@pytest.mark.parametrize("content", [None, b"", b"no ledger at all"], ids=["nothing", "an empty file", "something"])
def test_completion_without_a_ledger_creates_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    place = tmp_path / "place" / "budget.db"
    place.parent.mkdir()
    if content is not None:
        place.write_bytes(content)
    monkeypatch.setenv("LDP_BUDGET_LEDGER", str(place))
    assert offered("collection", "show", "") == offered("policy", "show", "") == []
    assert offered("spend", "alice", "ou") == ["oue"]
    assert "--key" in offered("spend", "alice", "party", "--")
    assert [file.name for file in place.parent.iterdir()] == ([] if content is None else ["budget.db"])
