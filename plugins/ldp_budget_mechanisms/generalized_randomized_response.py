"""Generalized randomized response (GRR), as random substitution with the γ-diagonal matrix.

Source: Kang, Lee and Hong 2009. A draw keeps the user's answer with probability γ/(γ+N-1) and turns it into each other
one with 1/(γ+N-1). A report holds l draws: independent ones, or distinct ones, which make it
`subset_selection`. The loss of l draws, and the corrections to the paper, are in `_amplification`. The client programs
here make the draws of `_substitution_reports`, one user at a time.
"""

from __future__ import annotations

import functools
import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ldp_budget.errors import InvalidParameter
from ldp_budget.guarantees import Copies, FinitePair, Guarantee, SymmetricPair
from ldp_budget.guarantees.dominating_pairs import joined
from ldp_budget.guarantees.fixed_point import DOWN, exp_down, exp_up, float_above, float_below, float_up, ln_up
from ldp_budget.sampling import ONE, threshold
from ldp_budget.sdk.client_program import Program, answers, uint, whole
from ldp_budget.sdk.frequency_oracle import MOST_ANSWERS, FrequencyMechanism
from ldp_budget.sdk.parameters import choice, flag, integer, optional_real

from . import _substitution_loss
from ._citations import RANDOM_SUBSTITUTION
from ._substitution_loss import WIDE_DOWN, WIDE_UP, DistinctSequence, DistinctSet, Sampling, WithReplacement
from .privacy_breaches import amplification_below_breach, breach_bound, largest_posterior

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ldp_budget.sdk.channels import Comparison
    from ldp_budget.sdk.domain import Categories

    Steps = tuple[tuple[str, Any], ...]

# The others are 0..size-2; from the own answer on they are one more.
_SKIP_OWN: list[Any] = ["add", "others", ["ge", "others", "value"]]


def substitution_program(domain: Categories, draws: int, keep: int) -> Program:
    """Return the client program for draws that may repeat."""
    steps: Steps = (
        ("kept", ["bits", whole(keep), draws]),
        ("others", ["belows", domain.size - 1, draws]),
        ("moved", _SKIP_OWN),
        ("drawn", ["where", "kept", "value", "moved"]),
    )
    return Program(answers(domain), steps, uint("drawn", domain.size - 1, None if draws == 1 else draws))


def set_program(domain: Categories, draws: int, include: int) -> Program:
    """Return the client program for a set, ascending."""
    own: list[Any] = ["where", "included", "value", ["at", "row", "place"]]
    steps: Steps = (
        ("others", ["subset", domain.size - 1, draws]),
        ("included", ["bit", whole(include)]),
        ("place", ["below", draws]),
        ("row", _SKIP_OWN),
        ("report", ["sort", ["put", "row", "place", own]]),
    )
    return Program(answers(domain), steps, uint("report", domain.size - 1, draws))


def sequence_program(domain: Categories, hazards: Sequence[int]) -> Program:
    """Return the client program for distinct answers in the order of drawing."""
    own: list[Any] = ["where", ["at", "drawn", "place"], "value", ["at", "row", "place"]]
    steps: Steps = (
        ("set", ["subset", domain.size - 1, len(hazards)]),
        ("others", ["shuffle", "set"]),
        ("drawn", ["bits_each", ["list", *map(whole, hazards)]]),
        ("place", ["first", "drawn"]),
        ("row", _SKIP_OWN),
        ("report", ["put", "row", "place", own]),
    )
    return Program(answers(domain), steps, uint("report", domain.size - 1, len(hazards)))


MOST_DRAWS = 10**5
_MOST_LISTED = 6
"""The most ordered draws whose pair is listed; with more, it has too many outcomes, and a symmetric pair replaces it.
"""
_MOST_LISTED_GAMMA = 10**12
_MOST_EPSILON = 10**6


