"""Warner's randomized response: the loss of both answers in both directions, by enumeration and in 60 digits."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf

import ldp_budget
from exact_numbers import exact
from ldp_budget import InvalidParameter
from ldp_budget.sampling import ONE

RandomizedResponse: Any = ldp_budget.mechanism("randomized-response")

LEAST_DOUBLE = mpf(2) ** -1074
epsilons = st.decimals("1e-6", "40", allow_nan=False, places=9).filter(lambda epsilon: epsilon > 0)
shares = st.decimals("0.0001", "0.9999", places=8)


def loss(p: Fraction, q: Fraction) -> mpf:
    """ln of the largest ratio, over both reports and both directions."""
    yes, no = (p, q), (1 - p, 1 - q)
    ratios = [a / b for report in (yes, no) for a, b in (report, report[::-1])]
    return mpmath.log(exact(max(ratios)))


def drawn(mechanism: Any) -> tuple[Fraction, Fraction]:
    """p and q as the client draws them."""
    keep, noise = mechanism.thresholds
    return Fraction(keep, ONE), Fraction(noise, ONE)


# -- parameters and promise -----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["1e-6", "0.001", "0.1", "0.5", "1", "3", "10", "40", "70", "1000"])
def test_probabilities_from_epsilon_are_safe_and_close(epsilon: str) -> None:
    made = RandomizedResponse.calibrate(epsilon=epsilon)
    stated = made.parameters
    with mpmath.workdps(600):  # 1 - q has no fewer digits than q has noughts
        q = 1 / (mpmath.exp(exact(epsilon)) + 1)
        assert 0 <= (1 - q) - exact(stated["p"]) <= mpf("2.3e-16")
        assert 0 <= exact(stated["q"]) - q <= q * mpf("2.3e-16") + LEAST_DOUBLE
    assert made.guarantee.to_json() == {"kind": "symmetric-pair", "bound": f"{Decimal(epsilon):f}", "tau": "1"}


@pytest.mark.slow
@given(epsilon=epsilons)
def test_loss_of_the_drawn_reports_is_at_most_epsilon_and_near_it(epsilon: Decimal) -> None:
    p, q = drawn(RandomizedResponse.calibrate(epsilon=epsilon))
    true = loss(p, q)
    assert true <= exact(epsilon)
    assert exact(epsilon) - true <= 4 / (exact(q) * ONE)


def test_fair_coins_lose_ln_3() -> None:
    made = RandomizedResponse.calibrate(truth="0.5", yes="0.5")
    assert made.parameters == {"p": 0.75, "q": 0.25}
    assert drawn(made) == (Fraction(3, 4), Fraction(1, 4))
    assert loss(*drawn(made)) == mpmath.log(3)
    assert 0 <= exact(made.guarantee.loss()[0]) - mpmath.log(3) <= mpf("1e-38")
    assert made.guarantee.epsilon == pytest.approx(1.0986122886681098, rel=1e-15)
    assert exact(made.guarantee.epsilon) >= mpmath.log(3)
    assert made.guarantee.outcomes == ((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))


@given(truth=shares, yes=shares)
def test_coins_state_their_worst_direction_rounded_up(truth: Decimal, yes: Decimal) -> None:
    made = RandomizedResponse.calibrate(truth=truth, yes=yes)
    q = (1 - Fraction(truth)) * Fraction(yes)
    p = Fraction(truth) + q
    assert drawn(made)[0] <= p < drawn(made)[0] + Fraction(1, ONE)
    assert drawn(made)[1] - Fraction(1, ONE) < q <= drawn(made)[1]
    stated = exact(made.guarantee.loss()[0])
    assert 0 <= stated - loss(p, q) <= mpf("1e-35")
    assert loss(*drawn(made)) <= stated


@pytest.mark.parametrize(
    ("p", "q", "worst"),
    [
        ("0.9", "0.05", "yes"),
        ("0.95", "0.1", "no"),
        ("0.5", "0.1", "yes"),
        ("0.9", "0.5", "no"),
        ("0.7", "0.3", "both"),
    ],
)
def test_guarantee_of_unequal_coins_covers_both_directions(p: str, q: str, worst: str) -> None:
    made = RandomizedResponse(p=p, q=q)
    if_yes, if_no = Fraction(p) / Fraction(q), (1 - Fraction(q)) / (1 - Fraction(p))
    assert {"yes": if_yes > if_no, "no": if_no > if_yes, "both": if_yes == if_no}[worst]
    assert 0 <= exact(made.guarantee.loss()[0]) - mpmath.log(exact(max(if_yes, if_no))) <= mpf("1e-35")


@pytest.mark.slow
@given(p=shares, q=shares, slope=st.fractions(0, 50))
def test_stated_pair_dominates_both_directions_of_the_drawn_reports(p: Decimal, q: Decimal, slope: Fraction) -> None:
    """For every slope e^ε, no pair of inputs has a larger excess over it than the stated pair."""
    if p <= q:
        return
    made = RandomizedResponse(p=p, q=q)

    def excess(pairs: list[tuple[Fraction, Fraction]]) -> Fraction:
        return sum((max(Fraction(0), one - slope * other) for one, other in pairs), Fraction(0))

    keep, noise = drawn(made)
    if_yes, if_no = (keep, 1 - keep), (noise, 1 - noise)
    promised = excess(list(made.guarantee.outcomes))
    assert excess(list(zip(if_yes, if_no, strict=True))) <= promised
    assert excess(list(zip(if_no, if_yes, strict=True))) <= promised


@given(p=st.decimals("0.001", "0.999", places=3), q=st.decimals("0.001", "0.999", places=3))
def test_coins_with_p_below_q_are_refused(p: Decimal, q: Decimal) -> None:
    if p > q:
        assert RandomizedResponse(p=p, q=q).guarantee.epsilon > 0
        return
    with pytest.raises(
        InvalidParameter, match=f"p must be a value with which p is greater than q .*: got {p.normalize():f}"
    ):
        RandomizedResponse(p=p, q=q)


# -- reports and estimates ------------------------------------------------------------------------------------


SIMULATED = [
    RandomizedResponse.calibrate(epsilon=1),
    RandomizedResponse.calibrate(truth="0.5", yes="0.5"),
    RandomizedResponse.calibrate(truth="0.6", yes="0.9"),
    RandomizedResponse(p="0.6", q="0.1"),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize("mechanism", SIMULATED, ids=repr)
def test_intervals_have_their_nominal_coverage(mechanism: Any) -> None:
    users, surveys = 200, 2000
    values = np.arange(users) < 60
    reports = mechanism.randomize(np.tile(values, surveys), rng=17).reshape(surveys, users)
    intervals = [mechanism.estimate(survey).interval(0.95) for survey in reports]
    covered = [low[1] <= 60 <= high[1] for low, high in intervals]
    assert abs(np.mean(covered) - 0.95) <= 0.02
    # The counts of the two answers add up to the users, so their intervals are each other's mirror image.
    low, high = intervals[0]
    assert low + high[::-1] == pytest.approx([users, users])
