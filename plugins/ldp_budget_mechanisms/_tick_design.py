"""Which report of ticks has the least variance: the chances of reports, their variances, and the best sizes.

A share is estimated from a bit of each report: is the option in the set; or is it shown as ticked, if it was asked. With
p and q the probabilities of a one with and without the tick, λ = q + (p - q)f, and a share a of reports with the option,
one report has the variance λ(1 - λ)/(a(p - q)²) for its share f, sampling included.

Two options i and j are ticked together by a share g. With r₂, r₁, r₀ the probabilities of two ones if both, one or none of
them are ticked,

    g = (P₁₁ - r₀ - (r₁ - r₀)(f_i + f_j))/(r₂ - 2r₁ + r₀),     P₁₁ = r₀ + (r₁ - r₀)(f_i + f_j - 2g) + (r₂ - r₀)g.
"""

from __future__ import annotations

from math import comb, inf
from typing import NamedTuple

from ldp_budget.sdk.tick_sets import hit_weights

SHARE, TOGETHER = 0.3, 0.15
"""The shares of options, and of two of them together, for which the best design is chosen."""
_MOST_ASKED = 20
_LEAST_BEND = 1e-6


class Chances(NamedTuple):
    """p, q, r₂, r₁, r₀; and the shares of reports that say anything of one option and of two. Absent ones are zero."""

    own: float
    other: float
    both: float
    one: float
    none: float
    shown: float = 1.0
    shown_together: float = 1.0

    def variance(self, share: float) -> float:
        """Return the variance of a share, for one report."""
        rate = self.other + (self.own - self.other) * share
        gap = self.own - self.other
        return rate * (1 - rate) / gap**2 / self.shown if gap > 0 else inf

    def variance_together(self, first: float, second: float, together: float) -> float:
        """Return the variance of the share of people who ticked two options, for one report, sampling included."""
        bend, gap = self.both - 2 * self.one + self.none, self.own - self.other
        if abs(bend) < _LEAST_BEND or gap <= 0 or not self.shown_together:
            return inf
        slope = (self.one - self.none) / gap
        rates = [self.other + gap * share for share in (first, second)]
        twice = self.none + (self.one - self.none) * (first + second - 2 * together)
        twice += (self.both - self.none) * together
        alone = sum(rate * (1 - rate) for rate in rates) / self.shown
        joint = 2 * (twice - rates[0] * rates[1]) * self.shown_together / self.shown**2
        crossed = sum(twice * (1 - rate) for rate in rates) / self.shown
        own = twice * (1 - twice) / self.shown_together
        return (own + slope**2 * (alone + joint) - 2 * slope * crossed) / bend**2


class Design(NamedTuple):
    """Sets of `size` items with a threshold `least`; or, if `least` is 0, the bits of `size` asked options."""

    size: int
    least: int


def set_chances(options: int, most: int, size: int, least: int, odds: float) -> Chances | None:
    """Return the chances of sets of items; None if they say nothing, or cannot be drawn."""
    weights = hit_weights(most, options, size)
    upper = sum(weights[least:])
    total = sum(weights)
    if not 0 < upper < total:
        return None
    high = odds * upper / (odds * upper + total - upper)
    hits = [
        weight * (high / upper if i >= least else (1 - high) / (total - upper)) for i, weight in enumerate(weights)
    ]

    def chance(own: int, other: int) -> float:
        ways = comb(most, own) * comb(options, other)
        return sum(x * comb(i, own) * comb(size - i, other) for i, x in enumerate(hits)) / ways if ways else 0.0

    return Chances(chance(1, 0), chance(0, 1), chance(2, 0), chance(1, 1), chance(0, 2))


def asked_chances(options: int, asked: int, odds: float) -> Chances:
    """Return the chances of the bits of asked options, given that the options are asked."""
    cells = 2.0**asked
    keep = odds / (odds + cells - 1)
    other = (1 - keep) / (cells - 1)
    own = keep + (cells / 2 - 1) * other
    share = asked / options
    if asked < 2:
        return Chances(own, 1 - own, 0.0, 0.0, 0.0, share, 0.0)
    off = cells / 4 * other
    pairs = asked * (asked - 1) / (options * (options - 1))
    return Chances(own, 1 - own, keep + off - other, off, off, share, pairs)


def _worth(chances: Chances | None, *, pairs: bool) -> float:
    if chances is None:
        return inf
    return chances.variance_together(SHARE, SHARE, TOGETHER) if pairs else chances.variance(SHARE)


def best_set(options: int, most: int, odds: float, *, pairs: bool, size: int | None, least: int | None) -> Design:
    """Return the sets of least variance at a share of 30 %; `pairs`: of two options together. What is given is kept."""
    sizes = range(1 + pairs, options + 1) if size is None else (size,)
    found = [
        (_worth(set_chances(options, most, k, t, odds), pairs=pairs), k, t)
        for k in sizes
        for t in (range(1, min(most, k) + 1) if least is None else (least,))
        if t <= min(most, k)
    ]
    _, k, t = min(found, default=(inf, 1, 1))
    return Design(k, t)


def best_asked(options: int, odds: float, *, pairs: bool, size: int | None) -> Design:
    """Return how many options are asked, as `best_set`."""
    sizes = range(1 + pairs, min(options, _MOST_ASKED) + 1) if size is None else (size,)
    return Design(min(sizes, key=lambda s: (_worth(asked_chances(options, s, odds), pairs=pairs), s)), 0)
