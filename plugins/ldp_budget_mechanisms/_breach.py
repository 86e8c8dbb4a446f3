"""Privacy breaches: how far one report can move a belief (Kang, Lee and Hong 2009, with the bound made strict).

A property of the user's answer that had probability ρ₁ before a report of amplification A has at most
ρ₁A/(1-ρ₁+ρ₁A) after it; one that had ρ₂ has at least ρ₂/(ρ₂+(1-ρ₂)A). So neither does the belief rise from ρ₁
to ρ₂, nor does it fall from ρ₂ to ρ₁, if and only if

    A < ρ₂(1-ρ₁) / (ρ₁(1-ρ₂)).

Source: Evfimievski, Gehrke and Srikant, PODS 2003; Kang, Lee and Hong 2009, section 3.1, print ≤, and at
equality the belief reaches ρ₂.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from ldp_budget.guarantees.amounts import DOWN, UP, float_below, float_up

_INSIDE = 1 - Fraction(1, 10**12)


def breach_bound(rho1: Decimal, rho2: Decimal) -> Fraction:
    """The amplification at which a belief of ρ₁ can reach ρ₂; that of a report must stay below it."""
    low, high = Fraction(rho1), Fraction(rho2)
    return high * (1 - low) / (low * (1 - high))


def amplification_below_breach(rho1: Decimal, rho2: Decimal) -> Decimal:
    """The largest amplification used for ρ₁ and ρ₂: one part in 10¹² inside the bound.

    It is a little less where ρ₂ is so close to one that the posterior could not be told from it as a double.
    At most 1 where ρ₁ and ρ₂ are too close for that.
    """
    visible = float_below(rho2)
    for _ in range(2):
        visible = math.nextafter(visible, 0)
    bound = min(breach_bound(rho1, rho2) * _INSIDE, breach_bound(rho1, Decimal(repr(visible))))
    return DOWN.divide(Decimal(bound.numerator), Decimal(bound.denominator))


def largest_posterior(rho1: Decimal, amplification: Decimal) -> float:
    """The most that a belief of ρ₁ can become by a report of that amplification, rounded up."""
    raised = Fraction(rho1) * Fraction(amplification)
    posterior = raised / (1 - Fraction(rho1) + raised)
    return float_up(UP.divide(Decimal(posterior.numerator), Decimal(posterior.denominator)))
