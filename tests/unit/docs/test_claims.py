"""Figures that README and guides state in prose and tables: each is computed again."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from ldp_budget import compose, mechanism
from ldp_budget.registry.plugins import registry
from ldp_budget_surveys.margin_planning import plan_question
from ldp_budget_surveys.planning.ranking import rank_frequency

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def rows(page: str, head: str) -> list[list[str]]:
    """The cells of the table whose header begins so."""
    below = page.partition(f"\n{head}")[2].splitlines()[2:]
    end = next((at for at, line in enumerate(below) if not line.startswith("|")), len(below))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in below[:end]]


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("row", rows(README, "| people |"), ids=lambda row: row[0])
def test_readme_table_of_margins_has_the_planned_figures(row: list[str]) -> None:
    people = int(row[0].replace(",", ""))
    for (answers, epsilon), shown in zip([(2, "1"), (10, "1"), (10, "0.1")], row[1:], strict=True):
        margin = 100 * plan_question(answers, epsilon=epsilon, respondents=people)["margin"]
        digits = len(shown.partition(".")[2])
        assert shown == ("none" if margin > 100 else f"± {margin:.{digits}f}")


def test_readme_table_of_rules_has_the_composed_totals() -> None:
    guarantee = mechanism("oue").calibrate(epsilon="0.5", domain_size=7).guarantee
    found = {row[0].split()[0].strip("`,"): row[1] for row in rows(README, "| rule |")}
    assert set(found) == {"basic", "zcdp", "renyi", "exact"}
    for rule, shown in found.items():
        assert f"{compose([(guarantee, 365)], delta='1e-6', rule=rule).epsilon:.1f}" == shown


def test_readme_counts_the_built_in_mechanisms(survey: list[dict[str, str]]) -> None:
    names = {found.name for found, _ in registry().items()}
    assert f"**Calibrate and compare** {len(names - {'declared'})} mechanisms" in README
    assert len(survey) == 944
    assert len({row["party"] for row in survey}) == 7


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "stated"), [("1", 5), ("2", 11)])
def test_choosing_guide_states_up_to_how_many_answers_grr_is_best(epsilon: str, stated: int) -> None:
    """The guide used 3e^ε + 2, the bound against OUE, and `compare` disagreed."""
    assert "5 answers at ε = 1, 11 at ε = 2" in page("guides/choosing-a-mechanism.md")
    errors = {}
    for answers in (stated, stated + 1):
        ranking = {row["mechanism"]: row["mean_std_error"] for row in rank_frequency(epsilon, answers, 10_000)}
        errors[answers] = ranking["random-substitution"] / ranking["subset-selection"]
    assert errors[stated] == pytest.approx(1, abs=1e-9)
    assert errors[stated + 1] > 1.0001


@pytest.mark.parametrize(
    "row", rows(page("explanation/choosing-epsilon.md"), "| ε | the odds"), ids=lambda row: row[0]
)
def test_choosing_epsilon_table_bounds_odds_and_beliefs_from_above(row: list[str]) -> None:
    epsilon = float(row[0])
    factor, belief = float(row[1].replace(",", "")), float(row[2].removesuffix(" %")) / 100
    assert math.exp(epsilon) <= factor < 1.01 * math.exp(epsilon)
    assert 1 / (1 + math.exp(-epsilon)) <= belief + 1e-12 < 1 / (1 + math.exp(-epsilon)) + 0.002


@pytest.mark.parametrize(
    ("name", "answers", "epsilon", "reports"),
    [("oue", 7, "0.5", 365), ("grr", 10, "0.5", 365), ("grr", 100, "1", 52)],
)
def test_rule_table_has_the_composed_totals(name: str, answers: int, epsilon: str, reports: int) -> None:
    guarantee = mechanism(name).calibrate(epsilon=epsilon, domain_size=answers).guarantee
    found = rows(page("explanation/which-composition-rule.md"), "| reports, total ε")
    [row] = [
        row[1:]
        for row in found
        if row[0].startswith(f"{reports} of {name.upper()}") and (name == "oue" or f"{answers} answers" in row[0])
    ]
    for rule, shown in zip(("basic", "zcdp", "renyi", "exact"), row, strict=True):
        total = compose([(guarantee, reports)], delta="1e-6", rule=rule).epsilon
        tenths = 10 ** len(shown.partition(".")[2])
        assert math.ceil(total * tenths) / tenths == float(shown), "rounded up"
