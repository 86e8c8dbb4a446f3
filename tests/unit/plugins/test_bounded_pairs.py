"""Dominating pairs of the bounded mechanisms: no two inputs exceed them, stated or drawn, and they are nearly tight.

The truth is worked out here from the printed densities, with sixty digits and piece by piece, or from the whole
weights that the client draws with, exactly.
"""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, permutations
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import ldp_budget
from exact_numbers import hockey_stick
from ldp_budget import compose
from ldp_budget.guarantees import FinitePair, Guarantee, Pure, from_json
from ldp_budget.guarantees.fixed_point import float_below
from ldp_budget_mechanisms._bounded_numeric import LaplaceWeights
from ldp_budget_mechanisms._bounded_staircase_profile import LARGEST_LISTED, window_pair
from ldp_budget_mechanisms._interval_grid import WindowChannel
from ldp_budget_mechanisms._noise_samplers import LaplaceTable
from ldp_budget_mechanisms.bounded_noise import epsilon_hat

LAPLACE: Any = ldp_budget.mechanism("bounded-laplace")
STAIRCASE: Any = ldp_budget.mechanism("bounded-staircase")
LOSSES = ["1e-8", "0.003", "0.5", "1", "4", "15.99", "16", "32"]
GAMMAS = [None, "0.02", "0.25", "0.3", "0.3333333", "0.4", "0.5", "0.7", "0.99"]


def listed(promise: Guarantee) -> list[tuple[Fraction, Fraction]]:
    assert isinstance(promise, FinitePair)
    return list(promise.outcomes)


# -- the densities ---------------------------------------------------------------------------------------------


def laplace_excess(epsilon: mpf, first: mpf, second: mpf, odds: mpf) -> mpf:
    """∫ max(f(y | first) - odds·f(y | second), 0) dy, between the points where the logarithm of the ratio bends."""

    def below(report: mpf, value: mpf) -> mpf:
        """The probability of a report up to `report`, times that of any."""
        if report <= value:
            return mpmath.exp(-epsilon * (value - report)) - mpmath.exp(-epsilon * value)
        return 2 - mpmath.exp(-epsilon * value) - mpmath.exp(-epsilon * (report - value))

    norms = below(mpf(1), first), below(mpf(1), second)

    def ahead(report: mpf) -> mpf:
        return epsilon * (abs(report - second) - abs(report - first)) + mpmath.log(norms[1] / norms[0] / odds)

    total = mpf(0)
    cuts = sorted({mpf(0), first, second, mpf(1)})
    for low, high in pairwise(cuts):
        left, right = ahead(low), ahead(high)
        if left * right < 0:
            crossing = low + (high - low) * left / (left - right)
            low, high = (low, crossing) if left > 0 else (crossing, high)
        if max(left, right) > 0:
            own, other = (below(high, value) - below(low, value) for value in (first, second))
            total += own / norms[0] - odds * other / norms[1]
    return total


def window_excess(ratio: mpf, gamma: mpf, first: mpf, second: mpf, odds: mpf) -> mpf:
    """The same of two windows, between their ends."""
    ends = [[max(value - gamma, 0), min(value + gamma, 1)] for value in (first, second)]
    norms = [1 + (ratio - 1) * (high - low) for low, high in ends]
    cuts = sorted({mpf(0), *ends[0], *ends[1], mpf(1)})
    total = mpf(0)
    for low, high in pairwise(cuts):
        own, other = (
            (ratio if start <= low and high <= end else 1) / norm
            for (start, end), norm in zip(ends, norms, strict=True)
        )
        total += (high - low) * max(own - odds * other, 0)
    return total


def inputs(source: random.Random, gamma: mpf) -> tuple[mpf, mpf]:
    """Any two values; often ends, values a window away from one, or closer to it."""
    near = gamma * source.choice([0, source.random(), 1])
    pair = [source.choice([mpf(source.random()), near]), source.choice([mpf(source.random()), 1 - near, near / 2])]
    source.shuffle(pair)
    return pair[0], pair[1]


def odds_of(source: random.Random, epsilon: mpf) -> mpf:
    share = source.choice([source.uniform(-1, 1), 1 - source.random() ** 6, source.randrange(-16, 17) / 16])
    return mpmath.exp(epsilon * share)


def assert_above(promise: Guarantee, odds: mpf, excess: mpf) -> None:
    exact = Fraction(*map(int, mpmath.libmp.to_rational(odds._mpf_)))
    stated = hockey_stick(listed(promise), exact)
    # The largest ratio is e^ε but for thirty digits.
    assert mpf(stated.numerator) / stated.denominator >= excess - mpf("1e-29") * (1 + odds)


