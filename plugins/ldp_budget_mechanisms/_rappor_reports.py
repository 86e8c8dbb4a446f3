"""RAPPOR's reports: Bloom filters, the client's draws, and the server's estimates.

Each cohort has its own hash functions, and a value sets the h out of k bits that they name. A report is the cohort and
the shown bits, from permanent bits that are fresh or derived from a client's secret. The server counts exactly, and
then fits a regression on the candidates' Bloom filters.

With p* and q* the probabilities that a bit of the report is one if the filter's is 0 and 1,

    t_ij = (c_ij - p*·N_j) / (q* - p*),    q* - p* = (1-f)(q-p),

is an unbiased estimate of how many of the N_j users of cohort j have bit i in their filter (Jeong, Hong and Seo 2020,
equation (1)). Users are spread over cohorts at random, so E[t_ij] = N_j Σ_v π_v X_ijv, with X the candidates' filters
and π_v the share of all users that hold v.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ldp_budget.errors import NotSupported
from ldp_budget.sdk.estimates import CountAggregate, CountEstimate
from ldp_budget.sdk.hash_families import BloomFilters
from ldp_budget.sdk.interpreter import bit_of, check_rows, column_sums

from ._sketch_reports import read_record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BloomFamily(BloomFilters):
    """The Bloom filters of RAPPOR, with the number of cohorts."""

    cohorts: int

    def of_candidates(self, candidates: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the filter of every candidate in every cohort as zeros and ones, shape (cohorts, bits, M)."""
        every = np.arange(self.cohorts).repeat(len(candidates))
        rows = self.filters(np.tile(candidates, self.cohorts), every)
        bits = np.unpackbits(rows, axis=1, count=self.bits, bitorder="little")
        filters = bits.reshape(self.cohorts, len(candidates), self.bits)
        return filters.transpose(0, 2, 1).astype(np.float64, order="C")

    def alone(self, first: int, second: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return the bits that only the first value sets, and those that only the second sets, each (cohorts, bits)."""
        own, other = (self.rows(np.full(self.cohorts, value), np.arange(self.cohorts)) for value in (first, second))
        return own & ~other, other & ~own

    def furthest_apart(self, values: int, cohorts: int) -> tuple[int, int]:
        """Return the two of the first `values` whose filters differ in the most bits, in any of the first cohorts."""
        apart = np.zeros((values, values))
        for cohort in range(min(cohorts, self.cohorts)):
            bits = self.rows(np.arange(values), np.full(values, cohort))
            # With many bits, the values set only few of them.
            filters = bits[:, bits.any(axis=0)].astype(np.float64)
            held = filters.sum(axis=1)
            np.maximum(apart, held[:, np.newaxis] + held - 2 * (filters @ filters.T), out=apart)
        first, second = divmod(int(apart.argmax()), values)
        return first, second


# -- client ----------------------------------------------------------------------------------------------------------


def number_reports(reports: Any, alone: tuple[NDArray[np.bool_], NDArray[np.bool_]]) -> NDArray[np.int64]:
    """Number each report by its bits among those that only one value sets (m, k), and the other's; shape (n,).

    Cohorts with equally many such bits of each kind share their numbers, in the order of these counts.
    """
    rows = np.asarray(reports)
    cohorts = rows[:, :2].copy().view("<u2").reshape(-1)
    sizes = list(zip(*(side.sum(axis=1).tolist() for side in alone), strict=True))
    starts: dict[tuple[int, int], int] = {}
    for size in sorted(set(sizes)):
        starts[size] = sum(2 ** sum(earlier) for earlier in starts)
    codes = np.empty(len(rows), dtype=np.int64)
    for cohort, size in enumerate(sizes):
        here = cohorts == cohort
        code = np.zeros(np.count_nonzero(here), dtype=np.int64)
        for bit in (*np.flatnonzero(alone[0][cohort]), *np.flatnonzero(alone[1][cohort])):
            code = 2 * code + bit_of(rows[here, 2:], int(bit))
        codes[here] = starts[size] + code
    return codes


# -- server ----------------------------------------------------------------------------------------------------------


_RANK_TOLERANCE = 1e-10


@dataclass
class CohortAggregate(CountAggregate):
    """Reports of each cohort with each bit set: `support`, shape (m, k); `users`, reports by cohort (m,)."""

    users: NDArray[np.int64]

    def merge(self, other: CountAggregate) -> CohortAggregate:
        """Add `other`; raises `NotSupported` if another mechanism made it."""
        super().merge(other)
        assert isinstance(other, CohortAggregate)
        self.users = self.users + other.users
        return self


@dataclass(frozen=True, repr=False)
class SelectedEstimate(CountEstimate):
    """Counts of the candidates that a lasso kept; see `lasso`. `selected` is a boolean array (M,)."""

    unbiased: ClassVar[bool] = False

    selected: NDArray[np.bool_]


class BitLaw(NamedTuple):
    """p*, q* - p*, and the variances of a user's share in t_ij if the filter's bit is 0 and 1."""

    base: float
    gap: float
    variance_zero: float
    variance_one: float


def check_reports(reports: Any, cohorts: int, bits: int) -> None:
    """Raise the errors of `count_bits` without counting."""
    rows, _ = _with_cohorts(reports, cohorts, bits)
    check_rows(rows, bits)


def _with_cohorts(reports: Any, cohorts: int, bits: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the packed bits of reports, and their cohorts."""
    (cohort,), rows = read_record(reports, "rappor", [("cohort", 2, 2**16)], -(-bits // 8))
    if (cohort >= cohorts).any():
        raise NotSupported(f"reports must be of cohorts below {cohorts}: got cohort {cohort.max()}")
    return rows, cohort


def count_bits(reports: Any, cohorts: int, bits: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return reports by cohort (m,), and set bits by cohort (m, k).

    Raises `NotSupported` unless `reports` are uint8 rows of a cohort below m in two bytes and k packed bits.
    """
    rows, cohort = _with_cohorts(reports, cohorts, bits)
    # A table of 256 values for each cohort is faster if there are more reports than that.
    sums = (_sums_by_byte if len(rows) >= 256 * cohorts else _sums_by_cohort)(rows, cohort, cohorts)
    if sums[:, bits:].any():
        raise NotSupported(f"reports must have {bits} bits: got padding bits that are set")
    return np.bincount(cohort, minlength=cohorts), sums[:, :bits]


def _sums_by_byte(rows: NDArray[np.uint8], cohort: NDArray[np.int64], cohorts: int) -> NDArray[np.int64]:
    """Count the 256 values of each byte of the reports by cohort, then the bits that those values set."""
    bits_of = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(np.int64)
    tables = [np.bincount(256 * cohort + byte, minlength=256 * cohorts).reshape(cohorts, 256) for byte in rows.T]
    return np.concatenate([table @ bits_of for table in tables], axis=1)


def _sums_by_cohort(rows: NDArray[np.uint8], cohort: NDArray[np.int64], cohorts: int) -> NDArray[np.int64]:
    """Count the bits cohort by cohort."""
    sums = np.zeros((cohorts, 8 * rows.shape[1]), dtype=np.int64)
    order = np.argsort(cohort, kind="stable")
    present, starts = np.unique(cohort[order], return_index=True)
    for number, part in zip(present, np.split(order, starts[1:]), strict=False):
        sums[number] = column_sums(rows[part], sums.shape[1])
    return sums


class Regression:
    """Least squares of the t_ij on the filters X (m, k, M), each cohort weighted by its users.

    The weights do not depend on the reports, so the estimates are unbiased if every user holds a candidate.
    """

    def __init__(self, filters: Floats, users: Floats) -> None:
        self.filters, self.users = filters, users
        bits = filters.shape[1]
        rows = filters.reshape(-1, filters.shape[2])
        normal = (rows * users.repeat(bits)[:, None]).T @ rows
        # Scaled to a unit diagonal, so that the rank does not depend on how many bits a candidate sets.
        scale = 1 / np.sqrt(normal.diagonal())
        values, vectors = np.linalg.eigh(normal * scale * scale[:, None])
        self.full_rank = bool(values[0] > _RANK_TOLERANCE * len(values))
        if self.full_rank:
            half = scale[:, None] * vectors / np.sqrt(values)
            self._inverse = half @ half.T

    def shares(self, corrected: Floats) -> Floats:
        """Return π, shape (M,), from t (m, k)."""
        rows = self.filters.reshape(-1, self.filters.shape[2])
        shares: Floats = self._inverse @ (rows.T @ corrected.reshape(-1))
        return shares

    def fake_margins(self, shares: Floats, law: BitLaw) -> tuple[Floats, Floats]:
        """Return the least and the most that one more report changes each count, (M,), exactly.

        The report (cohort j, bits b) is one more row of the least squares for each bit. The shares π become
        π + G(t - X_j π), with t_i = (b_i - p*)/(q* - p*) and the gain G = A⁻¹X_jᵀ(1 + X_j A⁻¹X_jᵀ)⁻¹ of recursive least
        squares. The count n·π_v becomes (n + 1) times that, and is largest where each bit is one if its gain is positive.
        """
        least, most = np.full((2, len(shares)), [[np.inf], [-np.inf]])
        reach = (np.array([0.0, 1.0]) - law.base) / law.gap
        for filters in self.filters:
            bits, candidates = filters.shape
            half = self._inverse @ filters.T
            # Both forms are equal. The matrix to invert has a row for each bit, or for each candidate.
            if bits < candidates:
                gain = half @ np.linalg.inv(np.eye(bits) + filters @ half)
            else:
                gain = np.linalg.solve(np.eye(candidates) + half @ filters, half)
            ends = gain[:, :, None] * (reach - (filters @ shares)[:, None])
            least = np.minimum(least, ends.min(axis=2).sum(axis=1))
            most = np.maximum(most, ends.max(axis=2).sum(axis=1))
        n = self.users.sum()
        return shares + (n + 1) * least, shares + (n + 1) * most

    def variances(self, population: Floats, law: BitLaw) -> Floats:
        """Return the variance of each share over the reports' noise and the spread of users over cohorts, shape (M,).

        `population` holds the shares of users who hold each candidate, (M,). It may also be (M, M), with one
        population in a row for each estimate.

        A user of cohort j who holds v adds g_j[w, v] = Σ_i H_j[w, i] X_ijv to the estimate of w, where H_j are the
        weights of the t_ij. Given the sizes of the cohorts, the spread is a random partition. Its variance is that of
        g_j within the cohorts, less π_w(1-π_w)/n, times n/(n-1) (Hoeffding 1951); the last factor is left out.
        """
        people = np.atleast_2d(population)
        rise = law.variance_one - law.variance_zero
        total_noise, total_spread = np.zeros((2, self.filters.shape[2]))
        for filters, users in zip(self.filters, self.users, strict=True):
            weights = self._inverse @ filters.T
            squares, gain = weights**2, weights @ filters
            noise = law.variance_zero * squares.sum(axis=1) + rise * ((squares @ filters) * people).sum(axis=1)
            spread = (gain**2 * people).sum(axis=1) - (gain * people).sum(axis=1) ** 2
            total_noise += users * noise
            total_spread += users * spread
        own = people[0] if len(people) == 1 else people.diagonal()
        # By Cauchy and Schwarz the difference is at least 0; if cohorts determine everything, only rounding remains.
        variances: Floats = total_noise + np.maximum(0.0, total_spread - own * (1 - own) / self.users.sum())
        return variances


def worst_variance(filters: Floats, law: BitLaw) -> float | None:
    """Return the largest variance per user of a count, at a candidate without users and others equally frequent.

    Assumes equally large cohorts. None if the filters cannot distinguish the candidates.
    """
    cohorts, bits, candidates = filters.shape
    if candidates > cohorts * bits:
        return None
    regression = Regression(filters, np.full(cohorts, 1 / cohorts))
    if not regression.full_rank:
        return None
    others = (1 - np.eye(candidates)) / (candidates - 1)
    return float(regression.variances(others, law).max())


def decode(total: CohortAggregate, filters: Floats, law: BitLaw, method: str | None) -> CountEstimate:
    """Return counts of the candidates whose filters are X (m, k, M), by `method`; None selects one by the rank."""
    users = total.users.astype(float)
    corrected = (total.support - law.base * users[:, None]) / law.gap
    candidates, cohorts = filters.shape[2], int((users > 0).sum())
    if method != "lasso":
        # More candidates than bits never have full rank; no decomposition is needed to see that.
        regression = Regression(filters, users) if candidates <= filters.shape[1] * cohorts else None
        if regression is not None and regression.full_rank:
            shares = regression.shares(corrected)
            margins = regression.fake_margins(shares, law)
            return CountEstimate(total.reports, *_counts(regression, corrected, law), fake_margins=margins)
        if method is not None:
            raise NotSupported(
                f"{candidates} candidates cannot be distinguished by {filters.shape[1]} bits in {cohorts} cohorts",
                hint="Estimate with method='lasso', or from fewer candidates.",
            )
    return _selected(total, filters, corrected, law)


def _counts(regression: Regression, corrected: Floats, law: BitLaw) -> tuple[Floats, Floats]:
    n = regression.users.sum()
    shares = regression.shares(corrected)
    # The variance of a possible population: its shares are not negative and sum to at most one.
    people = shares.clip(min=0)
    people /= max(1.0, people.sum())
    return n * shares, n * np.sqrt(regression.variances(people, law))


def _selected(total: CohortAggregate, filters: Floats, corrected: Floats, law: BitLaw) -> SelectedEstimate:
    """Fit least squares over the candidates that the lasso keeps and an even background for the rest.

    The others count 0, with the standard error that each would have had on its own.
    """
    users = total.users.astype(float)
    kept = select(filters, users, corrected, law)
    counts = np.zeros(len(kept))
    alone = np.einsum("jkv,j->v", filters, users)
    errors = total.reports * np.sqrt(law.variance_zero / alone)
    if kept.any():
        background = np.ones((*filters.shape[:2], 1))
        regression = Regression(np.concatenate([filters[:, :, kept], background], axis=2), users)
        if not regression.full_rank:
            raise NotSupported(
                "the candidates that the lasso kept cannot be distinguished", hint="Name fewer candidates."
            )
        found, found_errors = _counts(regression, corrected, law)
        counts[kept], errors[kept] = found[:-1], found_errors[:-1]
    return SelectedEstimate(total.reports, counts, errors, kept)


def select(filters: Floats, users: Floats, corrected: Floats, law: BitLaw) -> NDArray[np.bool_]:
    """Return the candidates that a non-negative lasso keeps, boolean (M,).

    Rows are scaled to unit noise and freed of an even background, which every filter adds to. The penalty is √(2 ln
    M)
    standard deviations of a candidate's correlation with the noise. A candidate without users rarely exceeds it
    (Donoho and Johnstone 1994).
    """
    present = users > 0
    scale = np.sqrt(users[present] / law.variance_zero)
    rows = (filters[present] * scale[:, None, None]).reshape(-1, filters.shape[2])
    target = (corrected[present] / users[present, None] * scale[:, None]).reshape(-1)
    background = scale.repeat(filters.shape[1])
    background /= np.linalg.norm(background)
    rows -= np.outer(background, background @ rows)
    target -= background * (background @ target)
    largest = math.sqrt(float(np.einsum("rv,rv->v", rows, rows).max()))
    penalty = math.sqrt(2 * math.log(max(2, rows.shape[1]))) * largest / len(rows)
    lasso = _lasso_class()(alpha=penalty, fit_intercept=False, positive=True, max_iter=10_000)
    # In Fortran order scikit-learn needs no copy of its own.
    kept: NDArray[np.bool_] = lasso.fit(np.asfortranarray(rows), target).coef_ > 0
    return kept


def _lasso_class() -> Any:
    try:
        from sklearn.linear_model import Lasso
    except ImportError:
        raise NotSupported(
            "method='lasso' needs the package scikit-learn", hint="Install it: pip install 'ldp-budget[rappor]'"
        ) from None
    return Lasso
