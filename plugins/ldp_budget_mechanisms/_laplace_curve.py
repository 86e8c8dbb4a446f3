"""How well any two inputs of the bounded Laplace mechanism can be told apart, as it is stated and as it is drawn.

On [0, 1] with b = 1/ε, the ratio f(y | x) / f(y | x') of two inputs x < x' falls in y. So the best test of x against
x' at any odds λ accepts the reports up to some t, and, as reports of a smaller value are smaller, with F their
distribution functions

    H(λ) = max over t of F(t | x) - λF(t | x')
        <= max over t of F(t | 0) - λF(t | 1) = (1 - √(λe^{-ε}))² / (1 - e^{-ε}),

with equality at the two ends. They are the worst pair at every λ in [e^{-ε}, e^ε], and the mirrored pair is alike.
H falls in λ and grows with ε.

What is drawn is a table of whole weights on G cells, see `_laplace_table`. With S·q^d, q = e^{-ε/G}, in place of its
weights, it would be the continuous report told to the cell, which tells no more. A weight is above S·q^d - 2, and at
most the larger of S·q^d + 1 and a floor F; so where T = S(1-q^G)/(1-q), the least of the totals there would be,

    P̃ <= P·T/(T-2G) + (F+1)/(T-2G),      Q̃ >= Q·T/(T+G(F+1)) - 2/(T+G(F+1)),

for every cell, and, summed over the cells,

    H̃(λ) <= ρ·H(λσ) + G(F+1+2λ)/(T-2G),      ρ = T/(T-2G),   σ = (T-2G)/(T+G(F+1)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Self

from ldp_budget.guarantees import Pure
from ldp_budget.guarantees.amounts import DOWN, UP, exp_down, exp_up

from ._curve_pair import largest_odds, pair_of_curve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ldp_budget.guarantees import Guarantee

LARGE_LOSS = 16
"""From here on a tail of constant weight, far less than one part in 10,000 of all, may stand for the rest."""


@dataclass(frozen=True)
class LaplaceWeights:
    """The weights S·q^d of the cells 0..cells-1 away from a point, rounded down to whole numbers, at least F."""

    epsilon: Decimal
    cells: int
    ratio: Decimal
    largest: Decimal
    floor: int

    @classmethod
    def of(cls, epsilon: Decimal, cells: int) -> Self:
        """As large as totals below 2**63 allow."""
        ratio = DOWN.exp(DOWN.divide(epsilon.copy_negate(), Decimal(cells)))
        mass = min(Decimal(cells), DOWN.divide(2, DOWN.subtract(1, ratio)))
        largest = DOWN.divide(Decimal(2**62), mass)
        floor = math.ceil(UP.divide(UP.multiply(largest, 2), exp_down(epsilon))) if epsilon >= LARGE_LOSS else 0
        return cls(epsilon, cells, ratio, largest, floor)

    def __iter__(self) -> Iterator[int]:
        weight = self.largest
        for _ in range(self.cells):
            yield max(int(weight), self.floor)
            weight = DOWN.multiply(weight, self.ratio)

    # -- what they give away ----------------------------------------------------------------------------

    @cached_property
    def _decay(self) -> tuple[Decimal, Decimal]:
        """e^-ε, rounded down and up."""
        return exp_down(self.epsilon.copy_negate()), exp_up(self.epsilon.copy_negate())

    @cached_property
    def _total(self) -> Decimal:
        """T, rounded down. `ratio` may be off by some units of the last of forty digits."""
        rest = UP.subtract(1, self.ratio.next_minus(DOWN).next_minus(DOWN))
        return DOWN.divide(DOWN.multiply(self.largest, DOWN.subtract(1, self._decay[1])), rest)

    def _holds(self) -> bool:
        """Whether no ratio of two drawn odds exceeds `largest_odds`."""
        if self.epsilon < LARGE_LOSS:
            # The loss is at most (1 - 1/G)ε + 8/w with w the last of the weights, see `LaplaceTable`.
            last = DOWN.subtract(DOWN.multiply(self.largest, self._decay[0]), 2)
            spare = DOWN.subtract(DOWN.divide(self.epsilon, self.cells), Decimal("1e-29"))
            return DOWN.multiply(last, spare) >= 8
        # No weight is above S, and the largest total is that of the centre: 2T/(1 + e^{-ε/2}), and what was raised.
        half = exp_down(DOWN.divide(self.epsilon, -2))
        most = UP.add(UP.divide(2, DOWN.add(1, half)), UP.divide(self._raised, self._total))
        least = DOWN.subtract(1, UP.divide(2 * self.cells, self._total))
        return UP.multiply(self.largest, most) <= DOWN.multiply(
            DOWN.multiply(largest_odds(self.epsilon), self.floor), least
        )

    @property
    def _raised(self) -> int:
        """The most by which the weights of a point exceed S·q^d together."""
        return self.cells * (self.floor + 1)

    def _bound(self, slope: Decimal) -> Decimal:
        """H(λ) of any two inputs, stated or drawn, rounded up."""
        least = DOWN.subtract(self._total, 2 * self.cells)
        narrowed = DOWN.divide(least, UP.add(self._total, self._raised))
        stretched = UP.divide(UP.add(least, 2 * self.cells), least)
        added = UP.divide(UP.add(self._raised, UP.multiply(2 * self.cells, slope)), least)
        return UP.add(UP.multiply(stretched, self._stated(DOWN.multiply(slope, narrowed))), added)

    def _stated(self, slope: Decimal) -> Decimal:
        """(1 - √(λe^-ε))²/(1 - e^-ε), rounded up."""
        root = DOWN.sqrt(DOWN.multiply(slope, self._decay[0])).next_minus(DOWN)
        missed = max(UP.subtract(1, root), Decimal(0))
        return UP.divide(UP.multiply(missed, missed), DOWN.subtract(1, self._decay[1]))

    def guarantee(self) -> Guarantee:
        """The pair of the two ends, as stated and as drawn; `Pure` where that is not certain for the last digits."""
        return pair_of_curve(self.epsilon, self._bound) if self._holds() else Pure(self.epsilon)
