"""An independent oracle for composition: every combination of outcomes enumerated with mpmath, and random charges.

It shares nothing with the package but the vocabulary of guarantees: no lattice, no transform, no rounding of losses.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath

from ldp_budget.guarantees import Approximate, FinitePair, Gaussian, Guarantee, Laplace, Memoised, Pure, SymmetricPair

Charges = list[tuple[Guarantee, int]]
Curve = Callable[[Any], Any]
Loss = tuple[Fraction, Any]  # a rational part and a sum of logarithms
Law = list[tuple[Any, Loss]]

# A context of its own, so that no other test's precision changes.
mp = mpmath.mp.clone()
mp.dps = 40
mpf = mp.mpf
NO_LOSS: Loss = (Fraction(0), mpf(0))
# Losses and masses are sums and products of some ten numbers of forty digits.
ORACLE_ERROR = mpf(10) ** -30


def number(value: Decimal | Fraction | float) -> Any:
    """Exactly `value`; a float means its shortest decimal, as everywhere in the package."""
    if isinstance(value, Fraction):
        return mpf(value.numerator) / value.denominator
    return mpf(str(value))


def true_delta(charges: Charges) -> Curve:
    """δ(ε) of the worst pairs of `charges` together; at most two of them continuous."""
    law: Law = [(mpf(1), NO_LOSS)]
    finite, mu_squared, laplaces = mpf(1), mpf(0), []
    for guarantee, count in charges:
        for _ in range(count):
            if isinstance(guarantee, Gaussian):
                mu_squared += number(guarantee.mu) ** 2
            elif isinstance(guarantee, Laplace):
                laplaces.append(number(guarantee.bound))
            else:
                outcomes, infinite = _outcomes(guarantee)
                finite *= 1 - infinite
                law = _collected((p * mass, (a + c, b + d)) for p, (a, b) in law for mass, (c, d) in outcomes)
    rest = _continuous(laplaces, mp.sqrt(mu_squared))
    points = [(p, number(loss) + logarithm) for p, (loss, logarithm) in law]
    return lambda epsilon: 1 - finite + mp.fsum(p * rest(epsilon - loss) for p, loss in points)


def _outcomes(guarantee: Guarantee) -> tuple[Law, Any]:
    """(P-mass, loss) of the outcomes with a finite loss, and the mass of the others."""
    match guarantee:
        case Pure():
            return _signs(guarantee.bound, Decimal(1)), mpf(0)
        case Memoised():
            return _signs(guarantee.cap, Decimal(1)), mpf(0)
        case SymmetricPair():
            return _signs(guarantee.bound, guarantee.tau), mpf(0)
        case Approximate():
            slack = number(guarantee.slack)
            return [((1 - slack) * p, loss) for p, loss in _signs(guarantee.bound, Decimal(1))], slack
        case FinitePair(outcomes):
            finite = [(number(p), (Fraction(0), mp.log(number(p / q)))) for p, q in outcomes if p and q]
            return finite, number(sum((p for p, q in outcomes if not q), Fraction(0)))
    raise TypeError(guarantee)


def _signs(bound: Decimal, tau: Decimal) -> Law:
    epsilon, some = number(bound), number(tau)
    low = some / (1 + mp.exp(epsilon))
    exact = Fraction(bound)
    return [(some - low, (exact, mpf(0))), (low, (-exact, mpf(0))), (1 - some, NO_LOSS)]


def _collected(law: Iterable[tuple[Any, Loss]]) -> Law:
    """Equal losses together; logarithms that differ only by rounding may as well stay apart."""
    masses: dict[Loss, Any] = {}
    for p, loss in law:
        masses[loss] = masses.get(loss, mpf(0)) + p
    return [(p, loss) for loss, p in masses.items() if p]


def _continuous(laplaces: list[Any], mu: Any) -> Curve:
    if laplaces:
        return _with_laplace(laplaces[0], _continuous(laplaces[1:], mu), plain=len(laplaces) == 1 and not mu)
    if mu:
        return lambda x: mp.ncdf(mu / 2 - x / mu) - mp.exp(x) * mp.ncdf(-mu / 2 - x / mu)
    return lambda x: max(mpf(0), 1 - mp.exp(x))


def _with_laplace(epsilon: Any, rest: Curve, plain: bool) -> Curve:
    """Loss ±ε with masses ½ and e^{-ε}/2, and the density ¼e^{-(ε-l)/2} between them."""

    def delta(x: Any) -> Any:
        if plain:
            return mpf(0) if x >= epsilon else 1 - mp.exp(x if x <= -epsilon else (x - epsilon) / 2)
        kinks = sorted({-epsilon, epsilon, *(kink for kink in (x - epsilon, x + epsilon, x) if abs(kink) < epsilon)})
        between = mp.quad(lambda loss: mp.exp((loss - epsilon) / 2) / 4 * rest(x - loss), kinks)
        return rest(x - epsilon) / 2 + mp.exp(-epsilon) / 2 * rest(x + epsilon) + between

    return delta


def response_delta(epsilon: Decimal, count: int, at: float) -> Any:
    """The closed form for `count` randomised responses, a sum over the number of flips (errata, "Composition")."""
    e, target = number(epsilon), number(at)
    keep = mp.exp(e) / (1 + mp.exp(e))
    first = (count - int(mp.floor(target / e))) // 2 + 2
    total = mpf(0)
    mass = keep**count
    for flips in range(min(first, count) + 1):
        excess = (count - 2 * flips) * e - target
        if excess > 0:
            total += mass * -mp.expm1(-excess)
        mass *= mpf(count - flips) / (flips + 1) * mp.exp(-e)
    return total


def responses_delta(epsilon: Decimal, count: int, at: Any) -> Any:
    """The same for any count: δ = P[flips <= m] - e^ε Q[flips <= m], by the integral of the binomial law."""
    with mp.workdps(60):
        e, target = number(epsilon), mpf(at)
        most = int(mp.ceil((count - target / e) / 2)) - 1
        if most < 0:
            return mpf(0)
        lie = 1 / (1 + mp.exp(e))
        return _at_most(count, most, 1 - lie) - mp.exp(target) * _at_most(count, most, lie)


def _at_most(count: int, most: int, truth: Any) -> Any:
    """P[Bin(count, 1 - truth) <= most], an incomplete beta function; its integrand is log-concave."""
    a, b = mpf(count - most), mpf(most + 1)
    mode, width = (a - 1) / (a + b - 2), mp.sqrt(a * b / (a + b) ** 3)
    fall = (a - 1) / truth - (b - 1) / (1 - truth)
    reach = max(mpf(0), truth - mode) + 45 * width
    reach = min(reach, 150 / fall, truth) if fall > 0 else min(reach, truth)
    scale = mp.loggamma(a + b) - mp.loggamma(a) - mp.loggamma(b)
    start = truth - reach
    points = [start + reach * i / 24 for i in range(25)]
    return mp.quad(lambda t: mp.exp(scale + (a - 1) * mp.log(t) + (b - 1) * mp.log(1 - t)) if t else mpf(0), points)


# -- long lists, by an integral in the complex plane ----------------------------------------------------------


def contour_transform(guarantee: Guarantee, s: Any) -> Any:
    """E[e^{sL}] of one report, from its definition."""
    if isinstance(guarantee, Laplace):
        e = number(guarantee.bound)
        between = mp.exp(-e / 2) / 4 * 2 * mp.sinh((s + 0.5) * e) / (s + 0.5)
        return mp.exp(s * e) / 2 + mp.exp(-e - s * e) / 2 + between
    if isinstance(guarantee, Gaussian):
        return mp.exp(s * (1 + s) / 2 * number(guarantee.mu) ** 2)
    outcomes, _ = _outcomes(guarantee)
    return mp.fsum(p * mp.exp(s * (number(loss) + logarithm)) for p, (loss, logarithm) in outcomes)


def contour_delta(charges: Charges) -> Curve:
    """δ(ε) of a list so long that its transform is nothing beyond some standard deviations."""
    return lambda at: _contour(charges, mpf(at), lambda theta: 1 / theta, mpf("1e-15"), mpf(10) ** 6)


def contour_rest(charges: Charges) -> Curve:
    """The same δ(ε) where it is near one, by way of 1 - δ."""
    return lambda at: 1 + _contour(charges, mpf(at), lambda _: mpf(0), mpf("-0.5"), mpf("-1e-9"))


def _contour(charges: Charges, at: Any, offset: Callable[[Any], Any], low: Any, high: Any) -> Any:
    """1/2π ∫ E[e^{sL}] e^{-sε} / (s(1+s)) dt along s = θ + it, with K'(θ) = ε + offset(θ)."""

    def cumulant(s: Any) -> Any:
        return mp.fsum(count * mp.log(contour_transform(guarantee, s)) for guarantee, count in charges)

    def slope(theta: Any) -> Any:
        width = abs(theta) / 10**8
        return (cumulant(theta + width) - cumulant(theta - width)) / (2 * width)

    theta = (low + high) / 2
    for _ in range(40):
        theta = -mp.sqrt(low * high) if low < 0 else mp.sqrt(low * high)
        low, high = (theta, high) if slope(theta) - offset(theta) < at else (low, theta)
    theta = min(theta, mpf(-1) / 1000 / max(1, mp.sqrt(abs(slope(theta))))) if theta < 0 else theta
    width = abs(theta) / 10**4
    deviation = mp.sqrt((slope(theta + width) - slope(theta - width)) / (2 * width))

    def integrand(t: Any) -> Any:
        s = mp.mpc(theta, t)
        return mp.re(mp.exp(cumulant(s) - s * at) / (s * (1 + s)))

    points = [i / deviation for i in range(15)]
    return mp.quad(integrand, points, method="gauss-legendre", maxdegree=4) / mp.pi


