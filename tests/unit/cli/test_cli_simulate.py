"""`ldp-budget policy simulate`."""

from __future__ import annotations

import json

import pytest

from command_line import CommandLine

SIMULATE = ("policy", "simulate", "default")
OUE = ("oue", "--epsilon", "1", "--domain-size", "3")


@pytest.fixture
def planned(command: CommandLine) -> CommandLine:
    command("policy", "set", "default", "--limit", "lifetime=4", "--limit", "week=2")
    return command


@pytest.mark.slow
def test_simulate_agrees_with_a_sandbox(command: CommandLine) -> None:
    command("ledger", "init", "--sandbox")
    limits = ("--limit", "lifetime=5", "--limit", "week=2", "--limit", "day=1")
    command("policy", "set", "default", *limits, "--at", "2028-02-26")  # a Saturday
    lifetime, week, day = command.json(*SIMULATE, *OUE, "--every", "day", "--at", "2028-02-26")
    assert (lifetime["binds_at"], lifetime["report"], lifetime["charged"]) == ("2028-03-07T00:00:00Z", 11, 5)
    assert (week["binds_at"], week["report"], week["charged"]) == ("2028-03-01T00:00:00Z", 5, 4)
    assert (day["binds_at"], day["report"], day["charged"]) == (None, None, 5)
    assert lifetime["sandbox"] is True
    happened: dict[str, tuple[str, int]] = {}
    days = [*(f"2028-02-{day}" for day in range(26, 30)), *(f"2028-03-0{day}" for day in range(1, 8))]
    for number, at in enumerate(days, 1):
        refused = number in (5, 6, 7, 8, 9, 11)
        spent = command("spend", "alice", *OUE, "--json", "--at", at, code=3 if refused else 0)
        for period in json.loads(spent.stdout)["binding"]:
            happened.setdefault(period, (f"{at}T00:00:00Z", number))
    assert happened == {"week": (week["binds_at"], 5), "lifetime": (lifetime["binds_at"], 11)}


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
