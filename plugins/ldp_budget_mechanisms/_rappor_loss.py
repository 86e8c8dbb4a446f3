"""Privacy loss of RAPPOR: the loss of t reports of one memoised value, and probabilities that keep it in bounds.

With a = 1-f/2, b = f/2 (the permanent bit is the filter's with probability a), take one bit that is set for one value
and not for another. After t reports it shows at most

    ln( (a + bx)/(b + ax) ),   x = (p/q)^t  where all t bits are one,  x = ((1-q)/(1-p))^t  where all are zero,

because the likelihood ratio is monotone in the number of ones. Two values differ in at most h bits that only the
first sets and h that only the second sets. So ε(t) is h times the sum of the two; ε(∞) = 2h ln(a/b), at x = 0.
Erlingsson, Pihur and Korolova 2014, Theorems 1 and 2 (errata.md has ε(t) for every t).

The loss of a bit falls as f or x grows. So f and p rounded down with q rounded up bound it from above. Draws with f
and p rounded up and q rounded down lose no more than was declared, after any number of reports.
"""

from __future__ import annotations

import itertools
import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from ldp_budget.guarantees import FinitePair, Pure, SymmetricPair
from ldp_budget.guarantees.dominating_pairs import joined
from ldp_budget.guarantees.fixed_point import DOWN, UP, exp_down, ln_up
from ldp_budget.sampling import ONE, threshold

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ldp_budget.guarantees import Guarantee

MOST_POINTS = 400
"""The most points that the curve lists; further reports are charged up to the cap."""

_MOST_LISTED = 8
"""The most hash functions for which the pair of a fresh report is listed; with more, its ε alone is stated."""
_NEAR_CAP = Decimal("1e-9")
_PLACES = Decimal("1e-15")
_HALF = ONE // 2


class Response(NamedTuple):
    """Half of f, p and q: the probability that a permanent bit is flipped, and of a one if it is 0 and 1."""

    flip: Decimal
    zero: Decimal
    one: Decimal


class Thresholds(NamedTuple):
    """A `Response` as the client draws it, in units of 2**-64."""

    flip: int
    zero: int
    one: int

    @property
    def informative(self) -> bool:
        """True if a bit of the filter still makes a bit of the report likelier."""
        return self.flip < _HALF and self.zero < self.one

    def response(self) -> Response:
        """Return these probabilities, rounded to decimals of at least the same loss."""
        one = Decimal(ONE)
        return Response(
            DOWN.divide(Decimal(self.flip), one),
            DOWN.divide(Decimal(self.zero), one),
            UP.divide(Decimal(self.one), one),
        )


def drawn(response: Response) -> Thresholds:
    """Return the thresholds nearest to `response` that lose no more."""
    return Thresholds(
        threshold(response.flip, up=True), threshold(response.zero, up=True), threshold(response.one, up=False)
    )


def losses(response: Response, hashes: int) -> Iterator[Decimal]:
    """Yield ε(1), ε(2), ... of a memoised value, each rounded up."""
    ones = DOWN.divide(response.zero, response.one)
    zeros = DOWN.divide(DOWN.subtract(Decimal(1), response.one), UP.subtract(Decimal(1), response.zero))
    x, y = ones, zeros
    while True:
        yield UP.multiply(Decimal(hashes), UP.add(_bit_loss(response.flip, x), _bit_loss(response.flip, y)))
        x, y = DOWN.multiply(x, ones), DOWN.multiply(y, zeros)


def lifetime_loss(flip: Decimal, hashes: int) -> Decimal:
    """Return ε(∞), rounded up: the loss of the permanent bits themselves."""
    return UP.multiply(Decimal(2 * hashes), _bit_loss(flip, Decimal(0)))


def _bit_loss(flip: Decimal, x: Decimal) -> Decimal:
    """Return ln( (a + bx)/(b + ax) ) with b = `flip` and a = 1-b, rounded up."""
    above = UP.add(UP.subtract(Decimal(1), flip), UP.multiply(flip, x))
    below = DOWN.add(flip, DOWN.multiply(DOWN.subtract(Decimal(1), flip), x))
    return ln_up(UP.divide(above, below))


def curve(response: Response, hashes: int) -> tuple[list[Decimal], Decimal]:
    """Return ε(1), ε(2), ... until within 1e-9 of ε(∞) or `MOST_POINTS` long; and ε(∞). Rounded up to 15 places."""
    cap = UP.quantize(lifetime_loss(response.flip, hashes), _PLACES)
    points: list[Decimal] = []
    for loss in losses(response, hashes):
        points.append(min(UP.quantize(loss, _PLACES), cap))
        if UP.subtract(cap, points[-1]) <= _NEAR_CAP or len(points) == MOST_POINTS:
            break
    return points, cap


