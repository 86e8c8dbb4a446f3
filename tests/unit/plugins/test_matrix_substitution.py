"""Random substitution with any matrix (Kang, Lee and Hong 2009): guarantee, draws and estimates."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import ldp_budget
from client_cases import Recorder
from exact_numbers import hockey_stick
from ldp_budget.errors import InvalidParameter
from ldp_budget.guarantees import Pure, Unbounded
from ldp_budget.sampling import SeededStream

MatrixSubstitution: Any = ldp_budget.mechanism("matrix-substitution")
RandomSubstitution: Any = ldp_budget.mechanism("random-substitution")

SIGMAS = 4.5
WARNER = [["0.75", "0.25"], ["0.25", "0.75"]]
# Answers 0, 1, 2 of very different likelihoods, and a fourth report that says little.
UNEVEN = [["0.6", "0.1", "0.2"], ["0.1", "0.5", "0.1"], ["0.2", "0.2", "0.4"], ["0.1", "0.2", "0.3"]]


def gamma_diagonal(size: int, gamma: Fraction) -> list[list[Fraction]]:
    return [[(gamma if h == k else Fraction(1)) / (gamma + size - 1) for k in range(size)] for h in range(size)]


def drawn(mechanism: Any) -> list[list[Fraction]]:
    """For each answer, the distribution of its report as the client's integers have it."""
    total, weights = mechanism._weights
    return [[Fraction(weight, total) for weight in column] for column in weights]


def worst_ratio(columns: list[list[Fraction]]) -> Fraction:
    return max(p / q for a, b in itertools.permutations(columns, 2) for p, q in zip(a, b, strict=True))


matrices = st.integers(2, 4).flatmap(
    lambda answers: st.lists(
        st.lists(st.integers(1, 60), min_size=answers, max_size=answers), min_size=answers, max_size=answers + 2
    )
)


def normalised(rows: list[list[int]]) -> list[list[Fraction]]:
    sums = [sum(column) for column in zip(*rows, strict=True)]
    return [[Fraction(entry, total) for entry, total in zip(row, sums, strict=True)] for row in rows]


def well_conditioned(rows: list[list[int]]) -> list[list[Fraction]]:
    table = normalised(rows)
    assume(np.linalg.cond(np.array(table, dtype=float)) < 1e6)
    return table


# -- what is promised -----------------------------------------------------------------------------------------


@pytest.mark.slow
@given(rows=matrices)
@settings(max_examples=40, deadline=None)
def test_guarantee_is_the_largest_ratio_and_dominates_every_pair(rows: list[list[int]]) -> None:
    mechanism = MatrixSubstitution(matrix=well_conditioned(rows))
    columns = drawn(mechanism)
    epsilon, delta = mechanism.guarantee.loss()
    worst = worst_ratio(columns)
    assert delta == 0
    assert float(epsilon) == pytest.approx(math.log(worst), rel=1e-12)
    assert Fraction(epsilon.exp()) >= worst * (1 - Fraction(1, 10**25))
    for a, b in itertools.permutations(columns, 2):
        for odds in {x / y for x, y in zip(a, b, strict=True)}:
            assert hockey_stick(zip(a, b, strict=True), odds) <= hockey_stick(mechanism.guarantee.outcomes, odds)


def test_guarantee_of_many_answers_is_epsilon_only() -> None:
    mechanism = MatrixSubstitution(matrix=gamma_diagonal(17, Fraction(4)))
    assert isinstance(mechanism.guarantee, Pure)
    assert mechanism.guarantee.epsilon == pytest.approx(math.log(4), rel=1e-15)


def test_guarantee_with_an_impossible_report_is_unbounded() -> None:
    mechanism = MatrixSubstitution.calibrate(matrix=[["0.5", "0"], ["0.5", "1"]])
    assert isinstance(mechanism.guarantee, Unbounded)
    assert mechanism.describe()["guarantee"]["epsilon"] is None
    assert "no loss is promised" in mechanism.notes[0]


