"""Commands of a survey with a rotation: they ask and charge only those whose turn it is, and estimate level and change."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import CommandLine
from ldp_budget import Accountant
from ldp_budget.sampling import SeededStream, rng

FILE = """
[survey]
name = "health"
epsilon = 1
rotate = 4
rounds = 8

[[question]]
name = "smoke"
kind = "yes-no"
"""
WEEKS = ("2026-11-02", "2026-11-09", "2026-11-16", "2026-11-23", "2026-11-30")
MEMBERS = 80

pytestmark = pytest.mark.slow


@pytest.fixture
def health(command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """A sandbox with the survey, and a table of the members' answers."""
    source: Iterator[int] = iter(range(10_000))
    monkeypatch.setattr(rng, "_cryptographic_stream", lambda: SeededStream(next(source)))
    (tmp_path / "health.toml").write_text(FILE, encoding="utf-8")
    rows = [f"m{number},{'yes' if number % 4 else 'no'}" for number in range(MEMBERS)]
    (tmp_path / "members.csv").write_text("\n".join(["user,smoke", *rows]) + "\n", encoding="utf-8")
    command("ledger", "init", "--sandbox")
    at = "--at", "2026-11-01"
    command(*at, "policy", "set", "default", "--limit", "lifetime=4", "--limit", "22d=1")
    command(*at, "survey", "add", tmp_path / "health.toml")
    return command


def week(health: CommandLine, folder: Path, day: str, *more: Any) -> dict[str, Any]:
    """One week of the panel."""
    table = folder / "members.csv"
    given = "--user-column", "user", "--spend", "--out", folder / f"{day}.reports"
    found: dict[str, Any] = health.json("--at", day, "randomize", "health", table, *given, *more)
    return found


def spent(health: CommandLine) -> dict[str, float]:
    with Accountant(health.ledger, sandbox=True) as accountant:
        users = [f"m{number}" for number in range(MEMBERS)]
        return {user: accountant.balance(user).to_row()["limits"][0]["spent"]["epsilon"] for user in users}


def test_each_week_charges_only_those_whose_turn_it_is(health: CommandLine, tmp_path: Path) -> None:
    found = [week(health, tmp_path, day) for day in WEEKS[:4]]
    assert [each["period"] for each in found] == list(WEEKS[:4])
    assert sum(each["asked"] for each in found) == MEMBERS
    assert all(each["asked"] + each["not_asked"] == MEMBERS for each in found)
    assert all((each["reports"], each["refused"]) == (each["asked"], 0) for each in found)
    assert set(spent(health).values()) == {1.0}


def test_refused_members_are_not_replaced(health: CommandLine, tmp_path: Path) -> None:
    for number in range(MEMBERS):
        if number % 3 == 0:
            health("--at", WEEKS[0], "spend", f"m{number}", "randomized-response", "--epsilon", "0.5")
    found = week(health, tmp_path, WEEKS[0])
    assert found["refused"] > 0
    assert found["reports"] == found["asked"] - found["refused"]
    assert set(spent(health).values()) == {0.0, 0.5, 1.0}


def test_second_turn_in_a_week_is_refused_by_the_sliding_limit(health: CommandLine, tmp_path: Path) -> None:
    first = week(health, tmp_path, WEEKS[0])
    again = week(health, tmp_path, "2026-11-08")
    assert (again["reports"], again["refused"]) == (0, first["asked"])
    assert week(health, tmp_path, WEEKS[4])["reports"] == first["asked"], "the next turn was refused"


def test_run_without_json_says_how_many_were_asked(health: CommandLine, tmp_path: Path) -> None:
    given = "--user-column", "user", "--spend", "--out", tmp_path / "w.reports"
    said = health("--at", WEEKS[1], "randomize", "health", tmp_path / "members.csv", *given).stderr
    asked = week(health, tmp_path, WEEKS[1])["asked"]
    assert f"week of 2026-11-09: {asked} of {MEMBERS} asked, {asked} answered" in said


def test_invite_makes_links_for_the_turn_alone_until_the_period_ends(health: CommandLine, tmp_path: Path) -> None:
    from datetime import UTC, datetime

    from ldp_budget_service.invitations import Invitations

    made = health("--at", "2026-11-04", "invite", "health", tmp_path / "members.csv")
    links = {row["user"]: row["link"] for row in csv.DictReader(io.StringIO(made.stdout))}
    assert f"week of 2026-11-02: {len(links)} of {MEMBERS} asked" in made.stderr
    assert week(health, tmp_path, "2026-11-04")["asked"] == len(links)
    with Accountant(health.ledger, sandbox=True, clock=lambda: datetime(2026, 11, 5, tzinfo=UTC)) as accountant:
        token = next(iter(links.values())).partition("#")[2].partition("~")[0]
        invitation = Invitations(accountant).find(token)
    assert invitation is not None
    assert (invitation.round, invitation.expires) == ("2026-11-02", datetime(2026, 11, 9, tzinfo=UTC))
    later = health("--at", "2026-11-05", "invite", "health", tmp_path / "members.csv", "--period", "2026-11-12")
    assert "week of 2026-11-09: " in later.stderr


