"""The time of one Gaussian calibration, next to a division and next to peers where they are installed.

    python benchmarks/gaussian.py

The targets are spread over ε from 1e-8 to 1000 and δ from 1e-300 to 0.9; peers get those they
accept. Each row is the median over rounds of the mean time of a call.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator

from ldp_budget.guarantees.gaussian_calibration import gaussian_sigma

ROUNDS = 15
TARGETS = 400

Sigma = Callable[[float, float], object]


def targets() -> list[tuple[float, float]]:
    draw = random.Random(1)
    return [(10 ** draw.uniform(-8, 3), min(0.9, 10 ** draw.uniform(-300, 0))) for _ in range(TARGETS)]


def ours() -> Iterator[tuple[str, Sigma]]:
    yield "floor: one division", lambda epsilon, delta: epsilon / delta
    yield "ldp-budget tail", lambda epsilon, delta: gaussian_sigma(epsilon, delta)
    yield "ldp-budget exact", lambda epsilon, delta: gaussian_sigma(epsilon, delta, method="exact")


def peers() -> Iterator[tuple[str, Sigma]]:
    try:
        from dp_accounting.pld.accountant import get_smallest_gaussian_noise
        from dp_accounting.pld.common import DifferentialPrivacyParameters
    except ImportError:
        return

    def dp_accounting(epsilon: float, delta: float) -> object:
        return get_smallest_gaussian_noise(DifferentialPrivacyParameters(epsilon, delta), 1, 1.0)

    yield "dp-accounting", dp_accounting


def microseconds(sigma: Sigma, cases: list[tuple[float, float]]) -> float:
    start = time.perf_counter()
    for epsilon, delta in cases:
        sigma(epsilon, delta)
    return (time.perf_counter() - start) / len(cases) * 1e6


def main() -> None:
    cases = targets()
    easy = [(epsilon, delta) for epsilon, delta in cases if epsilon > 0.01 and delta > 1e-15] or [(1.0, 1e-5)]
    rows = [*((name, sigma, cases) for name, sigma in ours()), *((name, sigma, easy) for name, sigma in peers())]
    times: dict[str, list[float]] = {name: [] for name, _, _ in rows}
    for _ in range(ROUNDS):
        for name, sigma, chosen in rows:
            times[name].append(microseconds(sigma, chosen))
    print(f"{'':24}{'µs a call':>10}{'slowest round':>15}")
    for name, measured in times.items():
        print(f"{name:24}{statistics.median(measured):10.2f}{max(measured):15.2f}")


if __name__ == "__main__":
    main()
