"""The law of contributions, against the sum over all samples and reports."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from ldp_budget import mechanism
from ldp_budget.sdk.estimates import SupportLaw
from ldp_budget.sdk.share_laws import AnswerLaw, Cumulants, Scales, TableLaw, share_spread, without_replacement


def cumulants(values: np.ndarray, masses: np.ndarray) -> tuple[float, float, float]:
    mean = float(masses @ values)
    return mean, float(masses @ (values - mean) ** 2), float(masses @ (values - mean) ** 3)


@pytest.mark.parametrize(("asked", "people", "holders"), [(2, 5, 2), (3, 3, 1), (4, 6, 5), (1, 4, 1)])
def test_spread_of_a_finite_population_is_that_of_all_samples_and_reports(
    asked: int, people: int, holders: int
) -> None:
    p, q = 0.7, 0.2
    values, masses = [], []
    samples = list(combinations(range(people), asked))
    for sample in samples:
        chances = [p if person < holders else q for person in sample]
        for bits in product((0, 1), repeat=asked):
            values.append(np.mean([(bit - q) / (p - q) for bit in bits]))
            masses.append(np.prod([c if bit else 1 - c for bit, c in zip(bits, chances, strict=True)]) / len(samples))
    mean, variance, third = cumulants(np.array(values), np.array(masses))
    law = AnswerLaw(
        Cumulants(
            *(
                part(c) / (p - q) ** power
                for c in (q, p)
                for part, power in ((lambda c: c * (1 - c), 2), (lambda c: c * (1 - c) * (1 - 2 * c), 3))
            )
        )
    )
    found = share_spread(
        law, Scales.of(np.array([1 / asked]), asked, *without_replacement(asked, people)), holders / people
    )
    assert mean == pytest.approx(holders / people)
    assert found.variance == pytest.approx(variance)
    assert found.third == pytest.approx(third)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("grr", {"epsilon": 2, "domain_size": 4}),
        ("random-substitution", {"epsilon": 1, "domain_size": 5}),
        ("oue", {"epsilon": 3, "domain_size": 3}),
        ("d-bit-flip", {"epsilon": 2, "buckets": 6, "bits": 2}),
    ],
)
@pytest.mark.slow
def test_contribution_law_has_the_moments_of_contributions(name: str, target: dict[str, int]) -> None:
    made = mechanism(name).calibrate(**target)
    law = made.contribution_law
    for held, variance, third in ((1, law.other[0], law.other_third[0]), (0, law.held[0], law.held_third[0])):
        z = made.contributions(made.randomize(np.full(60_000, held), rng=5))[:, 0]
        assert z.var() == pytest.approx(variance, rel=0.05)
        assert ((z - z.mean()) ** 3).mean() == pytest.approx(third, rel=0.12, abs=0.2)


def test_cumulants_of_several_draws_are_those_of_their_mean() -> None:
    from fractions import Fraction

    pairs = [(Fraction(3, 5), Fraction(1, 5))]
    one, three = (SupportLaw.of(pairs, draws).cumulants() for draws in (1, 3))
    assert three.held == pytest.approx(one.held / 3)
    assert three.other_third == pytest.approx(one.other_third / 9)


def test_law_of_a_cell_is_that_of_the_products_of_both_reports() -> None:
    p, q = np.array([0.6, 0.8]), np.array([0.1, 0.3])
    laws = [
        AnswerLaw(
            Cumulants(
                *(np.array([c * (1 - c) * w]) for c in (b, a) for w in (1 / (a - b) ** 2, (1 - 2 * c) / (a - b) ** 3))
            )
        )
        for a, b in zip(p, q, strict=True)
    ]
    cell, row, column = 0.15, 0.4, 0.3
    values, masses = [], []
    for weight, held in zip(
        (cell, row - cell, column - cell, 1 - row - column + cell), ((1, 1), (1, 0), (0, 1), (0, 0)), strict=True
    ):
        chances = np.where(held, p, q)
        for bits in product((0, 1), repeat=2):
            values.append(np.prod((np.array(bits) - q) / (p - q)))
            masses.append(weight * np.prod(np.where(bits, chances, 1 - chances)))
    mean, variance, third = cumulants(np.array(values), np.array(masses))
    shares = np.array([row, column, cell])
    found = share_spread(TableLaw(*laws).around(shares), Scales.of(np.ones(1), 1), shares)
    assert mean == pytest.approx(cell)
    assert found.variance[2] == pytest.approx(variance)
    assert found.third[2] == pytest.approx(third)
