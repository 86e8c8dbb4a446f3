"""Noise of the mean of a scale, compared with the least that any report can have for one distribution of the answers.

    python benchmarks/scale_optimum.py

A report of any client of that ε is a set of answers: people with an answer of the set send it e**ε times as often as the
others. The weights of the sets that minimize the variance of an unbiased estimate, at this distribution, are a convex
problem. Its dual has one bound for each set, and is solved with those that bind. A bound that is still broken makes the least
variance smaller, so the printed excess is never too small.
"""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ldp_budget_surveys.questionnaires.survey_questions import best_for_mean

SCALES = {
    "1 to 5": (range(1, 6), (0.08, 0.12, 0.25, 0.35, 0.20)),
    "0 to 10": (range(11), (0.04, 0.02, 0.03, 0.04, 0.05, 0.12, 0.10, 0.15, 0.20, 0.13, 0.12)),
}
EPSILONS = (1, 2, 4)


def least(values: Any, shares: Any, epsilon: float) -> float:
    """Return a lower bound of the noise variance of the report of one person."""
    size = len(values)
    centred = values - shares @ values
    sets = np.array([each for each in product((0, 1), repeat=size) if 0 < sum(each) < size], float)
    sets = 1 + math.expm1(epsilon) * sets  # how often each answer sends it, but for the weight of the set
    chances = sets @ shares
    used = np.flatnonzero(np.abs(np.diff(sets, axis=1)).sum(axis=1) < 2.5 * math.expm1(epsilon))  # intervals
    found = np.concatenate([centred * 0.1, np.ones(size)])

    def room(point: Any, places: Any) -> Any:
        return (chances[places] * (sets[places] @ point[size:]) - (sets[places] @ point[:size]) ** 2) / chances[
            places
        ]

    def slope(point: Any, places: Any) -> Any:
        some, scale = sets[places], chances[places, None]
        return np.hstack([-2 * (some @ point[:size])[:, None] * some / scale, some])

    target = np.concatenate([-2 * centred, np.ones(size)])
    while True:
        bounds = {"type": "ineq", "fun": room, "jac": slope, "args": (used,)}
        found = minimize(
            lambda point: target @ point, found, jac=lambda point: target, constraints=bounds, method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-10},
        ).x  # fmt: skip
        broken = (sets @ found[:size]) ** 2 / (chances * (sets @ found[size:]))
        worst = np.argsort(broken)[-20:]
        if broken[worst[-1]] < 1 + 1e-6:
            bound = 2 * centred @ found[:size] - broken.max() * found[size:].sum()
            return float(bound - shares @ centred**2)
        used = np.union1d(used, worst)


def main() -> None:
    print("| scale | " + " | ".join(f"ε = {epsilon}" for epsilon in EPSILONS) + " |")
    print("| --- |" + " ---: |" * len(EPSILONS))
    for name, (scale, given) in SCALES.items():
        shares, cells = np.array(given), []
        for epsilon in EPSILONS:
            made: Any = best_for_mean(Decimal(epsilon), tuple(scale))
            ours = sum(share * made.error_at(value)[1] for value, share in zip(scale, given, strict=True))
            excess = math.sqrt(ours / least(np.array(scale, float), shares, epsilon)) - 1
            cells.append(f"{100 * excess:.1f} %")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