def calibrated(epsilon: Decimal, lifetime: Decimal, hashes: int) -> Thresholds:
    """Return the least noise, with q = 1-p, for which ε(1) ≤ `epsilon` and ε(∞) ≤ `lifetime`, both certified.

    ε(∞) gives a/b = e^{lifetime/2h}. One report then gives P[1 | filter bit 1] = e^{ε/2h}/(e^{ε/2h}+1), which is
    a - p(a-b). Both are solved in decimals and rounded to thresholds. The formulas above, rounded up, then verify
    them.
    """
    bits = Decimal(2 * hashes)
    flip = threshold(UP.divide(Decimal(1), DOWN.add(exp_down(DOWN.divide(lifetime, bits)), Decimal(1))), up=True)
    while flip < _HALF and lifetime_loss(_thresholds(flip, 0).response().flip, hashes) > lifetime:
        flip += 1
    zero = _one_report(flip, exp_down(DOWN.divide(epsilon, bits))) if flip < _HALF else _HALF
    while zero < _HALF and next(losses(_thresholds(flip, zero).response(), hashes)) > epsilon:
        zero += 1
    return _thresholds(flip, zero)


def _thresholds(flip: int, zero: int) -> Thresholds:
    return Thresholds(flip, zero, ONE - zero)


def _one_report(flip: int, odds: Decimal) -> int:
    """Return the threshold of p at which a report's bit has odds at most `odds`."""
    b = DOWN.divide(Decimal(flip), Decimal(ONE))
    kept = DOWN.divide(odds, UP.add(odds, Decimal(1)))
    noise = UP.subtract(UP.subtract(Decimal(1), b), kept)
    p = UP.divide(noise, DOWN.subtract(Decimal(1), UP.multiply(Decimal(2), b)))
    return threshold(min(max(p, Decimal(0)), Decimal("0.5")), up=True)


def shown_bits(thresholds: Thresholds, one: bool, reports: int | None) -> list[Fraction]:
    """Return P[i of `reports` reports show a bit] for i = 0, 1, ..., for a bit that the filter has set, or not.

    For None, the probabilities that the permanent bit is 0 and 1. All are exact, as drawn.
    """
    flip, zero, shown = (Fraction(part, ONE) for part in thresholds)
    permanent = 1 - flip if one else flip
    return [1 - permanent, permanent] if reports is None else ones_shown(permanent, shown, zero, reports)


def ones_shown(permanent: Fraction, one: Fraction, zero: Fraction, reports: int) -> list[Fraction]:
    """Return P[i of `reports` reports show a one] for i = 0, 1, ..., for a bit that is one with probability `permanent`.

    `one` and `zero` are the probabilities that a report shows a one, if the bit is 1 and 0.
    """
    shown = zip(_binomial(one, reports), _binomial(zero, reports), strict=True)
    return [permanent * p + (1 - permanent) * q for p, q in shown]


def _binomial(p: Fraction, trials: int) -> list[Fraction]:
    return [math.comb(trials, ones) * p**ones * (1 - p) ** (trials - ones) for ones in range(trials + 1)]


def fresh_pair(response: Response, thresholds: Thresholds, hashes: int, epsilon: Decimal) -> Guarantee:
    """Return the pair of one report without stored bits, as stated and as drawn; it loses at most `epsilon`.

    Two values differ in at most `hashes` bits that only the first sets and as many that only the second sets. All
    bits are
    independent. Values that share some bits differ in fewer, so the pair that shares none dominates.
    """
    flip, zero, one = map(Fraction, response)
    stated = (flip * one + (1 - flip) * zero, (1 - flip) * one + flip * zero)
    bits = [stated, tuple(shown_bits(thresholds, one, 1)[1] for one in (False, True))]
    if hashes == 1:
        differing = max(on * (1 - off) + off * (1 - on) for off, on in bits)
        return SymmetricPair(epsilon, UP.divide(Decimal(differing.numerator), Decimal(differing.denominator)))
    if hashes > _MOST_LISTED:
        return Pure(epsilon)
    return joined(*(_pair_of_bits(off, on, hashes) for off, on in dict.fromkeys(bits)))


def _pair_of_bits(off: Fraction, on: Fraction, hashes: int) -> FinitePair:
    """Return the pair of values that differ in equally many bits, shown with `on` if a value sets them, else `off`."""
    shown, hidden = _binomial(on, hashes), _binomial(off, hashes)
    # The counts of shown bits: a value's own, and the other's. Equal likelihood ratios are one outcome.
    masses: dict[Fraction, tuple[Fraction, Fraction]] = {}
    for (own, others_own), (other, others) in itertools.product(
        zip(shown, hidden, strict=True), zip(hidden, shown, strict=True)
    ):
        p, q = own * other, others_own * others
        if p or q:
            known = masses.get(p / (p + q), (Fraction(0), Fraction(0)))
            masses[p / (p + q)] = known[0] + p, known[1] + q
    return FinitePair(tuple(masses.values()))


def change_loss(response: Response, hashes: int, bits: int) -> float:
    """Return a lower bound of the distance between two reports of one value and one report each of two other values.

    On a bit that none of the three sets, two ones come from one permanent bit with probability bq²+ap², from two with
    (bq+ap)². There are at least bits - 3·hashes such bits, and the others can only add to it. The result is an
    estimate:
    it shows the loss that the curve does not cover, and no charge depends on it.
    """
    b, p, q = response
    with localcontext(Context(prec=20)):
        both, one = b * q**2 + (1 - b) * p**2, b * q + (1 - b) * p
        return max(0, bits - 3 * hashes) * float((both / one**2).ln())
