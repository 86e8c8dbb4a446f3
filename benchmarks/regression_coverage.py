"""How often 95 % intervals of regression coefficients cover: simulated surveys, public terms, one hidden answer.

python benchmarks/regression_coverage.py [MODEL] [SURVEYS] [EPSILON]    # 400 surveys a row
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from math import exp, isinf
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from ldp_budget_surveys.regression.hidden_covariate import hidden_covariate
from ldp_budget_surveys.regression.likelihood import MultinomialModel
from ldp_budget_surveys.regression.linear import Coefficient, by_normal_errors, linear
from ldp_budget_surveys.regression.sample import Sample

if TYPE_CHECKING:
    from ldp_budget_surveys.regression.sample import Floats

Survey = Callable[[int, float, np.random.Generator], tuple[Coefficient, float]]


def reports(y: Floats, epsilon: float, answers: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the likelihood and the contributions of reports by grr."""
    e = exp(epsilon)
    p, q = e / (e + answers - 1), 1 / (e + answers - 1)
    report = np.where(rng.random(len(y)) < p, y, (y + rng.integers(1, answers, len(y))) % answers)
    held = report[:, None] == np.arange(answers)
    return np.where(held, p, q), (held - q) / (p - q)


def logistic(constant: float) -> Survey:
    """A yes/no answer: constant + 0.7·x, x normal."""

    def survey(n: int, epsilon: float, rng: np.random.Generator) -> tuple[Coefficient, float]:
        x = rng.normal(size=n)
        likelihood, _ = reports((rng.random(n) < expit(constant + 0.7 * x)).astype(int), epsilon, 2, rng)
        model = MultinomialModel(likelihood, np.column_stack((np.ones(n), x)), Sample.of(np.ones(n)), "ab")
        return model.coefficients(0.95, [1])[0], 0.7

    return survey


def designed(n: int, rng: np.random.Generator) -> Sample:
    """Three strata of ten clusters, weights from 1 to 3."""
    clusters = np.arange(n) % 30
    return Sample.of(np.ones(n), 1 + 2 * rng.random(n), clusters // 10, clusters)


def logistic_designed(n: int, epsilon: float, rng: np.random.Generator) -> tuple[Coefficient, float]:
    x = rng.normal(size=n)
    likelihood, _ = reports((rng.random(n) < expit(-0.5 + 0.7 * x)).astype(int), epsilon, 2, rng)
    model = MultinomialModel(likelihood, np.column_stack((np.ones(n), x)), designed(n, rng), "ab")
    return model.coefficients(0.95, [1])[0], 0.7


def linear_designed(n: int, epsilon: float, rng: np.random.Generator) -> tuple[Coefficient, float]:
    """A choice of three: the share of one is 0.2 + 0.2·x and differs between clusters, x uniform."""
    x, effect = rng.random(n), rng.normal(0, 0.03, 30)[np.arange(n) % 30]
    y = np.where(rng.random(n) < 0.2 + 0.2 * x + effect, 2, rng.integers(0, 2, n))
    _, z = reports(y, epsilon, 3, rng)
    fit = linear(np.column_stack((np.ones(n), x)), z[:, 2], designed(n, rng), "ab")
    return by_normal_errors(fit, "ab", 0.95)[1], 0.2


def hidden_term(n: int, epsilon: float, rng: np.random.Generator) -> tuple[Coefficient, float]:
    """A public number on a hidden yes/no of 30 % and a correlated public number."""
    held = (rng.random(n) < 0.3).astype(int)
    v = rng.normal(size=n) + 0.5 * held
    _, z = reports(held, epsilon, 2, rng)
    y, x = 1 + 0.5 * held + 0.3 * v + rng.normal(size=n), np.column_stack((np.ones(n), v))
    return hidden_covariate(y, [z[:, 1:]], x, Sample.of(np.ones(n)), "abc", 0.95)[0][0], 0.5


SURVEYS: dict[str, Survey] = {
    "logistic, half say yes": logistic(-0.5),
    "logistic, a tenth says yes": logistic(-2.5),
    "logistic, weights, 30 clusters": logistic_designed,
    "linear, weights, 30 clusters": linear_designed,
    "hidden term": hidden_term,
}


def rows(surveys: int, part: str, only: float) -> Iterator[tuple[str, float, int, float, float]]:
    """Yield the model, ε, n, the coverage, and the part of intervals that are open. Each row has draws of its own."""
    for place, (name, survey) in enumerate(SURVEYS.items()):
        for epsilon in (1.0, 2.0, 4.0) if part in name else ():
            for n in (60 if "clusters" in name else 50, 300, 3000) if only in (0, epsilon) else ():
                rng = np.random.default_rng((place, int(epsilon), n))
                found = [survey(n, epsilon, rng) for _ in range(surveys)]
                covers = sum(each.low <= truth <= each.high for each, truth in found)
                is_open = sum(isinf(each.low) or isinf(each.high) for each, _ in found)
                yield name, epsilon, n, covers / surveys, is_open / surveys


def main(part: str = "", surveys: str = "400", only: str = "0") -> None:
    print("| model | ε | n | coverage | open intervals |\n| --- | ---: | ---: | ---: | ---: |")
    for name, epsilon, n, covers, is_open in rows(int(surveys), part, float(only)):
        print(f"| {name} | {epsilon:g} | {n:,} | {100 * covers:.1f} % | {100 * is_open:.0f} % |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
