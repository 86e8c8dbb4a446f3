"""Figures that people type back: rounded to the safe side, and different wherever the numbers differ."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_budget import Accountant, Limit, mechanism
from ldp_budget.accounting.receipts import LimitState
from ldp_budget.composition import compose
from ldp_budget.composition.rules import of_one_question
from ldp_budget.guarantees.fixed_point import Costs, float_up, printed, printed_apart, printed_down, printed_up
from ldp_budget_cli.limit_figures import receipt_lines, state_line
from ldp_budget_cli.safe_figures import safe_parameters, with_losses
from ldp_budget_cli.tables import Affordable, Loss, shown
from ldp_budget_surveys.planning.composition_comparison import maker, planned, total

positive = st.floats(1e-12, 1e9, allow_nan=False)
LAPLACE = mechanism("laplace")
GRR = mechanism("grr")
FILTERS = ("basic", "zcdp", "renyi")


@given(positive)
def test_printed_figure_is_on_the_safe_side(value: float) -> None:
    exact = Decimal(repr(value))
    assert Decimal(printed_down(value)) <= exact <= Decimal(printed_up(value))
    assert len(Decimal(printed_up(value)).normalize().as_tuple().digits) <= 6
    assert float(printed_up(value)) <= value * (1 + 1.1e-5)


def test_printed_figure_of_a_short_number_is_the_number() -> None:
    for text in ("1", "0.5", "1e-06", "0.166667", "100000", "1e+10", "0"):
        assert printed_up(float(text)) == printed_down(float(text)) == text
    assert printed_up(math.inf) == "unbounded"
    assert shown(with_losses({"epsilon": [1 / 3]})["epsilon"]) == "0.333334"


@given(positive, positive, st.integers(0, 12))
def test_printed_figures_that_differ_look_different(first: float, second: float, digits: int) -> None:
    near = float(printed(first, ROUND_CEILING, digits + 1))
    for one, other in ((first, second), (first, near), (first, math.nextafter(first, 2e9))):
        texts = printed_apart((one, ROUND_CEILING), (other, ROUND_FLOOR), (one, ROUND_FLOOR))
        assert one == other or texts[0] != texts[1] or texts[2] != texts[1]


def test_safe_parameters_lose_no_more_when_they_are_typed_back() -> None:
    gaussian = mechanism("gaussian").calibrate(epsilon=1, delta="1e-6")
    sigma = shown(safe_parameters(dict(gaussian.parameters))["sigma"])
    again = mechanism("gaussian")(sigma=sigma)
    assert compose([(again.guarantee, 1)], delta=Decimal("1e-6"), rule="gdp").epsilon <= 1.0000001
    unary = mechanism("oue").calibrate(epsilon=1, domain_size=4)
    p, q = (shown(safe_parameters(dict(unary.parameters))[name]) for name in "pq")
    assert mechanism("unary-encoding")(p=p, q=q, domain_size=4).guarantee.epsilon <= 1.0000001


# -- what `plan` and `compose` print, under every rule -----------------------------------------------------------


COUNTS = [*range(1, 40), 52, 97, 104, 200, 365, 400]


def fits(accountant: Accountant, epsilon: str, reports: int, total: str, delta: str, row: Any, rule: str) -> bool:
    """True if a new ledger's limit of a total admits so many reports, as they are typed."""
    named = f"{rule}:{row['order']:.15g}" if "order" in row else rule
    accountant.set_policy("p", [Limit("lifetime", epsilon=total, delta=delta, rule=named)])
    typed = LAPLACE(epsilon=epsilon, lower=0, upper=1)
    return not accountant.quote("u", typed, reports=reports, policy="p").binding


@pytest.mark.slow
@pytest.mark.parametrize("promised", ["1", "2.5", "0.7"])
@pytest.mark.parametrize("rule", FILTERS)
def test_planned_epsilon_fits_when_it_is_typed(rule: str, promised: str) -> None:
    delta = "0" if rule == "basic" else "1e-6"
    make = maker(LAPLACE, {"lower": 0, "upper": 1})
    with Accountant(":memory:") as accountant:
        for reports in COUNTS:
            row = planned(make, reports, Decimal(promised), Decimal(delta), rule)
            for text in (shown(Affordable(row["epsilon_per_report"])), repr(row["epsilon_per_report"])):
                assert fits(accountant, text, reports, promised, delta, row, rule), (reports, text)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.137", "1", "0.01"])
@pytest.mark.parametrize("rule", FILTERS)
def test_composed_epsilon_is_a_limit_that_admits_the_reports(rule: str, epsilon: str) -> None:
    delta = "0" if rule == "basic" else "1e-6"
    with Accountant(":memory:") as accountant:
        for reports in COUNTS:
            guarantee = LAPLACE(epsilon=epsilon, lower=0, upper=1).guarantee
            row = total(of_one_question(guarantee, reports, rule), Decimal(delta), rule)
            for text in (shown(Loss(row["epsilon"])), repr(row["epsilon"])):
                assert fits(accountant, epsilon, reports, text, delta, row, rule), (reports, text)


# -- refusals ----------------------------------------------------------------------------------------------------


@given(st.integers(1, 40), st.sampled_from(["1", "0.3", "7"]))
def test_refusal_shows_what_is_asked_above_what_is_left(reports: int, total: str) -> None:
    each = float_up(Decimal(total) / reports)
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon=total)])
        receipt = accountant.spend("u", GRR(epsilon=repr(each), domain_size=2), reports=reports)
        if receipt:
            receipt = accountant.spend("u", GRR(epsilon="1e-9", domain_size=2), reports=2)
        if receipt:
            return
    lines = list(receipt_lines(receipt))
    asked = lines[0].partition("ε = ")[2].partition(". Send")[0]
    left = lines[1].partition("spent, ")[2].partition(" left")[0]
    assert Decimal(asked) > Decimal(left)
    assert asked != left


def test_state_of_a_limit_shows_a_remainder_that_six_digits_would_hide() -> None:
    limit = Limit("lifetime", epsilon="1")
    line = state_line(LimitState(limit, Costs(999_999_999, 0, 0, 0), None), with_delta=False)
    assert line == "lifetime (basic): ε = 0.999999999 of 1 spent, 1e-09 left"


def test_refusal_under_another_rule_shows_its_own_unit() -> None:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon="1", delta="1e-6", rule="zcdp")])
        receipt = accountant.spend("u", GRR(epsilon="1", domain_size=2))
    assert "ρ = 0 of " in list(receipt_lines(receipt))[1]
    assert "; this needs " in list(receipt_lines(receipt))[1]