def test_estimate_by_round_shows_the_level_of_all_parts_and_the_changes(health: CommandLine, tmp_path: Path) -> None:
    for day in WEEKS:
        week(health, tmp_path, day)
    files = [tmp_path / f"{day}.reports" for day in WEEKS]
    four = health.json("estimate", "health", *files[:4], "--by-round")["smoke"]
    assert len(four["groups"]) == 4
    assert four["design_effect"] == pytest.approx(1, abs=0.3), "the parts were taken for rounds of the same people"
    level = {row["answer"]: row for row in four["answers"]}["yes"]
    parts = [{row["answer"]: row for row in each["answers"]}["yes"]["share"] for each in four["groups"]]
    assert level["share"] == pytest.approx(sum(parts) / 4), "the parts are equally large, refusals or not"
    assert level["share_low"] <= level["share"] <= level["share_high"]
    changes = [row for row in four["differences"] if row["answer"] == "yes"]
    assert [(row["group"], row["other"]) for row in changes] == [
        (f"{later}.reports", f"{day}.reports") for day, later in itertools.pairwise(WEEKS[:4])
    ]
    assert changes[0]["difference"] == pytest.approx(parts[1] - parts[0])
    assert changes[0]["low"] < changes[0]["difference"] < changes[0]["high"]
    five = health.json("estimate", "health", *files, "--by-round")["smoke"]
    assert five["design_effect"] > 1.5, "five weeks of four parts have a part twice"
    pairs = {(row["group"], row["other"]) for row in five["differences"]}
    assert (f"{WEEKS[4]}.reports", f"{WEEKS[0]}.reports") in pairs


def test_estimate_by_round_of_a_single_file_has_one_round(health: CommandLine, tmp_path: Path) -> None:
    week(health, tmp_path, WEEKS[0])
    file = tmp_path / f"{WEEKS[0]}.reports"
    found = health.json("estimate", "health", file, "--by-round")["smoke"]
    assert [each["group"] for each in found["groups"]] == [file.name]
    shares = [
        [(row["share"], row["share_low"], row["share_high"]) for row in each["answers"]]
        for each in (found, *found["groups"])
    ]
    assert shares[0] == shares[1]


def unequal_weeks(health: CommandLine, folder: Path) -> list[Path]:
    """Five weeks of a panel in two regions; every other week only a third of the members can be reached."""
    for place, day in enumerate(WEEKS):
        reached = range(0, MEMBERS, 3 if place % 2 else 1)
        rows = [f"m{number},{'yes' if number % 4 else 'no'},{'land' if number % 5 else 'city'}" for number in reached]
        (folder / "members.csv").write_text("\n".join(["user,smoke,region", *rows]) + "\n", encoding="utf-8")
        week(health, folder, day, "--public", "region")
    return [folder / f"{day}.reports" for day in WEEKS]


def test_estimate_of_groups_counts_the_parts_of_a_turn_alike(health: CommandLine, tmp_path: Path) -> None:
    """`--by` took the parts as large as their answers, so its level was another one than that of `--by-round`."""
    files = unequal_weeks(health, tmp_path)
    shares = {}
    for more in (("--by-round",), ("--by", "region"), ("--by", "region", "--population", MEMBERS)):
        for number in (2, 4, 5):
            if not ("--population" in more and number > 4):
                found = health.json("estimate", "health", *files[:number], *more)["smoke"]
                shares[more, number] = [row["share"] for row in found["answers"]]
    for (_, number), found in shares.items():
        assert found == pytest.approx(shares[("--by-round",), number])


def test_population_of_a_rotation_that_cannot_be_corrected_for_says_what_to_do(
    health: CommandLine, tmp_path: Path
) -> None:
    """Five weeks of four parts were taken for as many different people as they have reports."""
    files = unequal_weeks(health, tmp_path)
    said = health.error("estimate", "health", *files, "--population", MEMBERS)
    assert "5 files of health ask some of its 4 parts twice. Name the files of one turn." in said
    said = health.error("estimate", "health", *files[:4], "--by-round", "--population", MEMBERS, code=2)
    assert "Leave --by-round out: name one file, or the 4 files of a turn for their level." in said
    health("estimate", "health", *files[:4], "--population", MEMBERS)
    health("estimate", "health", files[4], "--population", MEMBERS)


def test_period_without_a_rotation_or_a_charge_is_refused(health: CommandLine, tmp_path: Path) -> None:
    table, out = tmp_path / "members.csv", tmp_path / "x.reports"
    said = health.error("randomize", "health", table, "--out", out, "--period", WEEKS[0], code=2)
    assert "--period is for charges of a survey with rotate: add --spend. Leave it out." in said
    health(
        "--at", WEEKS[0], "collection", "add", "mood", "randomized-response", "--epsilon", 1, "--categories", "no,yes"
    )
    said = health.error("--at", WEEKS[0], "invite", "mood", table, "--period", WEEKS[0], code=2)
    assert "--period is for a survey with rotate. Leave it out." in said


def test_survey_add_says_which_limit_enforces_the_rotation(command: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "health.toml").write_text(FILE, encoding="utf-8")
    said = command("survey", "add", tmp_path / "health.toml").stderr
    assert "asks 1 of 4 parts of the users, and nobody twice within 22 days" in said
    assert "ldp-budget policy set default --limit 22d=1 --limit lifetime=2" in said
