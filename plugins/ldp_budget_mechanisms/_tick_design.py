"""Which report of ticks has the least variance: the chances of reports, their variances, and the best sizes.

A share is estimated from a bit of each report: is the option in the set; or is it shown as ticked, if it was asked. With
p and q the probabilities of a one with and without the tick, λ = q + (p - q)f, and a share a of reports with the option,
one report has the variance λ(1 - λ)/(a(p - q)²) for its share f, sampling included.

Two options i and j are ticked together by a share g. With r₂, r₁, r₀ the probabilities of two ones if both, one or none of
them are ticked,

    g = (P₁₁ - r₀ - (r₁ - r₀)(f_i + f_j))/(r₂ - 2r₁ + r₀),     P₁₁ = r₀ + (r₁ - r₀)(f_i + f_j - 2g) + (r₂ - r₀)g.

So with z_i what a report adds to the count of option i, 1{11} for a report that holds both, and 1{a} for one that says anything of
both, a part a of all, a report adds c + c₁₁·1{11} + c_z·(z_i + z_j) + c_a·1{a} to the count of both: 1 on average for those
who ticked both, and 0 for others. Reports that do not say anything of both add P₁₁ at f = 0.3, g = 0.15 in place of 1{11}/a,
so that their number adds no variance there.
"""

from __future__ import annotations

from math import comb, inf
from operator import mul
from typing import NamedTuple

from ldp_budget.sdk.tick_sets import hit_weights

SHARE, TOGETHER = 0.3, 0.15
"""The shares of options, and of two of them together, for which the best design is chosen."""
MOST_ASKED = 20
_LEAST_BEND = 1e-6


class Chances(NamedTuple):
    """p, q, r₂, r₁, r₀; the shares of reports that say anything of one option and of two; and p - q. Absent ones are zero."""

    own: float
    other: float
    both: float
    one: float
    none: float
    shown: float = 1.0
    shown_together: float = 1.0
    exact_gap: float | None = None

    @property
    def gap(self) -> float:
        """p - q."""
        return self.own - self.other if self.exact_gap is None else self.exact_gap

    @property
    def bend(self) -> float:
        """r₂ - 2r₁ + r₀; 0 if reports say nothing of two options together."""
        found = self.both - 2 * self.one + self.none
        return found if self.shown_together and abs(found) >= _LEAST_BEND else 0.0

    @property
    def worths(self) -> tuple[float, float, float]:
        """What a report without the option, one that shows no tick, and one that shows a tick add to a count."""
        no, yes = -self.other / self.gap, (1 - self.other) / self.gap
        if self.shown == 1:
            return 0.0, no, yes
        return SHARE, SHARE + (no - SHARE) / self.shown, SHARE + (yes - SHARE) / self.shown

    def variance(self, share: float) -> float:
        """Return the variance of a share, for one report."""
        rate = self.other + self.gap * share
        return rate * (1 - rate) / self.gap**2 / self.shown if self.gap > 0 else inf

    def variance_together(self, first: float, second: float, together: float) -> float:
        """Return the variance of the share of people who ticked two options, for one report, sampling included."""
        if not self.bend or self.gap <= 0:
            return inf
        weights = (1 - first - second + together, first + second - 2 * together, together)
        moments = (second for second, _ in self.moments_together())
        return float(sum(map(mul, weights, moments))) - together**2

    def worths_together(self) -> tuple[float, float, float, float]:
        """Return what a report adds to the count of two options together: c, c₁₁, c_z and c_a of the module."""
        slope = self.one - self.none
        middle = self.none + 2 * slope * (SHARE - TOGETHER) + (self.both - self.none) * TOGETHER
        shown, bend = self.shown_together, self.bend
        return (middle - self.none) / bend, 1 / shown / bend, -slope / bend, -middle / shown / bend

    def moments_together(self) -> tuple[tuple[float, float], ...]:
        """Return E c² and E c³ of what a report adds, for people who ticked none, one and both of the options."""
        missing, *shows = self.worths
        start, held, slope, asked = self.worths_together()
        alone = self.shown - self.shown_together
        found = []
        for rates, twice in (
            ((self.other, self.other), self.none),
            ((self.own, self.other), self.one),
            ((self.own, self.own), self.both),
        ):
            cells = [(self.shown_together * twice, start + asked + held + 2 * slope * shows[1])]
            cells += [(self.shown_together * (rate - twice), start + asked + slope * sum(shows)) for rate in rates]
            cells.append((self.shown_together * (1 - sum(rates) + twice), start + asked + 2 * slope * shows[0]))
            for rate in rates if alone else ():
                cells += [(alone * rate, start + slope * (missing + shows[1]))]
                cells += [(alone * (1 - rate), start + slope * (missing + shows[0]))]
            cells.append((1 - self.shown_together - 2 * alone, start + 2 * slope * missing))
            found.append((sum(chance * c**2 for chance, c in cells), sum(chance * c**3 for chance, c in cells)))
        return tuple(found)


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
    sizes = range(1 + pairs, min(options, MOST_ASKED) + 1) if size is None else (size,)
    return Design(min(sizes, key=lambda s: (_worth(asked_chances(options, s, odds), pairs=pairs), s)), 0)
