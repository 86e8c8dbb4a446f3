"""Coverage, width and level over replications of a survey; the few replications of the plain run have wide bounds."""

from __future__ import annotations

import pytest

from survey_replications import Coverage, coverage, finite_coverage, levels

pytestmark = pytest.mark.slow


def _rates(found: Coverage) -> list[float]:
    return [float(each.mean()) for each in (found.totals, found.differences, found.cells)]


def test_intervals_of_a_few_replications_cover_and_are_near_the_fisher_bound() -> None:
    found = coverage(30)
    assert all(0.91 <= rate <= 0.99 for rate in _rates(found))
    assert found.bound <= 1.10
    assert found.split <= 0.55  # intervals are cut to 0 to 1, which makes those of the worse survey narrower


def test_tests_of_a_few_replications_reject_seldom_under_the_null() -> None:
    assert max(levels(40)) <= 0.2


@pytest.mark.exhaustive
def test_intervals_of_a_thousand_replications_cover_94_to_97_percent() -> None:
    found = coverage(1000)
    assert all(0.94 <= rate <= 0.975 for rate in _rates(found))
    assert min(float(each.min()) for each in found[:3]) >= 0.92
    assert found.bound <= 1.10
    assert found.split <= 0.55  # intervals are cut to 0 to 1, which makes those of the worse survey narrower


@pytest.mark.exhaustive
def test_corrected_intervals_of_two_thousand_replications_cover_94_to_97_percent_at_half_of_a_population() -> None:
    corrected, plain = finite_coverage(2000)
    assert 0.94 <= corrected <= 0.975
    assert plain > 0.97


@pytest.mark.exhaustive
def test_tests_of_two_thousand_replications_reject_4_to_6_percent_under_the_null() -> None:
    assert all(0.04 <= level <= 0.06 for level in levels(2000))
