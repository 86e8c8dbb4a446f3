"""ldp-budget itself, run as every peer is: in an environment of its own, from its wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from work import LIFETIME, Collector

IMPORTS = ("numpy", "ldp_budget.accounting.accountant", "ldp_budget.composition", "ldp_budget_mechanisms")
MISSING: dict[str, str] = {}


def calibrate() -> dict[str, Any]:
    from ldp_budget.guarantees.gaussian_calibration import gaussian_sigma

    return {"": lambda epsilon, delta: gaussian_sigma(epsilon, delta, method="exact")}


def compose() -> dict[str, Any]:
    import ldp_budget
    from ldp_budget.guarantees import Gaussian, Laplace, Pure

    kinds = {"rr": Pure, "laplace": lambda b: Laplace(1 / b), "gaussian": lambda sigma: Gaussian(1 / sigma)}

    def total(delta: float, reports: Any) -> float:
        charges = [(kinds[kind](size), count) for kind, size, count in reports]
        return ldp_budget.compose(charges, delta=delta, rule="exact").epsilon

    return {"": total}


def spend() -> dict[str, Any]:
    import ldp_budget
    from ldp_budget import Accountant

    made: dict[float, Any] = {}

    def opened(path: str) -> Any:
        def account(capacity: float) -> Any:
            accountant = Accountant(path if path == ":memory:" else Path(path).resolve())
            accountant.set_policy("default", [f"lifetime={capacity}"])

            def accepted(epsilon: float) -> bool:
                if epsilon not in made:
                    made[epsilon] = ldp_budget.mechanism("rr")(epsilon=epsilon)
                return accountant.spend("alice", made[epsilon]).status == "spent"

            return accepted

        return account

    return {"in memory": opened(":memory:"), "on disk": opened("budget.db")}


def collect(mechanism: str, shape: dict[str, int], epsilon: float) -> Collector:
    import numpy as np

    import ldp_budget

    answers = {"domain_size": shape["answers"]}
    if mechanism == "rappor":
        bloom = {name: shape[name] for name in ("bits", "hashes", "cohorts")}
        # One report of a user, so that no bits are permanent.
        losses = {"epsilon": epsilon, "epsilon_lifetime": 2 * epsilon}
        made = ldp_budget.mechanism("rappor").calibrate(**bloom, **losses, any_inputs=True)
    elif mechanism == "memoised":
        buckets = shape["answers"]
        made = ldp_budget.mechanism("d-bit-flip").calibrate(
            epsilon=LIFETIME, buckets=buckets, bits=buckets, memoize=True
        )
    elif mechanism == "hcms":
        made = ldp_budget.mechanism("hcms").calibrate(
            epsilon=epsilon, **answers, hashes=shape["hashes"], width=shape["width"]
        )
    elif mechanism == "rr":
        made = ldp_budget.mechanism("rr").calibrate(epsilon=epsilon)
    else:
        made = ldp_budget.mechanism(mechanism).calibrate(epsilon=epsilon, **answers)

    def intervals(reports: Any) -> tuple[Any, Any]:
        found = made.estimate(reports)
        return found.counts, found.interval(0.95)

    def rows(reports: Any) -> Any:
        array = np.asarray(reports).reshape(len(reports), -1)
        return np.unpackbits(array, axis=1) if mechanism in ("oue", "rappor", "memoised") else array

    return Collector(
        epsilon=LIFETIME if mechanism == "memoised" else epsilon,
        randomize=lambda values, secrets: made.randomize(values, secrets=secrets),
        rows=rows,
        aggregate=made.aggregate,
        estimate=lambda reports: made.estimate(reports).counts,
        intervals=intervals,
        prepare=np.asarray,
        batch=100_000,
    )