@pytest.mark.slow
@pytest.mark.parametrize(("size", "gamma"), [(2, 3), (5, "1.5"), (16, 10)])
def test_gamma_diagonal_matrix_equals_random_substitution(size: int, gamma: Any) -> None:
    by_matrix = MatrixSubstitution(matrix=gamma_diagonal(size, Fraction(gamma)))
    by_gamma = RandomSubstitution(gamma=gamma, domain_size=size)
    pair, symmetric = by_matrix.guarantee, by_gamma.guarantee
    assert pair.epsilon == pytest.approx(symmetric.epsilon, rel=1e-14)
    tau = sum(p for p, q in pair.outcomes if p != q)
    assert float(tau) == pytest.approx(float(symmetric.tau), rel=1e-14)
    one, other = by_matrix.utility(1000), by_gamma.utility(1000)
    for name in ("variance_per_user", "total_variance_per_user", "condition_number", "std_error"):
        assert one[name] == pytest.approx(other[name], rel=1e-12)


# -- what is drawn --------------------------------------------------------------------------------------------


def test_common_denominators_are_drawn_exactly() -> None:
    mechanism = MatrixSubstitution(matrix=UNEVEN)
    assert drawn(mechanism) == [[Fraction(entry) for entry in column] for column in zip(*UNEVEN, strict=True)]
    assert mechanism.notes == ()


FINE = [[f"0.{'3' * 30}", f"0.{'1' * 30}"], [f"0.{'6' * 29}7", f"0.{'8' * 29}9"]]
TINY = [["1e-40", "0.5"], ["0.9999999999", "0.5"]]


@pytest.mark.parametrize("matrix", [FINE, TINY])
def test_guarantee_of_a_rounded_matrix_is_that_of_the_draws(matrix: list[list[str]]) -> None:
    """Entries of thirty digits are rounded to 2**-62, and one of 1e-40 is not lost; the loss is of the result."""
    mechanism = MatrixSubstitution(matrix=matrix)
    total, weights = mechanism._weights
    assert total == 2**62
    assert all(sum(column) == total and min(column) > 0 for column in weights)
    for column, declared in zip(drawn(mechanism), zip(*matrix, strict=True), strict=True):
        for drawn_entry, entry in zip(column, declared, strict=True):
            assert abs(drawn_entry - Fraction(entry)) < Fraction(1, 10**9)
    assert mechanism.guarantee.epsilon >= math.log(worst_ratio(drawn(mechanism))) * (1 - 1e-15)
    assert "2**-62" in mechanism.notes[-1]


def test_zeros_stay_zeros_when_entries_are_rounded() -> None:
    mechanism = MatrixSubstitution(matrix=[[f"0.{'3' * 30}", "0"], [f"0.{'6' * 29}7", "1"]])
    assert drawn(mechanism)[1] == [0, 1]
    assert isinstance(mechanism.guarantee, Unbounded)


@pytest.mark.slow
@pytest.mark.parametrize("matrix", [WARNER, UNEVEN, FINE])
def test_client_draws_the_columns(matrix: list[list[str]]) -> None:
    mechanism = MatrixSubstitution(matrix=matrix)
    n = 300_000
    answers = np.arange(n) % mechanism.answers
    sent = mechanism.randomize(answers, rng=7)
    assert sent.dtype == np.uint8
    assert sent.shape == (n,)
    for answer, column in enumerate(drawn(mechanism)):
        mine = sent[answers == answer]
        found = np.bincount(mine, minlength=len(column))
        p = np.array([float(entry) for entry in column])
        assert np.all(np.abs(found - len(mine) * p) < SIGMAS * np.sqrt(len(mine) * p * (1 - p)))


def test_bytes_read_do_not_depend_on_the_answers() -> None:
    mechanism = MatrixSubstitution(matrix=UNEVEN)
    streams = [Recorder(SeededStream(9)) for _ in range(3)]
    for stream, values in zip(streams, ([0] * 600, [2] * 600, [0, 1, 2] * 200), strict=True):
        mechanism.randomize(values, rng=stream)
    assert len({len(stream.read_so_far) for stream in streams}) == 1


