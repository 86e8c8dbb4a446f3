"""The Hadamard count mean sketch: its promise by exact enumeration, its transform, and the printed algorithm failing.

What it has in common with cms (estimates, variance, aggregates, declarations) is tested in `test_cms.py`.
"""

from __future__ import annotations

import itertools
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
from ldp_budget.guarantees.dominating_pairs import dominating_pair
from ldp_budget.sampling import ONE
from ldp_budget.sdk.hash_families import HashFamily
from ldp_budget.sdk.report_relations import hadamard

Hcms: Any = ldp_budget.mechanism("hcms")

EPSILONS = ["1e-6", "0.1", "1", "2.718281828459045235360287", "8", "40", "1000"]


def matrix(size: int) -> Any:
    """The Hadamard matrix by equation (2) of Jeong, Hong and Seo 2020."""
    return np.array([[1]]) if size == 1 else np.kron([[1, 1], [1, -1]], matrix(size // 2))


def cells(mechanism: Any, values: Any) -> Any:
    """h_j(v) for every function j and each of `values`, shape (k, len(values))."""
    family = HashFamily(mechanism.seed, mechanism.hashes, mechanism.width)
    return family(np.arange(mechanism.hashes)[:, np.newaxis], family.points(values))


def law(mechanism: Any, value: int) -> list[Fraction]:
    """The exact probability of every report 2(j·m + l) + s on `value`, as it is drawn."""
    k, m = mechanism.hashes, mechanism.width
    keep = Fraction(mechanism.keep, ONE)
    result = []
    for function, cell in enumerate(cells(mechanism, [value])[:, 0]):
        for coefficient, sign in itertools.product(range(m), (1, -1)):
            true = matrix(m)[coefficient, cell]
            assert len(result) == 2 * (function * m + coefficient) + (sign < 0)
            result.append((keep if sign == true else 1 - keep) / (k * m))
    return result


# -- the promise ----------------------------------------------------------------------------------------------

DRAWN = [
    Hcms(epsilon=epsilon, hashes=k, width=m) for epsilon in ("0.05", "1", "4.5") for k, m in ((1, 2), (3, 4), (2, 16))
]


@pytest.mark.some(3)
@pytest.mark.parametrize("mechanism", DRAWN, ids=repr)
def test_loss_of_every_output_and_pair_of_values_is_within_the_guarantee(mechanism: Any) -> None:
    laws = [law(mechanism, value) for value in range(6)]
    assert all(sum(law) == 1 for law in laws)
    keep = Fraction(mechanism.keep, ONE)
    assert mechanism.guarantee.tau == Decimal("0.5")
    spreads = []
    for one, other in itertools.permutations(laws, 2):
        ratios = {first / second for first, second in zip(one, other, strict=True)}
        assert ratios <= {keep / (1 - keep), Fraction(1), (1 - keep) / keep}
        spreads.append(sum(first for first, second in zip(one, other, strict=True) if first != second))
    # Some two values share no cell, and then exactly half of the coefficients tell them apart.
    assert max(spreads) == Fraction(1, 2)


@pytest.mark.slow
def test_dominating_pair_is_the_smallest() -> None:
    made = Hcms(epsilon=1, hashes=1, width=8)
    values = [next(v for v in range(1000) if cells(made, [v])[0, 0] == cell) for cell in range(8)]
    keep = Fraction(made.keep, ONE)
    [up, same, down] = dominating_pair([law(made, value) for value in values]).outcomes
    assert up == (keep / 2, (1 - keep) / 2)
    assert same == (Fraction(1, 2), Fraction(1, 2))
    assert down == up[::-1]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_loss_of_the_drawn_reports_is_at_most_epsilon_and_near_it(epsilon: str) -> None:
    made = Hcms(epsilon=epsilon, hashes=2, width=16)
    e = mpmath.exp(exact(epsilon))
    assert made.guarantee.bound == Decimal(epsilon)
    odds = exact(Fraction(made.keep, ONE - made.keep))
    assert odds <= e
    # The integers of both sides are off by less than one.
    assert odds >= min(e, mpf(ONE) / 2) * (1 - mpf(2) / (ONE - made.keep)) or ONE - made.keep == 1


@pytest.mark.slow
def test_client_draws_from_the_exact_distribution() -> None:
    made = Hcms(epsilon=1, hashes=3, width=4)
    reports = made.randomize(np.full(200_000, 5), rng=1)
    assert reports.dtype == np.uint8
    for count, mass in zip(np.bincount(reports, minlength=24).tolist(), law(made, 5), strict=True):
        share = float(mass)
        assert abs(count - 200_000 * share) <= 4.5 * (200_000 * share * (1 - share)) ** 0.5


@pytest.mark.parametrize(("hashes", "width"), [(1, 2), (1024, 1024), (1000, 32_768), (1024, 2**20)])
def test_report_is_one_number_for_function_coefficient_and_sign(hashes: int, width: int) -> None:
    made = Hcms(epsilon=160, hashes=hashes, width=width)  # no sign turns in a lifetime
    values = np.arange(40)
    reports = made.randomize(values, rng=2)
    assert reports.dtype == np.min_scalar_type(2 * hashes * width - 1)
    places, signs = reports.astype(np.int64) // 2, reports % 2
    chosen = cells(made, values)[places // width, values]
    assert [int(a & b).bit_count() % 2 for a, b in zip(chosen, places % width, strict=True)] == signs.tolist()


# -- the server -----------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
@given(bits=st.integers(0, 7), rows=st.lists(st.integers(-(2**40), 2**40), min_size=128, max_size=256))
def test_fast_transform_is_the_product_with_the_matrix(bits: int, rows: list[int]) -> None:
    size = 2**bits
    table = np.array(rows[: len(rows) // size * size]).reshape(-1, size)
    assert (hadamard(table) == table @ matrix(size).T).all()
    assert (hadamard(hadamard(table)) == size * table).all()


def test_matrix_times_its_transpose_is_its_size_times_the_identity() -> None:
    assert (matrix(16) @ matrix(16).T == 16 * np.eye(16)).all()


def corrected(mechanism: Any, reports: Any, values: Any) -> Any:
    """The estimate of the errata by dense matrices: x = k·c·w, M·Hᵀ, then Fig. 7 of Jeong, Hong and Seo."""
    k, m, n = mechanism.hashes, mechanism.width, len(reports)
    keep = mechanism.keep / ONE
    sketch = np.zeros((k, m))
    np.add.at(sketch.reshape(-1), reports // 2, k / (2 * keep - 1) * (1 - 2.0 * (reports % 2)))
    table = cells(mechanism, values)
    means = np.take_along_axis(sketch @ matrix(m).T, table, axis=1).mean(axis=0)
    return m / (m - 1) * (means - n / m)


def test_estimate_is_that_of_the_errata() -> None:
    made = Hcms(epsilon="1.5", hashes=6, width=32, domain_size=9)
    reports = made.randomize(np.arange(5000) % 7, rng=3).astype(np.int64)
    assert made.estimate(reports).counts == pytest.approx(corrected(made, reports, range(9)), abs=1e-8)


def printed(epsilon: float, table: Any, values: Any, width: int, rng: Any) -> Any:
    """Fig. 9, 10 and 7 as Jeong, Hong and Seo print them; `table` holds h_j(v), shape (k, d)."""
    k, n = len(table), len(values)
    functions, coefficients = rng.integers(k, size=n), rng.integers(width, size=n)
    vectors = -np.ones((n, width))
    vectors[np.arange(n), table[functions, values]] = 1
    transformed = (vectors @ matrix(width))[np.arange(n), coefficients]
    turned = rng.random(n) >= np.exp(epsilon) / (np.exp(epsilon) + 1)
    c = (np.exp(epsilon / 2) + 1) / (np.exp(epsilon / 2) - 1)
    sketch = np.zeros((k, width))
    np.add.at(sketch, (functions, coefficients), k * (c / 2 * np.where(turned, -1, 1) * transformed + 0.5))
    means = np.take_along_axis(sketch @ matrix(width).T, table, axis=1).mean(axis=0)
    return width / (width - 1) * (means - n / width)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1, 4])
def test_printed_algorithm_estimates_negative_counts(epsilon: int) -> None:
    made = Hcms(epsilon=epsilon, hashes=64, width=32, domain_size=40, seed=1)
    truth = np.array([36_000, 15_000, 9_000, *37 * [0]])
    values = np.repeat(np.arange(40), truth)
    wrong = printed(float(epsilon), cells(made, range(40)), values, 32, np.random.default_rng(1))
    n = len(values)
    ratio = float(mpmath.tanh(mpf(epsilon) / 2) * mpmath.coth(mpf(epsilon) / 4) / 2)
    assert wrong[3:].max() < -0.3 * n
    assert wrong[3:].mean() == pytest.approx(-ratio * n, rel=0.1)
    assert f"counted about {-ratio:.3g}·n times" in made.notes[0]
    right = made.estimate(made.randomize(values, rng=1))
    assert (np.abs(right.counts - truth) <= 4.5 * right.std_errors).all()


# -- what is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [3, 6, 1000])
def test_width_is_a_power_of_two(width: int) -> None:
    with pytest.raises(InvalidParameter, match=f"^width must be a power of two: got {width}$"):
        Hcms(epsilon=1, hashes=2, width=width)
