"""Coverage and width of the 95 % intervals of shares, over a grid of designs that was chosen before any result was seen.

    python benchmarks/share_coverage.py [--surveys N] [--rows] [--design NAME]

The grid is each `EACH`-th of all combinations of `MECHANISMS`, `EPSILONS`, `RESPONDENTS`, `SHARES` and `DESIGNS`. Simple
samples are summed over the exact law of the reports; the others are N simulated surveys (400 by default). An interval is
counted as wide if it has on the average more than three standard errors, as stated on the average, to each side.

Designs, of a population in which `share` hold the answer:

- `simple`: people drawn with replacement.
- `weights 1:5`, `weights 1:20`: the drawn people have the weight 1 or 5 (20), so that each class is half of the population.
- `weights with answers`: weights 1 and 5, and the class of the heavy ones holds the answer three times as often.
- `strata`: four strata of equal size, asked at equal rates, with 0.4, 0.8, 1.2 and 1.6 times the share.
- `clusters`: log-normal sizes (σ = 1), 8 of them for up to 50 respondents, else 40; correlation 0.05 within a cluster.
- `census`: all people of the population were asked, and the nearest whole number holds the answer.
- `cell`: a cell of a two-way table of two questions, both randomized at ε; its row has 0.3 more, its column 0.2 more.
"""

from __future__ import annotations

import argparse
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, xlog1py, xlogy

import ldp_budget
from ldp_budget.sdk.share_laws import AnswerLaw, Cumulants, TableLaw
from ldp_budget_surveys.designs.finite_population import FinitePopulation, Noise
from ldp_budget_surveys.designs.moments import Moments, moments_of
from ldp_budget_surveys.designs.strata import Design
from ldp_budget_surveys.designs.two_way import paired
from ldp_budget_surveys.designs.weighted_means import Survey
from ldp_budget_surveys.designs.weights import Weights, equal_weights

SEED = 38
LEVEL = 0.95
MECHANISMS = (("grr", 4), ("oue", 8), ("sue", 8), ("subset-selection", 50))
"""Mechanisms with their numbers of answers."""
EPSILONS = (0.5, 1, 2, 4, 8)
RESPONDENTS = (5, 20, 50, 200, 1000)
SHARES = (0.0, 0.01, 0.05, 0.3)
DESIGNS = ("simple", "weights 1:5", "weights 1:20", "weights with answers", "strata", "clusters", "census", "cell")
EACH = 13
"""Shares no factor with the size of any dimension, so that every value of each is in the grid about equally often."""
LEAST, MOST, FLOOR, WIDE = 0.93, 0.97, 0.91, 3.0


class Setting(NamedTuple):
    """One row of the grid."""

    mechanism: str
    answers: int
    epsilon: float
    respondents: int
    share: float
    design: str


GRID = [
    Setting(*mechanism, *rest)
    for mechanism, *rest in list(product(MECHANISMS, EPSILONS, RESPONDENTS, SHARES, DESIGNS))[::EACH]
]


class Result(NamedTuple):
    """The coverage of a setting, and the mean width to a side over the mean standard error."""

    coverage: float
    width: float


def law_of(setting: Setting) -> tuple[float, float, AnswerLaw]:
    """The support probabilities p and q, and the law of a contribution to one answer."""
    mechanism = ldp_budget.mechanism(setting.mechanism).calibrate(
        epsilon=setting.epsilon, domain_size=setting.answers
    )
    p, q = map(float, mechanism.support_probabilities[0])
    return p, q, AnswerLaw(Cumulants(*(part[:1] for part in mechanism.contribution_law)))


