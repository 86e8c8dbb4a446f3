"""Plans of panels: rotation against splitting ε and memoization."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path

import pytest

from command_line import CommandLine
from ldp_budget.errors import InvalidParameter
from ldp_budget_surveys.questionnaires.surveys import Survey
from ldp_budget_surveys.rotation_planning import compare_rotation

FILE = """
[survey]
name = "health"
epsilon = {epsilon}
rounds = 52
{rotate}

[[question]]
name = "smoke"
kind = "yes-no"
"""


def survey(folder: Path, epsilon: float, rotate: int) -> Survey:
    path = folder / "health.toml"
    path.write_text(FILE.format(epsilon=epsilon, rotate=f"rotate = {rotate}" if rotate else ""), encoding="utf-8")
    return Survey.from_toml(path)


def total(epsilon: float, share: float = 0.1) -> float:
    """The variance of one report of randomized response about the population (Warner 1965)."""
    return math.exp(epsilon) / math.expm1(epsilon) ** 2 + share * (1 - share)


@pytest.mark.parametrize(
    ("epsilon", "periods", "rounded"),
    [(1, 4, 4.0), (1, 12, 11.9), (1, 52, 51.4), (4, 12, 6.9), (8, 4, 0.7), (8, 12, 2.1), (8, 52, 9.0)],
)
def test_ratio_of_splitting_to_rotation_is_that_of_the_formula(
    tmp_path: Path, epsilon: int, periods: int, rounded: float
) -> None:
    [row] = compare_rotation(survey(tmp_path, epsilon, periods), 120_000)["questions"]
    ratio = total(epsilon / periods) / (periods * total(epsilon))
    assert row["split_to_rotate"] == pytest.approx(ratio, rel=0.002)  # the panel is not a multiple of the periods
    assert row["split_to_rotate"] == pytest.approx(rounded, abs=0.06)


def test_margins_are_those_of_the_variances(tmp_path: Path) -> None:
    [row] = compare_rotation(survey(tmp_path, 1, 10), 10_000)["questions"]
    assert row["rotate"]["margin"] == pytest.approx(1.959964 * math.sqrt(total(1) / 1000), rel=1e-6)
    assert row["rotate"]["change_margin"] == pytest.approx(row["rotate"]["margin"] * math.sqrt(2))
    noise = total(0.1) - 0.09
    assert row["split"]["change_margin"] == pytest.approx(1.959964 * math.sqrt((2 * noise + 0.05) / 10_000), rel=1e-6)
    assert row["memoize"]["change_margin"] == pytest.approx(
        1.959964 * math.sqrt(0.05 * (2 * (total(1) - 0.09) + 1) / 10_000), rel=1e-6
    )


@pytest.mark.parametrize(("epsilon", "answers"), [(1, 1), (2, 1), (4, 2), (8, 3)])
def test_members_answer_more_often_the_larger_epsilon_is(tmp_path: Path, epsilon: int, answers: int) -> None:
    made = survey(tmp_path, epsilon, 52)
    [row] = compare_rotation(made, 52_000)["questions"]
    variances = {times: total(epsilon / times) * 52 / times for times in range(1, 53)}
    assert row["best_answers"] == min(variances, key=lambda times: variances[times])
    assert abs(row["best_answers"] - answers) <= 1


def test_survey_without_a_rotation_is_planned_over_its_rounds(tmp_path: Path) -> None:
    found = compare_rotation(survey(tmp_path, 1, 0), 20_000)
    assert (found["periods"], found["every"], found["recommended"]) == (52, "round", "rotate")
    assert Decimal(found["questions"][0]["split"]["epsilon"]) == Decimal("0.019230769")


def test_panel_smaller_than_its_periods_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="panel"):
        compare_rotation(survey(tmp_path, 1, 52), 51)


@pytest.mark.slow
def test_plan_says_when_rotation_is_better_and_when_it_is_worse(command: CommandLine, tmp_path: Path) -> None:
    survey(tmp_path, 1, 52)
    said = command("plan", "--survey", tmp_path / "health.toml", "--panel", 20_000).stdout
    assert "Rotation has 51 times less variance than splitting ε over 52 periods." in said
    survey(tmp_path, 8, 4)
    said = command("survey", "plan", tmp_path / "health.toml", "--panel", 20_000).stdout
    assert "Rotation is worse here: splitting ε over 4 periods has 1.3 times less variance." in said
    assert command.json("plan", "--survey", tmp_path / "health.toml", "--panel", 20_000)["recommended"] == "split"
    error = command.error("plan", "--answers", 2, "--panel", 20_000, "--epsilon", 1, "--margin", "3%", code=2)
    assert "--panel needs --survey" in error


def test_plan_of_a_rotating_survey_totals_the_turns_of_one_person(command: CommandLine, tmp_path: Path) -> None:
    """The total was that of all rounds, though a person answers in 4 of 52."""
    survey(tmp_path, 2, 13)
    plan = "plan", "--survey", tmp_path / "health.toml", "--respondents", 900
    assert "ε = 2 in each of 4 of 52 rounds, 8 in all" in command(*plan).stdout
    assert command.json(*plan, "--total-epsilon", 4)["epsilon"] == "1"
