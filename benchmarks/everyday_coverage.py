"""Coverage of ticks, quantiles and capped means: simple samples, unequal weights, and clusters.

    python benchmarks/everyday_coverage.py [--surveys 200] [--people 50 300 3000]

Ticks of simple samples are summed over the exact law of the reports. All other rows are simulated surveys. Weights are 1
to 5, and clusters are households of three with the same income. For each row it prints the share of surveys whose 95 % interval
holds the truth.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaln

import ldp_budget
from ldp_budget.sdk.estimates import MeanEstimate

EPSILONS, PEOPLE = (1, 2, 4), (50, 300, 3000)
DESIGNS = ("simple", "weights", "clusters")
RANGE: dict[str, Any] = {"lower": 1000, "upper": 1_000_000, "scale": "log"}


def _binomial(tries: int, rate: float) -> Any:
    """Return the probabilities of 0, 1, … successes."""
    counts = np.arange(tries + 1)
    logs = gammaln(tries + 1) - gammaln(counts + 1) - gammaln(tries - counts + 1)
    return np.exp(logs + counts * np.log(rate) + (tries - counts) * np.log1p(-rate))


def exact_ticks(epsilon: int, people: int, share: float) -> float:
    """Return the coverage of a share of up to 3 of 10 ticks, for fixed answers of the respondents."""
    made: Any = ldp_budget.mechanism("ticks").calibrate(epsilon=epsilon, domain_size=10, at_most=3)
    p, q = (float(each) for each in made.support_probabilities[0])
    counts, holders = np.arange(people + 1), round(share * people)
    masses = np.convolve(_binomial(holders, p), _binomial(people - holders, q))
    covered = 0.0
    for start in range(0, people + 1, 10):  # ten counts are the ten options of one estimate
        some = counts[start : start + 10]
        support = np.zeros((1, 10, 10), np.int64)
        np.fill_diagonal(support[0], np.pad(some, (0, 10 - len(some))))
        total = made.aggregate(made.randomize([0], rng=1))
        total.reports, total.support = people, support
        low, high = made.estimate(total).interval()
        inside = (low <= holders + 1e-9) & (holders - 1e-9 <= high)
        covered += float(masses[start : start + 10] @ inside[: len(some)])
    return covered


def incomes(people: int, rng: np.random.Generator) -> Any:
    return np.clip(rng.lognormal(10.4, 0.6, people), 1e3, 1e6)


def found(made: Any, design: str, people: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return the details of the estimate of one simulated survey."""
    size = 3 if design == "clusters" else 1
    values = np.repeat(incomes(people // size + 1, rng), size)[:people]
    reports = made.randomize(values, rng=int(rng.integers(2**32)))
    if design == "simple":
        return dict(made.estimate(reports).details())
    weights = rng.integers(1, 6, people).astype(float) if design == "weights" else np.ones(people)
    bins, number = made.report_bins(reports)
    scale = weights / weights.sum()
    shares = np.bincount(bins, scale, number)
    groups = np.arange(people) // size
    held = csr_array((scale, (groups, bins)), shape=(int(groups[-1]) + 1, number))
    sizes = np.bincount(groups, scale)
    crossed = np.outer(held.T @ sizes, shares)
    covariance = (held.T @ held).toarray() - crossed - crossed.T + sizes @ sizes * np.outer(shares, shares)
    covariance *= len(sizes) / (len(sizes) - 1)
    mean = MeanEstimate(max(1, int(1 / (scale**2).sum())), 0.0, 1.0, freedom=len(sizes) - 1)
    return dict(made.distribution(shares, covariance, mean).details())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--surveys", type=int, default=200)
    parser.add_argument("--people", type=int, nargs="*", default=PEOPLE)
    given = parser.parse_args()
    surveys, numbers, rng = given.surveys, given.people, np.random.default_rng(44)
    many = np.sort(incomes(400_000, rng))
    median = float(np.quantile(many, 0.5, method="inverted_cdf"))
    print("what         design    epsilon " + " ".join(f"n = {people:<6}" for people in numbers))
    for share in (0.02, 0.3):
        for epsilon in EPSILONS:
            cells = " ".join(f"{100 * exact_ticks(epsilon, people, share):<10.1f}" for people in numbers)
            print(f"ticks {100 * share:<4.0f} %  simple    {epsilon:<7} {cells}", flush=True)
    kinds = {"median": {"quantiles": "0.5"}, "capped mean": {"cap_at": "0.95"}}
    for name, more in kinds.items():
        for design in DESIGNS:
            for epsilon in EPSILONS:
                made: Any = ldp_budget.mechanism("random-threshold").calibrate(epsilon=epsilon, **RANGE, **more)
                cells = []
                for people in numbers:
                    covered = 0
                    for _ in range(surveys):
                        row = found(made, design, people, rng)
                        row, truth = (row["quantiles"]["0.5"], median) if "quantiles" in row else (row, None)
                        truth = float(np.minimum(many[::10], row["cap"]).mean()) if truth is None else truth
                        covered += row["low"] <= truth <= row["high"]
                    cells.append(f"{100 * covered / surveys:<10.1f}")
                print(f"{name:12} {design:9} {epsilon:<7} {' '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
