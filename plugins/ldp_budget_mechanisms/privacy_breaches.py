"""Privacy breaches: how far one report can move a belief (Kang, Lee and Hong 2009, with a strict bound).

Take a property of the user's answer that had probability ρ₁ before a report of amplification A. It has at most
ρ₁A/(1-ρ₁+ρ₁A) after the report; one that had ρ₂ has at least ρ₂/(ρ₂+(1-ρ₂)A). So the belief neither rises from ρ₁
to ρ₂, nor falls from ρ₂ to ρ₁, if and only if

    A < ρ₂(1-ρ₁) / (ρ₁(1-ρ₂)).

Source: Evfimievski, Gehrke and Srikant, PODS 2003; Kang, Lee and Hong 2009, section 3.1, print ≤, and at
equality the belief reaches ρ₂.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from ldp_budget.guarantees.fixed_point import DOWN, UP, float_below, float_up

_INSIDE = 1 - Fraction(1, 10**12)


def breach_bound(rho1: Decimal, rho2: Decimal) -> Fraction:
    """Return the amplification at which a belief of ρ₁ can reach ρ₂; that of a report must stay below it."""
    low, high = Fraction(rho1), Fraction(rho2)
    return high * (1 - low) / (low * (1 - high))


def amplification_below_breach(rho1: Decimal, rho2: Decimal) -> Decimal:
    """Return the largest amplification used for ρ₁ and ρ₂: one part in 10¹² inside the bound.

    It is a little less if ρ₂ is so close to one that a double could not separate the posterior from it. At most 1 if ρ₁
    and ρ₂ are too close for that.
    """
    visible = float_below(rho2)
    for _ in range(2):
        visible = math.nextafter(visible, 0)
    bound = min(breach_bound(rho1, rho2) * _INSIDE, breach_bound(rho1, Decimal(repr(visible))))
    return DOWN.divide(Decimal(bound.numerator), Decimal(bound.denominator))


def largest_posterior(rho1: Decimal, amplification: Decimal) -> float:
    """Return the largest belief that a report of that amplification can make of ρ₁, rounded up."""
    raised = Fraction(rho1) * Fraction(amplification)
    posterior = raised / (1 - Fraction(rho1) + raised)
    return float_up(UP.divide(Decimal(posterior.numerator), Decimal(posterior.denominator)))
