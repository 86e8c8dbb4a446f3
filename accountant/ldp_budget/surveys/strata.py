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

from ..errors import InvalidParameter, NotSupported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .moments import Moments

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


_MANY = 30
"""The degrees of freedom from which on the skewness of an estimate is known well enough to use it."""


class Influence(NamedTuple):
    """The influence of each respondent of a cell on d estimates: scale·z - shift, for the contributions z.

    `scale` has shape (K,), `shift` (K, d). The influence of a difference is the difference of the influences.
    """

    scale: Floats
    shift: Floats

    def minus(self, other: Influence) -> Influence:
        """Return the influence on the difference of two estimates."""
        return Influence(self.scale - other.scale, self.shift - other.shift)


class _Units(NamedTuple):
    """The number of units of each stratum, and the sums of their influences, of the squares and of the cubes.

    `each` are the summed influences of each unit, or of the respondents of each cell, and `of` is its stratum.
    """

    number: Floats
    sums: Floats
    squares: Floats
    cubes: Floats
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

    def freedom(self, moments: Moments, cells: NDArray[np.bool_] | None = None) -> int:
        """Return the degrees of freedom of the variance, the clusters or respondents less the strata; at least 1.

        Parameters:
            moments: the moments of the reports.
            cells: the cells to count; None for all.
        """
        kept = np.ones(len(moments.cells), bool) if cells is None else cells
        strata, _ = moments.codes(self.strata)
        units = moments.counts[kept].sum()
        if self.clusters is not None:
            clusters, _ = moments.codes((*self.strata, self.clusters))
            units = len(np.unique(clusters[kept]))
        return max(1, int(units) - len(np.unique(strata[kept])))

    def skewness(self, moments: Moments, influence: Influence) -> Floats:
        """Return the third cumulant of each estimate over its variance, (d,), which shifts an interval; see `means`.

        It is 0 where there are fewer than 30 degrees of freedom, because it is then not known well enough.
        """
        if self.freedom(moments, influence.scale != 0) < _MANY:
            return np.zeros(influence.shift.shape[1])
        units = self._units(moments, influence)
        center = units.sums / units.number[:, None]
        cubes = units.cubes - 3 * center * units.squares + 2 * units.number[:, None] * center**3
        second = np.maximum((units.squares - units.number[:, None] * center**2).sum(axis=0), 0.0)
        found: Floats = np.divide(cubes.sum(axis=0), second, out=np.zeros(len(second)), where=second > 0)
        return found

    def _units(self, moments: Moments, influence: Influence) -> _Units:
        """Return the sums over the clusters or respondents of each stratum. Raises `InvalidParameter`."""
        strata, levels = moments.codes(self.strata)
        scale, shift, counts = influence.scale[:, None], influence.shift, moments.counts[:, None]
        sums = scale * moments.sums - counts * shift
        if self.clusters is None:
            of, number = strata, np.bincount(strata, moments.counts, len(levels)).astype(np.float64)
            first, second, third = (scale**power * part for power, part in enumerate(moments.powers, 1))
            squares = second - 2 * first * shift + counts * shift**2
            cubes = third - 3 * second * shift + 3 * first * shift**2 - counts * shift**3
        else:
            clusters, names = moments.codes((*self.strata, self.clusters))
            sums = _summed(clusters, sums, len(names))
            of = np.zeros(len(names), np.int64)
            of[clusters] = strata
            number = np.bincount(of, minlength=len(levels)).astype(np.float64)
            squares, cubes = sums**2, sums**3
        self._check_pairs(number, levels)
        totals = [_summed(of, rows, len(levels)) for rows in (sums, squares, cubes)]
        return _Units(number, totals[0], totals[1], totals[2], sums, of)

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
