"""The law of the contributions to a share, for those who hold an answer and for the others, and of their weighted mean.

A contribution is 1 on average for a holder and 0 for others. The chance of the sample and that of the randomization add
up: with the rate c of the population that was not asked, an estimated share has, if θ is true, the cumulants

    κ₂ = S₂·E[v] + S₂c·θ(1 - θ),    κ₃ = S₃·E[t] + 3·S₃c·(v₁ - v₀)·θ(1 - θ) + S₃c′·θ(1 - θ)(1 - 2θ)

by the law of total cumulance, where v₁, t₁ (v₀, t₀) are the variance and the third cumulant of a contribution of a holder
(of another), E their mean at θ, and S₂, S₃ the sums of the squared and the cubed scales of the respondents. With
replacement c and c′ are 1; n of N people drawn without replacement give those of the hypergeometric law,
c = (N - n)/(N - 1) and c′ = c·(N - 2n)/(N - 2). Numbers in a range are a share of its length: for a mean θ no values
have a larger spread than those at both ends of the range.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np

from .accepted_values import GammaTails, Spread, accepted_means

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


class Cumulants(NamedTuple):
    """Variance and third cumulant of the contribution of others and of holders, each (d,): v₀, t₀, v₁ and t₁."""

    other: Any
    other_third: Any
    held: Any
    held_third: Any


class Scales(NamedTuple):
    """S₂, S₂c, S₃, S₃c and S₃c′ of the module, and the largest scale of a respondent."""

    squares: float
    sampled: float
    cubes: float
    mixed: float
    skewed: float
    largest: float

    @classmethod
    def of(cls, scale: Any, counts: Any, missed: Any = 1.0, turn: Any = 1.0) -> Scales:
        """Return those of `counts` respondents with each `scale`; `missed` is c, and `turn` the ratio c′/c."""
        second, third = scale**2 * counts, scale**3 * counts
        parts = (second, second * missed, third, third * missed, third * missed * turn)
        squares, sampled, cubes, mixed, skewed = (float(np.sum(part)) for part in parts)
        return cls(squares, sampled, cubes, mixed, skewed, float(np.max(scale)))


def without_replacement(asked: Any, people: Any) -> tuple[Any, Any]:
    """Return c and c′/c of the module for `asked` of `people`: (1, 1) for an infinite population, (0, …) for all."""
    with np.errstate(invalid="ignore", divide="ignore"):
        missed = np.where(np.isinf(people), 1.0, (people - asked) / np.maximum(people - 1, 1))
        turn = np.where(np.isinf(people), 1.0, (people - 2 * asked) / np.maximum(people - 2, 1))
    return np.maximum(missed, 0.0), turn


class ShareLaw(Protocol):
    """The law of contributions for any share θ; unless it is `exact`, contributions may vary less."""

    @property
    def exact(self) -> bool: ...

    def around(self, shares: Floats) -> Self:
        """Return the law for these estimated shares, where it depends on other shares than the own."""
        ...

    def at(self, share: Any) -> Cumulants:
        """Return the cumulants if the shares are `share`, (d,)."""
        ...


@dataclass(frozen=True, eq=False)
class AnswerLaw:
    """The law of contributions to the answers of one question, which depends on the own answer alone."""

    cumulants: Cumulants
    exact: bool = True

    def around(self, shares: Floats) -> Self:
        return self

    def at(self, share: Any) -> Cumulants:
        return self.cumulants


@dataclass(frozen=True, eq=False)
class TableLaw:
    """The law of `paired` contributions: those of two questions, and their products for the cells.

    It depends on the shares of the row and of the column of a cell, for which `margins` has the estimates. Given the
    answers of a person, the two contributions are independent, so their raw moments multiply.
    """

    first: AnswerLaw
    second: AnswerLaw
    margins: Floats | None = None
    exact: bool = True

    def around(self, shares: Floats) -> Self:
        return replace(self, margins=shares)

    def at(self, share: Any) -> Cumulants:
        one, two = self.first.cumulants, self.second.cumulants
        d1, d2 = len(one.held), len(two.held)
        margins = np.clip(share if self.margins is None else self.margins, 0, 1)
        cells = np.asarray(share)[d1 + d2 :]
        mine, theirs = _raw(one), _raw(two)
        row, column = np.repeat(np.arange(d1), d2), np.tile(np.arange(d2), d1)
        rows, columns = (np.maximum(margins[place], cells) for place in (row, d1 + column))
        rest = np.maximum(1 - rows - columns + cells, 0.0)
        weights = (rows - cells, columns - cells, rest)
        least = np.maximum(sum(weights), 1e-300)
        second, third = (
            sum(
                part * mine[a][power][row] * theirs[b][power][column]
                for part, (a, b) in zip(weights, ((1, 0), (0, 1), (0, 0)), strict=True)
            )
            / least
            for power in (0, 1)
        )
        both, cubed = (mine[1][power][row] * theirs[1][power][column] for power in (0, 1))
        products = Cumulants(second, third, both - 1, cubed - 3 * both + 2)
        return Cumulants(*(np.concatenate(parts) for parts in zip(one, two, products, strict=True)))


def _raw(law: Cumulants) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return the second and the third raw moment of a contribution, of others and of holders."""
    v0, t0, v1, t1 = law
    return (v0, t0), (v1 + 1, t1 + 3 * v1 + 1)


def share_spread(law: ShareLaw, scales: Scales, share: Any, effect: Any = 1.0, *, lattice: bool = False) -> Spread:
    """Return the spread of estimated shares if `share` is true.

    The design multiplies the variance by `effect`; so many respondents less count, and each counts for as many more.
    The step is that of a sum of rare contributions of one size with these cumulants, κ₃/κ₂. Where reports count alike,
    it is at least that of contributions of two values with these cumulants, `lattice`.
    """
    v0, t0, v1, t1 = law.at(share)
    binary = share * (1 - share)
    noise = scales.squares * ((1 - share) * v0 + share * v1)
    variance = noise + scales.sampled * binary
    cubed = scales.cubes * ((1 - share) * t0 + share * t1)
    third = cubed + 3 * scales.mixed * (v1 - v0) * binary + scales.skewed * (1 - 2 * share) * binary
    step = effect * np.abs(third) / np.maximum(variance, 1e-300)
    if lattice:
        step = np.maximum(step, scales.largest * np.sqrt((t0 / np.maximum(v0, 1e-300)) ** 2 + 4 * v0))
    return Spread(effect * variance, effect**2 * third, step, effect * noise)


def share_ends(
    law: ShareLaw, scales: Scales, shares: Floats, level: float, *, lattice: bool = True
) -> tuple[Floats, Floats]:
    """Return the ends of the intervals of shares from reports that count alike."""

    def spread(share: Any) -> Spread:
        return share_spread(law, scales, share, lattice=lattice)

    return accepted_means(GammaTails(shares, spread, spread), level)
