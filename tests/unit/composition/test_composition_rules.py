"""The four composition rules: their sums, their range, and their use in limits."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from composition_oracle import mp, mpf
from exact_numbers import golden_rows
from ldp_budget.composition import RULES, Bound, capacity, compose, compose_delta, filter_rule, measure_of, rule_named
from ldp_budget.composition.filters import epsilon_of_rho, gaussian_epsilon, log_bounds, suited_order
from ldp_budget.errors import InvalidParameter, NotSupported, UnknownName
from ldp_budget.guarantees import (
    Approximate,
    Copies,
    FinitePair,
    Gaussian,
    Guarantee,
    Laplace,
    Memoised,
    Pure,
    SymmetricPair,
    Unbounded,
    ZeroConcentrated,
)
from ldp_budget.guarantees.costs import measured
from ldp_budget.guarantees.fixed_point import MU_SQUARED_DIGITS, RHO_DIGITS, from_units

# -- basic ----------------------------------------------------------------------------------------------------


def test_basic_adds_exactly() -> None:
    """Ten times a tenth is one; in doubles it would not be."""
    total = compose([(Pure(0.1), 3), (Approximate(0.1, 1e-7), 7)], delta=1e-6)
    assert total == Bound(epsilon=1.0, lower=1.0, delta=7e-7)


def test_basic_has_no_epsilon_below_the_sum_of_the_deltas() -> None:
    total = compose([(Approximate(1, "1e-6"), 3)], delta="2e-6")
    assert (total.epsilon, total.delta) == (math.inf, 3e-6)


def test_basic_charges_a_gaussian_its_calibration_point_only() -> None:
    assert compose([(Gaussian("0.3", 1, "1e-5"), 2)], delta="2e-5").epsilon == 2
    with pytest.raises(NotSupported, match="gaussian"):
        compose([(Gaussian("0.3"), 2)], delta="2e-5")


# -- zcdp -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", golden_rows("zcdp_rho_rr") + golden_rows("zcdp_rho_laplace"))
def test_zcdp_rho_of_one_report_matches(row: dict[str, Any]) -> None:
    epsilon = row["params"]["eps"]
    guarantee = Laplace(epsilon) if row["fn"] == "zcdp_rho_laplace" else Pure(epsilon)
    rho = guarantee.amounts().rho
    # The reference is rounded to thirty digits.
    assert abs(mpf(str(rho)) / mpf(row["value"]) - 1) < 1e-28


@pytest.mark.parametrize("row", golden_rows("zcdp_to_eps_cks_opt"))
def test_zcdp_conversion_matches_the_optimum(row: dict[str, Any]) -> None:
    """Fifteen digits of these reference values are reliable."""
    epsilon = epsilon_of_rho(Decimal(row["params"]["rho"]), Decimal(row["params"]["delta"]))
    assert float(epsilon) == pytest.approx(float(row["value"]), rel=1e-14)


@given(
    st.decimals(min_value="1e-12", max_value=1000, places=12),
    st.integers(min_value=1, max_value=300),
    st.floats(min_value=1e-6, max_value=1e6),
)
def test_zcdp_conversion_is_optimal_over_all_orders(rho: Decimal, power: int, excess: float) -> None:
    """ε(α) at any other α > 1 is no smaller."""
    delta, alpha = mpf(10) ** -power, 1 + mpf(excess)
    r = mpf(str(rho))
    other = r * alpha + mp.log((alpha - 1) / alpha) - (mp.log(delta) + mp.log(alpha)) / (alpha - 1)
    assert mpf(str(epsilon_of_rho(rho, Decimal(10) ** -power))) <= max(other, 0) * (1 + mpf("1e-14"))


def renyi(pair: list[tuple[float, float]], alpha: float) -> float:
    return math.log(sum(p**alpha * q ** (1 - alpha) for p, q in pair)) / (alpha - 1)


@pytest.mark.parametrize(("epsilon", "tau"), [(4.0, 0.5), (2.0, 0.02)], ids=["OUE at 4", "GRR over many answers"])
def test_zcdp_tau_must_not_shrink_rho(epsilon: float, tau: float) -> None:
    """τ·ε·tanh(ε/2) is the divergence of order one, and some order exceeds α times it. What is charged holds."""
    low = tau / (1 + math.exp(epsilon))
    pair = [(tau - low, low), (low, tau - low), (1 - tau, 1 - tau)]
    orders = np.linspace(1.01, 30, 400)
    tempting = tau * epsilon * math.tanh(epsilon / 2)
    assert any(renyi(pair, alpha) > alpha * tempting for alpha in orders)
    charged = SymmetricPair(epsilon, tau).amounts().rho
    assert charged is not None
    assert all(renyi(pair, alpha) <= alpha * float(charged) for alpha in orders)


# -- gdp ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", golden_rows("gaussian_compose_delta"))
def test_gdp_of_gaussians_adds_squares(row: dict[str, Any]) -> None:
    parameters = row["params"]
    noise = Gaussian(Decimal(parameters["sensitivity"]) / Decimal(parameters["sigma"]))
    # A δ between two doubles of the reference value brackets its ε.
    above, below = (Decimal(row["value"]) * factor for factor in (Decimal("1.000000001"), Decimal("0.999999999")))
    assert compose([(noise, parameters["k"])], delta=above, rule="gdp").epsilon < float(parameters["eps"])
    assert compose([(noise, parameters["k"])], delta=below, rule="gdp").lower > float(parameters["eps"])


def test_gdp_agrees_with_exact_where_all_is_gaussian() -> None:
    charges = [(Gaussian("0.1"), 30), (Gaussian("0.25"), 4)]
    assert compose(charges, delta="1e-5", rule="gdp") == compose(charges, delta="1e-5", rule="exact")


# -- where a rule does not apply ------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["zcdp", "gdp", "renyi", "renyi:3"])
def test_zcdp_gdp_and_renyi_need_delta(rule: str) -> None:
    with pytest.raises(NotSupported, match="delta > 0"):
        compose([(Pure(1), 1)], delta=0, rule=rule)
    with pytest.raises(NotSupported, match="delta > 0"):
        capacity(rule, Decimal(1), Decimal(0))


@pytest.mark.parametrize("guarantee", [Approximate(1, "1e-9"), Copies(2, Approximate(1, "1e-9"))])
def test_gdp_refuses_a_delta_of_the_report_itself(guarantee: Guarantee) -> None:
    with pytest.raises(NotSupported, match="approximate"):
        compose([(guarantee, 1)], delta="1e-6", rule="gdp")


@pytest.mark.parametrize("rule", ["zcdp", "renyi", "renyi:3"])
def test_zcdp_and_renyi_set_a_delta_of_the_report_itself_aside(rule: str) -> None:
    """The rest of δ goes to the conversion; without a rest there is no conversion."""
    three = compose([(Approximate(1, "1e-7"), 3)], delta="1e-6", rule=rule)
    assert three.epsilon == compose([(Pure(1), 3)], delta="7e-7", rule=rule).epsilon
    assert three.delta == 1e-6
    with pytest.raises(NotSupported, match="needs a delta above"):
        compose([(Copies(2, Approximate(1, "5e-7")), 1)], delta="1e-6", rule=rule)


def test_zcdp_without_rho_and_gdp_without_mu_are_unbounded() -> None:
    assert compose([(ZeroConcentrated("0.1"), 1)], delta="1e-6", rule="zcdp").epsilon < 3
    with pytest.raises(NotSupported, match="mu"):
        compose([(ZeroConcentrated("0.1"), 1)], delta="1e-6", rule="gdp")


@pytest.mark.parametrize("rule", RULES)
def test_unbounded_report_has_no_finite_total(rule: str) -> None:
    assert math.isinf(compose([(Unbounded(), 1), (Pure(1), 1)], delta="1e-6", rule=rule).epsilon)


def test_total_has_the_narrowest_relation_of_its_reports() -> None:
    narrow = Memoised((Decimal(1),), Decimal(1), relation="same change pattern")
    assert compose([(Pure(1), 1), (Copies(2, narrow), 1)], delta=0).relation == "same change pattern"
    assert compose([(Pure(1), 1)], delta=0).relation == "any inputs"


@pytest.mark.parametrize("delta", [-1e-9, 1, 1.5, "x", math.nan, None])
def test_delta_out_of_range_is_named(delta: Any) -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        compose([(Pure(1), 1)], delta=delta)


def test_unknown_rule_is_named_with_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="basic, zcdp, gdp, renyi, exact"):
        compose([(Pure(1), 1)], delta=0, rule="rdp")


@pytest.mark.parametrize("epsilon", [-1.0, math.inf, math.nan, "1"])
def test_compose_delta_needs_a_finite_epsilon(epsilon: Any) -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        compose_delta([(Pure(1), 1)], epsilon)


# -- filters --------------------------------------------------------------------------------------------------


def test_limit_with_rule_exact_is_refused_with_the_reason() -> None:
    assert [name for name in RULES if rule_named(name).is_filter] == ["basic", "zcdp", "gdp", "renyi"]
    with pytest.raises(NotSupported, match=r"depends on earlier outputs.*plan"):
        filter_rule("exact")
    with pytest.raises(NotSupported, match="not a privacy filter"):
        capacity("exact", Decimal(1), Decimal("1e-6"))


def test_naive_exact_filter_exceeds_its_delta() -> None:
    """The counterexample of errata.md, "Composition", at ε = ½.

    First randomised response at .1. After "+" comes randomised response at .5609, after "-" a loss of ±6 with
    probability .05. Either list, fixed beforehand, has δ < .0497, so a filter by exact composition would admit
    both. The mechanism that chooses between them by what it saw has δ = .0733.
    """
    epsilon, first = 0.5, SymmetricPair("0.1", 1)
    seconds = {True: SymmetricPair("0.5609", 1), False: SymmetricPair(6, "0.05")}
    for second in seconds.values():
        assert compose_delta([(first, 1), (second, 1)], epsilon)[1] < 0.0497
    whole = 0.0
    for plus, second in seconds.items():
        for (p1, q1), (p2, q2) in itertools.product([outcomes(first)[not plus]], outcomes(second)):
            whole += max(0.0, p1 * p2 - math.exp(epsilon) * q1 * q2)
    assert f"{whole:.4f}" == "0.0733"


def outcomes(pair: SymmetricPair) -> list[tuple[float, float]]:
    """(P, Q) of +, - and erased."""
    epsilon, tau = float(pair.bound), float(pair.tau)
    high, low = tau / (1 + math.exp(-epsilon)), tau / (1 + math.exp(epsilon))
    return [(high, low), (low, high), (1 - tau, 1 - tau)]


@pytest.mark.slow
@settings(max_examples=30)
@example(Decimal(1), 6)
@given(st.decimals(min_value="0.001", max_value=200, places=6), st.integers(min_value=1, max_value=60))
def test_capacity_is_the_largest_sum_within_the_limit(epsilon: Decimal, power: int) -> None:
    delta = Decimal(10) ** -power
    rho, mu_squared = capacity("zcdp", epsilon, delta).rho, capacity("gdp", epsilon, delta).mu_squared
    assert rho is not None
    assert mu_squared is not None
    assert epsilon_of_rho(from_units(rho, RHO_DIGITS), delta) <= epsilon
    assert epsilon_of_rho(from_units(rho + 1, RHO_DIGITS), delta) > epsilon

    def converted(units: int) -> Decimal:
        return Decimal(gaussian_epsilon(from_units(units, MU_SQUARED_DIGITS), *log_bounds(delta))[1])

    assert converted(mu_squared) <= epsilon
    assert converted(mu_squared + 1 + mu_squared // 10**9) > epsilon


@pytest.mark.slow
@given(
    st.sampled_from(["basic", "zcdp", "gdp", "renyi", "renyi:4"]),
    st.sampled_from(["0.003", "0.1", "1"]),
    st.integers(1, 3),
)
def test_charges_within_a_capacity_compose_within_the_limit(rule: str, epsilon: str, total: int) -> None:
    """As many reports as the integers admit, composed from their exact amounts."""
    if rule == "renyi":
        rule = f"renyi:{suited_order(Decimal(total), Decimal('1e-6'))}"
    limit = capacity(rule, Decimal(total), Decimal("1e-6"))
    measure = measure_of(rule, Decimal(0))
    cost = Pure(epsilon).costs() if measure is None else measured(Pure(epsilon), measure)
    fitting = min(most // each for most, each in zip(limit, cost, strict=True) if most is not None and each)
    if fitting:
        assert compose([(Pure(epsilon), fitting)], delta="1e-6", rule=rule).epsilon <= total


def test_capacity_has_only_the_amounts_of_its_rule() -> None:
    assert capacity("basic", Decimal(2), Decimal("1e-6")) == (2 * 10**9, 10**12, None, None)
    assert [amount is None for amount in capacity("zcdp", Decimal(2), Decimal("1e-6"))] == [True, True, False, True]
    assert [amount is None for amount in capacity("gdp", Decimal(2), Decimal("1e-6"))] == [True, True, True, False]


# -- counts are never lost ------------------------------------------------------------------------------------

HALF = Fraction(1, 2)
SOME = (
    Pure("0.3"),
    SymmetricPair("0.3", "0.4"),
    SymmetricPair("1.7", "0.5"),
    Laplace("0.2"),
    Gaussian("0.25", 1, "1e-4"),
    Approximate("0.3", "1e-8"),
    FinitePair(((Fraction(2, 3), HALF), (Fraction(1, 3), HALF))),
    Memoised((Decimal("0.5"),), Decimal("0.9")),
)


@st.composite
def regroupings(draw: st.DrawFn) -> tuple[list[tuple[Guarantee, int]], list[tuple[Guarantee, int]]]:
    """A list of charges, and the same reports in other portions, another order, and partly as copies."""
    whole = draw(st.lists(st.tuples(st.sampled_from(SOME), st.integers(1, 40)), min_size=1, max_size=3))
    pieces: list[tuple[Guarantee, int]] = []
    for guarantee, count in whole:
        while count:
            portion = draw(st.integers(1, count))
            count -= portion
            as_copies = draw(st.booleans())
            pieces.append((Copies(portion, guarantee), 1) if as_copies else (guarantee, portion))
    return whole, draw(st.permutations(pieces))


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples // 4)
@given(regroupings(), st.sampled_from(["1e-9", "1e-3", "0.3"]))
def test_regrouping_keeps_the_total(groupings: Any, delta: str) -> None:
    whole, pieces = groupings
    for rule in RULES:
        try:
            expected = compose(whole, delta=delta, rule=rule)
        except NotSupported:
            with pytest.raises(NotSupported):
                compose(pieces, delta=delta, rule=rule)
            continue
        assert compose(pieces, delta=delta, rule=rule) == expected


# -- starting fast --------------------------------------------------------------------------------------------