# -- random charges -------------------------------------------------------------------------------------------


def random_charges(source: random.Random, kinds: str) -> Charges:
    """One to three kinds of guarantee, one to three reports each. `kinds`: "lattice" or "any"."""
    charges: Charges = []
    continuous = 0
    for _ in range(source.randrange(1, 4)):
        guarantee = _lattice(source) if kinds == "lattice" else _any(source)
        count = source.randrange(1, 4)
        if isinstance(guarantee, Laplace | Gaussian):
            if continuous:
                continue
            continuous, count = 1, 1
        charges.append((guarantee, min(count, 2) if isinstance(guarantee, FinitePair) else count))
    return charges


def _lattice(source: random.Random) -> Guarantee:
    """Losses that are multiples of a tenth, or Gaussian."""
    bound = Decimal(source.randrange(1, 40)) / 10
    tau = Decimal(source.randrange(1, 1001)) / 1000
    slack = Decimal(source.randrange(1, 10)) * Decimal(10) ** -source.randrange(1, 12)
    choices = (Pure(bound), SymmetricPair(bound, tau), SymmetricPair(bound, tau), Approximate(bound, slack))
    return source.choice((*choices, Memoised((bound,), bound), Gaussian(bound)))


def _any(source: random.Random) -> Guarantee:
    """As `_lattice`, with any losses from 1e-5 to 20, Laplace noise and finite pairs as well."""
    bound = source.choice(
        (
            Decimal(source.randrange(1, 30)) / 10,
            Decimal(source.randrange(1, 10**9)) / 10**9,
            Decimal(10) ** -source.randrange(1, 6),
            Decimal(source.randrange(1, 2000)) / 100,
        )
    )
    tau = Decimal(source.randrange(1, 1001)) / 1000
    which = source.randrange(6)
    if which == 0:
        return Laplace(min(bound, Decimal(4)))
    if which == 1:
        return _finite(source)
    if which == 2:
        return Approximate(bound, Decimal(source.randrange(1, 10)) * Decimal(10) ** -source.randrange(1, 12))
    if which == 3:
        return Gaussian(Decimal(source.randrange(1, 300)) / 100)
    return SymmetricPair(bound, tau if which == 4 else Decimal(1))


def _finite(source: random.Random) -> Guarantee:
    outcomes = source.randrange(2, 5)
    p, q = ([source.randrange(1, 30) for _ in range(outcomes)] for _ in range(2))
    if source.random() < 0.2:
        q[0] = 0
    if source.random() < 0.2:
        p[-1] = 0
    return FinitePair(tuple((Fraction(a, sum(p)), Fraction(b, sum(q))) for a, b in zip(p, q, strict=True)))
