"""Intervals that invert a test: they are within the range, never empty, and cover by the exact law."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc, gammaln, xlog1py, xlogy

from ldp_budget.errors import InvalidParameter
from ldp_budget.sdk.accepted_values import GammaTails, Levels, Spread, accepted_means, gamma_tail
from ldp_budget.sdk.share_laws import AnswerLaw, Cumulants, Scales, share_spread


def ends(seen: np.ndarray, n: int, p: float, q: float, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    parts = ((c * (1 - c) / (p - q) ** 2, c * (1 - c) * (1 - 2 * c) / (p - q) ** 3) for c in (q, p))
    law = AnswerLaw(Cumulants(*(np.full(len(seen), part) for pair in parts for part in pair)))
    scales = Scales.of(np.array([1 / n]), n)

    def spread(share: np.ndarray) -> Spread:
        return share_spread(law, scales, share, lattice=True)

    return accepted_means(GammaTails(seen, spread, spread), level)


@given(
    n=st.integers(1, 60),
    q=st.floats(0.001, 0.49),  # with q = 0, a report would show an answer for certain, and the loss has no bound
    gap=st.floats(0.02, 0.5),
    share=st.sampled_from([0.0, 0.01, 0.05, 0.3, 0.5, 1.0]),
)
def test_intervals_of_shares_cover_by_the_exact_law(n: int, q: float, gap: float, share: float) -> None:
    p, ones = q + gap, np.arange(n + 1)
    low, high = ends((ones / n - q) / gap, n, p, q)
    chance = min(q + gap * share, 1.0)
    ways = gammaln(n + 1) - gammaln(ones + 1) - gammaln(n - ones + 1)
    masses = np.exp(ways + xlogy(ones, chance) + xlog1py(n - ones, -chance))
    assert (low >= 0).all()
    assert (high <= 1).all()
    assert (high > low).all()
    assert masses @ ((low <= share + 1e-9) & (share <= high + 1e-9)) >= 0.93


def test_levels_add_up_and_leave_every_end_acceptable() -> None:
    levels = Levels(0.05, 0.0, 1.0, 3.0, 5.0)
    at = np.linspace(0, 1, 21)
    assert np.allclose(levels.large(at) + levels.small(at), 0.05)
    assert levels.small(0.0) == 0 == levels.large(1.0)
    assert (np.diff(levels.large(at)) <= 0).all()


@pytest.mark.parametrize("seen", [-5.0, 0.0, 0.4, 1.0, 7.0])
@pytest.mark.parametrize("variance", [1e-12, 1e-3, 1.0, 1e6])
def test_interval_of_an_estimate_outside_of_its_range_keeps_a_width(seen: float, variance: float) -> None:
    def spread(share: np.ndarray) -> Spread:
        return Spread(np.full(np.shape(share), variance), 0.0, 0.0)

    (low,), (high,) = accepted_means(GammaTails(np.array([seen]), spread, spread), 0.95)
    assert 0 <= low <= high <= 1
    assert high - low >= min(0.7 * variance**0.5, 0.7)


@pytest.mark.parametrize(("trials", "chance", "least"), [(100, 0.01, 4), (40, 0.3, 19), (300, 0.99, 292)])
def test_gamma_tail_of_a_binomial_is_near_the_exact_one(trials: int, chance: float, least: int) -> None:
    variance = trials * chance * (1 - chance)
    found = gamma_tail(least - 0.5 - trials * chance, Spread(variance, variance * (1 - 2 * chance), 1.0))
    assert found == pytest.approx(betainc(least, trials - least + 1, chance), rel=0.2)


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, float("nan")])
def test_interval_of_a_mean_needs_a_level_between_0_and_1(level: float) -> None:
    with pytest.raises(InvalidParameter, match="level"):
        ends(np.array([0.5]), 10, 0.7, 0.2, level)
