"""Exact checks of a guarantee against the comparison of two inputs, by dominating pairs and by the Rényi divergence.

A guarantee is a pair of distributions (P, Q). For every ordered pair of inputs, it must be at least as easy to
distinguish as their reports are. The hockey-stick divergence H(λ) = Σ max(P - λQ, 0) is convex in λ, and piecewise
linear for a finite pair. So one finite pair dominates another for every λ if it does at its own kinks, the ratios P/Q
of its outcomes. Between two of them its divergence is linear and the other's convex (Zhu, Dong and Wang 2022, section
3).

The ρ of zero-concentrated differential privacy (zCDP) of a finite pair is computed between certified bounds. It is
the supremum of D_α/α over the orders α > 1. The Rényi divergence D_α does not fall in α. So on an interval [a, b] of
orders D_α/α is at most D_b/a, and beyond b at most D_∞/b.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, product
from typing import TYPE_CHECKING

from ldp_budget.errors import NotSupported
from ldp_budget.guarantees import (
    Approximate,
    Copies,
    FinitePair,
    Guarantee,
    Memoised,
    Pure,
    SymmetricPair,
    Unbounded,
    ZeroConcentrated,
)
from ldp_budget.guarantees.fixed_point import DOWN, UP
from ldp_budget.sdk.channels import Comparison

from .. import PROMISE_OF_FINITE, ROUND_UP, TWO_INPUTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ldp_budget.sdk.channels import Comparison, Mass


# -- zCDP ------------------------------------------------------------------------------------------------------------


_RENYI_WIDE = Context(prec=45, Emax=10**9, Emin=-(10**9))
_CLOSE = Decimal("1.0001")
_MARGIN = Decimal("1e-25")  # far above the rounding of `_WIDE`, far below `_CLOSE`


def largest_rate(masses: Sequence[Mass], claimed: Decimal = Decimal(0)) -> tuple[Decimal, Decimal]:
    """Return a lower and an upper bound of ρ, within a part in ten thousand; infinite if Q is zero where P is not.

    The bounds are only refined until they show if ρ is at most `claimed`.
    """
    with localcontext(_RENYI_WIDE):  # for the operators too, which otherwise use the caller's context
        return _largest_rate(masses, claimed)


def _largest_rate(masses: Sequence[Mass], claimed: Decimal) -> tuple[Decimal, Decimal]:
    if any(p and not q for p, q in masses):
        return Decimal("Infinity"), Decimal("Infinity")
    pairs = [(_decimal(p), _decimal(q)) for p, q in masses if p]
    logs = [(_RENYI_WIDE.ln(p), _RENYI_WIDE.ln(q)) for p, q in pairs]
    # At order one, it is the Kullback-Leibler divergence.
    least = sum((p * (lp - lq) for (p, _), (lp, lq) in zip(pairs, logs, strict=True)), Decimal(0))
    largest = max(lp - lq for lp, lq in logs)
    if all(p == q for p, q in masses):
        return Decimal(0), Decimal(0)
    if least <= _MARGIN:
        return Decimal(0), largest * (1 + _MARGIN)  # too small to distinguish from rounding; D_α/α is at most D_∞
    high = least
    ends = [(Decimal(1), least)]
    while ends[-1][0] < largest / least:
        order = 2 * ends[-1][0]
        ends.append((order, _divergence(logs, order)))
    low = max(divergence / order for order, divergence in ends)
    intervals = list(pairwise(ends))
    while intervals:
        if claimed and low * (1 - _MARGIN) > claimed:
            return low * (1 - _MARGIN), largest * (1 + _MARGIN)
        (before, start), (after, end) = intervals.pop()
        if end / before <= max(low * _CLOSE, claimed * (1 - 2 * _MARGIN)):
            high = max(high, end / before)
            continue
        order = _RENYI_WIDE.sqrt(before * after)
        middle = (order, _divergence(logs, order))
        low = max(low, middle[1] / order)
        intervals += [((before, start), middle), (middle, (after, end))]
    return low * (1 - _MARGIN), max(low, high) * (1 + _MARGIN)


def _divergence(logs: Sequence[tuple[Decimal, Decimal]], order: Decimal) -> Decimal:
    """Return D_α = ln(Σ P^α Q^(1-α)) / (α - 1)."""
    terms = (_RENYI_WIDE.exp(order * lp + (1 - order) * lq) for lp, lq in logs)
    return _RENYI_WIDE.divide(_RENYI_WIDE.ln(sum(terms, Decimal(0))), order - 1)


def _decimal(probability: Fraction) -> Decimal:
    return _RENYI_WIDE.divide(Decimal(probability.numerator), Decimal(probability.denominator))


# -- dominance -------------------------------------------------------------------------------------------------------


_WIDE = Context(prec=120, Emax=10**9, Emin=-(10**9))
_LAST_DIGITS = Decimal("1e-100")
"""More than the rounding errors of a division and a logarithm of 120 digits together."""

_MOST_COMPOSED, _MOST_COPIES = 1 << 14, 32

HOLDS, VIOLATED, UNPROVEN = "holds", "violated", "unproven"


@dataclass(frozen=True)
class Finding:
    """The result of a check of one pair, and the reason if it is not `holds`."""

    verdict: str
    why: str = ""


def _unproven(error: Exception) -> Finding:
    return Finding(UNPROVEN, str(error))


def _pure_loss(guarantee: Guarantee) -> list[Decimal]:
    """Return the ε of a guarantee that includes one of pure ε."""
    loss = guarantee.loss()
    return [loss[0]] if loss is not None and not loss[1] else []


def worst(findings: Iterable[Finding]) -> Finding:
    """Return the decisive finding: any violation, else anything unproven."""
    ordered = sorted(findings, key=lambda finding: (VIOLATED, UNPROVEN, HOLDS).index(finding.verdict))
    return ordered[0] if ordered else Finding(UNPROVEN, f"nothing was compared; {TWO_INPUTS}")


def check(guarantee: Guarantee, comparison: Comparison) -> Finding:
    """Check that one report of the first input against the second is within `guarantee`."""
    if isinstance(guarantee, Unbounded):
        return Finding(HOLDS)
    for kind, way in _WAYS.items():
        if isinstance(guarantee, kind):
            try:
                return way(guarantee, comparison)
            except NotSupported as error:
                return worst([check_ratio(loss, comparison) for loss in _pure_loss(guarantee)] + [_unproven(error)])
    return Finding(
        UNPROVEN, f"a guarantee of kind {guarantee.kind} is not checked against a finite channel; {PROMISE_OF_FINITE}"
    )


def check_ratio(bound: Decimal, comparison: Comparison) -> Finding:
    """Check that no outcome is more than e^bound times as likely under the first input."""
    loss = comparison.loss()
    if loss is None:
        return Finding(VIOLATED, "a report that one input can give is impossible for another")
    low, high = loss
    if high <= bound:
        return Finding(HOLDS)
    if low > bound:
        return Finding(VIOLATED, f"the loss ln P/Q of a report is above the claim ε = {bound}")
    return Finding(UNPROVEN, f"the loss ln P/Q of a report is too near the claim ε = {bound}; {ROUND_UP}")


def check_largest(bound: Decimal, ratio: Fraction) -> Finding:
    """Check the same for the largest P/Q itself."""
    return _compared("the largest P/Q of a report", ratio, _odds(bound), f"ε = {bound}")


def _odds(bound: Decimal) -> tuple[Decimal, Decimal]:
    """Return e^bound, rounded down and up; more precise than a bound, which is itself a logarithm rounded up."""
    if not bound:
        return Decimal(1), Decimal(1)
    odds = _WIDE.exp(bound)
    return _WIDE.next_minus(odds), _WIDE.next_plus(odds)


def _compared(what: str, found: Fraction, bounds: tuple[Decimal, Decimal], claim: str) -> Finding:
    low, high = map(Fraction, bounds)
    if found <= low:
        return Finding(HOLDS)
    if found > high:
        return Finding(VIOLATED, f"{what} is above the claim {claim}")
    return Finding(UNPROVEN, f"{what} is too near the claim {claim}; {ROUND_UP}")


def _pure(guarantee: Pure, comparison: Comparison) -> Finding:
    return check_ratio(guarantee.bound, comparison)


def _symmetric(guarantee: SymmetricPair, comparison: Comparison) -> Finding:
    """Check at the kinks: e^±ε, where the divergence is that of pure ε, and 1, the total variation τ·tanh(ε/2)."""
    found = hockey_stick(comparison.merged(), Fraction(1))
    claim = f"τ = {guarantee.tau:.12g} at ε = {guarantee.bound}"
    return worst(
        [
            check_ratio(guarantee.bound, comparison),
            _compared("the total variation", found, variation_of(guarantee), claim),
        ]
    )


def variation_of(guarantee: SymmetricPair) -> tuple[Decimal, Decimal]:
    """Return the total variation of the pair, τ·tanh(ε/2), rounded down and up."""
    low, high = _odds(guarantee.bound)
    return (
        DOWN.multiply(guarantee.tau, DOWN.divide(DOWN.subtract(low, 1), UP.add(low, 1))),
        UP.multiply(guarantee.tau, UP.divide(UP.subtract(high, 1), DOWN.add(high, 1))),
    )


def _finite(guarantee: FinitePair, comparison: Comparison) -> Finding:
    masses = comparison.merged()
    curve = HockeySticks(masses)
    for kink, most in corners(guarantee):
        if curve.at(kink) > most:
            return Finding(VIOLATED, f"at λ = {float(kink):.12g} the divergence is above that of the claimed pair")
    if _impossible(masses) > _impossible(guarantee.outcomes):
        return Finding(VIOLATED, "reports that are impossible for one input are likelier than claimed")
    return Finding(HOLDS)


def _approximate(guarantee: Approximate, comparison: Comparison) -> Finding:
    masses, claim = comparison.merged(), f"δ = {guarantee.slack} at ε = {guarantee.bound}"
    low, high = map(Fraction, _odds(guarantee.bound))
    most = hockey_stick(masses, low)
    if most <= Fraction(guarantee.slack):
        return Finding(HOLDS)
    least = hockey_stick(masses, high)
    if least > Fraction(guarantee.slack):
        return Finding(VIOLATED, f"δ is {float(most):.12g}, above the claim {claim}")
    return Finding(UNPROVEN, f"δ is {float(most):.12g}, too near the claim {claim}; {ROUND_UP}")


def _copies(guarantee: Copies, comparison: Comparison) -> Finding:
    """Check independent draws: each within the guarantee of one, or the whole report within all of them composed."""
    if isinstance(guarantee.of, Memoised):
        return Finding(UNPROVEN, "copies of a memoised guarantee are not checked; promise the memoised one itself")
    cases = [case for case in comparison.cases if case.probability]
    if all(len(case.factors) <= guarantee.count for case in cases):
        factors = dict.fromkeys(factor for case in cases for factor in case.factors)
        found = worst([Finding(HOLDS), *(check(guarantee.of, Comparison.of(factor)) for factor in factors)])
        if found.verdict == HOLDS or all(len(case.factors) == guarantee.count for case in cases):
            return found
    return _together(guarantee, comparison)


def _together(guarantee: Copies, comparison: Comparison) -> Finding:
    """Check a whole report against all the copies.

    It composes pairs that the claim dominates, and pairs that dominate the claim.
    """
    if guarantee.count > _MOST_COPIES:
        raise NotSupported(f"{guarantee.count} copies are not composed; describe each copy by one factor")
    comparison = Comparison.rows(*zip(*comparison.merged(), strict=True))
    low, high = (_composed(each, guarantee.count) for each in _enclosing(guarantee.of))
    found = _finite(FinitePair(low), comparison)
    if found.verdict == HOLDS:
        return found
    if _finite(FinitePair(high), comparison).verdict == VIOLATED:
        why = f"a report tells more of the value than {guarantee.count} independent copies of what is claimed"
        return Finding(VIOLATED, why)
    return Finding(UNPROVEN, f"a report is too near its claim of {guarantee.count} copies; {ROUND_UP}")


def _enclosing(guarantee: Guarantee) -> list[tuple[Mass, ...]]:
    """Return a pair just below the claimed one and a pair just above it, in fractions; raises `NotSupported`."""
    if isinstance(guarantee, FinitePair):
        return [guarantee.outcomes] * 2
    if not isinstance(guarantee, Pure | SymmetricPair):
        raise NotSupported(f"copies of a guarantee of kind {guarantee.kind} are not composed")
    tau = Fraction(guarantee.tau if isinstance(guarantee, SymmetricPair) else 1)
    found: list[tuple[Mass, ...]] = []
    for odds in map(Fraction, _odds(guarantee.bound)):
        high, low = tau * odds / (1 + odds), tau / (1 + odds)
        found.append(((high, low), (low, high), (1 - tau, 1 - tau)))
    return found


def _composed(masses: tuple[Mass, ...], count: int) -> tuple[Mass, ...]:
    """Return `count` independent copies, with outcomes of the same ratio merged."""
    found = {_ratio(mass): mass for mass in [(Fraction(1), Fraction(1))]}
    for _ in range(count):
        before, found = list(found.values()), {}
        if len(before) * len(masses) > _MOST_COMPOSED:
            raise NotSupported(f"{count} copies have more outcomes together than can be listed")
        for (p, q), (first, second) in product(before, masses):
            mass = p * first, q * second
            same = found.get(_ratio(mass), (Fraction(0), Fraction(0)))
            found[_ratio(mass)] = same[0] + mass[0], same[1] + mass[1]
    return tuple(found.values())


def _ratio(mass: Mass) -> Fraction | None:
    return mass[0] / mass[1] if mass[1] else None


def _memoised(guarantee: Memoised, comparison: Comparison) -> Finding:
    return check_ratio(guarantee.curve[0], comparison)


def _concentrated(guarantee: ZeroConcentrated, comparison: Comparison) -> Finding:
    low, high = largest_rate(comparison.merged(), guarantee.rho)
    if high <= guarantee.rho:
        return Finding(HOLDS)
    why = f"ρ is from {low:.12g} to {high:.12g}; claimed is {guarantee.rho}"
    return Finding(VIOLATED, why) if low > guarantee.rho else Finding(UNPROVEN, f"{why}, so claim the larger one")


def hockey_stick(masses: Iterable[Mass], slope: Fraction) -> Fraction:
    """Return Σ max(P - λQ, 0) for λ = `slope`."""
    return sum((p - slope * q for p, q in masses if p > slope * q), Fraction(0))


class HockeySticks:
    """The same for many λ ≥ 0.

    Among the outcomes whose P/Q is above λ, it is the sum of P less λ times that of Q.
    """

    def __init__(self, masses: Iterable[Mass]) -> None:
        certain, ratios = Fraction(0), list[tuple[Fraction, Fraction, Fraction]]()
        for p, q in masses:
            if q:
                ratios.append((-p / q, p, q))
            else:
                certain += p
        ratios.sort()
        self._falling = [ratio for ratio, _, _ in ratios]
        self._sums = [(certain, Fraction(0))]
        for _, p, q in ratios:
            above, below = self._sums[-1]
            self._sums.append((above + p, below + q))

    def at(self, slope: Fraction) -> Fraction:
        above, below = self._sums[bisect_left(self._falling, -slope)]
        return above - slope * below


@lru_cache(maxsize=16)
def corners(guarantee: FinitePair) -> tuple[tuple[Fraction, Fraction], ...]:
    """Return (λ, H(λ)) of a pair at its kinks."""
    curve = HockeySticks(guarantee.outcomes)
    kinks = sorted({p / q for p, q in guarantee.outcomes if q})
    return tuple([(kink, curve.at(kink)) for kink in kinks])


def loss_at(delta: Decimal, comparison: Comparison) -> tuple[Decimal, Decimal] | None:
    """Return bounds of the least ε >= 0 with H(e^ε) ≤ δ; None if there is none. Raises `NotSupported`, see `merged`.

    Among the outcomes of the k largest ratios, H is P - λQ. So H is δ at λ = (P - δ)/Q, if that is between the last
    of those ratios and the next.
    """
    masses, slack = comparison.merged(), Fraction(delta)
    more = sum((p for p, q in masses if not q), Fraction(0)) - slack
    falling = sorted((mass for mass in masses if mass[1]), key=lambda mass: mass[0] / mass[1], reverse=True)
    if more > 0 or not falling:
        return None
    slope = Fraction(0)
    for p, q in falling:
        # The excess of the outcomes so far, at the next ratio: if it is at least δ, λ is not below that ratio.
        if slope and more >= slope * p / q:
            break
        more, slope = more + p, slope + q
    odds = more / slope
    if odds <= 1:
        return Decimal(0), Decimal(0)
    found = _WIDE.ln(_WIDE.divide(Decimal(odds.numerator), Decimal(odds.denominator)))
    return max(Decimal(0), _WIDE.subtract(found, _LAST_DIGITS)), _WIDE.add(found, _LAST_DIGITS)


def _impossible(masses: Iterable[Mass]) -> Fraction:
    """Return the probability under the first input of reports that the second never gives."""
    return sum((p for p, q in masses if not q), Fraction(0))


_WAYS: dict[type[Guarantee], Callable[..., Finding]] = {
    Pure: _pure,
    SymmetricPair: _symmetric,
    FinitePair: _finite,
    Approximate: _approximate,
    ZeroConcentrated: _concentrated,
    Copies: _copies,
    Memoised: _memoised,
}
