"""Coverage and width of the 95 % intervals of shares, over a grid of designs that was chosen before any result was seen.

    python benchmarks/coverage.py [--surveys N] [--rows] [--design NAME]

The grid is each `EACH`-th of all combinations of `MECHANISMS`, `EPSILONS`, `RESPONDENTS`, `SHARES` and `DESIGNS`. Simple
samples are summed over the exact law of the reports; the others are N simulated surveys (400 by default). An interval is
counted as wide if it has on the average more than three standard errors of the estimate to each side.

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
import sys
from itertools import product
from typing import Any, NamedTuple

import numpy as np

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
