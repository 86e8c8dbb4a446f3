"""Privacy loss of several draws of a random substitution (Kang, Lee and Hong 2009, corrected).

One draw keeps the true answer with probability γ/(γ+N-1) and turns it into each other one with 1/(γ+N-1). The
amplification of a report is the largest ratio of the probabilities that two answers give to it. So its loss is
ε = ln(amplification). For l draws it is

    γ^l                                              independent draws,
    (N-l)/l · (∏_{i=1..l} (1 + γ/(N-i)) - 1)         draws repeated until they differ, sent as a set,
    γ · ∏_{i=2..l} (γ+N-i)/(N-i+1)                   the same, sent in the order of drawing.

The set is that of subset selection (Ye and Barg 2018): it holds the true answer with probability
π₁ = l·A/(l·A+N-l), A its amplification, and is otherwise uniform. In order, the true answer is drawn at step i,
unless it was drawn before, with probability γ/(γ+N-i), and every other answer not yet drawn is equally likely.

The numbers of several draws are decimals of fifty digits, rounded in the direction that the caller names.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from ldp_budget.guarantees import FinitePair, SymmetricPair
from ldp_budget.guarantees.fixed_point import DOWN, UP, exp_down, exp_up
from ldp_budget.sampling import threshold

if TYPE_CHECKING:
    from collections.abc import Iterator

# Powers of γ exceed the exponents of the ordinary contexts.
WIDE_UP = Context(prec=50, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN)
WIDE_DOWN = Context(prec=50, rounding=ROUND_FLOOR, Emax=MAX_EMAX, Emin=MIN_EMIN)

_ONE = Decimal(1)
_CLOSE = Decimal("1e-42")


@dataclass(frozen=True)
class Sampling(ABC):
    """A way to make the draws of one report. `size`: N, the number of answers; `draws`: l."""

    size: int
    draws: int

    @abstractmethod
    def amplification(self, gamma: Decimal, context: Context) -> Decimal:
        """Return the amplification of all draws together, rounded as `context` does."""

    @abstractmethod
    def _elasticity(self, gamma: Decimal, reached: Decimal) -> Decimal:
        """Return d ln(amplification) / d ln γ, at least 1, at γ with the amplification `reached`."""

    def gamma_within(self, target: Decimal) -> Decimal:
        """Return the largest γ, to forty digits, whose amplification is at most `target` > 1.

        Newton's method in logarithms: the amplification is convex there and never below γ. So from γ = `target` the
        steps
        fall to the root without passing it.
        """
        gamma = target
        while True:
            reached = self.amplification(gamma, WIDE_UP)
            ratio = WIDE_UP.divide(target, reached)
            if WIDE_UP.abs(WIDE_UP.subtract(ratio, _ONE)) < _CLOSE:
                break
            step = WIDE_UP.divide(WIDE_UP.ln(ratio), self._elasticity(gamma, reached))
            gamma = WIDE_UP.multiply(gamma, WIDE_UP.exp(step))
        while reached > target:
            gamma = WIDE_DOWN.multiply(gamma, WIDE_DOWN.subtract(_ONE, _CLOSE))
            reached = self.amplification(gamma, WIDE_UP)
        return gamma

    def _hazards(self, gamma: Decimal) -> Iterator[Decimal]:
        """Yield γ/(γ+N-i) for each draw i = 1..l."""
        for step in range(1, self.draws + 1):
            yield WIDE_UP.divide(gamma, WIDE_UP.add(gamma, Decimal(self.size - step)))


class WithReplacement(Sampling):
    """Independent draws."""

    def amplification(self, gamma: Decimal, context: Context) -> Decimal:
        product = _ONE
        for _ in range(self.draws):
            product = context.multiply(product, gamma)
        return product

    def _elasticity(self, gamma: Decimal, reached: Decimal) -> Decimal:
        return Decimal(self.draws)


class DistinctSet(Sampling):
    """Draws repeated until they are distinct (Algorithm 2), sent as a set."""

    def amplification(self, gamma: Decimal, context: Context) -> Decimal:
        # excess = ∏ (1 + γ/(N-i)) - 1, as a sum of positive terms, so that nothing cancels.
        excess = Decimal(0)
        for step in range(1, self.draws + 1):
            odds = context.divide(gamma, Decimal(self.size - step))
            excess = context.add(context.fma(excess, odds, excess), odds)
        return context.divide(context.multiply(excess, Decimal(self.size - self.draws)), Decimal(self.draws))

    def _elasticity(self, gamma: Decimal, reached: Decimal) -> Decimal:
        excess = WIDE_UP.divide(WIDE_UP.multiply(reached, Decimal(self.draws)), Decimal(self.size - self.draws))
        growth = WIDE_UP.divide(WIDE_UP.add(excess, _ONE), excess)
        return WIDE_UP.multiply(growth, _sum(self._hazards(gamma)))


class DistinctSequence(Sampling):
    """Draws repeated until they are distinct, sent in the order of drawing."""

    def amplification(self, gamma: Decimal, context: Context) -> Decimal:
        product = gamma
        for step in range(2, self.draws + 1):
            factor = context.divide(context.add(gamma, Decimal(self.size - step)), Decimal(self.size - step + 1))
            product = context.multiply(product, factor)
        return product

    def _elasticity(self, gamma: Decimal, reached: Decimal) -> Decimal:
        hazards = self._hazards(gamma)
        next(hazards)
        return WIDE_UP.add(_ONE, _sum(hazards))

    def hazards(self, gamma: Decimal) -> list[Decimal]:
        """Return the probability that draw i is the true answer if none before was, rounded down, for i = 1..l."""
        return [
            WIDE_DOWN.divide(gamma, WIDE_UP.add(gamma, Decimal(self.size - step)))
            for step in range(1, self.draws + 1)
        ]


def keep_threshold(epsilon: Decimal, size: int) -> int:
    """Return the probability that one draw keeps the true answer, in units of 2**-64, rounded down.

    Parameters:
        epsilon: ln γ, the loss.
        size: N, the number of answers.
    """
    others = Decimal(size - 1)
    changed = UP.divide(others, DOWN.add(exp_down(epsilon), others))
    return threshold(DOWN.subtract(_ONE, changed), up=False)


def one_draw(epsilon: Decimal, size: int) -> SymmetricPair:
    """Return the guarantee of one draw at ε among `size` answers: τ is the probability of one of two answers."""
    odds = exp_up(epsilon)
    tau = UP.divide(UP.add(odds, _ONE), DOWN.add(odds, Decimal(size - 1)))
    return SymmetricPair(epsilon, min(tau, _ONE))


def inclusion(odds: Decimal, size: int, draws: int) -> tuple[Decimal, Decimal]:
    """Return (π₁, π₀) of a set with amplification `odds`.

    π₁ is the probability that the set holds the true answer, rounded down. π₀ is that of any other answer, rounded
    up.
    With one draw they are the probabilities of keeping the answer and of turning it into a given other one.
    """
    rest = Decimal(size - draws)
    absent = WIDE_UP.divide(rest, WIDE_DOWN.add(WIDE_DOWN.multiply(odds, Decimal(draws)), rest))
    keep = WIDE_DOWN.subtract(_ONE, absent)
    return keep, WIDE_UP.divide(WIDE_UP.subtract(Decimal(draws), keep), Decimal(size - 1))


def set_tau(odds: Decimal, size: int, draws: int) -> Decimal:
    """Return τ of a set of amplification `odds`, rounded up: P[it holds exactly one of two answers]."""
    rest = size - draws
    top = WIDE_UP.multiply(WIDE_UP.add(odds, _ONE), Decimal(draws * rest))
    bottom = WIDE_DOWN.multiply(WIDE_DOWN.fma(odds, Decimal(draws), Decimal(rest)), Decimal(size - 1))
    return min(_ONE, WIDE_UP.divide(top, bottom))


def sequence_tau(gamma: Decimal, odds: Decimal, size: int, draws: int) -> Decimal:
    """Return the τ with which ±ln(`odds`) dominates the draws in order, rounded up.

    The hockey-stick divergence of any two answers' reports is convex in e^t. It is their total variation TV at t = 0
    and zero at e^t = odds. So it is below the chord between these two points. The chord is the divergence of a
    symmetric pair with τ = TV·(odds+1)/(odds-1). Negative t follows, because the two reports mirror each other.

    With the true answer at place j a report has probability P_j, which falls in j and is least without the answer.
    So TV sums (P_i - P_j)⁺ over the places of the two answers: TV·(N-1) = Σ_j P[place j]·(N+1-2j) - l·P[absent].
    """
    precise = Context(prec=80, Emax=MAX_EMAX, Emin=MIN_EMIN)
    total, absent = Decimal(0), _ONE
    for place in range(1, draws + 1):
        others = Decimal(size - place)
        hazard = precise.divide(gamma, precise.add(gamma, others))
        total = precise.fma(precise.multiply(absent, hazard), Decimal(size + 1 - 2 * place), total)
        absent = precise.multiply(absent, precise.divide(others, precise.add(gamma, others)))
    variation = precise.divide(precise.subtract(total, precise.multiply(absent, Decimal(draws))), Decimal(size - 1))
    # The sum is accurate to sixty digits; the factor exceeds its error.
    variation = WIDE_UP.multiply(variation, WIDE_UP.add(_ONE, Decimal("1e-36")))
    mirror = WIDE_UP.divide(WIDE_UP.add(odds, _ONE), WIDE_DOWN.subtract(odds, _ONE))
    return min(_ONE, WIDE_UP.multiply(variation, mirror))


def sequence_pair(hazards: list[Fraction], size: int) -> FinitePair:
    """Return the pair of any two answers' draws in order, where draw i is the true answer with `hazards`[i-1].

    A sequence of l distinct answers reveals two of them only by their places: i and j, or absent. With the true
    answer at
    place i it has the probability g(i): the answer was not drawn before and then was, and the rest is uniform over
    the
    answers not drawn yet.
    """
    draws = len(hazards)

    def likely(place: int) -> Fraction:
        """Return g(place), 0 for absent."""
        total = Fraction(1)
        for draw, hazard in enumerate(hazards, 1):
            if draw == place:
                total *= hazard
            elif place and draw > place:
                total /= size - draw + 1
            else:
                total *= (1 - hazard) / (size - draw)
        return total

    each = [likely(place) for place in range(draws + 1)]
    both, one = math.perm(size - 2, draws - 2), math.perm(size - 2, draws - 1)
    telling = [
        (count * each[own], count * each[other])
        for own, other in itertools.permutations(range(draws + 1), 2)
        if (count := both if own and other else one)
    ]
    nothing = 1 - sum((p for p, _ in telling), Fraction(0))
    return FinitePair((*telling, (nothing, nothing)))


def best_size(odds: Decimal, size: int, largest: int) -> int:
    """Return the set size ω ≤ `largest` of least total variance at amplification `odds`: next to N/(odds+1).

    Source: Ye and Barg, IEEE Transactions on Information Theory 64 (2018).
    """
    below = int(WIDE_DOWN.divide(Decimal(size), WIDE_DOWN.add(odds, _ONE)))
    candidates = {min(max(draws, 1), size - 1, largest) for draws in (below, below + 1)}
    return min(sorted(candidates), key=lambda draws: _total_variance(odds, size, draws))


def _total_variance(odds: Decimal, size: int, draws: int) -> Decimal:
    """Return the variance per user of all counts together, for sets of `draws` answers."""
    keep, other = inclusion(odds, size, draws)
    gap = WIDE_UP.subtract(keep, other)
    own = WIDE_UP.multiply(keep, WIDE_UP.subtract(_ONE, keep))
    rest = WIDE_UP.multiply(Decimal(size - 1), WIDE_UP.multiply(other, WIDE_UP.subtract(_ONE, other)))
    return WIDE_UP.divide(WIDE_UP.add(own, rest), WIDE_UP.multiply(gap, gap))


def duplicate_probability(gamma: Decimal, size: int, draws: int) -> Decimal:
    """Return the probability of a repeat in `draws` independent draws (Kang, Lee and Hong 2009, Theorem 5.1)."""
    if draws > size:
        return _ONE
    scale = WIDE_UP.add(gamma, Decimal(size - 1))
    different = WIDE_UP.divide(WIDE_UP.fma(gamma, Decimal(draws), Decimal(size - draws)), scale)
    for step in range(1, draws):
        different = WIDE_UP.multiply(different, WIDE_UP.divide(Decimal(size - step), scale))
    return max(Decimal(0), WIDE_UP.subtract(_ONE, different))


def expected_draws(gamma: Decimal, size: int, draws: int) -> Decimal:
    """Return the average number of draws that Algorithm 2 needs for `draws` distinct ones.

    After k distinct draws the next new one takes (γ+N-1)/(γ+N-1-k) draws if the true answer is not among them, and
    (γ+N-1)/(N-k) if it is.
    """
    scale = WIDE_UP.add(gamma, Decimal(size - 1))
    total, absent = Decimal(0), _ONE
    for drawn in range(draws):
        new = WIDE_UP.subtract(scale, Decimal(drawn))
        total = WIDE_UP.add(total, WIDE_UP.divide(absent, new))
        total = WIDE_UP.add(total, WIDE_UP.divide(WIDE_UP.subtract(_ONE, absent), Decimal(size - drawn)))
        absent = WIDE_UP.multiply(absent, WIDE_UP.divide(Decimal(size - 1 - drawn), new))
    return WIDE_UP.multiply(total, scale)


def _sum(terms: Iterator[Decimal]) -> Decimal:
    total = Decimal(0)
    for term in terms:
        total = WIDE_UP.add(total, term)
    return total
