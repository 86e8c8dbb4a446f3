"""autodp: Rényi composition, its Fourier accountant, and its analytic Gaussian calibration."""

from __future__ import annotations

import math
from typing import Any

IMPORTS = ("autodp.mechanism_zoo", "autodp.transformer_zoo", "autodp.calibrator_zoo")
MISSING = {
    "spend": "has no account and no limit",
    "collect": "accounts only, and draws nothing",
}


def calibrate() -> dict[str, Any]:
    from autodp.calibrator_zoo import ana_gaussian_calibrator
    from autodp.mechanism_zoo import ExactGaussianMechanism

    calibrator = ana_gaussian_calibrator()
    return {
        "ana_gaussian": lambda epsilon, delta: float(
            calibrator(ExactGaussianMechanism, epsilon, delta).params["sigma"]
        )
    }


def compose() -> dict[str, Any]:
    from autodp.mechanism_zoo import GaussianMechanism, LaplaceMechanism, RandresponseMechanism
    from autodp.transformer_zoo import ComposeAFA, Composition

    def total(composer: Any, options: dict[str, bool]) -> Any:
        def epsilon(delta: float, reports: Any) -> float:
            kinds = {
                "rr": lambda size: RandresponseMechanism(p=1 / (1 + math.exp(-size)), **options),
                "laplace": lambda size: LaplaceMechanism(b=size, **options),
                "gaussian": lambda size: GaussianMechanism(sigma=size, **options),
            }
            ones = [kinds[kind](size) for kind, size, _ in reports]
            return float(composer()(ones, [count for _, _, count in reports]).get_approxDP(delta))

        return epsilon

    return {"Rényi": total(Composition, {}), "ComposeAFA": total(ComposeAFA, {"phi_off": False})}
