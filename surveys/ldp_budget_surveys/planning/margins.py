"""Margins of error: the error that 95 of 100 surveys stay below, at the worst answers, bias included.

With n_a of n respondents asked a question, an estimated share or mean has the error b + s·Z, with Z standard normal:

    s² = [(1 - f)·v₀ + f·v₁ + c·g²·f(1 - f)]/n_a + P·(1 - f)²·(n_a - 1)/n_a

- v₀ and v₁ are the variance per respondent that randomization adds at f = 0 and at f = 1, with f the share of an answer. Values
  in [L, U] are a mixture of both ends, f of them at U, in parts of the range: no other values vary more.
- c·f(1 - f) is the chance of who was asked. About the n respondents, c = (n - n_a)/(n - 1), as in `subsampled_estimates`.
  About a large population, of which they are a simple random sample, c = 1. g is the slope of an expected report, 1 without bias.
- P is the variance that two users of one other answer add: values that collide in a sketch. It does not shrink with n.
- b = (1 - f)·b₀ + f·b₁ is the bias, 0 for most mechanisms. It does not shrink either.

The margin is the number m with P(|b + s·Z| <= m) = 0.95, the largest over f: 1.96·s without bias, |b| + 1.645·s where the
bias is larger than the spread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ldp_budget._validation import check_instance, check_share
from ldp_budget.errors import InvalidParameter
from ldp_budget.sdk.domain import Categories, check_users
from ldp_budget.sdk.frequency_oracle import FrequencyMechanism
from ldp_budget.sdk.grid_answers import GridAnswers
from ldp_budget.sdk.numeric_mechanism import NumericMechanism

if TYPE_CHECKING:
    from collections.abc import Callable

    from ldp_budget.sdk.mechanism import Mechanism

    Assumed = tuple[tuple[float, float], ...]

Z = 1.959963984540054
"""The 0.975 quantile of a normal variable."""
Z_POWER = 0.8416212335729143
"""Its 0.8 quantile."""
LEVEL = 0.95
_Z_ONE_SIDED = 1.6448536269514722
"""Its 0.95 quantile: the margin of a large bias is |b| + 1.645·s."""
MOST_RESPONDENTS = 10**12
_SHARES = 100
"""The number of steps in which the worst share is looked for, where bias or collisions depend on it."""


def margin_of(bias: float, std_error: float) -> float:
    """Return the number m with P(|bias + std_error·Z| <= m) = 0.95, for a standard normal Z."""
    bias = abs(bias)
    if not bias or not std_error:
        return bias + Z * std_error
    low, high = bias + _Z_ONE_SIDED * std_error, bias + Z * std_error
    for _ in range(50):
        middle = (low + high) / 2
        above = math.erfc((middle - bias) / std_error / math.sqrt(2)) / 2
        below = math.erfc((middle + bias) / std_error / math.sqrt(2)) / 2
        low, high = (low, middle) if above + below <= 1 - LEVEL else (middle, high)
    return high


class Worst(NamedTuple):
    """The largest margin over the answers, and the largest variance, in parts of the range of a number."""

    margin: float
    variance: float


@dataclass(frozen=True)
class Precision:
    """What the error of a mechanism's estimate is made of: see the module's formula for v₀, v₁, P, b₀ and b₁.

    `width` is the width of the range of a number, and None for shares. The parts of a number are in parts of its range.
    """

    at_zero: float
    at_one: float
    width: float | None = None
    collisions: float = 0.0
    bias: tuple[float, float] = (0.0, 0.0)
    share: tuple[int, int] = (1, 1)
    """(s, J): of the J items of a grid each respondent is asked s."""

    @classmethod
    def of(cls, mechanism: Mechanism, assumed: Assumed = ()) -> Precision:
        """Return the precision of a mechanism.

        Parameters:
            mechanism: the mechanism.
            assumed: points of the distribution of numbers, for a margin that depends on it: values with the share of people
                at most at each. Empty for numbers that are uniform on the scale of the mechanism.

        Raises:
            InvalidParameter: its answers are neither listed nor numbers of a range.
        """
        if isinstance(mechanism.domain, GridAnswers):
            grid: Any = mechanism
            return replace(cls.of(grid.part()), share=(grid.design.asked, grid.items))
        if isinstance(mechanism, FrequencyMechanism) and isinstance(mechanism.domain, Categories):
            utility = mechanism.utility()
            once, twice = (mechanism.share_errors(users)[0] ** 2 for users in (1, 2))
            at_zero = utility.get("variance_per_user", once)
            at_one = at_zero + utility.get("variance_per_unit_frequency", once - at_zero)
            # A variance v/n + P·(n - 1)/n is v for one user and (v + P)/2 for two. Below a rounding error, P is 0.
            collisions = 2 * twice - once
            return cls(at_zero, at_one, collisions=collisions if collisions > 1e-9 * once else 0.0)
        if isinstance(mechanism, NumericMechanism) and hasattr(mechanism.domain, "ends"):
            lower, upper = mechanism.domain.ends  # type: ignore[union-attr]
            width = upper - lower
            if hasattr(mechanism, "planned_margin"):
                return PlannedMargin(0.0, 0.0, width, of_reports=partial(mechanism.planned_margin, assumed=assumed))
            errors = [mechanism.error_at(value) for value in mechanism.landmarks()]
            noise = max(mse - bias**2 for bias, mse in errors) / width**2
            biases = (errors[0][0] / width, errors[-1][0] / width) if mechanism.biased else (0.0, 0.0)
            return cls(noise, noise, width, bias=biases)
        raise InvalidParameter("survey", "of listed answers or numbers", mechanism.name)

    def variance_at(self, share: float, asked: int) -> float:
        """Return the variance of an estimated share, or of a mean of that part of users at the upper end, if all are asked."""
        noise = (1 - share) * self.at_zero + share * self.at_one
        return (noise + self.collisions * (1 - share) ** 2 * (asked - 1)) / asked

    def worst(self, asked: int, sampling: float, design_effect: float = 1.0) -> Worst:
        """Return the largest margin and variance over the shares; `sampling` is c. A design effect multiplies s²."""
        low, high = self.bias
        slope = (1 + high - low) ** 2
        if not self.collisions and not any(self.bias):
            variance = design_effect * worst_share_variance(self.at_zero, self.at_one, sampling) / asked
            return Worst(Z * math.sqrt(variance), variance)
        largest = Worst(0.0, 0.0)
        for step in range(_SHARES + 1):
            share = step / _SHARES
            variance = self.variance_at(share, asked) + sampling * slope * share * (1 - share) / asked
            variance *= design_effect
            margin = margin_of((1 - share) * low + share * high, math.sqrt(variance))
            largest = Worst(max(largest.margin, margin), max(largest.variance, variance))
        return largest

    def row(self, respondents: int, part: tuple[int, int]) -> dict[str, Any]:
        """Return the figures for respondents of whom `part`, k of m, are asked."""
        unit = 1.0 if self.width is None else self.width
        asked = self.asked_of(respondents, part)
        among_many = self.worst(asked, 1.0)
        groups = self.worst(max(1, asked // 2), 1.0)
        return {
            "asked": asked,
            "range": self.width,
            "margin": self.margin(respondents, part) * unit,
            "population_margin": among_many.margin * unit,
            **({"max_bias": self.max_bias * unit} if any(self.bias) else {}),
            "detectable_groups": (Z + Z_POWER) * math.sqrt(2 * groups.variance) * unit,
            "detectable_rounds": (Z + Z_POWER) * math.sqrt(2 * among_many.variance) * unit,
        }

    def asked_of(self, respondents: int, part: tuple[int, int]) -> int:
        """Return how many of the respondents are asked a question, if each is asked k of m."""
        return max(1, respondents * part[0] * self.share[0] // (part[1] * self.share[1]))

    @property
    def max_bias(self) -> float:
        """The largest bias, in parts of the range."""
        return max(map(abs, self.bias))

    def margin(self, respondents: int, part: tuple[int, int]) -> float:
        """Return the margin about these respondents, in parts of the range."""
        from ldp_budget.sdk.share_laws import without_replacement

        asked = self.asked_of(respondents, part)
        return self.worst(asked, float(without_replacement(asked, respondents)[0])).margin


@dataclass(frozen=True)
class PlannedMargin(Precision):
    """The margin that a mechanism plans for a number of reports, in the unit of the values, sampling included."""

    of_reports: Callable[[float], float] = field(default=float, kw_only=True)

    def worst(self, asked: int, sampling: float, design_effect: float = 1.0) -> Worst:
        assert self.width is not None
        margin = self.of_reports(asked / design_effect) / self.width
        return Worst(margin, (margin / Z) ** 2)


def least_respondents(enough: Callable[[int], bool], least: int = 1, most: int = MOST_RESPONDENTS) -> int | None:
    """Return the least number of respondents that is enough, from `least` to `most`; None if no number is."""
    from bisect import bisect_left

    if not enough(most):
        return None
    return bisect_left(range(least, most), True, key=enough) + least


def margin_for(mechanism: Mechanism, users: int) -> float:
    """Return the margin of a share, or of a mean in the unit of the values, about `users` users who all report.

    Parameters:
        mechanism: a mechanism of listed answers or of numbers of a range.
        users: the number of users.

    Raises:
        InvalidParameter: `users` is not a whole number >= 1, or the mechanism is another one.
    """
    check_users(users)
    precision = Precision.of(mechanism)
    return precision.margin(users, (1, 1)) * (1.0 if precision.width is None else precision.width)


def respondents_for(mechanism: FrequencyMechanism, margin: float) -> int | None:
    """Return the least number of users for which every share has that margin of error, at 95 % confidence.

    The margin is about these users: the mechanism's noise and collisions, at the worst answer and share. It leaves out that
    the users may be a sample of others. None if no number of users is enough, as for a sketch with collisions.

    Parameters:
        mechanism: the mechanism of the reports.
        margin: half the width of the interval of a share, above 0 and below 1.

    Raises:
        InvalidParameter: `mechanism` is not a frequency mechanism, or `margin` is not between 0 and 1.
    """
    check_instance("mechanism", mechanism, FrequencyMechanism, "a frequency mechanism")
    check_share("margin", margin)
    precision = Precision.of(mechanism)
    return least_respondents(lambda users: precision.margin(users, (1, 1)) <= margin)


def worst_share_variance(at_zero: float, at_one: float, sampling: float) -> float:
    """Return the largest (1 - f)·`at_zero` + f·`at_one` + `sampling`·f(1 - f) of all shares f in [0, 1]."""
    if sampling <= 0:
        return max(at_zero, at_one)
    share = min(max((1 + (at_one - at_zero) / sampling) / 2, 0.0), 1.0)
    return (1 - share) * at_zero + share * at_one + sampling * share * (1 - share)
