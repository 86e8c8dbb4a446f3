"""The respondents of a regression with their design, and the variance of a sum of scores (Binder, 1983).

Respondents with the same public attributes and the same report are one row with a count, so a million reports of a yes/no
question on a few attributes are a few hundred rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldp_budget.errors import InvalidParameter, NotSupported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Sample:
    """Rows of respondents: how many each has, the weight of each of these, and where they were drawn.

    Parameters:
        counts: the number of respondents of each row, (K,).
        weights: the weight of each of them, (K,).
        strata: the number of the stratum of each row, (K,).
        clusters: the number of the cluster of each row, (K,), distinct between strata; None if people were drawn.
        repeats: in how many reports of the sample a person may be; the variance is multiplied by it, which bounds that of
            any correlation.

    Raises:
        InvalidParameter: a stratum has a single respondent or cluster.
    """

    counts: Floats
    weights: Floats
    strata: Ints
    clusters: Ints | None = None
    repeats: int = 1

    def __post_init__(self) -> None:
        if len(self.counts) and self._units.min() < 2:
            unit = "respondent" if self.clusters is None else "cluster"
            raise InvalidParameter(
                "strata" if len(self._units) > 1 or self.clusters is None else "clusters",
                f"at least 2 {unit}s in each stratum, to estimate a variance",
                f"1 {unit}",
                hint="Join the stratum with a similar one.",
            )

    @classmethod
    def of(
        cls,
        counts: Floats,
        weights: Floats | None = None,
        strata: Ints | None = None,
        clusters: Ints | None = None,
        *,
        repeats: int = 1,
    ) -> Sample:
        """Return a sample of rows with these counts; strata and clusters may be any codes."""
        weights = np.ones(len(counts)) if weights is None else np.asarray(weights, np.float64)
        strata = np.zeros(len(counts), np.int64) if strata is None else np.unique(strata, return_inverse=True)[1]
        if clusters is not None:
            clusters = np.unique(np.stack((strata, clusters)), axis=1, return_inverse=True)[1].reshape(-1)
        return cls(np.asarray(counts, np.float64), weights, strata, clusters, repeats)

    @property
    def total(self) -> Floats:
        """The weight of each row, (K,)."""
        return self.counts * self.weights

    @property
    def _units(self) -> Floats:
        """The number of respondents, or of clusters, of each stratum."""
        if self.clusters is None:
            return np.bincount(self.strata, self.counts).astype(np.float64)
        return np.bincount(self.strata[np.unique(self.clusters, return_index=True)[1]]).astype(np.float64)

    @property
    def freedom(self) -> int:
        """The number of units less that of strata."""
        return int(self._units.sum()) - len(self._units)

    def variance(self, scores: Floats, *, known_mean: bool = False) -> Floats:
        """Return the covariance of the weighted sum of scores, (p, p).

        Parameters:
            scores: the score of each respondent of each row, (K, p), before weighting.
            known_mean: True if their expectation is 0, as that of a test's scores is under the hypothesis. It is used in a
                sample without strata.
        """
        weighted, units = scores * self.weights[:, None], self._units
        if self.clusters is None:
            of, counts, sums = self.strata, self.counts, weighted
        else:
            sums = np.zeros((int(self.clusters.max()) + 1, scores.shape[1]))
            np.add.at(sums, self.clusters, weighted * self.counts[:, None])
            of = self.strata[np.unique(self.clusters, return_index=True)[1]]
            counts = np.ones(len(sums))
        factor = units / (units - 1)
        found: Floats = (sums * (counts * factor[of])[:, None]).T @ sums
        if not (known_mean and len(units) == 1):
            totals = np.zeros((len(units), scores.shape[1]))
            np.add.at(totals, of, sums * counts[:, None])
            found = found - (totals * (factor / units)[:, None]).T @ totals
        return found * self.repeats


def solved(matrix: Floats, right: Floats, names: Sequence[str]) -> Floats:
    """Return matrix⁻¹·right. Raises `NotSupported` if a column depends on the others."""
    scale = np.sqrt(np.maximum(np.abs(matrix.diagonal()), 1e-300))
    scaled = matrix / np.outer(scale, scale)
    if np.linalg.matrix_rank(scaled, tol=1e-10) < len(matrix):
        raise NotSupported(
            f"the terms {', '.join(names)} depend on each other, so they have no coefficients of their own",
            hint="Leave a term out, or join rare categories.",
        )
    found: Floats = np.linalg.solve(scaled, (right.T / scale).T)
    return (found.T / scale).T
