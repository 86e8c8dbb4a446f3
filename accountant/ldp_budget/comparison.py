"""Which mechanism has the least error? Every installed one, calibrated to the same ε and held side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import InvalidParameter, LdpBudgetError
from .frequency import FrequencyMechanism
from .numeric import NumericMechanism
from .registry import mechanisms
from .values import check_users

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal

    from .base import Mechanism

    Number = int | float | str | Decimal


def compare_frequency(epsilon: Number, domain_size: int, users: int) -> list[dict[str, Any]]:
    """Predicted standard errors of a share for `users` users and `domain_size` answers, least mean error first.

    `worst_std_error` is that of the answer and frequency where it is largest, `mean_std_error` the root of the mean
    variance over the answers. Raises `InvalidParameter`.
    """
    check_users(users)
    rows = []
    for mechanism in _calibrated(FrequencyMechanism, epsilon=epsilon, domain_size=domain_size):
        assert isinstance(mechanism, FrequencyMechanism)
        if mechanism.answers != domain_size:
            continue
        worst, mean = mechanism.share_errors(users)
        rows.append(
            {"kind": "frequency", "mechanism": mechanism.name, "worst_std_error": worst, "mean_std_error": mean}
        )
    return sorted(rows, key=lambda row: (row["mean_std_error"], row["mechanism"]))


def compare_numeric(epsilon: Number, lower: Number, upper: Number) -> list[dict[str, Any]]:
    """Bias and MSE of one report at the edges and the centre of [lower, upper], least MSE for a uniform prior first.

    Among them stands `constant-output`: saying the centre whatever the value is costs no privacy, and what has a
    larger MSE than that tells little from a single report. Raises `InvalidParameter`.
    """
    rows = []
    for mechanism in _calibrated(NumericMechanism, epsilon=epsilon, lower=lower, upper=upper):
        utility = mechanism.utility()
        errors = {name: utility[name] for name in ("bias", "mse", "mse_uniform_prior")}
        rows.append({"kind": "numeric", "mechanism": mechanism.name, **errors})
    half = (float(upper) - float(lower)) / 2
    bias = {"lower": half, "centre": 0.0, "upper": -half}
    constant = {
        "bias": bias,
        "mse": {name: value**2 for name, value in bias.items()},
        "mse_uniform_prior": half**2 / 3,
    }
    rows.append({"kind": "numeric", "mechanism": "constant-output", **constant})
    return sorted(rows, key=lambda row: (row["mse_uniform_prior"], row["mechanism"]))


def _calibrated(kind: type[Mechanism], **target: Any) -> Iterator[Mechanism]:
    """Each mechanism of that kind which needs nothing beyond the target."""
    refused: LdpBudgetError | None = None
    found = False
    for candidate in mechanisms():
        known = {name: value for name, value in target.items() if name in candidate.fields}
        if not issubclass(candidate, kind) or "epsilon" not in known:
            continue
        try:
            mechanism = candidate.calibrate(**known)
            _ = mechanism.guarantee
        except InvalidParameter as error:
            if error.option in known:
                refused = error
            continue
        found = True
        yield mechanism
    if not found and refused is not None:
        raise refused