class RandomSubstitution(FrequencyMechanism):
    """Generalized randomized response of l draws, from ε of all draws together, from γ of one, or from ρ₁ and ρ₂."""

    name = "random-substitution"
    aliases = ("grr",)
    summary = "generalized randomized response: the answer or another one, drawn once or more"
    source = (
        "Kairouz, Bonawitz and Ramage, ICML 2016; Agrawal and Haritsa, ICDE 2005; "
        f"Ye and Barg, IEEE Transactions on Information Theory 64 (2018); {RANDOM_SUBSTITUTION}, corrected"
    )

    targets = ("epsilon", "gamma", "rho1", "rho2")

    epsilon = optional_real("privacy loss of all draws together", above=0, at_most=_MOST_EPSILON)
    gamma = optional_real(
        "how much likelier one draw is the answer itself than a given other", above=1, at_most=1e300
    )
    rho1 = optional_real("a belief before the report that must not rise to rho2", at_least=1e-300, below=1)
    rho2 = optional_real("a belief that rho1 must stay below, and that must not fall to rho1", above=0, below=1)
    domain_size = integer("number of possible answers", at_least=2, at_most=MOST_ANSWERS)
    draws = integer("draws in one report", at_least=1, at_most=MOST_DRAWS, default=1)
    sampling = choice(
        "whether draws may repeat; distinct ones make a subset", "replacement", "distinct", default="replacement"
    )
    ordered = flag("the order of distinct draws is visible (independent draws lose the same either way)")

    def check(self) -> None:
        self._check_target()
        if self.sampling == "distinct" and self._draws >= self.domain_size:
            hint = "A report of all answers says nothing."
            raise InvalidParameter("draws", f"less than domain_size, {self.domain_size}", self._draws, hint=hint)
        option = next(name for name in ("epsilon", "gamma", "rho2") if name in self.declared)
        if self.epsilon is None and ln_up(self._amplification[1]) > _MOST_EPSILON:
            expected = f"a value with which the loss of all draws together is <= {_MOST_EPSILON}"
            raise InvalidParameter(option, expected, self.declared[option])
        if not self._can_be_drawn():
            expected = "a value large enough to be drawn with 64-bit probabilities"
            raise InvalidParameter(option, expected, self.declared[option])

    def _check_target(self) -> None:
        given = [name for name in ("epsilon", "gamma", "rho1", "rho2") if name in self.declared]
        if not given or (len(given) > 1 and given != ["rho1", "rho2"]):
            hint = "Give epsilon, or gamma, or rho1 and rho2."
            if not given:
                raise InvalidParameter("epsilon", self.fields["epsilon"].expected, hint=hint)
            expected = "given without other targets, or left out"
            raise InvalidParameter("epsilon", expected, f"{' and '.join(given)} together", hint=hint)
        if given[0] in ("rho1", "rho2") and len(given) == 1:
            missing = "rho2" if given == ["rho1"] else "rho1"
            raise InvalidParameter(missing, self.fields[missing].expected, hint="Give both rho1 and rho2.")
        if self.rho1 is not None and self.rho2 is not None and amplification_below_breach(self.rho1, self.rho2) <= 1:
            raise InvalidParameter("rho2", f"clearly greater than rho1, {self.rho1}", self.rho2)

    # -- privacy loss -----------------------------------------------------------------------------------

    @property
    def _draws(self) -> int:
        """l, the draws in one report."""
        return self.draws

    @functools.cached_property
    def _sampling(self) -> Sampling:
        """The way the draws are made; a single draw is the same in every way."""
        kind: type[Sampling] = WithReplacement
        if self.sampling == "distinct" and self._draws > 1:
            kind = DistinctSequence if self.ordered else DistinctSet
        return kind(self.domain_size, self._draws)

    @property
    def _target(self) -> tuple[Decimal, Decimal] | None:
        """The requested amplification, rounded down and up; None if γ was declared."""
        if self.epsilon is not None:
            return exp_down(self.epsilon), exp_up(self.epsilon)
        if self.rho1 is not None and self.rho2 is not None:
            bound = amplification_below_breach(self.rho1, self.rho2)
            return bound, bound
        return None

    @functools.cached_property
    def _amplification(self) -> tuple[Decimal, Decimal]:
        """The amplification of the whole report, rounded down and up."""
        if self._target is not None:
            return self._target
        sampling, gamma = self._sampling, self._gamma
        return sampling.amplification(gamma, WIDE_DOWN), sampling.amplification(gamma, WIDE_UP)

    @functools.cached_property
    def _gamma(self) -> Decimal:
        """γ of one draw: the declared one, or the largest within the target."""
        if self.gamma is not None:
            return self.gamma
        if self.epsilon is not None and isinstance(self._sampling, WithReplacement):
            return exp_down(DOWN.divide(self.epsilon, Decimal(self._draws)))
        return DOWN.plus(self._sampling.gamma_within(self._amplification[0]))

    @functools.cached_property
    def _inclusion(self) -> tuple[Decimal, Decimal]:
        """(π₁, π₀), rounded down and up; of one draw if draws are independent."""
        if isinstance(self._sampling, WithReplacement):
            return _substitution_loss.inclusion(self._gamma, self.domain_size, 1)
        if isinstance(self._sampling, DistinctSet):
            odds = self._amplification[0]
        else:
            odds = DistinctSet(self.domain_size, self._draws).amplification(self._gamma, WIDE_DOWN)
        return _substitution_loss.inclusion(odds, self.domain_size, self._draws)

    @functools.cached_property
    def _tau(self) -> Decimal:
        # The drawn report has the smaller variation, and its ε is not above the stated one; by the argument in
        # sequence_tau the stated pair then dominates it.
        if isinstance(self._sampling, WithReplacement):
            return _substitution_loss.set_tau(self._gamma, self.domain_size, 1)
        if isinstance(self._sampling, DistinctSet):
            return _substitution_loss.set_tau(self._amplification[0], self.domain_size, self._draws)
        return _substitution_loss.sequence_tau(self._gamma, self._amplification[0], self.domain_size, self._draws)

    @property
    def guarantee(self) -> Guarantee:
        if isinstance(self._sampling, WithReplacement):
            return self._copies()
        epsilon = ln_up(self._amplification[1]) if self.epsilon is None else self.epsilon
        pair = self._sequence()
        # If ε is small, the last digits of the drawn ε fall short of the declared one.
        if pair is not None and float_up(pair.loss()[0]) == float_up(epsilon):
            return pair
        return SymmetricPair(epsilon, self._tau)

    def _sequence(self) -> FinitePair | None:
        """The pair of ordered draws, if it is short enough to be listed."""
        if self._is_listed():
            drawn = _substitution_loss.sequence_pair(
                [Fraction(part, ONE) for part in self.thresholds], self.domain_size
            )
            if self.gamma is None:
                return joined(drawn)
            # The declared law is exact; the draws match it only up to the last digit.
            gamma, size = Fraction(self.gamma), self.domain_size
            meant = [gamma / (gamma + size - step) for step in range(1, self._draws + 1)]
            return joined(drawn, _substitution_loss.sequence_pair(meant, size))
        return None

    def _is_listed(self) -> bool:
        """True if the pair is that of ordered draws, and short enough to be listed."""
        in_order = isinstance(self._sampling, DistinctSequence) and 1 < self._draws <= _MOST_LISTED
        return in_order and self._gamma < _MOST_LISTED_GAMMA

    def _copies(self) -> Guarantee:
        """Return l copies of one draw. A declared ε is split downward, so that the copies add up to at most ε."""
        each = ln_up(self._gamma) if self.epsilon is None else DOWN.divide(self.epsilon, Decimal(self._draws))
        pair = SymmetricPair(each, self._tau)
        return pair if self._draws == 1 else Copies(self._draws, pair)

    # -- drawing ----------------------------------------------------------------------------------------

    @functools.cached_property
    def thresholds(self) -> tuple[int, ...]:
        """In units of 2**-64: the probability of the true answer at each draw in order, else π₁ alone."""
        if isinstance(self._sampling, DistinctSequence):
            return tuple(threshold(hazard, up=False) for hazard in self._sampling.hazards(self._gamma))
        return (threshold(self._inclusion[0], up=False),)

    def _can_be_drawn(self) -> bool:
        """True if the true answer still makes a report likelier after the probabilities are rounded."""
        rest = self.domain_size - self._draws
        if isinstance(self._sampling, DistinctSequence):
            # Reports must grow less likely as the true answer moves back, and be least likely without it.
            pairs = zip(self.thresholds, self.thresholds[1:], strict=False)
            falling = all(first * ONE >= second * (ONE - first) for first, second in pairs)
            return falling and self.thresholds[-1] * rest > ONE - self.thresholds[-1]
        drawn = 1 if isinstance(self._sampling, WithReplacement) else self._draws
        return self.thresholds[0] * self.domain_size > drawn * ONE

    @functools.cached_property
    def _drawn_inclusion(self) -> Fraction:
        """π₁ as the client draws it."""
        absent = Decimal(1)
        for hazard in self.thresholds:
            absent = WIDE_UP.multiply(absent, WIDE_UP.divide(Decimal(ONE - hazard), Decimal(ONE)))
        return 1 - Fraction(absent) if len(self.thresholds) > 1 else Fraction(self.thresholds[0], ONE)

    @property
    def draws_per_report(self) -> int:
        return self._draws if isinstance(self._sampling, WithReplacement) else 1

    @property
    def support_probabilities(self) -> list[tuple[Fraction, Fraction]]:
        keep = self._drawn_inclusion
        held = 1 if isinstance(self._sampling, WithReplacement) else self._draws
        return [(keep, (held - keep) / (self.domain_size - 1))]

    # -- description ------------------------------------------------------------------------------------

    @property
    def parameters(self) -> dict[str, Any]:
        keep, other = self._inclusion
        return {
            "gamma": float_below(self._gamma) if self.gamma is None else float(self.gamma),
            "draws": self._draws,
            "keep": float_below(keep),
            "other": float_above(other),
        }

    def describe(self, users: int | None = None) -> dict[str, Any]:
        return {**super().describe(users), "amplification": _plain(self._amplification[1])}

    def utility(self, users: int | None = None) -> dict[str, Any]:
        result = super().utility(users)
        size = self.domain_size
        result["condition_number"] = float(1 + size / WIDE_DOWN.subtract(self._gamma, Decimal(1)))
        if users is not None:
            # Theorem 4.1, for any number of draws: it is the square root of N·variance over n.
            result["relative_error_bound"] = math.sqrt(size * self.total_variance() / users)
        result |= self._drawing
        if self.rho1 is not None:
            result["max_posterior"] = largest_posterior(self.rho1, self._amplification[1])
        return result

    @functools.cached_property
    def _drawing(self) -> dict[str, Any]:
        """The worked example of one record's draws, independent of the number of users: a step for each draw."""
        asked = self._gamma, self.domain_size, self._draws
        independent = isinstance(self._sampling, WithReplacement)
        expected = float(self._draws) if independent else _plain(_substitution_loss.expected_draws(*asked))
        return {
            "duplicate_probability": float(_substitution_loss.duplicate_probability(*asked)),
            "expected_draws": expected,
        }

    @property
    def notes(self) -> tuple[str, ...]:
        notes = () if isinstance(self._sampling, WithReplacement) else self._notes_on_distinct_draws()
        if self.rho1 is not None and self.rho2 is not None:
            limit, used = breach_bound(self.rho1, self.rho2), self._amplification[1]
            bound = DOWN.divide(Decimal(limit.numerator), Decimal(limit.denominator))
            notes += (
                f"An amplification of exactly {bound:.12g} lets a belief of {self.rho1} reach {self.rho2}, so the ≤ "
                f"of Kang, Lee and Hong (2009) is taken as <: the report's amplification is {used:.15g}.",
            )
        return notes

    def _notes_on_distinct_draws(self) -> tuple[str, ...]:
        what = "their sequence" if self.ordered else "their set"
        keep, other = (float(probability) for probability in self.support_probabilities[0])
        spread = float((self._gamma + self.domain_size - 1) / ((self._gamma - 1) * self._draws))
        return (
            f"Drawing again until {self._draws} draws differ does not keep the privacy of one draw, as Kang, "
            f"Lee and Hong (2009) say of their Algorithm 2: from γ = {self._gamma:.6g} the amplification of {what} "
            f"rises to {self._amplification[1]:.6g}.",
            f"Their estimate, the counts over {self._draws} as if draws were independent, is biased "
            f"towards uniform here (slope {(keep - other) * spread:.3f}); estimate uses π₁ = {keep:.6g} and "
            f"π₀ = {other:.6g}.",
        )

    # -- verification -----------------------------------------------------------------------------------

    def compare(self, first: int, second: int) -> Comparison:
        """Compare two answers; the result is the same for any two.

        Sequences are compared by a closed form, because the law lists the places of three answers.
        """
        if isinstance(self._sampling, DistinctSequence):
            return self._sequences
        return super().compare(first, second)

    @functools.cached_property
    def _sequences(self) -> Comparison:
        from ._substitution_reports import distinct_sequence

        return distinct_sequence(self.domain_size, [Fraction(t, ONE) for t in self.thresholds])

    def outcomes(self, reports: Any, first: int, second: int) -> Any:
        if isinstance(self._sampling, DistinctSequence):
            from ._substitution_reports import number_sequences

            return number_sequences(reports, first, second)
        return super().outcomes(reports, first, second)

    # -- client and server ------------------------------------------------------------------------------

    @property
    def _lot(self) -> int | None:
        return max(256, 2**16 // self._draws) if isinstance(self._sampling, DistinctSet | DistinctSequence) else None

    def client_program(self) -> Program:
        """Return the client program; reports are unsigned integers: (n,) for one draw, (n, l) for l; sets ascend within a row."""
        if isinstance(self._sampling, DistinctSequence):
            return sequence_program(self.domain, self.thresholds)
        if isinstance(self._sampling, DistinctSet):
            return set_program(self.domain, self._draws, self.thresholds[0])
        return substitution_program(self.domain, self._draws, self.thresholds[0])


def _plain(number: Decimal) -> float | None:
    """Return `number` rounded up to a double; None if it is larger than any double."""
    rounded = float_up(number) if number < Decimal("1e308") else math.inf
    return rounded if math.isfinite(rounded) else None
