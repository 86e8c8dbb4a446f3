"""What several pictures say in the same words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..output import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ldp_budget.authoring.base import Mechanism


def percent(level: float) -> str:
    """`95 %`"""
    return f"{100 * level:.12g} %"


def mechanism_in_short(mechanism: Mechanism) -> str:
    """Its name and what one report loses."""
    loss = mechanism.guarantee.describe()
    if loss["epsilon"] is None:
        return f"{mechanism.name}, ε unbounded"
    delta = f", δ = {loss['delta']:.6g}" if loss["delta"] else ""
    return f"{mechanism.name}, ε = {loss['epsilon']:.6g}{delta} each report"


def bias_told(row: Mapping[str, Any]) -> str:
    """By how much an estimated mean may be off besides its error; empty where it is unbiased."""
    bias = row.get("max_bias")
    return "" if bias is None else f"biased by at most {bias:.4g}, which no interval shows"


def left_out(shown: int, total: int) -> str:
    """Which answers are not in a picture; empty where all are."""
    if shown == total:
        return ""
    which = "the largest" if shown == 1 else f"the {shown} largest, largest first,"
    return f"{which} of {counted(total, 'answer')}; {total - shown} left out"
