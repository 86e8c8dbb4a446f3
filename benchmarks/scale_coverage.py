"""Coverage of the 95 % intervals of scales and grids, about those who answered.

    python benchmarks/scale_coverage.py

The shares of a top box and of an item are exact: every count of sets that hold the answer, with its probability. Means and
net promoter scores are of 1,000 simulated surveys each, ±1.4 points. A minute of one core.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
from scipy.special import gammaln

from ldp_budget.registry.plugins import mechanism
from ldp_budget.sdk.estimates import CountAggregate, SupportLaw
from ldp_budget_surveys.questionnaires.survey_questions import best_for_mean

SHARES = (0.04, 0.02, 0.03, 0.04, 0.05, 0.12, 0.10, 0.15, 0.20, 0.13, 0.12)
PEOPLE = (50, 300, 3000)
EPSILONS = (1, 2, 4)
SURVEYS = 1000


def binomial(count: int, chance: float) -> Any:
    some = np.arange(count + 1)
    if not count:
        return np.ones(1)
    logs = gammaln(count + 1) - gammaln(some + 1) - gammaln(count - some + 1)
    return np.exp(logs + some * math.log(chance) + (count - some) * math.log1p(-chance))


def of_share(made: Any, people: int, share: float) -> float:
    """Return the exact coverage of a share: the convolution of the sets of those who hold the answer and of the others."""
    holders = round(share * people)
    (p, q), *_ = pairs = made.support_probabilities
    chances = np.convolve(binomial(holders, float(p)), binomial(people - holders, float(q)))
    estimate = SupportLaw.of(pairs[:1], 1).estimate(CountAggregate(made.fingerprint, people, np.arange(people + 1)))
    low, high = estimate.interval()
    return float(chances[(low <= holders + 1e-9) & (high >= holders - 1e-9)].sum())


def of_mean(made: Any, values: Any, people: int) -> float:
    """Return the coverage of a mean, about those who answered."""
    rng = np.random.default_rng(people)
    held = 0
    for _ in range(SURVEYS):
        drawn = rng.choice(values, people, p=SHARES)
        low, high = made.estimate(made.randomize(drawn, rng=rng)).interval()
        held += low - 1e-9 <= drawn.mean() <= high + 1e-9
    return held / SURVEYS


def main() -> None:
    nps = np.array([-1.0] * 7 + [0.0] * 2 + [1.0] * 2)
    print("kind | ε | " + " | ".join(f"n = {people}" for people in PEOPLE))
    for epsilon in EPSILONS:
        cases: list[tuple[str, list[float]]] = []
        item = mechanism("grid")(epsilon=epsilon, items=8, domain_size=5).part()
        joint = mechanism("grid")(epsilon=epsilon, items=4, domain_size=2).part()
        box = mechanism("randomized-response")(epsilon=epsilon)
        for name, made in (("top box", box), ("item of a grid", item), ("joint yes or no", joint)):
            for share in (0.02, 0.2, 0.5):
                cases.append((f"{name}, {share:.0%}", [of_share(made, people, share) for people in PEOPLE]))
        for name, values, scale in (
            ("mean of 0 to 10", np.arange(11.0), tuple(range(11))),
            ("net promoter score", nps, (-1, 0, 1)),
        ):
            own: Any = best_for_mean(Decimal(epsilon), scale)
            own = own.on(scale) if hasattr(own, "on") else own
            cases.append((name, [of_mean(own, values, people) for people in PEOPLE]))
        for name, found in cases:
            print(f"{name} | {epsilon} | " + " | ".join(f"{100 * each:.1f}" for each in found), flush=True)


if __name__ == "__main__":
    main()
