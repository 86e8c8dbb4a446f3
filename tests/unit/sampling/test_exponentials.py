"""Exact Laplace deviates: shown step by step with scripted streams, then by frequencies under fixed seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ldp_budget.sampling import SeededStream, Stream, laplace
from ldp_budget.sampling.continuous import _exponential

SIGMAS = 4.5
HALF, QUARTER, EIGHTH = 1 << 63, 1 << 62, 1 << 61


class Words(Stream):
    """Delivers the given 64-bit words and fails when they run out."""

    def __init__(self, *words: int) -> None:
        self.rest = b"".join(word.to_bytes(8, "little") for word in words)

    def read(self, count: int) -> bytes:
        assert count <= len(self.rest), "the draw reads more than the script holds"
        result, self.rest = self.rest[:count], self.rest[count:]
        return result


class CoarseWords(SeededStream):
    """Words that carry one random bit each, at the top: comparisons tie half of the time."""

    def words(self, count: int) -> np.ndarray:
        return super().words(count) & np.uint64(HALF)


def test_laplace_run_of_one_is_accepted_at_once():
    assert _exponential(Words(QUARTER, HALF), 2, 1).tolist() == [1]


def test_laplace_run_of_two_adds_one_to_the_whole_part():
    # 1/2 > 1/4 < 1/2 has the length two: rejected. Then 1/4 < 1/2 is accepted as the fraction.
    assert _exponential(Words(HALF, QUARTER, HALF, QUARTER, HALF), 3, 1).tolist() == [8 + 2]


def test_laplace_run_of_three_is_accepted_with_its_first_member():
    assert _exponential(Words(HALF, QUARTER, EIGHTH, QUARTER), 1, 1).tolist() == [1]


def test_laplace_ties_are_broken_by_further_digits():
    # The first digits are equal; the second ones say that the newcomer is not below.
    assert _exponential(Words(HALF, HALF, 1, 0), 1, 1).tolist() == [1]


@pytest.fixture(scope="module")
def deviates() -> np.ndarray:
    return laplace(SeededStream(171), 40, 10**6) / 2**40


@pytest.mark.slow
def test_laplace_moments_match(deviates):
    for power, (mean, variance) in {1: (0, 2), 2: (2, 20), 3: (0, 720), 4: (24, 39744)}.items():
        assert abs((deviates**power).mean() - mean) < SIGMAS * math.sqrt(variance / deviates.size)


@pytest.mark.slow
def test_laplace_distribution_function_matches(deviates):
    ordered = np.sort(deviates)
    cdf = np.where(ordered < 0, np.exp(ordered) / 2, 1 - np.exp(-ordered) / 2)
    ranks = np.arange(ordered.size + 1) / ordered.size
    distance = max((ranks[1:] - cdf).max(), (cdf - ranks[:-1]).max())
    # Kolmogorov: P(sqrt(n) * distance > c) is close to 2 exp(-2 c**2), 6.8e-6 at 2.51.
    assert math.sqrt(ordered.size) * distance < 2.51


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 4, 8])
def test_laplace_tails_match(deviates, limit):
    share = math.exp(-limit) / 2
    for tail in (deviates > limit, deviates < -limit):
        assert abs(tail.mean() - share) < SIGMAS * math.sqrt(share / deviates.size)


def test_laplace_sign_and_size_are_independent(deviates):
    assert abs((np.sign(deviates) * (abs(deviates) - 1)).sum()) < SIGMAS * math.sqrt(deviates.size)


@pytest.mark.parametrize("bits", [0, 1, 8, 39])
def test_laplace_with_fewer_bits_is_the_floor(bits):
    fine, coarse = (laplace(SeededStream(172), places, 10_000) for places in (40, bits))
    assert (coarse == fine >> (40 - bits)).all()


@pytest.mark.slow
def test_laplace_whole_part_is_exact_with_frequent_ties():
    whole = laplace(CoarseWords(173), 0, 20_000)
    share = 1 - math.exp(-1)
    assert abs((whole == 0).mean() - share / 2) < SIGMAS * math.sqrt(share / whole.size)


@pytest.mark.parametrize("bits", [-1, 41])
def test_laplace_with_other_numbers_of_bits_is_refused(bits):
    with pytest.raises(ValueError, match=r"bits must be in \[0, 40\]"):
        laplace(SeededStream(0), bits, 1)
