"""Checks of a density: the privacy loss between two inputs as a function of the report, and the divergence.

The loss L(y) = ln f(y | x) - ln f(y | x') is evaluated between neighboring breakpoints of either density. The
mechanism states where they are, and that L is monotone or constant between them. So on each piece the largest loss is
at an end, and L crosses a level at most once. If 64 samples of a piece contradict that, the guarantee is not proved.
A narrower spike without a breakpoint may be missed. A curve of (ε, δ) is checked on a finite grid of ε.

All computations are in double precision. Each figure has a bound of its rounding error. A figure that exceeds its
claim by more is violated. A figure that cannot be distinguished from its claim to 1e-9 is unproven.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ldp_budget.guarantees import (
    Approximate,
    FinitePair,
    Gaussian,
    Guarantee,
    Laplace,
    Pure,
    SymmetricPair,
    Unbounded,
)
from ldp_budget.guarantees.gaussian_calibration import gaussian_delta
from ldp_budget.sdk.numeric_mechanism import NumericMechanism, weighted_nodes

from .. import BREAKPOINT, BY_CHANNEL
from .dominance import HOLDS, UNPROVEN, VIOLATED, Finding, corners, worst

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from fractions import Fraction

    from numpy.typing import NDArray

TOLERANCE = 1e-9
"""The relative excess over a claim that is tolerated: it covers double precision and is not a privacy loss."""

_LOOKS = 64
# The number of parts of a finite piece that are integrated one by one.
_CUTS = 4
_ULP = 2.0**-52
# A piece is sampled from this share of its length inside, and this many roundings of its borders. On a border, and
# where it is rounded differently, the density may be that of either side.
_EDGE, _ROUNDINGS = 1e-13, 8
# In an infinite piece, the distance grows by this factor from sample to sample.
_GROWTH = 1.5
# How far below the highest ln f a report matters: a δ of 1e-250 is -576. Further down, e^ln f underflows.
_REACH = 700.0
# Reports that are likelier than e^-5 of the likeliest show the loss; the others have larger rounding errors.
_NEAR = 5.0
# If L is this far above ε, all of the mass except e^-40 of it counts.
_LIKELY = 40.0
# The change of ln f between two reports up to which the rule is accurate to the last digits.
_CHANGE = 4.0
# A density that falls this far and then is 0 may have underflowed.
_VANISHING = 460.0


class Figure(NamedTuple):
    """A number, and a bound of its rounding error."""

    value: float
    rounding: float


class _Piece(NamedTuple):
    """Ascending reports in one piece, and some of them for integrals. The piece counts `times` if it is repeated."""

    reports: list[float]
    cuts: list[float]
    times: float


class _Table(NamedTuple):
    """Segments of pieces: (k, 2) borders and their losses, (k,) times; (k, 12) masses, losses and roundings."""

    borders: NDArray[np.float64]
    ends: NDArray[np.float64]
    times: NDArray[np.float64]
    masses: NDArray[np.float64]
    losses: NDArray[np.float64]
    roundings: NDArray[np.float64]


@dataclass(frozen=True)
class DensityPair:
    """The densities of the reports of `first` and `second`."""

    mechanism: NumericMechanism
    first: float
    second: float

    def largest_loss(self) -> float:
        """Return the supremum of L over all reports."""
        return max((self.loss(report) for report in self._reports()), default=-math.inf)

    def divergence(self, epsilon: float) -> float:
        """Return H(e^ε) = ∫ max(f(y | x) - e^ε f(y | x'), 0) dy."""
        return self.excess(epsilon).value

    def loss(self, report: float) -> float:
        """Return L at one report; -inf if f(y | x) is 0, or too small to distinguish it from 0."""
        ours, theirs = self._logs(report)
        if ours == -math.inf or (theirs == -math.inf and ours < self._peak - _VANISHING):
            return -math.inf
        return ours - theirs

    def rounding(self, report: float) -> float:
        """Return a bound of the rounding error of L at a report.

        It covers the logarithms, and the inputs and breakpoints as doubles.
        """
        found = self._roundings.get(report)
        if found is None:
            found = self._roundings[report] = self._rounding(report)
        return found

    def _rounding(self, report: float) -> float:
        size = sum(abs(level) for level in self._logs(report) if level > -math.inf) + max(0.0, self._peak)
        moved = 0.0
        for value, level in zip((self.first, self.second), self._logs(report), strict=True):
            shifted = self._log(report, value + self._shift)
            if math.isfinite(shifted) and math.isfinite(level):
                moved += abs(shifted - level)
        return _ULP * (2 + size) + 2 * moved

    def _logs(self, report: float) -> tuple[float, float]:
        """Return ln f of both inputs."""
        found = self._memo.get(report)
        if found is None:
            found = self._memo[report] = self._log(report, self.first), self._log(report, self.second)
        return found

    @functools.cached_property
    def _memo(self) -> dict[float, tuple[float, float]]:
        return {}

    @functools.cached_property
    def _roundings(self) -> dict[float, float]:
        return {}

    # -- sampled reports --------------------------------------------------------------------------------

    @functools.cached_property
    def _log(self) -> Callable[[float, float], float]:
        """`density` or `log_density`, the one that the more derived class defines."""
        mechanism = self.mechanism
        for kind in type(mechanism).__mro__:
            if "log_density" in vars(kind):
                return mechanism.log_density
            if "density" in vars(kind):
                break
        return functools.partial(NumericMechanism.log_density, mechanism)

    @functools.cached_property
    def _width(self) -> float:
        return abs(self.second - self.first)

    @functools.cached_property
    def _shift(self) -> float:
        """The rounding error of an input as a double."""
        return _ULP * max(abs(self.first), abs(self.second))

    @functools.cached_property
    def _borders(self) -> list[float]:
        outer = [sorted(self.mechanism.report_breakpoints(value)) for value in (self.first, self.second)]
        borders = {*outer[0], *outer[1]}
        period = self.mechanism.report_period
        if period is None:
            return sorted(borders)
        left, right = max(each[0] for each in outer), min(each[-1] for each in outer)
        return sorted(border for border in {*borders, left + period, right - period} if left <= border <= right)

    def _bounds(self) -> Iterator[tuple[float, float]]:
        endless = self.mechanism.report_period is None
        return pairwise([-math.inf, *self._borders, math.inf] if endless else self._borders)

    def _margin(self, low: float, high: float) -> float:
        ends = [end for end in (low, high) if math.isfinite(end)]
        length = high - low if len(ends) == 2 else self._width
        return _EDGE * length + _ROUNDINGS * _ULP * max(map(abs, (*ends, self.first, self.second)))

    @functools.cached_property
    def _peak(self) -> float:
        """The highest ln f(y | x) at the borders, on either side."""
        around = [
            border + side * 2 * self._margin(border, border + self._width)
            for border in self._borders
            for side in (-1, 1)
        ]
        return max(self._log(report, self.first) for report in (self.first, *self._borders, *around))

    @functools.cached_property
    def _pieces(self) -> list[_Piece]:
        found = []
        for low, high in self._bounds():
            margin = self._margin(low, high)
            if high - low > 4 * margin:
                looks = self._looks(low + margin, high - margin)
                step = _LOOKS // _CUTS if math.isfinite(high - low) else 1
                cuts = self._halved(looks if step == 1 else [*looks[:-1:step], looks[-1]], self._levels)
                found.append(_Piece(looks if step > 1 else cuts, cuts, self._times(low, high)))
        return found

    def _looks(self, low: float, high: float) -> list[float]:
        """Return ascending reports from `low` to `high`; if one is infinite, as far out as there is any density."""
        if math.isinf(low):
            return self._outward(high, -1)[::-1]
        if math.isinf(high):
            return self._outward(low, 1)
        inner = (low + (high - low) * place / _LOOKS for place in range(1, _LOOKS))
        return sorted({low, *inner, high})

    def _outward(self, start: float, side: int) -> list[float]:
        reports, distance, peak = [start], self._width / _LOOKS, self._peak
        while math.isfinite(report := start + side * distance):
            if report != reports[-1]:
                reports.append(report)
            level = self._log(report, self.first)
            peak = max(peak, level)
            if not level > peak - _REACH:
                break
            distance *= _GROWTH
        return reports

    def _levels(self, report: float) -> tuple[float, float]:
        least = self._peak - _REACH
        ours, theirs = self._logs(report)
        return max(least, ours), max(least, theirs)

    def _halved(self, looks: list[float], levels: Callable[[float], tuple[float, ...]]) -> list[float]:
        """Return the reports, with others in between until no level changes much from one to the next."""
        known = looks[:1]
        waiting = [(report, levels(report)) for report in reversed(looks[1:])]
        last = levels(looks[0])
        while waiting:
            report, reached = waiting[-1]
            middle = (known[-1] + report) / 2
            far = max(abs(a - b) for a, b in zip(last, reached, strict=True)) > _CHANGE
            if far and known[-1] < middle < report:
                waiting.append((middle, levels(middle)))
            else:
                known.append(report)
                last = waiting.pop()[1]
        return known

    def _times(self, low: float, high: float) -> float:
        """Return 1/(1-r) in the outermost periods, if each further one has r times the density of the one before."""
        period, middle = self.mechanism.report_period, (low + high) / 2
        if period is None or self._borders[0] + period < middle < self._borders[-1] - period:
            return 1.0
        side = -1 if middle < self._borders[0] + period else 1
        ours = self._log(middle, self.first)
        fall = ours - self._log(middle + side * period, self.first)
        return 1 / -math.expm1(-fall) if fall > 0 else math.inf

    def _reports(self) -> Iterator[float]:
        """Yield all sampled reports where the first input has any density."""
        for piece in self._pieces:
            yield from (report for report in piece.reports if self._logs(report)[0] > self._peak - _REACH)

    # -- integrals --------------------------------------------------------------------------------------

    @functools.cached_property
    def _table(self) -> _Table:
        parts = [(low, high, piece.times) for piece in self._pieces for low, high in pairwise(piece.cuts)]
        ends = [(self.loss(low), self.loss(high)) for low, high, _ in parts]
        rows = np.array([self._row(*part) for part in parts]).reshape(len(parts), 12, 3)
        lows, highs, times = np.array(parts).reshape(-1, 3).T
        return _Table(np.stack([lows, highs], axis=1), np.array(ends).reshape(-1, 2), times, *np.moveaxis(rows, 2, 0))

    def _row(self, low: float, high: float, times: float) -> list[tuple[float, float, float]]:
        """Return (mass, loss, rounding) at the nodes of a segment."""
        changes = [abs(b - a) for a, b in zip(self._logs(low), self._logs(high), strict=True)]
        moved = 2 * self._shift * sum(change for change in changes if change < math.inf) / (high - low)
        peak = max(0.0, self._peak)
        row = []
        for node, weight in weighted_nodes(low, high):
            ours, theirs = self._log(node, self.first), self._log(node, self.second)
            if ours <= self._peak - _REACH:
                row.append((0.0, -math.inf, 0.0))
                continue
            seen = theirs > -math.inf
            loss = ours - theirs if seen or ours > self._peak - _VANISHING else -math.inf
            # If the inputs are far apart, the density alone may underflow, but its mass does not.
            length = math.log(weight)
            size = abs(ours) + (abs(theirs) if seen else 0.0) + abs(length) + peak
            rounding = _ULP * (2 + size) + moved
            row.append((math.exp(ours + length) * times, loss, rounding * times))
        return row

    @functools.cached_property
    def unseen(self) -> Figure:
        """The mass between the pieces, which are sampled from a margin inside; and the most that may be there."""
        total = most = 0.0
        for low, high in self._bounds():
            margin = self._margin(low, high)
            short = high - low <= 4 * margin
            length = high - low if short else min(2 * margin, high - low)
            inside = [report for report in (low + margin, high - margin) if math.isfinite(report)]
            density = max((math.exp(self._log(report, self.first)) for report in inside), default=0.0)
            total += length * density * (1.0 if short else self._times(low, high))
            most += 4 * margin * math.exp(self._peak)
        return Figure(total, total + most)

    def mass(self) -> Figure:
        """Return the integral of f(y | x) over the pieces."""
        masses = self._table.masses
        return Figure(float(masses.sum()) + self.unseen.value, float((masses * self._table.roundings).sum()))

    def impossible(self) -> float:
        """Return the mass of reports that the second input can never give."""
        return float(self._table.masses[self._table.losses == math.inf].sum())

    def excess(self, epsilon: float) -> Figure:
        """Return the divergence at `epsilon`, with its rounding error."""
        table = self._table
        low, high = table.ends.min(axis=1), table.ends.max(axis=1)
        top = epsilon + _LIKELY
        change = np.clip(high, epsilon, top) - np.clip(low, epsilon, top)
        smooth = (low >= epsilon) & (change <= _CHANGE)
        rough = np.flatnonzero((high > epsilon) & ~smooth)
        smooth &= high > epsilon
        masses = table.masses[smooth]
        found = masses * -np.expm1(np.minimum(0.0, epsilon - table.losses[smooth]))
        parts = [self._rough(int(place), epsilon) for place in rough]
        near = table.losses + table.roundings > epsilon
        rounding = float((table.masses * table.roundings)[near].sum())
        return Figure(float(found.sum()) + math.fsum(parts), rounding)

    def _rough(self, place: int, epsilon: float) -> float:
        """Return the same over one segment in which L crosses ε, or grows a lot."""
        low, high = self._table.borders[place].tolist()
        start, end = (loss > epsilon for loss in self._table.ends[place].tolist())
        if start != end:
            crossing = self._crossing(low, high, epsilon)
            low, high = (low, crossing) if start else (crossing, high)
        if not low < high:
            return 0.0
        reports = self._halved([low, high], lambda report: (min(max(epsilon, self.loss(report)), epsilon + _LIKELY),))
        rows = [row for part in pairwise(reports) for row in self._row(*part, float(self._table.times[place]))]
        return math.fsum(mass * -math.expm1(min(0.0, epsilon - loss)) for mass, loss, _ in rows)

    def _crossing(self, low: float, high: float, epsilon: float) -> float:
        """Return the report where L crosses ε, by bisection down to neighboring doubles."""
        side = self.loss(low) > epsilon
        while low < (middle := (low + high) / 2) < high:
            if (self.loss(middle) > epsilon) == side:
                low = middle
            else:
                high = middle
        return high

    # -- the mechanism's own statements -----------------------------------------------------------------

    def monotone(self) -> bool:
        """Return True if L only rises or only falls along the samples of every piece, except for rounding."""
        return all(self._is_monotone(piece.reports) for piece in self._pieces)

    def _is_monotone(self, reports: list[float]) -> bool:
        seen = [report for report in reports if math.isfinite(self.loss(report))]
        seen = [report for report in seen if self._logs(report)[0] > self._peak - _REACH]
        highest, lowest, rise, fall, slack = -math.inf, math.inf, 0.0, 0.0, 0.0
        for report in seen:
            loss = self.loss(report)
            highest, lowest = max(highest, loss), min(lowest, loss)
            rise, fall = max(rise, loss - lowest), max(fall, highest - loss)
            slack = max(slack, 4 * self.rounding(report) + TOLERANCE * abs(loss))
        return min(rise, fall) <= slack

    def still_grows(self) -> bool:
        """Return True if L still rises at the last reports of an infinite piece: its supremum was not seen."""
        if self.mechanism.report_period is not None:
            return False
        for piece, order in ((self._pieces[0], 1), (self._pieces[-1], -1)):
            likely = [r for r in piece.reports[::order] if self._logs(r)[0] > self._peak - _REACH]
            if len(likely) > 1 and math.isfinite(self.loss(likely[0])):
                rise = self.loss(likely[0]) - self.loss(likely[1])
                if rise > 2 * self.rounding(likely[0]) + TOLERANCE * abs(self.loss(likely[0])):
                    return True
        return False

    def reaches_out(self) -> bool:
        """Return True if the density was followed out to where nothing is left of it."""
        if self.mechanism.report_period is not None:
            return True
        ends = [piece.reports[place] for piece, place in ((self._pieces[0], 0), (self._pieces[-1], -1))]
        return all(not self._logs(end)[0] > self._peak - _REACH for end in ends)

    def likely(self) -> list[float]:
        """Return the reports that show the loss, see `_NEAR`."""
        return [report for report in self._reports() if self._logs(report)[0] > self._peak - _NEAR]


def largest_loss(guarantee: Guarantee, pairs: list[DensityPair]) -> tuple[float, float] | None:
    """Return bounds of the ε of the densities: over every report, or with a δ, of the least ε at that δ.

    The lower bound allows for the rounding error and for `TOLERANCE`, so it is never above a claim that holds.
    """
    if isinstance(guarantee, Pure | SymmetricPair | FinitePair | Laplace) and not guarantee.delta:
        certain = max((pair.loss(at) - pair.rounding(at) for pair in pairs for at in pair.likely()), default=0.0)
        return _below(certain), max(pair.largest_loss() for pair in pairs)
    if not guarantee.loss() or not 0 < guarantee.delta < 1:
        return None
    found = [0.0, 0.0]
    for certain in (True, False):
        for pair in pairs:
            found[certain] = _epsilon_at(guarantee.delta, pair, found[certain], certain=certain)
    return _below(found[True]), found[False]


def _below(epsilon: float) -> float:
    return max(0.0, epsilon * (1 - TOLERANCE))


def _epsilon_at(delta: float, pair: DensityPair, least: float, *, certain: bool) -> float:
    """Return the least ε from `least` on with H(e^ε) ≤ δ, to a relative 1e-9: rounded up, or inf.

    With `certain` it is rounded down: from there down to `least`, more than δ remains in spite of any rounding.
    """

    def above(epsilon: float) -> bool:
        found = pair.excess(epsilon)
        return found.value - (found.rounding if certain else 0.0) > delta

    if not above(least):
        return least
    low, high = least, max(1.0, 2 * least)
    while above(high):
        low, high = high, 2 * high
        if math.isinf(high):
            return low if certain else high
    while high - low > TOLERANCE * high:
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) else (low, middle)
    return low if certain else high


def check_density(guarantee: Guarantee, pair: DensityPair) -> Finding:
    """Check that the density of the first input against the second is within `guarantee`."""
    if isinstance(guarantee, Unbounded):
        return Finding(HOLDS)
    if not isinstance(guarantee, Pure | SymmetricPair | FinitePair | Laplace | Approximate | Gaussian):
        return Finding(
            UNPROVEN, f"a guarantee of kind {guarantee.kind} is not checked against a density; {BY_CHANNEL}"
        )
    return worst([_adds_up(pair), _as_described(pair), *_within(guarantee, pair)])


def _within(
    guarantee: Pure | SymmetricPair | FinitePair | Laplace | Approximate | Gaussian, pair: DensityPair
) -> Iterator[Finding]:
    if isinstance(guarantee, Approximate):
        yield _curve_within(pair, [(float(guarantee.bound), float(guarantee.slack))])
        return
    if isinstance(guarantee, FinitePair):
        yield _curve_within(pair, _finite_curve(guarantee))
        if guarantee.delta:
            return
    if impossible := pair.impossible():
        yield Finding(
            VIOLATED,
            f"the loss reaches inf: with probability {impossible:.12g} a report is impossible for another input",
        )
        return
    if isinstance(guarantee, Gaussian):
        yield _curve_within(pair, _gaussian_curve(guarantee))
        return
    if isinstance(guarantee, FinitePair):
        yield _loss_within(pair, guarantee.epsilon, str(guarantee.epsilon))
        return
    yield _loss_within(pair, float(guarantee.bound), str(guarantee.bound))
    if isinstance(guarantee, SymmetricPair):
        # Within ±ε only the total variation is left to check, see `dominance`.
        yield _curve_within(pair, [(0.0, float(guarantee.tau) * math.tanh(float(guarantee.bound) / 2))])
    if isinstance(guarantee, Laplace):
        yield _curve_within(pair, _laplace_curve(guarantee))


def _compared(figures: list[Figure], claim: float, why: str) -> Finding:
    """Return `violated` if a figure exceeds the claim by more than rounding, `unproven` if rounding could hide it."""
    most = claim * (1 + TOLERANCE)
    if any(figure.value - figure.rounding > most for figure in figures):
        return Finding(VIOLATED, why)
    if any(figure.value + figure.rounding > most for figure in figures):
        return Finding(
            UNPROVEN, f"{why}; double precision does not tell them apart: promise a little more, or {BY_CHANNEL}"
        )
    return Finding(HOLDS)


def _adds_up(pair: DensityPair) -> Finding:
    found = pair.mass()
    why = f"the density adds up to {found.value:.12g}"
    off = Figure(abs(found.value - 1), found.rounding)
    if off.value - off.rounding - pair.unseen.rounding > TOLERANCE and (found.value > 1 or pair.reaches_out()):
        return Finding(VIOLATED, why)
    if off.value + off.rounding > TOLERANCE:
        return Finding(UNPROVEN, f"{why}, as far as double precision tells; {BY_CHANNEL}")
    return Finding(HOLDS)


def _as_described(pair: DensityPair) -> Finding:
    if pair.monotone():
        return Finding(HOLDS)
    return Finding(
        UNPROVEN,
        f"between two breakpoints of the density the loss rises and falls; {BREAKPOINT}",
    )


def _loss_within(pair: DensityPair, bound: float, claim: str) -> Finding:
    everywhere = pair.largest_loss()
    why = f"the loss reaches {everywhere:.12g}; claimed is ε = {claim}"
    far = [Figure(pair.loss(report) - pair.rounding(report), 0.0) for report in pair._reports()]
    near = [Figure(pair.loss(report), pair.rounding(report)) for report in pair.likely()]
    finding = worst([_compared(far, bound, why), _compared(near, bound, why)])
    if finding.verdict == HOLDS and pair.still_grows():
        grows = f"the loss grows further out than was looked at; there it reaches {everywhere:.12g}"
        return Finding(UNPROVEN, f"{grows}; {BY_CHANNEL}")
    return finding


def _curve_within(pair: DensityPair, claims: list[tuple[float, float]]) -> Finding:
    findings = []
    for epsilon, delta in claims:
        # The loss may exceed its claim by the tolerance, too: far out, δ falls by much more than ε grows.
        found = pair.excess(epsilon * (1 + TOLERANCE))
        why = f"at ε = {epsilon:.9g} δ is {found.value:.12g}; claimed is {delta:.12g}"
        findings.append(_compared([found], delta, why))
    return worst(findings)


def _finite_curve(guarantee: FinitePair) -> list[tuple[float, float]]:
    """Return δ(a) at the kinks a >= 0 of the pair, and of the swapped one, as inputs are compared in both orders."""
    points = []
    for kink, delta in corners(guarantee):
        if 0 < kink < 1:
            kink, delta = 1 / kink, (delta - 1 + kink) / kink
        if kink and delta:
            points.append((_log(kink), float(delta)))
    return sorted(set(points))


def _log(ratio: Fraction) -> float:
    """Return the logarithm of a ratio >= 1, accurate near 1."""
    return math.log1p(float(ratio - 1)) if ratio < 2 else math.log(ratio.numerator) - math.log(ratio.denominator)


def _laplace_curve(guarantee: Laplace) -> list[tuple[float, float]]:
    """Return δ(a) = 1 - e^((a-ε)/2) at some 0 ≤ a < ε, of two Laplace distributions at a distance of ε scales."""
    epsilon = float(guarantee.bound)
    below = {epsilon * (1 - place / 32) for place in range(1, 33)} | {epsilon * (1 - 0.1**k) for k in range(2, 6)}
    below |= {epsilon - gap for gap in (0.01, 0.1, 1.0, 3.0, 10.0, 30.0) if gap < epsilon}
    return [(loss, -math.expm1((loss - epsilon) / 2)) for loss in sorted(below)]


# Standard deviations of the loss at which a curve is checked; beyond the last δ is less than 1e-250.
_DEVIATIONS = (*(place / 2 for place in range(-6, 13)), *range(7, 10), *range(10, 35, 2))


def _gaussian_curve(guarantee: Gaussian) -> list[tuple[float, float]]:
    """Return the calibrated point, and δ(a) of μ-Gaussian DP at some a, see `_DEVIATIONS`."""
    mu = float(guarantee.mu)
    points = [] if guarantee.loss() is None else [(guarantee.epsilon, guarantee.delta)]
    losses = sorted({max(0.0, mu * mu / 2 + deviations * mu) for deviations in _DEVIATIONS})
    return points + [(loss, gaussian_delta(loss, mu)) for loss in losses]
