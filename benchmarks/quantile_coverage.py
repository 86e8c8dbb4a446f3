"""Coverage and width of quantiles from random thresholds: incomes on a logarithmic scale, and hours of which half are equal.

    python benchmarks/quantile_coverage.py [--surveys 200]

For each setting it prints the share of simulated surveys whose 95 % interval holds the true quantile, and the mean width in
parts of the range of the scale.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

import ldp_budget


def incomes(people: int, rng: np.random.Generator) -> Any:
    return np.clip(rng.lognormal(10.4, 0.6, people), 1e3, 1e6)


def hours(people: int, rng: np.random.Generator) -> Any:
    return np.where(rng.random(people) < 0.5, 8.0, np.clip(rng.normal(9, 3, people), 0, 24))


SHAPES: dict[str, tuple[Any, dict[str, Any]]] = {
    "incomes": (incomes, {"lower": 1000, "upper": 1_000_000, "scale": "log"}),
    "hours": (hours, {"lower": 0, "upper": 24}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--surveys", type=int, default=200)
    surveys = parser.parse_args().surveys
    rng = np.random.default_rng(4)
    print(f"values   quantile  epsilon  people  covered of {surveys}  width")
    for shape, (draw, declared) in SHAPES.items():
        truths = np.quantile(draw(2_000_000, rng), (0.5, 0.9), method="inverted_cdf")
        to_scale = math.log if "scale" in declared else float
        whole = to_scale(declared["upper"]) - (to_scale(declared["lower"]) if declared["lower"] else 0.0)
        for epsilon in (1, 2, 4):
            made: Any = ldp_budget.mechanism("random-threshold").calibrate(
                epsilon=epsilon, quantiles="0.5,0.9", **declared
            )
            for people in (50, 300, 3000):
                covered, widths = np.zeros(2), np.zeros(2)
                for _ in range(surveys):
                    estimate = made.estimate(made.randomize(draw(people, rng), rng=int(rng.integers(2**32))))
                    for place, (probability, truth) in enumerate(zip((0.5, 0.9), truths, strict=True)):
                        _, low, high = estimate.quantile(probability)
                        covered[place] += low <= truth <= high
                        widths[place] += to_scale(high) - (to_scale(low) if low else 0.0)
                for place, probability in enumerate((0.5, 0.9)):
                    share, width = covered[place] / surveys, widths[place] / surveys / whole
                    line = f"{shape:8} {probability:<9} {epsilon:<8} {people:<7} {100 * share:<15.1f} {width:.3f}"
                    print(line, flush=True)


if __name__ == "__main__":
    main()
