"""multi-freq-ldpy: frequency oracles whose clients are functions of one value."""

from __future__ import annotations

from typing import Any

from work import LIFETIME, Collector, NotOfferedError

IMPORTS = (
    "multi_freq_ldpy.pure_frequency_oracles.GRR",
    "multi_freq_ldpy.pure_frequency_oracles.UE",
    "multi_freq_ldpy.long_freq_est.dBitFlipPM",
)
MISSING = {
    "calibrate": "no Gaussian noise",
    "compose": "does not compose",
    "spend": "has no account",
}


def collect(mechanism: str, shape: dict[str, int], epsilon: float) -> Collector:
    from multi_freq_ldpy.long_freq_est.dBitFlipPM import dBitFlipPM_Client
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

    answers = shape["answers"]
    if mechanism in ("rr", "grr"):
        draw = lambda value: GRR_Client(value, answers, epsilon)  # noqa: E731
        shares = lambda reports: GRR_Aggregator_MI(reports, answers, epsilon)  # noqa: E731
    elif mechanism == "oue":
        draw = lambda value: UE_Client(value, answers, epsilon, True)  # noqa: E731
        shares = lambda reports: UE_Aggregator_MI(reports, epsilon, True)  # noqa: E731
    elif mechanism == "memoised":
        draw = lambda value: dBitFlipPM_Client(value, answers, answers, answers, LIFETIME)  # noqa: E731
        shares = None
    else:
        raise NotOfferedError("no such mechanism")

    def rows(reports: Any) -> Any:
        return [[int(report)] if mechanism in ("rr", "grr") else [int(bit) for bit in report] for report in reports]

    return Collector(
        epsilon=LIFETIME if mechanism == "memoised" else epsilon,
        randomize=lambda values, secrets: [draw(value) for value in values],
        rows=rows,
        estimate=shares and (lambda reports: shares(reports) * len(reports)),
        reasons={"aggregate": "one step from reports to shares", "estimate": "not asked of it"},
    )
