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


def test_simulate_prints_a_table(planned: CommandLine) -> None:
    shown = planned(*SIMULATE, *OUE, "--every", "week", "--reports", "2", "--from", "2027-01-01T10:30")
    assert shown.stderr == ""
    assert shown.stdout.splitlines() == [
        "limit     rule   epsilon  delta  charged  report  binds first",
        "lifetime  basic  4        0            4  5       2027-01-15 10:30",
        "week      basic  2        0            4  -       never as the lifetime limit (basic) ends it on 2027-01-15",
    ]


def test_simulate_prints_rows(planned: CommandLine) -> None:
    asked = (*SIMULATE, *OUE, "--every", "month", "--from", "2027-01-31")
    lines = [json.loads(line) for line in planned(*asked, "--nl").stdout.splitlines()]
    assert lines == planned.json(*asked)
    assert lines[0] == {
        "period": "lifetime",
        "rule": "basic",
        "epsilon": 4.0,
        "delta": 0.0,
        "binds_at": "2027-05-31T00:00:00Z",
        "report": 5,
        "charged": 4,
        "never": None,
    }


def test_simulate_takes_a_collection(planned: CommandLine) -> None:
    planned("collection", "add", "party", *OUE)
    asked = ("--every", "day", "--from", "2027-01-01")
    assert planned.json(*SIMULATE, "party", *asked) == planned.json(*SIMULATE, *OUE, *asked)


@pytest.mark.slow
def test_simulate_follows_the_curve_of_a_memoized_value(planned: CommandLine) -> None:
    rappor = ("rappor", "--bits", "16", "--hashes", "2", "--cohorts", "4")
    epsilons = ("--epsilon", "1", "--epsilon-lifetime", "3")
    shown = planned(*SIMULATE, *rappor, *epsilons, "--every", "week", "--from", "2027-01-01")
    assert shown.stderr == "All reports repeat one memoized value; a new value starts at the beginning of its curve\n"


def test_simulate_writes_nothing(planned: CommandLine) -> None:
    before = planned.json("ledger", "stats")
    planned(*SIMULATE, *OUE, "--every", "day")
    assert planned.json("ledger", "stats") == before


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


def test_simulate_of_a_report_outside_the_plan_is_refused(command: CommandLine) -> None:
    command("collection", "add", "party", *OUE)
    command("policy", "set", "default", "--plan", "party=3")
    (plan,) = command.json(*SIMULATE, "party", "--every", "month", "--from", "2027-01-01")
    assert (plan["period"], plan["rule"], plan["report"], plan["binds_at"]) == (
        "plan",
        "exact",
        4,
        "2027-04-01T00:00:00Z",
    )
    told = command.error(*SIMULATE, "oue", "--epsilon", "2", "--domain-size", "3", "--every", "day")
    assert "the plan of policy default does not include this mechanism" in told
