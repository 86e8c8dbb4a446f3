"""The ρ of zero-concentrated differential privacy of a finite pair, between certified bounds.

It is the supremum of D_α/α over the orders α > 1, D_α the Rényi divergence, which does not fall in α. So on an
interval [a, b] of orders D_α/α is at most D_b/a, and beyond b at most D_∞/b.
"""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...authoring.channels import Mass

_WIDE = Context(prec=45, Emax=10**9, Emin=-(10**9))
_CLOSE = Decimal("1.0001")
_MARGIN = Decimal("1e-25")  # far above the rounding of `_WIDE`, far below `_CLOSE`


def largest_rate(masses: Sequence[Mass], claimed: Decimal = Decimal(0)) -> tuple[Decimal, Decimal]:
    """A lower and an upper bound of ρ, within a part in ten thousand; infinite where P has what Q has not.

    Looked at no closer than is needed to say whether it is at most `claimed`.
    """
    with localcontext(_WIDE):  # for the operators too, which go by the caller's context otherwise
        return _largest_rate(masses, claimed)


def _largest_rate(masses: Sequence[Mass], claimed: Decimal) -> tuple[Decimal, Decimal]:
    if any(p and not q for p, q in masses):
        return Decimal("Infinity"), Decimal("Infinity")
    pairs = [(_decimal(p), _decimal(q)) for p, q in masses if p]
    logs = [(_WIDE.ln(p), _WIDE.ln(q)) for p, q in pairs]
    # At order one the divergence is that of Kullback and Leibler.
    least = sum((p * (lp - lq) for (p, _), (lp, lq) in zip(pairs, logs, strict=True)), Decimal(0))
    largest = max(lp - lq for lp, lq in logs)
    if all(p == q for p, q in masses):
        return Decimal(0), Decimal(0)
    if least <= _MARGIN:
        return Decimal(0), largest * (1 + _MARGIN)  # too small to tell from rounding; D_α/α is at most D_∞
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
        order = _WIDE.sqrt(before * after)
        middle = (order, _divergence(logs, order))
        low = max(low, middle[1] / order)
        intervals += [((before, start), middle), (middle, (after, end))]
    return low * (1 - _MARGIN), max(low, high) * (1 + _MARGIN)


def _divergence(logs: Sequence[tuple[Decimal, Decimal]], order: Decimal) -> Decimal:
    """D_α = ln(Σ P^α Q^(1-α)) / (α - 1)."""
    terms = (_WIDE.exp(order * lp + (1 - order) * lq) for lp, lq in logs)
    return _WIDE.divide(_WIDE.ln(sum(terms, Decimal(0))), order - 1)


def _decimal(probability: Fraction) -> Decimal:
    return _WIDE.divide(Decimal(probability.numerator), Decimal(probability.denominator))
