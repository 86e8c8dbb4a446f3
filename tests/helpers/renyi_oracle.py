"""An independent oracle for divergences and trade-off curves of pairs, in mpmath; shares nothing with the package.

Divergences are sums over outcomes or integrals of densities; their supremum is looked for on a dense grid, which can
only come out too small. Gaussian trade-off curves are inverted by mpmath's own error function.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath

mp = mpmath.mp.clone()
mp.dps = 60
mpf = mp.mpf

Pair = list[tuple[Any, Any]]


def number(value: Decimal | Fraction | float | str) -> Any:
    if isinstance(value, Fraction):
        return mpf(value.numerator) / value.denominator
    return mpf(str(value))


def symmetric(epsilon: Any, tau: Any) -> Pair:
    """(P, Q) of randomised response at ε that is erased with probability 1-τ."""
    e, some = number(epsilon), number(tau)
    high, low = some / (1 + mp.exp(-e)), some / (1 + mp.exp(e))
    return [(high, low), (low, high), (1 - some, 1 - some)]


def divergence(pair: Pair, order: Any) -> Any:
    """ln Σ p^α q^(1-α) / (α-1); infinite where q is zero and p is not."""
    alpha = number(order)
    if any(p and not q for p, q in pair):
        return mp.inf
    return mp.log(mp.fsum(p**alpha * q ** (1 - alpha) for p, q in pair if p)) / (alpha - 1)


def laplace_divergence(epsilon: Any, order: Any) -> Any:
    """The same of Laplace noise, by integrating its densities."""
    e, alpha = number(epsilon), number(order)
    density = [lambda x: mp.exp(-abs(x)) / 2, lambda x: mp.exp(-abs(x - e)) / 2]
    whole = mp.quad(lambda x: density[0](x) ** alpha * density[1](x) ** (1 - alpha), [-mp.inf, 0, e, mp.inf])
    return mp.log(whole) / (alpha - 1)


def rho(diverges: Callable[[Any], Any], most: Any) -> Any:
    """The largest D_α/α on a grid of orders, refined where it is largest."""
    excesses = [mpf(10) ** (mpf(k) / 8) / max(1, most) for k in range(-64, 64)]
    best = max(excesses, key=lambda u: diverges(1 + u) / (1 + u))
    for width in (mpf("1.3"), mpf("1.02"), mpf("1.001")):
        near = [best * width ** (mpf(k) / 10) for k in range(-10, 11)]
        best = max(near, key=lambda u: diverges(1 + u) / (1 + u))
    return max(diverges(1 + u) / (1 + u) for u in (best, mpf("1e-20")))


def mu(pair: Pair) -> Any:
    """The least μ for which the Gaussian trade-off curve is nowhere above the pair's: the largest over all tests."""
    tests = sorted((outcome for outcome in pair if any(outcome)), key=lambda o: o[0] / (o[0] + o[1]), reverse=True)
    alarms = power = mpf(0)
    worst = mpf(0)
    for p, q in tests[:-1]:
        alarms, power = alarms + q, power + p
        worst = max(worst, quantile(power) - quantile(alarms))
    return worst


def quantile(p: Any) -> Any:
    """Φ⁻¹(p), bracketed and bisected."""
    if p <= 0:
        return -mp.inf
    if p >= 1:
        return mp.inf
    low, high = mpf(-60), mpf(60)
    while high - low > mpf(10) ** -20:
        middle = (low + high) / 2
        below = mp.erfc(-middle / mp.sqrt(2)) / 2 < p
        low, high = (middle, high) if below else (low, middle)
    return high
