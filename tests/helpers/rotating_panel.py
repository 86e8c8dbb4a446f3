"""Replications of a rotating panel: two periods with drop-out and refusals, estimated as `estimate --by-round` does."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ldp_budget import mechanism
from ldp_budget.sdk.share_laws import AnswerLaw
from ldp_budget_surveys.designs.differences import difference, groups
from ldp_budget_surveys.designs.means import Survey
from ldp_budget_surveys.designs.moments import Moments
from ldp_budget_surveys.designs.strata import Design
from ldp_budget_surveys.designs.survey_estimates import ROUND, DesignOptions, weights_for

REGIONS = ("city", "land")
PARTS = np.array([0.6, 0.4])
"""The parts of the panel in each region."""
SHARES = (np.array([0.02, 0.30]), np.array([0.02, 0.35]))
"""The share of yes in each region, in each of two periods."""
TOTALS = [
    {"variable": "region", "value": name, "total": str(part)} for name, part in zip(REGIONS, PARTS, strict=True)
]


class Covered(NamedTuple):
    """Whether the intervals of each replication cover: of the level of a period, and of the change."""

    level: Any
    change: Any


def replications(number: int, group: int, refusals: tuple[float, float], *, epsilon: str, seed: int) -> Covered:
    """Return which of some replications cover.

    Parameters:
        number: the number of replications.
        group: the members of a phase.
        refusals: the part that refuses in each region; 2 % of the members leave in each period.
        epsilon: the ε of a report.
        seed: of the draws.
    """
    rng, made = np.random.default_rng(seed), mechanism("randomized-response")(epsilon=epsilon)
    (_, no), (_, yes) = made.contributions(np.array([0, 1], np.uint8))
    p = made.parameters["p"]
    law = AnswerLaw(type(made.contribution_law)(*(np.asarray(part)[1:] for part in made.contribution_law)))
    options = DesignOptions(totals=TOTALS, strata=("region",), rotate=12)
    cells = tuple((name, period) for name in REGIONS for period in "12")
    truths = [float(PARTS @ shares) for shares in SHARES]
    found = []
    for _ in range(number):
        rows = []
        for place in range(len(REGIONS)):
            for period, shares in enumerate(SHARES):
                size = int(PARTS[place] * group * 0.98**period)
                answered = rng.binomial(size, 1 - refusals[place])
                held = rng.binomial(answered, shares[place])
                ones = rng.binomial(held, p) + rng.binomial(answered - held, 1 - p)
                rows.append(
                    (answered, ones * yes + (answered - ones) * no, ones * yes**2 + (answered - ones) * no**2)
                )
        counts, sums, squares = (np.array(each, np.float64) for each in zip(*rows, strict=True))
        moments = Moments(("region", ROUND), cells, counts, sums[:, None], squares[:, None])
        weights = weights_for(moments, options, rounds=True)
        survey = Survey(moments, weights, Design((ROUND, "region")), law)
        each = groups(survey, ROUND)
        low, high = each["1"].interval()
        change = difference(survey, each["2"], each["1"])
        down, up = change.interval()
        found.append((low[0] <= truths[0] <= high[0], down[0] <= truths[1] - truths[0] <= up[0]))
    return Covered(*np.array(found).T)
