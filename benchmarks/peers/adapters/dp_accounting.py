"""dp-accounting: its accountants, and its privacy loss distributions composed by hand."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

IMPORTS = (
    "dp_accounting.pld.accountant",
    "dp_accounting.pld.pld_privacy_accountant",
    "dp_accounting.rdp",
)
MISSING = {
    "spend": "its accountants add up; none has a limit and refuses",
    "collect": "accounts only, and draws nothing",
}


def calibrate() -> dict[str, Any]:
    from dp_accounting.pld.accountant import get_smallest_gaussian_noise
    from dp_accounting.pld.common import DifferentialPrivacyParameters

    def sigma(epsilon: float, delta: float) -> float:
        return float(get_smallest_gaussian_noise(DifferentialPrivacyParameters(epsilon, delta), 1, 1.0))

    return {"": sigma}


def _noise_share(epsilon: float) -> float:
    """The probability of a uniform answer with which randomised response of two answers has loss ε."""
    return 2 / (math.exp(epsilon) + 1)


def compose() -> dict[str, Any]:
    from dp_accounting import dp_event
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
    from dp_accounting.privacy_accountant import NeighboringRelation
    from dp_accounting.rdp import RdpAccountant

    def event(kind: str, size: float) -> Any:
        if kind == "rr":
            return dp_event.RandomizedResponseDpEvent(_noise_share(size), 2)
        return (dp_event.LaplaceDpEvent if kind == "laplace" else dp_event.GaussianDpEvent)(size)

    def distribution(kind: str, size: float) -> Any:
        if kind == "rr":
            return pld.from_randomized_response(_noise_share(size), 2)
        return (pld.from_laplace_mechanism if kind == "laplace" else pld.from_gaussian_mechanism)(size)

    def by_hand(delta: float, reports: Any) -> float:
        ones = (distribution(kind, size).self_compose(count) for kind, size, count in reports)
        return float(reduce(lambda a, b: a.compose(b), ones).get_epsilon_for_delta(delta))

    def accounted(kind_of: Any, relations: Any) -> Any:
        def total(delta: float, reports: Any) -> float:
            relation = relations[all(kind == "rr" for kind, _, _ in reports)]
            accountant = kind_of(neighboring_relation=relation)
            for kind, size, count in reports:
                accountant.compose(event(kind, size), count)
            return float(accountant.get_epsilon(delta))

        return total

    # Its PLD accountant takes Laplace and Gaussian noise for other neighbours than randomised response.
    one, special = NeighboringRelation.REPLACE_ONE, NeighboringRelation.REPLACE_SPECIAL
    return {
        "PLD by hand": by_hand,
        "PLDAccountant": accounted(PLDAccountant, {True: one, False: special}),
        "RdpAccountant": accounted(RdpAccountant, {True: one, False: one}),
    }
