"""Kang, Lee and Hong: their data sets, and the error of their estimator and of two unbiased ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

import ldp_budget

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldp_budget.sdk.estimates import CountAggregate

    Floats = NDArray[np.float64]

RandomSubstitution: Any = ldp_budget.mechanism("random-substitution")

PRINTED, UNBIASED, REPLACED = "X̂*/l, Algorithm 2", "unbiased, Algorithm 2", "with replacement"
ESTIMATORS = (PRINTED, UNBIASED, REPLACED)
NORMAL, UNIFORM = "normal", "uniform"
# Σp² of a normal distribution with deviation σ, in steps of one, is 1/(2√π·σ).
_FLATNESS = 2 * math.sqrt(math.pi)


@dataclass(frozen=True)
class Cell:
    """One experiment: n users, N answers, γ and l."""

    kind: str
    size: int
    gamma: int
    users: int
    draws: int = 1

    @cached_property
    def distinct(self) -> Any:
        """Algorithm 2, its reports sorted."""
        return self._mechanism("distinct")

    @cached_property
    def repeated(self) -> Any:
        """l independent draws."""
        return self._mechanism("replacement")

    def _mechanism(self, sampling: str) -> Any:
        return RandomSubstitution(gamma=self.gamma, domain_size=self.size, draws=self.draws, sampling=sampling)

    @property
    def bound(self) -> float:
        """Theorem 4.1 for l·n users."""
        return float(self.repeated.utility(self.users)["relative_error_bound"])

    @property
    def expected_draws(self) -> float:
        """How many random numbers Algorithm 2 takes for all the users."""
        return float(self.users * self.distinct.utility()["expected_draws"])

    @cached_property
    def counts(self) -> Floats:
        """X, how many users hold each answer, shape (N,)."""
        if self.kind == UNIFORM:
            return np.full(self.size, self.users / self.size)
        normal = NormalDist((self.size - 1) / 2, spread(self.users) * self.size)
        below = np.array([normal.cdf(edge - 0.5) for edge in range(self.size + 1)])
        below = (below - below[0]) / (below[-1] - below[0])
        return np.diff(np.round(self.users * below))

    @property
    def answers(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.size), self.counts.astype(np.int64))

    @property
    def slope(self) -> float:
        """How much of a count X̂*/l finds on average after Algorithm 2; 1 would be unbiased."""
        keep, other = self.distinct.support_probabilities[0]
        return float(keep - other) * (self.gamma + self.size - 1) / ((self.gamma - 1) * self.draws)

    def printed_counts(self, total: CountAggregate) -> Floats:
        """X̂*/l: Theorem 3.2 for l·n reports, over l."""
        scale = (self.gamma + self.size - 1) / (self.gamma - 1)
        counts: Floats = scale * total.support / self.draws - self.users / (self.gamma - 1)
        return counts

    def seed(self, repeat: int) -> int:
        kind = (NORMAL, UNIFORM).index(self.kind)
        return 1000 * (((self.users + self.size) * 10 + self.draws) * 10 + kind) + repeat

    def estimates(self, repeat: int) -> dict[str, Floats]:
        """The counts that each estimator finds in one run."""
        total = self.distinct.aggregate(self.distinct.randomize(self.answers, rng=self.seed(repeat)))
        found = {PRINTED: self.printed_counts(total), UNBIASED: self.distinct.estimate(total).counts}
        if self.draws > 1:
            reports = self.repeated.randomize(self.answers, rng=self.seed(repeat) + 500)
            found[REPLACED] = self.repeated.estimate(reports).counts
        return found

    def errors(self, repeats: int) -> dict[str, Floats]:
        """‖X̂ - X‖/‖X‖ of each estimator in every run, shape (repeats,)."""
        runs = [self.estimates(repeat) for repeat in range(repeats)]
        return {name: np.array([self.error(run[name]) for run in runs]) for name in runs[0]}

    def error(self, estimate: Floats) -> float:
        return float(np.linalg.norm(estimate - self.counts) / np.linalg.norm(self.counts))

    def root_mean_square(self, estimator: str = PRINTED) -> float:
        """√E‖X̂ - X‖²/‖X‖, in closed form."""
        if estimator == PRINTED:
            return math.hypot(self.deviation, self.bias)
        return self._deviation(self.repeated if estimator == REPLACED else self.distinct)

    def _deviation(self, mechanism: Any) -> float:
        return math.sqrt(self.users * mechanism.total_variance()) / float(np.linalg.norm(self.counts))

    @property
    def deviation(self) -> float:
        """√E‖X̂*/l - E[X̂*/l]‖²/‖X‖ after Algorithm 2."""
        return self.slope * self._deviation(self.distinct)

    @property
    def bias(self) -> float:
        """‖E[X̂*/l] - X‖/‖X‖ after Algorithm 2."""
        return (1 - self.slope) * self.error(np.full(self.size, self.users / self.size))


# The l = 1 entries of Tables 1 and 2 that σ is fitted to, as the paper does not state it.
FITTED = {5_000: 0.6812, 50_000: 0.2623}


@cache
def spread(users: int) -> float:
    """σ/N of the normal data set of so many users; 10,000 users are taken to be like 50,000."""
    fitted = users if users in FITTED else 50_000
    implied = implied_spread(Cell(UNIFORM, 50, 5, fitted), FITTED[fitted])
    assert implied is not None
    return implied


def implied_spread(uniform: Cell, printed: float) -> float | None:
    """σ/N of the normal data for which X̂*/l has the printed mean error; None where no data have.

    The error depends on the data through r = n/(√N·‖X‖) alone: error² = r²·(that of uniform data)² + (1-r²)·(bias
    slope)², where r = 1 is uniform.
    """
    # The mean of the norm of N-1 normal errors lies below its root mean square by about this factor.
    squared = (printed / (1 - 1 / (4 * (uniform.size - 1)))) ** 2
    variance, bias = uniform.root_mean_square() ** 2, (1 - uniform.slope) ** 2
    ratio = (squared - bias) / (variance - bias)
    return ratio / _FLATNESS if 0 < ratio <= 1 else None


@dataclass(frozen=True)
class Comparison:
    """A printed error, the mean of `runs`, beside what X̂*/l should give and what it gave in `errors`."""

    cell: Cell
    printed: float
    runs: int
    errors: Floats

    @property
    def deviation(self) -> float:
        """The standard deviation of the error of one run, if X̂ - E[X̂] is about normal and equal in N-1 directions."""
        variance, bias = self.cell.deviation**2, self.cell.bias**2
        of_square = math.sqrt((2 * variance**2 + 4 * variance * bias) / (self.cell.size - 1))
        return of_square / (2 * self.cell.root_mean_square())

    @property
    def expected(self) -> float:
        """The mean error; its square is the mean square less the variance of a run."""
        return math.sqrt(self.cell.root_mean_square() ** 2 - self.deviation**2)

    @property
    def noise(self) -> float:
        return self.deviation / math.sqrt(self.runs)

    @property
    def agrees(self) -> bool:
        """Within three standard errors of the printed mean, and its rounding."""
        return abs(self.printed - self.expected) <= 3 * self.noise + 5e-5

    @property
    def ours(self) -> str:
        return f"{self.expected:.4f} ± {self.noise:.4f} (simulated {self.errors.mean():.4f})"

    @property
    def distance(self) -> str:
        distance = abs(self.printed - self.expected) / self.noise
        side = "below" if self.printed < self.expected else "above"
        return f"{distance:.1f} standard errors of a mean of {self.runs} runs {side} ours"


def algorithm_2(cell: Cell, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Algorithm 2 to the letter: the sets, shape (n, l), and how many random numbers each user drew, shape (n,)."""
    rng, own = np.random.default_rng(seed), cell.answers
    sets, drawn = np.full((cell.users, cell.draws), -1), np.zeros(cell.users, dtype=np.int64)
    for place in range(cell.draws):
        open_users = np.arange(cell.users)
        while len(open_users):
            drawn[open_users] += 1
            answers = _substitutes(cell, own[open_users], rng)
            new = (sets[open_users, :place] != answers[:, np.newaxis]).all(axis=1)
            sets[open_users[new], place] = answers[new]
            open_users = open_users[~new]
    return sets, drawn


def _substitutes(cell: Cell, own: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Algorithm 1 with the γ-diagonal matrix: the inverse of the distribution function of column k."""
    number = rng.random(len(own)) * (cell.gamma + cell.size - 1)
    # The first γ of the column's γ+N-1 parts are the own answer, the others one part each.
    other = np.minimum((number - cell.gamma).clip(min=0).astype(np.int64), cell.size - 2)
    return np.where(number < cell.gamma, own, other + (other >= own))
