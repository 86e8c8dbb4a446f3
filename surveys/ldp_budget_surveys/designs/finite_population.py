"""Finite population correction: less chance of the sample where much of a population is asked, and as much noise.

A contribution varies because people differ, and because its report is randomized. Asking n of N people without
replacement leaves the part 1 - n/N of the first variance (Cochran 1977, Theorem 2.2) and all of the second. The variance
of the noise is linear in the answers of the respondents, so the contributions estimate it without bias. The part of the
sample is the total less the noise, and not less than 0. Each stratum has a rate of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ldp_budget.errors import InvalidParameter
from ldp_budget.sdk.share_laws import without_replacement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .moments import Moments
    from .strata import Design, Influence
    from .weights import Weights

    Floats = NDArray[np.float64]

_CLOSE = 1e-9


class Noise(NamedTuple):
    """The variance that randomization gives to a contribution, or an upper bound: at_zero + slope · answers.

    `at_zero` has shape (d,). `slope` has the shape (d,) where the noise depends on the own answer, else (d, d).
    """

    at_zero: Floats
    slope: Floats

    def totals(self, moments: Moments) -> Floats:
        """Return the sum of these variances over the respondents of each cell, (K, d)."""
        slopes = moments.sums * self.slope if self.slope.ndim == 1 else moments.sums @ self.slope
        found: Floats = moments.counts[:, None] * self.at_zero + slopes
        return found


def paired_noise(first: Noise, second: Noise) -> Noise:
    """Return the noise of the contributions of `paired`: those of two questions, and their products.

    For the contributions y and z of independent noise, E[z²] = at_zero + (slope + 1)·1{answer}, and the variance of
    y·z is E[y²]·E[z²] - 1{both answers}.
    """
    (u, s), (v, t) = first, second
    one, two = len(u), len(v)
    slope = np.zeros((one + two + one * two,) * 2)
    slope[range(one + two), range(one + two)] = np.concatenate((s, t))
    cells = np.arange(one * two)
    row, column, cell = cells // two, cells % two, one + two + cells
    slope[row, cell] = (s[row] + 1) * v[column]
    slope[one + column, cell] = u[row] * (t[column] + 1)
    slope[cell, cell] = (s[row] + 1) * (t[column] + 1) - 1
    return Noise(np.concatenate((u, v, np.outer(u, v).reshape(-1))), slope)


class FinitePopulation(NamedTuple):
    """The number of people from whom the respondents were drawn without replacement, and the noise of contributions."""

    people: float
    noise: Noise

    def variance(self, moments: Moments, weights: Weights, design: Design, influence: Influence) -> Floats:
        """Return the variance of each estimate, (d,).

        Raises:
            InvalidParameter: as `Design.variance`; or there are more respondents in a stratum than people.
        """
        of, levels = moments.codes(design.strata)
        rates = self._rates(moments, weights, of, levels)
        noises: Floats = np.zeros((len(levels), len(self.noise.at_zero)))
        np.add.at(noises, of, influence.scale[:, None] ** 2 * self.noise.totals(moments))
        sampling = np.maximum(1 - rates, 0.0) @ (design.variances(moments, influence) - noises)
        found: Floats = np.maximum(sampling, 0.0) + np.maximum(noises.sum(axis=0), 0.0)
        return found

    def missed(self, moments: Moments, weights: Weights, design: Design, kept: Any) -> tuple[Any, Any]:
        """Return c and c′/c of `share_laws` for the respondents of each kept cell, by the rate of its stratum."""
        of, levels = moments.codes(design.strata)
        rates = self._rates(moments, weights, of, levels)
        asked = np.bincount(of, moments.counts, len(levels))
        missed, turn = without_replacement(asked, np.maximum(asked / rates, asked))
        return missed[of][kept], turn[of][kept]

    def least_rate(self, moments: Moments, weights: Weights, design: Design) -> float:
        """Return the least part of a stratum that was asked. Raises as `variance`."""
        return float(self._rates(moments, weights, *moments.codes(design.strata)).min())

    def _rates(self, moments: Moments, weights: Weights, of: Any, levels: Sequence[tuple[str, ...]]) -> Floats:
        """Return the part of each stratum that was asked: the least of its cells, which never corrects too much."""
        rates = np.full(len(levels), np.inf)
        # A respondent represents weight · N / Σ weights people.
        np.minimum.at(rates, of, weights.total(moments) / (self.people * weights.values))
        if rates.max() > 1 + _CLOSE:
            name = ", ".join(levels[int(rates.argmax())])
            expected = "at least as many people as respondents" + (f", also in {name}" if name else "")
            left = f"{self.people:.12g}, which is {1 / rates.max():.2g} people for each respondent there"
            raise InvalidParameter("population", expected, left)
        return rates
