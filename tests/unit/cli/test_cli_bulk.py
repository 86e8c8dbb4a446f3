"""Bulk commands say what they do: no user is left out, charged twice or passed over in silence."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from command_line import CommandLine
from half_poll import OUE, poll_of_a_half
from ldp_budget.accounting import bulk_run
from ldp_budget.reports import charged_release
from ldp_budget_cli import spend


@pytest.fixture
def budget(command: CommandLine, begun: Any) -> CommandLine:
    """A ledger with a lifetime limit of 1 and a poll that costs half of it."""
    begun(poll_of_a_half, command)
    return command


def file_of(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def spent(budget: CommandLine, *users: str) -> list[float]:
    return [budget.json("balance", user)["limits"][0]["spent"]["epsilon"] for user in users]


# -- the first line of a list -----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["ann\nbob\n", "ann,Ulm\nbob,Bonn\n", "town,user\nUlm,ann\n"])
def test_first_line_that_may_be_a_user_is_an_error(budget: CommandLine, tmp_path: Path, text: str) -> None:
    message = budget.error("spend-many", file_of(tmp_path / "list.csv", text), *OUE, code=2)
    first = text.splitlines()[0].partition(",")[0]
    assert f"Is '{first}' (line 1 of " in message
    assert "add --no-header. If it is a header, add --user-column NAME" in message
    assert spent(budget, "ann", "bob", "Ulm") == [0, 0, 0]


# -- users who are listed twice ---------------------------------------------------------------------------------

TWICE = "user,answer\nann,yes\nbob,no\nann,no\nann,perhaps\ncy,no\ncy,no\n"


@pytest.fixture
def randomize(budget: CommandLine, tmp_path: Path) -> Callable[..., Any]:
    """Randomize a file for the poll."""

    def run(text: str, *options: object, column: str = "answer", code: int = 0) -> Any:
        source = file_of(tmp_path / "answers.csv", text)
        out = [tmp_path / "r", *([] if "--spend" in options else ["--overwrite"])]
        return budget("randomize", "poll", source, "--column", column, *options, "--out", *out, code=code)

    return run


SPELT = "user,answer\nZoë,yes\n Zoë,no\nZoe\u0308\t,no\nzoë,yes\nann,no\nAnn ,no\n"
CASE = "Warning: 4 names differ from another name only by case or spaces, and each has its own budget"


@pytest.mark.slow
def test_spellings_of_one_name_are_one_user(
    budget: CommandLine, tmp_path: Path, randomize: Callable[..., Any]
) -> None:
    """A trailing space, a tab or another Unicode form gave a user in a CSV file a budget of their own."""
    told = randomize(SPELT, "--user-column", "user", "--spend").stderr
    assert "Warning: 1 user appears more than once and is charged for each row (2 extra charges)" in told
    assert CASE in told
    assert spent(budget, "Zoë", "zoë", "ann", "Ann") == [1, 0.5, 0.5, 0.5], "and the third report was refused"
    assert CASE in budget("spend-many", tmp_path / "answers.csv", *OUE).stderr
    listed = budget("spend-many", "-", *OUE, "--once", input=SPELT)
    assert CASE in listed.stderr
    assert "appears more than once" not in listed.stderr
    (tmp_path / "r").unlink()
    once = randomize(SPELT, "--user-column", "user", "--spend", "--once").stderr
    assert "2 rows left out: a repeated user (--once)" in once
    (tmp_path / "r").unlink()
    blank = randomize('user,answer\nann,yes\n" ",no\n', "--user-column", "user", code=1).stderr
    assert "the user is missing" in blank


@pytest.mark.slow
def test_randomize_with_once_charges_each_user_once(
    budget: CommandLine, tmp_path: Path, randomize: Callable[..., Any]
) -> None:
    done = randomize(TWICE, "--user-column", "user", "--spend", "--once")
    assert "Warning" not in done.stderr
    assert "3 rows left out: a repeated user (--once)" in done.stderr
    assert "3 reports written" in done.stderr
    assert spent(budget, "ann", "bob", "cy") == [0.5, 0.5, 0.5]
    again = budget("spend-many", tmp_path / "answers.csv", *OUE, "--once")
    assert (again.stdout, "Warning" in again.stderr) == ("spent: 3, refused: 0, repeated: 0\n", False)
    assert "--once needs --spend" in randomize(TWICE, "--once", code=2).stderr


@pytest.mark.slow
def test_json_of_randomize_counts_the_rows_that_once_leaves_out(
    tmp_path: Path, randomize: Callable[..., Any]
) -> None:
    """The count was in the notes alone."""
    found = json.loads(randomize(TWICE, "--user-column", "user", "--spend", "--once", "--json").stdout)
    assert (found["reports"], found["repeated_rows"]) == (3, 3)
    (tmp_path / "r").unlink()
    assert "repeated_rows" not in json.loads(randomize(TWICE, "--user-column", "user", "--spend", "--json").stdout)


# -- who was charged --------------------------------------------------------------------------------------------


# -- Ctrl-C -----------------------------------------------------------------------------------------------------


@contextmanager
def stopping(what: str, users: int | None) -> Iterator[Callable[[int], None]]:
    """Replace the progress bar by a user who stops the command in the second batch."""
    batches = iter([None])

    def advance(batch: int) -> None:
        if next(batches, batch) is not None:
            raise KeyboardInterrupt

    yield advance


@pytest.mark.slow
def test_stopped_run_without_a_key_prints_a_key_to_continue(
    budget: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = file_of(tmp_path / "list.csv", "user\n" + "".join(f"u{number}\n" for number in range(6)))
    monkeypatch.setattr(bulk_run, "BATCH", 2)
    with monkeypatch.context() as patch:
        patch.setattr(spend, "counting", stopping)
        message = budget.error("spend-many", people, *OUE, code=130)
    told = re.search(
        r"Stopped: 4 users were charged and 0 refused. To continue, run the same command again with (--key \S+) \(",
        message,
    )
    assert told is not None, message
    assert message.rstrip().endswith("(it charges no user twice).")
    done = budget("spend-many", people, *OUE, *told[1].split())
    assert done.stdout == "spent: 2, refused: 0, repeated: 4\n"
    assert spent(budget, *(f"u{number}" for number in range(6))) == [0.5] * 6


def test_file_with_a_wrong_row_charges_no_user(
    budget: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_run, "BATCH", 2)
    people = file_of(tmp_path / "list.csv", 'user\na\nb\nc\n""\n')
    assert "line 5, column user: the user is missing. To leave" in budget.error("spend-many", people, *OUE)
    assert spent(budget, "a") == [0]


@pytest.mark.slow
def test_stopped_randomize_continues_with_the_same_command(
    budget: CommandLine, monkeypatch: pytest.MonkeyPatch, randomize: Callable[..., Any]
) -> None:
    monkeypatch.setattr(charged_release, "_BATCH", 2)
    text = "user,answer\n" + "".join(f"u{number},yes\n" for number in range(6))
    options = ["--user-column", "user", "--spend"]
    with monkeypatch.context() as patch:
        patch.setattr(importlib.import_module("ldp_budget_surveys.commands.randomize"), "counting", stopping)
        message = randomize(text, *options, code=130).stderr
    assert "Stopped: 4 of 6 users charged or refused. To continue, run the same command again" in message
    assert "r.partial and charges no user twice" in message
    assert "6 reports written" in randomize(text, *options).stderr
    assert spent(budget, *(f"u{number}" for number in range(6))) == [0.5] * 6


@pytest.mark.parametrize(
    ("words", "module", "name", "said"),
    [
        (["balance", "ann"], "app", "ledger_path", "Nothing was changed. Run it again."),
        (["policy", "list"], "app", "ledger_path", "To see: ldp-budget policy list"),
        (["erase", "ann", "--yes"], "app", "ledger_path", "Run the same command again"),
        (["spend", "ann", "poll", "--key", "k"], "spend", "_answer", "it charges nothing twice"),
        (["spend", "ann", "poll"], "spend", "_answer", "To see: ldp-budget history ann"),
    ],
)
def test_stopped_command_ends_with_a_sentence(
    budget: CommandLine, monkeypatch: pytest.MonkeyPatch, words: list[str], module: str, name: str, said: str
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    budget("spend", "ann", "poll")
    monkeypatch.setattr(importlib.import_module(f"ldp_budget_cli.{module}"), name, stop)
    message = budget.error(*words, code=130)
    assert message.startswith("Stopped: ")
    assert said in message
    assert message.count("\n") == 1


# -- sketches are estimated from the command line -----------------------------------------------------------------