@pytest.mark.some(2)
@pytest.mark.parametrize("epsilon", LOSSES)
def test_bounded_laplace_pair_dominates_every_two_values(epsilon: str) -> None:
    promise, source = LAPLACE(epsilon=epsilon, lower=-3, upper=7).guarantee, random.Random(epsilon)
    with mpmath.workdps(60):
        loss = mpf(epsilon)
        for _ in range(40):
            first, second = inputs(source, mpf(1) / 4)
            odds = odds_of(source, loss)
            assert_above(promise, odds, laplace_excess(loss, first, second, odds))


@pytest.mark.some(3)
@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("epsilon", [*LOSSES[::3], "1"])
def test_bounded_staircase_pair_dominates_every_two_values(epsilon: str, gamma: str | None) -> None:
    made = STAIRCASE(epsilon=epsilon, lower=0, upper=1, gamma=gamma)
    source = random.Random(f"{epsilon} {gamma}")
    with mpmath.workdps(60):
        loss, width = mpf(epsilon), mpf(made.parameters["gamma"]) if gamma is None else mpf(gamma)
        ratio = mpmath.exp(mpf(made.parameters["epsilon_hat"]))
        for _ in range(15):
            first, second = inputs(source, width)
            odds = odds_of(source, loss)
            assert_above(made.guarantee, odds, window_excess(ratio, width, first, second, odds))


@pytest.mark.exhaustive
def test_bounded_pairs_dominate_for_many_parameters() -> None:
    source = random.Random(20)
    with mpmath.workdps(60):
        for _ in range(600):
            epsilon = f"{10 ** source.uniform(-8, 1.5):.6g}"
            gamma = f"{source.choice([source.random(), source.random() ** 4, 1 - source.random() ** 4]):.7f}"
            loss, laplace = mpf(epsilon), LAPLACE(epsilon=epsilon, lower=0, upper=1).guarantee
            first, second = inputs(source, mpf(1) / 3)
            odds = odds_of(source, loss)
            assert_above(laplace, odds, laplace_excess(loss, first, second, odds))
            if 0 < float(gamma) < 1:
                made = STAIRCASE(epsilon=epsilon, lower=0, upper=1, gamma=gamma)
                ratio = mpmath.exp(mpf(made.parameters["epsilon_hat"]))
                first, second = inputs(source, mpf(gamma))
                if isinstance(made.guarantee, FinitePair):
                    assert_above(made.guarantee, odds, window_excess(ratio, mpf(gamma), first, second, odds))


# -- what is drawn ---------------------------------------------------------------------------------------------


def assert_dominates(promise: Guarantee, rows: list[list[int]]) -> None:
    """For every ordered pair of rows, by exact fractions, at the kinks of the pair."""
    stated = listed(promise)
    kinks = {p / q: hockey_stick(stated, p / q) for p, q in stated}
    drawn = [[Fraction(weight, sum(row)) for weight in row] for row in rows]
    for first, second in permutations(drawn, 2):
        for odds, most in kinks.items():
            assert hockey_stick(list(zip(first, second, strict=True)), odds) <= most


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("epsilon", ["1e-8", "0.5", "15.9", "16", "30"])
@pytest.mark.parametrize("cells", [2, 7])
def test_bounded_laplace_pair_dominates_the_drawn_reports(epsilon: str, cells: int) -> None:
    weights = np.diff(LaplaceTable(Decimal(epsilon), cells).below).tolist()
    rows = [weights[:point][::-1] + weights[: cells - point] for point in range(cells + 1)]
    assert_dominates(LaplaceWeights.of(Decimal(epsilon), cells).guarantee(), rows)


@pytest.mark.slow
@pytest.mark.some(6)
@pytest.mark.parametrize("epsilon", ["1e-6", "1", "20"])
@pytest.mark.parametrize("reach", [1, 3, 4, 6, 8])
def test_bounded_staircase_pair_dominates_the_drawn_reports(epsilon: str, reach: int) -> None:
    cells, loss = 9, Decimal(epsilon)
    gamma = Decimal(reach) / cells
    channel = WindowChannel.fit(loss, gamma, cells)
    ends = [(max(point - reach, 0), min(point + reach, cells)) for point in range(cells + 1)]
    rows = [[channel.high if low <= cell < high else channel.low for cell in range(cells)] for low, high in ends]
    assert_dominates(window_pair(loss, gamma, float_below(epsilon_hat(loss, gamma)), cells), rows)


