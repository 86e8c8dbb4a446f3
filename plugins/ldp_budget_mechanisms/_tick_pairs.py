"""Shares of people who ticked two options together: the law of what reports add to them, and their intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from ldp_budget.sdk.share_laws import AnswerLaw, Cumulants, Scales, share_ends

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._tick_design import Chances

    Floats = NDArray[np.float64]


class Together(NamedTuple):
    """The share of users who ticked two options, with its standard error and the ends of its interval."""

    share: float
    std_error: float
    low: float
    high: float


def places_of(options: int) -> tuple[Any, Any]:
    """Return the first and the second option of each two."""
    first, second = np.triu_indices(options, 1)
    return first, second


@dataclass(frozen=True, eq=False)
class PairLaw:
    """The law of contributions to single options, and to two of them together.

    It depends on the shares of both, for which `margins` has the estimates.
    """

    single: AnswerLaw
    chances: Chances
    margins: Floats | None = None
    exact: bool = True

    def around(self, shares: Floats) -> Self:
        return replace(self, margins=shares)

    def at(self, share: Any) -> Cumulants:
        options = len(self.single.cumulants.held)
        margins = share if self.margins is None else self.margins
        first, second = (np.asarray(margins)[each] for each in places_of(options))
        pairs = together_cumulants(self.chances, first, second, np.asarray(share)[options:])
        return Cumulants(*(np.concatenate(parts) for parts in zip(self.single.cumulants, pairs, strict=True)))


def together_cumulants(chances: Chances, first: Any, second: Any, together: Any) -> Cumulants:
    """Return the cumulants of contributions to two options together, for given shares of each and of both."""
    one, other = (np.clip(np.maximum(share, together), 0, 1) for share in (first, second))
    single = np.maximum(one + other - 2 * together, 0.0)
    neither = np.maximum(1 - one - other + together, 0.0)
    (none2, none3), (one2, one3), (both2, both3) = chances.moments_together()
    whole = np.maximum(single + neither, 1e-300)
    squares, cubes = ((single * a + neither * b) / whole for a, b in ((one2, none2), (one3, none3)))
    same = np.ones_like(squares)
    return Cumulants(squares, cubes, (both2 - 1) * same, (both3 - 3 * both2 + 2) * same)


@dataclass(frozen=True, eq=False)
class _OnePair:
    """The law of contributions to two options whose shares are known."""

    chances: Chances
    first: float
    second: float
    exact: bool = True

    def around(self, shares: Floats) -> Self:
        return self

    def at(self, share: Any) -> Cumulants:
        return together_cumulants(self.chances, self.first, self.second, share)


def together(chances: Chances, share: float, shares: tuple[float, float], reports: float, level: float) -> Together:
    """Return the share of people who ticked both of two options, with the interval that all shares have.

    Parameters:
        chances: the chances of the reports.
        share: the estimated share.
        shares: the estimated shares of either option.
        reports: the number of reports, as many as count alike.
        level: the confidence level of the interval.
    """
    law = _OnePair(chances, *shares)
    low, high = share_ends(law, Scales.of(np.array([1 / reports]), reports), np.array([share]), level)
    at = min(max(share, 0.0), 1.0)
    one, other = (min(max(each, at), 1.0) for each in shares)
    variance = chances.variance_together(one, other, max(at, one + other - 1))
    return Together(share, (max(variance, 0.0) / reports) ** 0.5, float(low[0]), float(high[0]))


def pair_noise(chances: Chances, singles: tuple[Any, Any]) -> tuple[Floats, Floats]:
    """Return (at_zero, slope) of the noise in `pair_contributions`: at_zero + answers @ slope.

    Parameters:
        chances: the chances of the reports.
        singles: the noise of the contributions to single options, and its slope, each (d,).
    """
    at_zero, slope = (np.asarray(each, np.float64) for each in singles)
    options = len(at_zero)
    first, second = places_of(options)
    (none, _), (one, _), (both, _) = chances.moments_together()
    pairs = options + np.arange(len(first))
    slopes = np.zeros((options + len(first),) * 2)
    slopes[range(options), range(options)] = slope
    slopes[first, pairs] = slopes[second, pairs] = one - none
    slopes[pairs, pairs] = both - 1 - none - 2 * (one - none)
    return np.concatenate((at_zero, np.full(len(first), none))), slopes


def pair_contributions(chances: Chances, singles: Floats, both: Any, asked: Any) -> Floats:
    """Return the contributions of reports to single options and to each two of them, (n, d + d(d - 1)/2).

    Parameters:
        chances: the chances of the reports.
        singles: the contributions to single options, (n, d).
        both: 1 where a report holds an option, (n, d).
        asked: 1 where a report says anything of an option, (n, d); None if all do of all.
    """
    first, second = places_of(singles.shape[1])
    start, held, slope, shown = chances.worths_together()
    found = start + held * (both[:, first] * both[:, second]) + slope * (singles[:, first] + singles[:, second])
    found += shown * (1.0 if asked is None else asked[:, first] * asked[:, second])
    return np.concatenate((singles, found), axis=1)
