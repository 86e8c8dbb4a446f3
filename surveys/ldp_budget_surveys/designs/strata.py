"""Variance of an estimate from a designed sample, with strata and clusters.

The variance is that of a stratified sample of clusters, drawn with replacement, of a linearized estimate (Taylor
series). Each respondent contributes an influence to the estimate; the variance is estimated from how much the summed
influences of the clusters of one stratum differ. The influences are linear in the contributions of the reports, so
they hold the noise of the randomization as well as the chance of the sample: one interval covers both. With replacement
there is no finite population correction; `finite_population` adds it for the chance of the sample alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ldp_budget.errors import InvalidParameter, NotSupported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .moments import Moments

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


_TINY, _CLOSE = 1e-300, 1e-9
_LEAST_LEFT = 0.01
"""The least part of a sample that is taken to be left without a cluster, so that a variance is finite."""


class Influence(NamedTuple):
    """The influence of each respondent of a cell on d estimates: scale·z - shift, for the contributions z.

    `scale` has shape (K,), `shift` (K, d). The influence of a difference is the difference of the influences.
    """

    scale: Floats
    shift: Floats

    def of(self, cells: NDArray[np.bool_]) -> Influence:
        """Return the influence of the respondents of some cells alone."""
        return Influence(np.where(cells, self.scale, 0.0), np.where(cells[:, None], self.shift, 0.0))

    def minus(self, other: Influence) -> Influence:
        """Return the influence on the difference of two estimates."""
        return Influence(self.scale - other.scale, self.shift - other.shift)


class _Units(NamedTuple):
    """The number of units of each stratum, and the sums of their influences and of the squares.

    `each` are the summed influences of each unit, or of the respondents of each cell, and `of` is its stratum.
    """

    number: Floats
    sums: Floats
    squares: Floats
    each: Floats
    of: Ints


@dataclass(frozen=True)
class Design:
    """The sampling design: how the respondents were drawn.

    Parameters:
        strata: the public columns whose combinations are the strata; none for a simple random sample.
        clusters: the public column of the clusters that were drawn in each stratum; None if people were drawn.
    """

    strata: tuple[str, ...] = ()
    clusters: str | None = None

    def covariance(self, moments: Moments, influence: Influence) -> Floats:
        """Return the covariance of estimates, (d, d). Raises as `variance`, and unless products are kept."""
        if self.clusters is None and moments.products.ndim == 2 and not moments.exclusive:
            raise NotSupported("a covariance of several answers needs moments with products")
        units = self._units(moments, influence)
        factor = units.number / (units.number - 1)
        center = (units.sums * (factor / units.number)[:, None]).T @ units.sums
        if self.clusters is not None:
            found: Floats = (units.each * factor[units.of][:, None]).T @ units.each - center
            return found
        scale, shift, each = influence.scale, influence.shift, factor[units.of]
        mixed = (moments.sums * (each * scale)[:, None]).T @ shift
        squares = each * scale**2
        second = np.diag(squares @ moments.sums) if moments.exclusive else np.tensordot(squares, moments.products, 1)
        both: Floats = second - mixed - mixed.T + (shift * (each * moments.counts)[:, None]).T @ shift - center
        return both

    def variance(self, moments: Moments, influence: Influence) -> Floats:
        """Return the variance of each estimate, (d,).

        Parameters:
            moments: the moments of the reports.
            influence: the influences of the respondents.

        Raises:
            InvalidParameter: a column is not public; or a stratum has a single respondent or cluster, from which no
                variance can be estimated.
        """
        found: Floats = self.variances(moments, influence).sum(axis=0)
        return found

    def variances(self, moments: Moments, influence: Influence) -> Floats:
        """Return the part of each stratum in the variance of each estimate, (H, d). Raises as `variance`."""
        units = self._units(moments, influence)
        number = units.number[:, None]
        found: Floats = number / (number - 1) * (units.squares - units.sums**2 / number)
        return found

    def freedom(self, moments: Moments, influence: Influence, effects: Floats) -> Floats:
        """Return the degrees of freedom of the variance of estimates with these design effects, (d,); at least 1.

        They are the respondents less the strata. The variance of clusters is a sum of unequal parts (Satterthwaite 1946):
        a cluster has a part as if its people had been drawn one by one, and one for their correlation, which follows from the
        effect and is larger for a large cluster.

        Parameters:
            moments: the moments of the reports.
            influence: the influences on the estimates.
            effects: their variances over those of people drawn one by one, (d,).
        """
        kept = influence.scale != 0
        strata, _ = moments.codes(self.strata)
        number = len(np.unique(strata[kept]))
        if self.clusters is None:
            return np.full(len(effects), max(1.0, float(moments.counts[kept].sum()) - number))
        clusters, names = moments.codes((*self.strata, self.clusters))
        scale, counts = np.abs(influence.scale), moments.counts
        alone = np.bincount(clusters, scale**2 * counts, len(names))[:, None]
        shared = np.bincount(clusters, scale * counts, len(names))[:, None] ** 2 - alone
        together = max(float(shared.sum()), _CLOSE * float(alone.sum()))
        parts = alone + np.clip((effects - 1) * alone.sum() / together, 0.0, 1.0) * shared
        found: Floats = np.maximum(1.0, parts.sum(axis=0) ** 2 / (parts**2).sum(axis=0) - number)
        return found

    def _units(self, moments: Moments, influence: Influence) -> _Units:
        """Return the sums over the clusters or respondents of each stratum. Raises `InvalidParameter`."""
        strata, levels = moments.codes(self.strata)
        scale, shift, counts = influence.scale[:, None], influence.shift, moments.counts[:, None]
        sums = scale * moments.sums - counts * shift
        if self.clusters is None:
            of, number = strata, np.bincount(strata, moments.counts, len(levels)).astype(np.float64)
            squares = scale**2 * moments.squares - 2 * scale * moments.sums * shift + counts * shift**2
        else:
            clusters, names = moments.codes((*self.strata, self.clusters))
            sums = _summed(clusters, sums, len(names))
            of = np.zeros(len(names), np.int64)
            of[clusters] = strata
            number = np.bincount(of, minlength=len(levels)).astype(np.float64)
            sums = self._without(sums, _summed(clusters, np.abs(scale) * counts, len(names)), of, number)
            squares = sums**2
        self._check_pairs(number, levels)
        return _Units(number, _summed(of, sums, len(levels)), _summed(of, squares, len(levels)), sums, of)

    def _without(self, sums: Floats, sizes: Floats, of: Ints, number: Floats) -> Floats:
        """Return the summed influences, with that of each cluster as large as the change of the estimate without it.

        That is the jackknife of a ratio; clusters of one size are unchanged. The linearized influence of a large cluster is
        too small, because it pulls the estimate towards itself.
        """
        factor = (number / np.maximum(number - 1, 1))[of][:, None]
        mean = (_summed(of, np.concatenate((sums, sizes), axis=1), len(number)) / number[:, None])[of]
        left = 1 - factor * (sizes - mean[:, -1:]) / max(float(sizes.sum()), _TINY)
        changed: Floats = mean[:, :-1] + (sums - mean[:, :-1]) / np.maximum(left, _LEAST_LEFT)
        return changed

    def _check_pairs(self, units: Floats, levels: Sequence[tuple[str, ...]]) -> None:
        """Raise `InvalidParameter` for a stratum with a single unit."""
        for count, level in zip(units.tolist(), levels, strict=True):
            if count < 2:
                unit = "respondent" if self.clusters is None else "cluster"
                raise InvalidParameter(
                    "strata" if self.strata else "clusters",
                    f"at least 2 {unit}s in each stratum, to estimate a variance",
                    f"1 {unit} in {', '.join(level) or 'the sample'}",
                    hint="Join the stratum with a similar one.",
                )


def _summed(codes: Ints, rows: Floats, size: int) -> Floats:
    """Return the sum of the rows of each code."""
    found = np.zeros((size, *rows.shape[1:]))
    np.add.at(found, codes, rows)
    return found