@pytest.mark.slow
def test_bounded_laplace_pair_dominates_the_drawn_ends() -> None:
    for epsilon in ("1", "16"):
        made = LAPLACE(epsilon=epsilon, lower=0, upper=1)
        weights = np.diff(made.table.below).tolist()
        stated = listed(made.guarantee)
        for p, q in stated[:: len(stated) // 4]:
            odds = p / q
            excess = sum(
                max(own * odds.denominator - odds.numerator * other, 0)
                for own, other in zip(weights, reversed(weights), strict=True)
            )
            assert Fraction(excess, odds.denominator * sum(weights)) <= hockey_stick(stated, odds)


# -- what it comes to ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize(("made", "before", "true"), [(LAPLACE, 244.6, 109.34), (STAIRCASE, 244.6, 191.12)])
def test_year_of_reports_costs_the_composition_of_the_pair(made: Any, before: float, true: float) -> None:
    """`true` is what the hull of all pairs of inputs comes to with a thousand kinks."""
    promise = made(epsilon=1, lower=0, upper=1).guarantee
    assert promise.epsilon == 1
    assert promise.costs().epsilon == 10**9
    total = compose([(promise, 365)], delta="1e-6", rule="exact").epsilon
    assert true <= total <= 1.003 * true < before


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("reports", [2, 3])
def test_year_of_reports_costs_at_least_the_composition_of_the_ends(reports: int) -> None:
    """The loss of the ends is ε(1-2y) with y exponential on [0, 1]; rounded down to 1/400 it is a lower bound."""
    epsilon, steps = mpf(1), 400
    with mpmath.workdps(30):
        # Down to the next border: P[L >= border] by y <= (1 - border/ε)/2.
        borders = [-epsilon + 2 * epsilon * place / steps for place in range(steps + 1)]
        reached = [
            -mpmath.expm1(-epsilon * (1 - border / epsilon) / 2) / -mpmath.expm1(-epsilon) for border in borders
        ]
        law = np.array([float(high - low) for high, low in pairwise(reached)])
        total = law
        for _ in range(reports - 1):
            total = np.convolve(total, law)
        losses = reports * -1.0 + 2.0 * np.arange(len(total)) / steps
    promise = LAPLACE(epsilon=1, lower=0, upper=1).guarantee
    for delta in ("0.1", "1e-2", "1e-4"):
        stated = compose([(promise, reports)], delta=delta, rule="exact").epsilon
        left = float((total * np.maximum(0, -np.expm1(stated - losses))).sum())
        assert left <= float(delta)
        # And no more than the rounding of this law and of the pair above it.
        nearly = stated - reports * (2 / steps) - 0.02
        assert float((total * np.maximum(0, -np.expm1(nearly - losses))).sum()) > float(delta)


@pytest.mark.parametrize("made", [LAPLACE, STAIRCASE])
def test_pair_is_short_and_exact_in_json(made: Any) -> None:
    promise = made(epsilon="0.7", lower=0, upper=1).guarantee
    assert from_json(promise.to_json()) == promise
    assert len(str(promise.to_json())) < 4000


@pytest.mark.parametrize("made", [LAPLACE, STAIRCASE])
def test_pair_beyond_the_largest_listed_loss_is_epsilon(made: Any) -> None:
    assert made(epsilon=LARGEST_LISTED, lower=0, upper=1).guarantee.kind == "finite-pair"
    assert made(epsilon=33, lower=0, upper=1).guarantee == Pure(33)
    assert made(epsilon=1000, lower=0, upper=1).guarantee == Pure(1000)


@pytest.mark.parametrize("gamma", ["0", "1", "1e-9"])
def test_pair_of_an_uninformative_window_is_epsilon(gamma: str) -> None:
    promise = STAIRCASE(epsilon=1, lower=0, upper=1, gamma=gamma).guarantee
    assert promise.epsilon == 1
    assert (promise == Pure(1)) == (gamma in "01")


@pytest.mark.exhaustive
def test_pair_too_small_for_a_density_is_violated() -> None:
    """Of a smaller ε, though with the largest ratio of the right one."""

    class Smaller(type(LAPLACE(epsilon=1, lower=0, upper=1))):  # type: ignore[misc]
        @property
        def guarantee(self) -> Guarantee:
            outcomes = LAPLACE(epsilon="0.9", lower=0, upper=1).guarantee.outcomes
            top = LAPLACE(epsilon=1, lower=0, upper=1).guarantee.outcomes[0]
            share = Fraction(1, 1000)
            ends = (top[0] * share, top[1] * share), (top[1] * share, top[0] * share)
            rest = 1 - sum(p for p, _ in ends)
            return FinitePair((*ends, *((p * rest, q * rest) for p, q in outcomes)))

    made = Smaller(epsilon=1, lower=0, upper=1)
    found = ldp_budget.verify(made)
    assert found.verdict == "violated"
    assert ldp_budget.verify(LAPLACE(epsilon=1, lower=0, upper=1)).verdict == "holds"
