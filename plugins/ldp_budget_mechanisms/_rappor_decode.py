"""What the server makes of RAPPOR reports: exact counts, then a regression on the candidates' Bloom filters.

With p* and q* the probabilities that a bit of the report is one where the filter's is 0 and 1, document 002's (1),

    t_ij = (c_ij - p*·N_j) / (q* - p*),    q* - p* = (1-f)(q-p),

is an unbiased estimate of how many of the N_j users of cohort j have bit i in their filter. Users are spread over
cohorts at random, so E[t_ij] = N_j Σ_v π_v X_ijv, with X the candidates' filters and π_v the share of all users
that hold v.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ldp_budget.errors import NotSupported
from ldp_budget.estimates import CountAggregate, CountEstimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_RANK_TOLERANCE = 1e-10


@dataclass
class CohortAggregate(CountAggregate):
    """How many reports of each cohort have each bit set: `support`, shape (m, k); `users`, reports by cohort (m,)."""

    users: NDArray[np.int64]

    def merge(self, other: CountAggregate) -> CohortAggregate:
        """Add `other`; raises `NotSupported` if it was made by another mechanism."""
        super().merge(other)
        assert isinstance(other, CohortAggregate)
        self.users = self.users + other.users
        return self


@dataclass(frozen=True)
class SelectedEstimate(CountEstimate):
    """Counts of the candidates that a lasso kept; see `lasso`. `selected` is a boolean array (M,)."""

    selected: NDArray[np.bool_]


class BitLaw(NamedTuple):
    """p*, q* - p*, and the variances of a user's share in t_ij where the filter's bit is 0 and 1."""

    base: float
    gap: float
    variance_zero: float
    variance_one: float


def count_bits(reports: Any, cohorts: int, bits: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Reports by cohort (m,), and set bits by cohort (m, k).

    Raises `NotSupported` where `reports` are not uint8 rows of a cohort below m in two bytes and k packed bits.
    """
    import numpy as np

    rows = np.asarray(reports)
    width = 2 + -(-bits // 8)
    if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != width:
        raise NotSupported(f"expected reports of uint8, shape (n, {width}); found {rows.dtype} of shape {rows.shape}")
    cohort = rows[:, 0] + (rows[:, 1].astype(np.int64) << 8)
    if (cohort >= cohorts).any():
        raise NotSupported(f"expected reports of cohorts below {cohorts}; found cohort {cohort.max()}")
    # For each byte of the reports: how often each cohort has each of its 256 values, then which bits those set.
    bits_of = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(np.int64)
    tables = [np.bincount(256 * cohort + byte, minlength=256 * cohorts).reshape(cohorts, 256) for byte in rows.T[2:]]
    sums = np.concatenate([table @ bits_of for table in tables], axis=1)
    if sums[:, bits:].any():
        raise NotSupported(f"expected reports of {bits} bits; found padding bits that are set")
    return np.bincount(cohort, minlength=cohorts), sums[:, :bits]


class Regression:
    """Weighted least squares of the t_ij on the filters X (m, k, M), each bit weighted by its cohort's users."""

    def __init__(self, filters: Floats, users: Floats) -> None:
        import numpy as np

        self.filters, self.users = filters, users
        normal = np.einsum("jkv,jkw,j->vw", filters, filters, users, optimize=True)
        # Scaled to a unit diagonal, so that the rank does not hang on how often bits coincide.
        scale = 1 / np.sqrt(normal.diagonal())
        values, vectors = np.linalg.eigh(normal * scale * scale[:, None])
        self.full_rank = bool(values[0] > _RANK_TOLERANCE * len(values))
        if self.full_rank:
            half = scale[:, None] * vectors / np.sqrt(values)
            self._inverse = half @ half.T

    def shares(self, corrected: Floats) -> Floats:
        """π, shape (M,), from t (m, k)."""
        import numpy as np

        shares: Floats = self._inverse @ np.einsum("jkv,jk->v", self.filters, corrected)
        return shares

    def variances(self, population: Floats, law: BitLaw) -> Floats:
        """The exact variance of each share, shape (M,), times (n-1)/n of its part from the spread over cohorts.

        `population`: the shares of the users who hold each candidate, shape (M,); or (M, M), with a row for each
        estimated share where each is wanted for another population.

        A user of cohort j who holds v adds g_j[w, v] = Σ_i H_j[w, i] X_ijv to the estimate of w, H_j being the
        weights of t_ij. Given the sizes of the cohorts, the spread is a random partition, whose variance is that
        of g_j within each cohort, less what is the same in all of them: n·π_w(1-π_w)/n² (Hoeffding 1951).
        """
        import numpy as np

        people = np.atleast_2d(population)
        total = np.zeros(self.filters.shape[2])
        rise = law.variance_one - law.variance_zero
        for filters, users in zip(self.filters, self.users, strict=True):
            weights = self._inverse @ filters.T
            noise, gain = weights**2, weights @ filters
            spread = (gain**2 * people).sum(axis=1) - (gain * people).sum(axis=1) ** 2
            bits = law.variance_zero * noise.sum(axis=1) + rise * ((noise @ filters) * people).sum(axis=1)
            total += users * (bits + spread)
        own = people.diagonal() if len(people) > 1 else people[0]
        variances: Floats = total - own * (1 - own) / self.users.sum()
        return variances
