"""The bounded staircase mechanism: Theorem 6 and its correction, errors, the choice of γ, and the client."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import permutations, product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf

import ldp_budget
from exact_numbers import golden_rows
from ldp_budget.sampling import SeededStream
from ldp_budget_mechanisms._interval_grid import WindowChannel
from ldp_budget_mechanisms.bounded_noise import epsilon_hat, printed_epsilon_hat
from numeric_checks import density_moments, worst_log_ratio
from step_draws import drawn_cells

BoundedStaircase = ldp_budget.mechanism("bounded-staircase")


epsilons = st.decimals("1e-8", 1000, places=8)
gammas = st.decimals(0, 1, places=6)


def golden(fn: str) -> list[tuple[Decimal, Decimal, dict[str, str]]]:
    """(ε, γ, entry) of the reference values of a function."""
    entries = golden_rows(fn)
    return [(Decimal(entry["params"]["eps"]), Decimal(entry["params"]["gamma"]), entry) for entry in entries]


def true_loss(gamma: Decimal, hat: Decimal | float) -> mpf:
    """The loss of the window with e^ε̂ : 1: a report inside the shortest one and outside the widest."""
    odds, gamma = mpmath.exp(mpf(str(hat))), mpf(str(gamma))
    return mpmath.log(odds * (1 + (odds - 1) * min(2 * gamma, 1)) / (1 + (odds - 1) * gamma))


# ε̂


@pytest.mark.parametrize(("epsilon", "gamma", "entry"), golden("bounded_staircase_eps_hat"))
def test_epsilon_hat_is_the_reference_value(epsilon, gamma, entry):
    assert epsilon_hat(epsilon, gamma) == pytest.approx(Decimal(entry["value"]), rel=Decimal("1e-28"))


@pytest.mark.slow
@given(epsilons, gammas)
def test_epsilon_hat_is_on_the_safe_side_and_tight(epsilon, gamma):
    hat = BoundedStaircase.calibrate(epsilon=epsilon, lower=0, upper=1, gamma=gamma).parameters["epsilon_hat"]
    with mpmath.workdps(40):
        assert 1 - mpf("1e-9") <= true_loss(gamma, hat) / mpf(str(epsilon)) <= 1


@pytest.mark.parametrize(("epsilon", "gamma", "entry"), golden("bounded_staircase_PRINTED_eps_hat_UNSAFE"))
def test_printed_second_row_loses_more(epsilon, gamma, entry):
    printed = printed_epsilon_hat(epsilon, gamma)
    assert printed == pytest.approx(Decimal(entry["value"]), rel=Decimal("1e-28"))
    with mpmath.workdps(40):
        assert abs(true_loss(gamma, printed) - mpf(entry["true_eps"])) < mpf("1e-28")
        assert abs(true_loss(gamma, printed) - mpf(str(epsilon)) + mpmath.log(mpf(str(gamma)))) < mpf("1e-28")


# The promise, by brute force


VALUES = np.linspace(10, 20, 101)
REPORTS = np.linspace(10.003, 19.997, 100)


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("gamma", ["0.05", "0.3", "0.5", "0.6", "0.9"])
@pytest.mark.parametrize("epsilon", ["0.2", "1", "5"])
def test_brute_force_finds_the_declared_loss(epsilon, gamma):
    mechanism = BoundedStaircase.calibrate(epsilon=epsilon, lower=10, upper=20, gamma=gamma)
    worst = worst_log_ratio(mechanism, VALUES, REPORTS)
    # Where γ > ½ the worst case is approached as the window all but covers the range, not reached.
    assert float(epsilon) * (1 - 0.01) <= worst <= float(epsilon) * (1 + 1e-12)


@pytest.mark.slow
def test_brute_force_finds_more_for_the_printed_second_row():
    mechanism = BoundedStaircase.calibrate(epsilon=1, lower=10, upper=20, gamma="0.6")
    # The printed ε̂ cannot be declared, so it is put in the place of the right one.
    mechanism.__dict__["_epsilon_hat"] = float(printed_epsilon_hat(Decimal(1), Decimal("0.6")))
    assert worst_log_ratio(mechanism, VALUES, REPORTS) == pytest.approx(1.51, abs=0.01)


def test_notes_say_what_the_printed_row_would_lose():
    notes = BoundedStaircase.calibrate(epsilon=1, lower=10, upper=20, gamma="0.6").notes
    assert "1.51083" in notes[0]
    assert "0.76045" in notes[0]
    assert not any("printed" in note for note in BoundedStaircase.calibrate(epsilon=1, lower=0, upper=1).notes)


@pytest.mark.parametrize("gamma", [0, 1])
def test_window_of_zero_or_full_width_is_a_uniform_output(gamma):
    mechanism = BoundedStaircase.calibrate(epsilon=1, lower=0, upper=1, gamma=gamma)
    assert "says nothing" in mechanism.notes[0]
    assert mechanism.error_at(0.25) == pytest.approx((0.25, 0.25**2 + 1 / 12))
    reports = mechanism.randomize(np.zeros(100_000), rng=SeededStream(201))
    assert abs(reports.mean() - 0.5) < 4.5 * math.sqrt(1 / 12 / reports.size)


# Errors


@pytest.mark.parametrize("gamma", ["0.1", "0.3", "0.7"])
@pytest.mark.parametrize("value", [10, 11.5, 15, 18])
def test_density_integrates_to_one_and_has_the_stated_errors(gamma, value):
    mechanism = BoundedStaircase.calibrate(epsilon=2, lower=10, upper=20, gamma=gamma)
    reach = 10 * float(gamma)
    cuts = [10, *(edge for edge in (value - reach, value + reach) if 10 < edge < 20), 20]
    total, bias, mse = density_moments(mechanism, value, cuts)
    assert total == pytest.approx(1, rel=1e-12)
    # The stated errors are those of γ in whole cells, 2**-20 of the width.
    assert mechanism.error_at(value) == pytest.approx((bias, mse), rel=1e-5, abs=1e-5)


# γ


# The client


def exact_rows(channel: WindowChannel) -> list[list[Fraction]]:
    """The probabilities of all cells, for every input point, from the definition."""
    rows = []
    for point in range(channel.cells + 1):
        inside = [point - channel.reach <= cell < point + channel.reach for cell in range(channel.cells)]
        weights = [channel.high if within else channel.low for within in inside]
        rows.append([Fraction(weight, sum(weights)) for weight in weights])
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("cells", [5, 8])
def test_certified_loss_is_the_exact_one(cells):
    for reach, epsilon in product(range(cells + 1), ("0.01", "1", "8")):
        channel = WindowChannel.fit(Decimal(epsilon), Decimal(reach) / cells, cells)
        rows = exact_rows(channel)
        worst = max(p / q for one, other in permutations(rows, 2) for p, q in zip(one, other, strict=True))
        assert channel.reach == reach
        assert channel.worst_odds() == worst


@given(epsilons, gammas)
def test_client_exact_loss_is_at_most_epsilon(epsilon, gamma):
    channel = BoundedStaircase.calibrate(epsilon=epsilon, lower=0, upper=1, gamma=gamma).channel
    worst = channel.worst_odds()
    assert channel.total(min(2 * channel.reach, channel.cells)) < 2**63
    with mpmath.workdps(60):
        loss = mpmath.log(mpf(worst.numerator) / mpf(worst.denominator))
        assert loss <= mpf(str(epsilon))
        if Decimal("0.01") <= epsilon <= 20 and 0 < gamma < 1:
            assert loss >= mpf(str(epsilon)) * (1 - mpf("1e-9"))


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("reach", [0, 1, 2, 3, 6, 7])
def test_draws_have_the_exact_probabilities(reach):
    channel = WindowChannel.fit(Decimal(1), Decimal(reach) / 7, 7)
    draws = 100_000
    for point, row in enumerate(exact_rows(channel)):
        steps = channel.drawing()
        cells = drawn_cells(SeededStream(210 + point), steps, point, draws, last=7).astype(int)
        shares = np.array(row, dtype=float)
        counts = np.bincount(cells, minlength=7)
        assert (abs(counts - draws * shares) < 4.5 * np.sqrt(draws * shares)).all()


# The server