# -- estimates ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(rows=matrices, data=st.data())
@settings(max_examples=40, deadline=None)
def test_estimate_of_the_expected_reports_is_the_truth(rows: list[list[int]], data: Any) -> None:
    """Unbiased: the estimate is linear, and from the expected support it finds the truth."""
    mechanism = MatrixSubstitution(matrix=well_conditioned(rows))
    truth = [data.draw(st.integers(0, 50)) for _ in range(mechanism.answers)]
    columns = np.array([[float(entry) for entry in column] for column in drawn(mechanism)])
    assert mechanism._estimator.inverse @ (columns.T @ truth) == pytest.approx(truth, abs=1e-6)


@pytest.mark.parametrize("matrix", [WARNER, UNEVEN])
def test_standard_errors_come_from_the_exact_covariance(matrix: list[list[str]]) -> None:
    """Σ_k n_k W (diag(m_k) - m_k m_kᵀ) Wᵀ, written out."""
    mechanism = MatrixSubstitution(matrix=matrix)
    table = np.array(matrix, dtype=float)
    inverse = np.linalg.pinv(table)
    sent = mechanism.randomize(np.arange(3000) % mechanism.answers, rng=11)
    estimate = mechanism.estimate(sent)
    covariance = sum(
        count * inverse @ (np.diag(column) - np.outer(column, column)) @ inverse.T
        for count, column in zip(estimate.counts * 3000 / estimate.counts.sum(), table.T, strict=True)
    )
    assert estimate.std_errors == pytest.approx(np.sqrt(np.diag(covariance)), rel=1e-9)


def test_predicted_variance_is_that_of_the_worst_case() -> None:
    """No user holds an answer, and all users hold the one that disturbs it most."""
    mechanism = MatrixSubstitution(matrix=UNEVEN)
    table = np.array(UNEVEN, dtype=float)
    inverse = np.linalg.pinv(table)
    found = [
        (inverse[v] ** 2 @ table[:, k]) - (inverse[v] @ table[:, k]) ** 2
        for v, k in itertools.permutations(range(3), 2)
    ]
    utility = mechanism.utility(400)
    assert utility["variance_per_user"] == pytest.approx(max(found), rel=1e-9)
    assert utility["std_error"] == pytest.approx(math.sqrt(max(found) / 400), rel=1e-9)
    assert utility["condition_number"] == pytest.approx(float(np.linalg.cond(table)), rel=1e-9)


def test_share_errors_are_those_of_random_substitution() -> None:
    by_matrix = MatrixSubstitution(matrix=gamma_diagonal(4, Fraction(3)))
    by_gamma = ldp_budget.mechanism("random-substitution")(gamma=3, domain_size=4)
    assert by_matrix.share_errors(100) == pytest.approx(by_gamma.share_errors(100), rel=1e-12)


# -- bad input ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([["0.5", "0.5"], ["0.5", "0.5"]], "condition number"),
        ([["0.50000000001", "0.5"], ["0.49999999999", "0.5"]], r"condition number <= 1e\+10: got condition number"),
        ([["0.7", "0.3"], ["0.2", "0.7"]], "sum to 1 within 1e-9: got column 0, which sums to 0.9"),
        ([["0.7", "0.300000002"], ["0.3", "0.7"]], "column 1, which sums to 1.000000002"),
        ([["1.2", "0.3"], ["-0.2", "0.7"]], r"probabilities: got -0\.2 in column 0"),
        ([["0.2", "0.3", "0.5"], ["0.8", "0.7", "0.5"]], "got 2 rows and 3 columns"),
        ([["1"], ["0"]], "at least two columns"),
        ([["0.7", "0.3"], ["0.3", "0.7"], ["0", "0"]], "only zeros in row 2"),
        ([["0.7", "0.3"], ["0.3"]], "equal length"),
        ([["0.7", "x"], ["0.3", "0.2"]], "a table of numbers"),
        ([], "a table of numbers"),
        (None, "matrix is missing: it must be a table"),
    ],
)
def test_matrix_malformed_is_refused(matrix: Any, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message) as error:
        MatrixSubstitution.calibrate(matrix=matrix)
    assert error.value.option == "matrix"
