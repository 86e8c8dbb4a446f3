"""Certified upper bounds of ρ (zCDP), μ² (Gaussian DP) and Rényi divergences of a report, all rounded up."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

from ._base import Amounts
from .fixed_point import DOWN, UP, exp_down, exp_up, float_up

if TYPE_CHECKING:
    from ._renyi_bounds import Law

_ONE = Decimal(1)
_LEAST = Decimal("1e-300")


# -- bounds from ε-LDP alone ---------------------------------------------------------------------------------


def pure_amounts(epsilon: Decimal) -> Amounts:
    """Return the amounts of a report that is ε-LDP."""
    return Amounts(epsilon, Decimal(0), rho_of_pure(epsilon), mu_squared_of_pure(epsilon))


def no_more_than_pure(epsilon: Decimal, rho: Decimal, mu_squared: Decimal) -> Amounts:
    """Return the amounts of a report that is ε-LDP and also satisfies this ρ and μ²."""
    return Amounts(epsilon, Decimal(0), min(rho, rho_of_pure(epsilon)), min(mu_squared, mu_squared_of_pure(epsilon)))


def rho_of_pure(epsilon: Decimal) -> Decimal:
    """Return the ρ (zCDP) that every ε-DP report satisfies: ε·tanh(ε/2), rounded up.

    It is the Kullback-Leibler divergence of randomized response, which is the worst pair. It is tighter than the ε²/2
    of Bun and Steinke 2016, Proposition 1.4.
    """
    # tanh(ε/2) = 1 - 2/(e^ε + 1) grows with e^ε, so a larger exponential gives the larger bound.
    divisor = UP.add(exp_up(epsilon), Decimal(1))
    tanh = UP.subtract(Decimal(1), DOWN.divide(Decimal(2), divisor))
    return UP.multiply(epsilon, tanh)


def mu_squared_of_pure(epsilon: Decimal) -> Decimal:
    """Return the μ² (Gaussian DP) that every ε-DP report satisfies: μ = 2Φ⁻¹(e^ε/(1+e^ε)), rounded up."""
    from .gaussian_calibration import mu_of_pure

    if not epsilon:
        return Decimal(0)
    # μ grows with ε. So the μ of the smallest ε that it can be computed for bounds the μ of all smaller ε.
    mu = Decimal(mu_of_pure(float_up(max(epsilon, _LEAST))))
    return UP.multiply(mu, mu)


def mu_squared_of_laplace(epsilon: Decimal) -> Decimal:
    """Return the μ² (Gaussian DP) of Laplace noise, rounded up."""
    from .gaussian_calibration import mu_of_laplace

    if not epsilon:
        return Decimal(0)
    mu = Decimal(mu_of_laplace(float_up(max(epsilon, _LEAST))))
    return UP.multiply(mu, mu)


@lru_cache(maxsize=1024)
def divergence_of_pure(epsilon: Decimal, order: Decimal) -> Decimal:
    """Return the largest Rényi divergence of an ε-DP report: that of randomized response."""
    return symmetric_law(epsilon, Decimal(1)).divergence(order)


# -- the trade-off curve of a pair ---------------------------------------------------------------------------

Test = tuple[Decimal, Decimal, Decimal]
"""A test T: Q(T) rounded down, P(T) rounded up, and 1 - P(T) rounded down."""


def corners(outcomes: list[Test]) -> list[Test]:
    """Return the tests that accept the first outcomes and reject the others.

    Each outcome is (P rounded up, P rounded down, Q rounded down).
    """
    misses = [Decimal(0)]
    for _, p_down, _ in reversed(outcomes[1:]):
        misses.append(DOWN.add(misses[-1], p_down))
    alarms = power = Decimal(0)
    tests = []
    for p, _, q in outcomes[:-1]:
        alarms, power = DOWN.add(alarms, q), UP.add(power, p)
        tests.append((alarms, power, misses.pop()))
    return tests


def mu_squared_of_tests(tests: list[Test]) -> Decimal:
    """Return the smallest μ² whose Gaussian trade-off curve is below the curve with these corners, rounded up.

    The result may be infinite.
    """
    from .gaussian_calibration import mu_of_tests

    mu = Decimal(mu_of_tests(tests))
    return UP.multiply(mu, mu)


# -- losses of ±ε with probability τ -------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def symmetric_amounts(epsilon: Decimal, tau: Decimal) -> Amounts:
    """Return the amounts of a report with a loss of ±ε with probability τ, see `SymmetricPair`."""
    if tau == 1 or not epsilon:
        return pure_amounts(epsilon)
    if not tau:
        return no_more_than_pure(epsilon, Decimal(0), Decimal(0))
    # Accepting the loss ε alone is the first test at a corner; the other one mirrors it.
    low, high = DOWN.divide(tau, UP.add(exp_up(epsilon), _ONE)), _high(epsilon, tau)
    misses = DOWN.add(DOWN.subtract(_ONE, tau), low)
    mu_squared = mu_squared_of_tests([(low, high, misses)])
    return no_more_than_pure(epsilon, rho_of_symmetric(epsilon, tau), mu_squared)


def rho_of_symmetric(epsilon: Decimal, tau: Decimal) -> Decimal:
    """Return the ρ of a loss of ±ε with probability τ, rounded up.

    It is τ·ε·tanh(ε/2) if cosh(ε/2) ≤ 2τ/(1 - τ); otherwise a search finds it. With a = ε/2, y = ε(u + ½) and
    ψ = 1 - τ + τ cosh(y)/cosh(a), ρ is the largest of ε² ln ψ/(y² - a²) for y > a. If ln ψ is concave in y², ρ is the
    slope at y = a, which is τ·ε·tanh(a). It is concave if and only if

        (1 - τ) cosh(a) (y cosh y - sinh y) ≤ τ (sinh y cosh y - y),

    and the quotient of the two brackets is at most ½: their series have the terms 2k and 4ᵏ times y²ᵏ⁺¹/(2k + 1)!.
    """
    half = UP.divide(epsilon, Decimal(2))
    grown = exp_up(half)
    cosh = UP.divide(UP.add(grown, UP.divide(_ONE, grown.next_minus(DOWN).next_minus(DOWN))), Decimal(2))
    if UP.multiply(UP.subtract(_ONE, tau), cosh) <= DOWN.multiply(2, tau):
        return UP.multiply(tau, rho_of_pure(epsilon))
    return symmetric_law(epsilon, tau).rho()


@lru_cache(maxsize=1024)
def symmetric_law(epsilon: Decimal, tau: Decimal) -> Law:
    """Return the distribution of the loss ±ε with probability τ, under P."""
    from ._renyi_bounds import Law

    low = UP.divide(tau, DOWN.add(exp_down(epsilon), _ONE))
    loss = epsilon if tau else Decimal(0)
    return Law(((_high(epsilon, tau), loss), (low, loss.copy_negate()), (UP.subtract(_ONE, tau), Decimal(0))))


def _high(epsilon: Decimal, tau: Decimal) -> Decimal:
    """Return τe^ε/(1+e^ε), rounded up."""
    return UP.divide(tau, DOWN.add(DOWN.divide(_ONE, exp_up(epsilon)), _ONE))
