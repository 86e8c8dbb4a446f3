"""Adjusted counts: only on request, and in addition to the unbiased ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_budget import InvalidParameter
from ldp_budget.sdk.consistency import adjusted
from ldp_budget.sdk.estimates import CountEstimate

COUNTS = st.lists(st.floats(-500, 1500), min_size=2, max_size=8)


def estimate(counts: list[float], reports: int = 1000) -> CountEstimate:
    return CountEstimate(reports, np.array(counts), np.ones(len(counts)))


def test_nonnegative_sets_negative_counts_to_zero_only() -> None:
    assert adjusted(estimate([-3, 0, 7.5]), "nonnegative").tolist() == [0, 0, 7.5]


@given(COUNTS)
def test_simplex_counts_are_nonnegative_and_sum_to_the_total(counts: list[float]) -> None:
    found = adjusted(estimate(counts), "simplex")
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1000)


@given(COUNTS, st.lists(st.floats(0, 1), min_size=8, max_size=8))
def test_simplex_counts_are_the_nearest_point(counts: list[float], weights: list[float]) -> None:
    found = adjusted(estimate(counts), "simplex")
    other = np.array(weights[: len(counts)]) + 1e-9
    other *= 1000 / other.sum()
    assert np.sum((found - counts) ** 2) <= np.sum((other - counts) ** 2) * (1 + 1e-9) + 1e-6


def test_simplex_leaves_valid_counts_unchanged() -> None:
    assert adjusted(estimate([100, 250, 650]), "simplex").tolist() == pytest.approx([100, 250, 650])


def test_adjustment_unknown_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="nonnegative, simplex"):
        adjusted(estimate([1, 2]), "rounded")