def survey_of(cells: Any, law: AnswerLaw, pq: tuple[float, float], design: Design, people: float | None) -> Survey:
    """The survey of `cells`: rows of a public value, a weight, respondents and supporting reports."""
    p, q = pq
    names, weights, counts, ones = zip(*cells, strict=True)
    own, other = (1 - q) / (p - q), -q / (p - q)
    counts, ones = np.array(counts, float), np.array(ones, float)
    sums, squares = (ones * own**power + (counts - ones) * other**power for power in (1, 2))
    moments = Moments(("part",), tuple((str(name),) for name in names), counts, sums[:, None], squares[:, None])
    noise = Noise(law.cumulants.other, law.cumulants.held - law.cumulants.other)
    population = None if people is None else FinitePopulation(people, noise)
    return Survey(moments, Weights(np.array(weights, float)), design, law, population)


def supporting(rng: Any, people: Any, share: Any, pq: tuple[float, float]) -> Any:
    held = rng.binomial(people, share)
    return rng.binomial(held, pq[0]) + rng.binomial(people - held, pq[1])


def simple_cells(setting: Setting, rng: Any, pq: tuple[float, float]) -> tuple[Any, float]:
    n = setting.respondents
    return [("all", 1, n, supporting(rng, n, setting.share, pq))], setting.share


def weighted_cells(setting: Setting, rng: Any, pq: tuple[float, float]) -> tuple[Any, float]:
    heavy, alike = (20, 1) if setting.design == "weights 1:20" else (5, setting.design != "weights with answers")
    many = rng.binomial(setting.respondents, 1 / (1 + heavy))
    shares = (setting.share,) * 2 if alike else (setting.share / 2, setting.share * 1.5)
    parts = [("light", 1, setting.respondents - many, shares[0]), ("heavy", heavy, many, shares[1])]
    cells = [
        (name, weight, people, supporting(rng, people, share, pq)) for name, weight, people, share in parts if people
    ]
    return cells, setting.share


