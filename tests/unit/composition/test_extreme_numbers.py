"""Extreme numbers: they have a correct result, or are refused by name."""

from __future__ import annotations

import mpmath
import pytest

from ldp_budget import Limit
from ldp_budget.composition import compose, compose_delta
from ldp_budget.guarantees import FinitePair, Gaussian, Guarantee, Laplace, Pure, SymmetricPair


@pytest.mark.parametrize("fine", ["0.1234567890123456789", "1e-19", "1e-30", "1e-400"])
def test_losses_on_a_too_fine_lattice_are_composed(fine: str) -> None:
    total = compose([(Pure(fine), 2), (Pure(1), 3)], delta="1e-6", rule="exact")
    alone = compose([(Pure(1), 3)], delta="1e-6", rule="exact")
    assert alone.lower - 1e-9 <= total.lower <= total.epsilon <= alone.epsilon + 2 * float(fine) + 1e-9
    assert total.epsilon - total.lower < 1e-9


@pytest.mark.parametrize(
    "guarantee",
    [
        Pure("1e-400"),
        Pure("1e-310"),
        Pure("1e-200"),
        Laplace("1e-400"),
        Laplace("1e-200"),
        SymmetricPair("1e-310", 1),
    ],
    ids=str,
)
@pytest.mark.parametrize("delta", ["1e-400", "1e-300", "0.99"])
def test_losses_whose_square_underflows_have_bounds(guarantee: Guarantee, delta: str) -> None:
    total = compose([(guarantee, 2)], delta=delta, rule="exact")
    basic = compose([(guarantee, 2)], delta=0, rule="basic")
    assert 0 <= total.lower <= total.epsilon <= basic.epsilon
    low, high = compose_delta([(guarantee, 2)], 0)
    # Total variation: tanh(ε/2) for one report.
    assert low <= guarantee.epsilon / 2 <= high <= 2 * basic.epsilon


def test_tiny_losses_are_added_to_those_of_a_gaussian() -> None:
    tiny, noise = (Pure("1e-200"), 5), (Gaussian(1), 1)
    alone, both = (compose(charges, delta="1e-6", rule="exact") for charges in ([noise], [noise, tiny]))
    assert alone.lower <= both.lower <= both.epsilon <= alone.epsilon * (1 + 1e-15)
    assert alone.epsilon <= both.epsilon
    low, high = compose_delta([noise, tiny], 1)
    assert low < compose_delta([noise], 1)[1] <= high < low * (1 + 1e-10)


@pytest.mark.parametrize("rule", ["gdp", "exact"])
@pytest.mark.parametrize("mu", ["1e-400", "1e-310"])
def test_gaussian_with_a_loss_below_doubles_has_bounds(rule: str, mu: str) -> None:
    for delta in ("1e-6", "0.9"):
        assert compose([(Gaussian(mu), 1)], delta=delta, rule=rule).epsilon == 0
    total = compose([(Gaussian(mu), 1)], delta="1e-400", rule=rule)
    assert 0 <= total.lower <= total.epsilon < 1e-300
    assert compose_delta([(Gaussian(mu), 1)], 0)[1] >= mpmath.mpf(mu) / mpmath.sqrt(2 * mpmath.pi)


@pytest.mark.parametrize("nines", [39, 40, 400])
def test_rule_renyi_has_an_order_for_a_delta_next_to_one(nines: int) -> None:
    limit = Limit("lifetime", 10, "0." + "9" * nines, "renyi")
    assert limit.rule == "renyi:1.01"
    assert limit.capacity.rho


def test_pair_that_hardly_differs_has_costs() -> None:
    from fractions import Fraction

    half, little = Fraction(1, 2), Fraction(1, 10**400)
    costs = FinitePair(((half + little, half), (half - little, half))).costs()
    assert costs == (1, 0, 1, 1)
    assert FinitePair(((Fraction(1), Fraction(1)),)).costs().rho == 0
