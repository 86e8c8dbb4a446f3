"""diffprivlib: mechanisms and its budget accountant."""

from __future__ import annotations

from typing import Any

from work import Collector, NotOfferedError

IMPORTS = ("diffprivlib",)
MISSING: dict[str, str] = {}


def calibrate() -> dict[str, Any]:
    from diffprivlib.mechanisms import GaussianAnalytic

    def sigma(epsilon: float, delta: float) -> float:
        return float(GaussianAnalytic(epsilon=epsilon, delta=delta, sensitivity=1.0)._scale)

    return {"GaussianAnalytic": sigma}


def compose() -> dict[str, Any]:
    from diffprivlib import BudgetAccountant

    def total(delta: float, reports: Any) -> float:
        accountant = BudgetAccountant(slack=delta)
        for kind, size, count in reports:
            if kind == "gaussian":
                raise NotOfferedError("adds up (ε, δ) only, and Gaussian noise of a given σ is not one")
            for _ in range(count):
                accountant.spend(size if kind == "rr" else 1 / size, 0)
        return float(accountant.total()[0])

    return {"BudgetAccountant": total}


def spend() -> dict[str, Any]:
    from diffprivlib import BudgetAccountant
    from diffprivlib.utils import BudgetError

    def account(capacity: float) -> Any:
        accountant = BudgetAccountant(epsilon=capacity, delta=0)

        def accepted(epsilon: float) -> bool:
            try:
                accountant.spend(epsilon, 0)
            except BudgetError:
                return False
            return True

        return accepted

    return {"BudgetAccountant": account}


def collect(mechanism: str, shape: dict[str, int], epsilon: float) -> Collector:
    from diffprivlib.mechanisms import Binary

    if mechanism != "rr":
        raise NotOfferedError("of clients for categories, that of two answers only")
    coin = Binary(epsilon=epsilon, value0="0", value1="1")
    reason = "no server for randomised response"
    return Collector(
        epsilon=epsilon,
        randomize=lambda values, secrets: [int(coin.randomise(str(value))) for value in values],
        rows=lambda reports: [[report] for report in reports],
        reasons={"aggregate": reason, "estimate": reason},
    )
