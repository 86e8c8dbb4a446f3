"""`ldp-budget policy simulate`."""

from __future__ import annotations

import pytest

from command_line import CommandLine

OUE = ("oue", "--epsilon", "1", "--domain-size", "3")


@pytest.fixture
def planned(command: CommandLine) -> CommandLine:
    command("policy", "set", "default", "--limit", "lifetime=4", "--limit", "week=2")
    return command


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("default", *OUE), 2, "Missing option '--every'"),
        (("default", *OUE, "--every", "year"), 2, "'--every': 'year' is not one of 'day', 'week', 'month'"),
        (("default", *OUE, "--every", "day", "--from", "soon"), 2, "--from must be an ISO time from 1970"),
        (("default", *OUE, "--every", "day", "--reports", "0"), 2, "--reports must be a whole number from 1"),
        (("survey", *OUE, "--every", "day"), 1, "no policy is named 'survey'"),
        (("default", "nothing", "--every", "day"), 2, "No mechanism or collection is named 'nothing'"),
    ],
)
def test_simulate_with_wrong_arguments_names_the_mistake(
    planned: CommandLine, words: tuple[str, ...], code: int, told: str
) -> None:
    assert told in planned.error("policy", "simulate", *words, code=code)