def strata_cells(setting: Setting, rng: Any, pq: tuple[float, float]) -> tuple[Any, float]:
    each = max(2, setting.respondents // 4)
    shares = setting.share * np.array((0.4, 0.8, 1.2, 1.6))
    return [(place, 1, each, supporting(rng, each, share, pq)) for place, share in enumerate(shares)], setting.share


def cluster_cells(setting: Setting, rng: Any, pq: tuple[float, float]) -> tuple[Any, float]:
    number = 8 if setting.respondents <= 50 else 40
    sizes = rng.lognormal(0, 1, number)
    people = np.maximum(1, np.rint(sizes * setting.respondents / (number * np.exp(0.5)))).astype(int)
    precision = 1 / 0.05 - 1
    edge = setting.share in (0, 1)
    shares = (
        np.full(number, setting.share)
        if edge
        else rng.beta(setting.share * precision, (1 - setting.share) * precision, number)
    )
    cells = [
        (place, 1, size, supporting(rng, size, share, pq))
        for place, (size, share) in enumerate(zip(people, shares, strict=True))
    ]
    return cells, setting.share


def census_cells(setting: Setting, rng: Any, pq: tuple[float, float]) -> tuple[Any, float]:
    n = setting.respondents
    held = round(n * setting.share)
    return [("all", 1, n, rng.binomial(held, pq[0]) + rng.binomial(n - held, pq[1]))], held / n


CELLS: dict[str, Any] = {
    "simple": simple_cells,
    "weights 1:5": weighted_cells,
    "weights 1:20": weighted_cells,
    "weights with answers": weighted_cells,
    "strata": strata_cells,
    "clusters": cluster_cells,
    "census": census_cells,
}
PLANS = {"strata": Design(strata=("part",)), "clusters": Design(clusters="part")}


def measured(setting: Setting, surveys: int, rng: Any) -> Result:
    """The result of a setting, from the exact law of the supporting reports or from simulated surveys."""
    p, q, law = law_of(setting)
    if setting.design == "simple":
        n = setting.respondents
        chance = q + (p - q) * setting.share
        ones = np.arange(n + 1)
        masses = np.exp(
            gammaln(n + 1)
            - gammaln(ones + 1)
            - gammaln(n - ones + 1)
            + xlogy(ones, chance)
            + xlog1py(n - ones, -chance)
        )
        found = [
            one_survey([("all", 1, n, count)], law, (p, q), Design(), None) for count in ones[masses > 1e-9].tolist()
        ]
        masses = masses[masses > 1e-9]
        lows, highs, errors = map(np.array, zip(*found, strict=True))
        truths = np.full(len(lows), setting.share)
    else:
        lows, highs, errors, truths, masses = simulated(setting, law, (p, q), surveys, rng)
    inside = (lows <= truths + 1e-12) & (truths <= highs + 1e-12)
    assert (highs > lows).all()
    assert lows.min() >= 0
    assert highs.max() <= 1
    total = masses.sum()
    return Result(float(masses @ inside / total), float(masses @ (highs - lows) / 2 / (masses @ errors)))


def simulated(setting: Setting, law: AnswerLaw, pq: tuple[float, float], surveys: int, rng: Any) -> Any:
    rows = []
    for _ in range(surveys):
        if setting.design == "cell":
            rows.append((*one_cell(setting, law, pq, rng), setting.share))
            continue
        cells, truth = CELLS[setting.design](setting, rng, pq)
        people = setting.respondents if setting.design == "census" else None
        rows.append((*one_survey(cells, law, pq, PLANS.get(setting.design, Design()), people), truth))
    return (*map(np.array, zip(*rows, strict=True)), np.ones(len(rows)))


def one_survey(cells: Any, law: AnswerLaw, pq: tuple[float, float], design: Design, people: float | None) -> Any:
    """The ends of the interval of a share, and its standard error."""
    means = survey_of(cells, law, pq, design, people).means()
    low, high = means.interval(LEVEL)
    return float(low[0]), float(high[0]), float(means.std_errors[0])


def one_cell(setting: Setting, law: AnswerLaw, pq: tuple[float, float], rng: Any) -> Any:
    p, q = pq
    share, row, column = setting.share, setting.share + 0.3, setting.share + 0.2
    people = rng.multinomial(setting.respondents, (share, row - share, column - share, 1 - row - column + share))
    z = []
    for held in ((1, 1, 0, 0), (1, 0, 1, 0)):
        chance = np.repeat(np.where(held, p, q), people)
        z.append(((rng.random(len(chance)) < chance) - q)[:, None] / (p - q))
    moments = moments_of(paired(*z))
    means = Survey(moments, equal_weights(moments), Design(), TableLaw(law, law)).means()
    low, high = means.interval(LEVEL)
    return float(low[2]), float(high[2]), float(means.std_errors[2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--surveys", type=int, default=400)
    parser.add_argument("--rows", action="store_true", help="print each row of the grid")
    parser.add_argument("--design", choices=DESIGNS)
    given = parser.parse_args()
    results: dict[Setting, Result] = {}
    for place, setting in enumerate(GRID):
        if given.design in (None, setting.design):
            results[setting] = measured(setting, given.surveys, np.random.default_rng((SEED, place)))
            if given.rows:
                print(*setting, "{:.4f} {:.2f}".format(*results[setting]), flush=True)
    print(
        "| design | rows | least coverage | below 93 % | above 97 % | of these n > 30, share > 5 % | widest for n ≥ 50 |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for design in (*DESIGNS, None):
        rows = {key: row for key, row in results.items() if design in (None, key.design)}
        if rows:
            over = [key for key, row in rows.items() if row.coverage > MOST]
            strict = [key for key in over if key.respondents > 30 and key.share > 0.05]
            wide = max((row.width for key, row in rows.items() if key.respondents >= 50), default=0)
            low = [row.coverage for row in rows.values() if row.coverage < LEAST]
            least = min(row.coverage for row in rows.values())
            print(
                f"| {design or 'all'} | {len(rows)} | {least:.1%} | {len(low)} | {len(over)} | {len(strict)} | {wide:.2f} |"
            )


if __name__ == "__main__":
    main()
