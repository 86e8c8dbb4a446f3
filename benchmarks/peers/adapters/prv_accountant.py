"""prv-accountant: privacy random variables on a grid, with a bound above and below."""

from __future__ import annotations

from typing import Any

IMPORTS = ("prv_accountant", "prv_accountant.dpsgd", "prv_accountant.privacy_random_variables")
MISSING = {
    "spend": "has no account and no limit",
    "collect": "accounts only, and draws nothing",
}


def calibrate() -> dict[str, Any]:
    from prv_accountant.dpsgd import find_noise_multiplier

    # One step of DP-SGD that samples every user; the error of ε is its documentation's usual one.
    return {"find_noise_multiplier": lambda epsilon, delta: float(find_noise_multiplier(1.0, 1, epsilon, delta))}


def compose() -> dict[str, Any]:
    import prv_accountant as prv
    from prv_accountant.privacy_random_variables import LaplaceMechanism, PureDPMechanism

    kinds = {
        "rr": PureDPMechanism,
        "laplace": lambda b: LaplaceMechanism(1 / b),
        "gaussian": lambda sigma: prv.GaussianMechanism(sigma),
    }

    def upper(delta: float, reports: Any) -> float:
        counts = [count for _, _, count in reports]
        accountant = prv.PRVAccountant(
            prvs=[kinds[kind](size) for kind, size, _ in reports],
            max_self_compositions=counts,
            eps_error=0.1,
            delta_error=delta / 1000,
        )
        return float(accountant.compute_epsilon(delta=delta, num_self_compositions=counts)[2])

    return {"upper bound": upper}
