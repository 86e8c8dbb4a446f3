"""Exact check of a one-sided guarantee: the protected inputs against all others, in one direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldp_budget.errors import NotSupported
from ldp_budget.sdk.domain import Categories

from .dominance import UNPROVEN, Finding, check_ratio

if TYPE_CHECKING:
    from ldp_budget.guarantees import OneSided
    from ldp_budget.sdk.mechanism import Mechanism

_MOST = 64
"""The most answers of which every protected one is compared with every other."""


def check_one_sided(mechanism: Mechanism, guarantee: OneSided) -> list[Finding]:
    """Check P(o | protected) <= e^η P(o | other) for every protected answer, every other one and every report."""
    domain = mechanism.domain
    if not mechanism.protected or not isinstance(domain, Categories) or domain.size > _MOST:
        why = f"a one-sided guarantee needs `protected`, its protected answers, of {_MOST} listed ones at most"
        return [Finding(UNPROVEN, why)]
    try:
        found = [
            check_ratio(guarantee.eta, mechanism.compare(each, other))
            for each in mechanism.protected
            for other in range(domain.size)
            if other != each
        ]
    except NotSupported as error:
        return [Finding(UNPROVEN, str(error))]
    return [Finding(each.verdict, each.why and f"of a protected answer: {each.why}") for each in found]
