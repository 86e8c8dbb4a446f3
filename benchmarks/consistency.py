"""Raw and consistent counts: squared errors, and the coverage and width of their 95 % confidence intervals.

    python benchmarks/consistency.py [--runs N] [--bootstrap]

Coverage is averaged over the answers and the runs of each setting, which are N with up to 16 answers, and fewer with more
answers; the supports are drawn from their exact law. Truths:
`flat`, all answers alike; `sparse`, a tenth of the answers by Zipf's law; `one`, all users hold one answer. With
`--bootstrap`, intervals of the other kind are shown as well: percentiles over 200 draws at the consistent counts. The
errors are of reports from the client itself.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import ldp_budget
from ldp_budget.sdk.consistency import consistent, norm_sub
from ldp_budget.sdk.estimates import CountAggregate

SEED = 29
DRAWS = 200
LEAST, MOST = 0.94, 0.98
SETTINGS = [
    ("oue", 1, n, d, kind)
    for n in (50, 1000, 10_000, 10**5)
    for d in (2, 16, 128, 1024)
    for kind in ("flat", "sparse")
]
SETTINGS += [("grr", 3, n, d, kind) for n in (1000, 10**5) for d in (3, 16) for kind in ("flat", "sparse")]
EXTREME = [("oue", 1, 10**5, d, "one") for d in (128, 1024)]
# Mechanism, ε, answers, exponent of Zipf's law (0 is flat), runs, and the largest ratio.
ERRORS = [
    ("subset-selection", 1, 128, 1.1, 20, 0.55),
    ("subset-selection", 1, 1024, 1.1, 5, 0.15),
    ("subset-selection", 3, 1024, 1.1, 10, 1.02),
    ("subset-selection", 3, 16, 0.0, 40, 1.02),
    ("oue", 1, 16, 0.0, 40, 1.02),
    ("grr", 3, 16, 1.1, 40, 1.02),
    ("sue", 4, 4, 0.0, 40, 1.02),
]


def truth(kind: str, n: int, d: int) -> Any:
    kept = {"flat": d, "sparse": max(1, d // 10), "one": 1}[kind]
    weights = np.ones(kept) if kind == "flat" else 1 / np.arange(1, kept + 1)
    return spread_over(weights, n, d)


def spread_over(weights: Any, n: int, d: int) -> Any:
    counts = np.zeros(d, dtype=np.int64)
    counts[: len(weights)] = np.floor(n * weights / weights.sum())
    counts[0] += n - counts.sum()
    return counts


def supports(mechanism: Any, held: Any, rng: Any, runs: int) -> Any:
    """The supports of the answers in so many runs, (runs, d)."""
    p, q = map(float, mechanism.support_probabilities[0])
    n, d = int(held.sum()), len(held)
    if mechanism.name == "oue":
        return rng.binomial(held, p, (runs, d)) + rng.binomial(n - held, q, (runs, d))
    total = np.zeros((runs, d), dtype=np.int64)
    for answer in np.flatnonzero(held):
        chances = np.full(d, (1 - p) / (d - 1))
        chances[answer] = p
        total += rng.multinomial(held[answer], chances, runs)
    return total


def bootstrap(mechanism: Any, estimate: Any, rng: Any) -> tuple[Any, Any]:
    held = np.floor(estimate.counts).astype(np.int64)
    held[held.argmax()] += estimate.reports - held.sum()
    counts = mechanism._law.counts(supports(mechanism, held, rng, DRAWS), estimate.reports)
    return np.quantile([norm_sub(row, estimate.reports) for row in counts], (0.025, 0.975), axis=0)


def coverage(setting: tuple[Any, ...], rng: Any, runs: int, *, with_bootstrap: bool) -> bool:
    name, epsilon, n, d, kind = setting
    mechanism = ldp_budget.mechanism(name)(epsilon=epsilon, domain_size=d)
    held = truth(kind, n, d)
    runs = max(min(runs, 40), min(runs, 16 * runs // d))
    covered: dict[str, list[tuple[float, float]]] = {}
    width: dict[str, list[float]] = {}
    for support in supports(mechanism, held, rng, runs):
        raw = mechanism.estimate(CountAggregate(mechanism.fingerprint, n, support))
        found = consistent(raw)
        ends = {"raw": raw.interval(), "consistent": found.interval()}
        if with_bootstrap:
            ends["bootstrap"] = bootstrap(mechanism, found, rng)
        for which, (low, high) in ends.items():
            low, high = np.clip(low, 0, n), np.clip(high, 0, n)
            covers = (low <= held + 1e-6) & (held <= high + 1e-6)
            covered.setdefault(which, []).append((covers.mean(), covers[held > 0].mean()))
            width.setdefault(which, []).append((high - low).mean())
    shares = {which: np.mean(each, axis=0) for which, each in covered.items()}
    inside = all(LEAST <= shares[which][0] <= MOST for which in ("raw", "consistent"))
    figures = "  ".join(
        f"{which} {share[0]:.4f} | {share[1]:.4f} ({np.mean(width[which]) / np.mean(width['raw']):.3f})"
        for which, share in shares.items()
    )
    print(
        f"{name} ε = {epsilon}  n = {n:6d}  d = {d:4d}  {kind:6s}  {figures}{'' if inside else '  outside'}",
        flush=True,
    )
    return inside


def error_ratio(setting: tuple[Any, ...], n: int) -> None:
    name, epsilon, d, exponent, runs, most = setting
    mechanism = ldp_budget.mechanism(name)(epsilon=epsilon, domain_size=d)
    held = spread_over(1 / np.arange(1, d + 1) ** exponent, n, d)
    values = np.repeat(np.arange(d), held)
    errors = np.zeros(2)
    for run in range(runs):
        raw = mechanism.estimate(mechanism.randomize(values, rng=SEED + run))
        errors += [np.sum((each.counts - held) ** 2) for each in (raw, consistent(raw))]
    ratio = errors[1] / errors[0]
    verdict = "" if ratio <= most else f"  above {most}"
    print(
        f"{name} ε = {epsilon}  n = {n}  d = {d}  Zipf {exponent}  squared error, consistent/raw {ratio:.3f}{verdict}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--bootstrap", action="store_true")
    asked = parser.parse_args()
    rng = np.random.default_rng(SEED)
    for setting in ERRORS:
        error_ratio(setting, 10**5)
    print(
        "\nCoverage over all answers | over those with users (mean width over that of the raw intervals cut to [0, n])"
    )
    inside = [coverage(setting, rng, asked.runs, with_bootstrap=asked.bootstrap) for setting in SETTINGS]
    print(f"{sum(inside)} of {len(inside)} settings within {LEAST} and {MOST}\n")
    for setting in EXTREME:
        coverage(setting, rng, asked.runs, with_bootstrap=asked.bootstrap)


if __name__ == "__main__":
    main()
