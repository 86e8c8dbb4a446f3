"""The loss distribution of one report, put on a lattice.

A step is the pair of output distributions (P, Q) that tells the worst two inputs apart; its privacy loss is
L = ln P/Q under P. A `Law` is the distribution of L on the multiples of a spacing, minus an offset. Where L does not
lie on the lattice by itself, two laws enclose the pair:

- from above, each outcome is split between its two neighbours on the lattice so that both its P-mass and its Q-mass
  are kept. Merging them again is a post-processing, so the new pair dominates the old one (the "connect the dots"
  of Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022);
- from below, outcomes are merged (a post-processing) and their loss is lowered onto the lattice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

# Losses computed in doubles are moved by this, relatively, to the side that is certain.
LOSS_ERROR = 2e-15
# How many spacings are tried for one that nearly divides all the losses of a finite pair.
_CANDIDATES = 1000
_MOST_RATIOS = 10**6
_OUTLINE_CELLS = 32
_PRECISE = Context(prec=40)


@dataclass(frozen=True)
class Law:
    """P[L = index·spacing - offset] = e^log_mass. The masses are right to some units of the last place."""

    spacing: Fraction
    index: Integers
    log_mass: Floats
    offset: float = 0.0


class Step:
    """One kind of report. `exact` says that its loss lies on the lattice of its own spacing."""

    exact: bool
    bound: Fraction | None  # the loss of which a common spacing must be a divisor; None if there is none

    def own_spacing(self, finest: Fraction) -> Fraction:
        """The spacing this step is best described with, where nothing finer than about `finest` is needed."""
        raise NotImplementedError

    def law(self, spacing: Fraction, upper: bool) -> Law:
        """The law on the multiples of `spacing`, at or above the pair if `upper`, else at or below it."""
        raise NotImplementedError

    def outline(self) -> Law:
        """About the law, on few points."""
        return self.law(self.own_spacing(self.widest / _OUTLINE_CELLS), upper=True)

    @property
    def widest(self) -> Fraction:
        """The largest absolute loss, about."""
        assert self.bound is not None
        return self.bound


@dataclass(frozen=True)
class Symmetric(Step):
    """Loss ±ε with total probability τ, odds e^ε, and 0 otherwise (`guarantees.SymmetricPair`)."""

    bound: Fraction
    tau: Decimal
    exact = True

    def own_spacing(self, finest: Fraction) -> Fraction:
        return self.bound

    def law(self, spacing: Fraction, upper: bool) -> Law:
        top = int(self.bound / spacing)
        epsilon = float(self.bound)
        plus = float(self.tau.ln(_PRECISE)) - math.log1p(math.exp(-epsilon))
        index, log_mass = [-top, top], [plus - epsilon, plus]
        if self.tau < 1:
            index.append(0)
            log_mass.append(float(_PRECISE.subtract(Decimal(1), self.tau).ln(_PRECISE)))
        return Law(spacing, np.array(index, dtype=np.int64), np.array(log_mass))


@dataclass(frozen=True)
class LaplaceNoise(Step):
    """Laplace noise at ε = S/b. Under P the loss is ε with probability ½, -ε with e^{-ε}/2, and between them it has
    the density ¼ e^{-(ε-l)/2}; under Q the density is e^{-l} times that."""

    bound: Fraction
    exact = False

    def own_spacing(self, finest: Fraction) -> Fraction:
        return self.bound / max(2, math.ceil(self.bound / finest))

    def law(self, spacing: Fraction, upper: bool) -> Law:
        top = int(self.bound / spacing)
        h = float(spacing)
        index = np.arange(-top, top + 1, dtype=np.int64)
        log_mass = (index - top) * (h / 2)
        return Law(spacing, index, log_mass + (self._split(h, top) if upper else self._merged(h, top)))

    def _split(self, h: float, top: int) -> Floats:
        """Each cell between two lattice points leaves ½tanh(h/4)e^{-(ε-l)/2} at both of them."""
        half = math.tanh(h / 4) / 2
        factor = np.full(2 * top + 1, math.log(2 * half))
        factor[-1] = math.log(0.5 + half)
        factor[0] = math.log(0.5 + half)
        return factor

    def _merged(self, h: float, top: int) -> Floats:
        """Each cell around a lattice point l has the loss l exactly; half a cell is left over at both ends.

        The one below ε is lowered to ε - h; the one above -ε is merged with the atom there.
        """
        factor = np.full(2 * top + 1, math.log(-math.expm1(-h / 2) / 2) + h / 4)  # ln sinh(h/4)
        factor[-1] = math.log(0.5)
        left_over = -math.expm1(-h / 4) / 2
        factor[-2] = math.log(math.exp(-h / 4) * -math.expm1(-h / 2) / 2 + left_over) + h / 2
        factor[0] = h / 4 + math.log(0.5)
        return factor


@dataclass(frozen=True)
class Finite(Step):
    """Finitely many outcomes; those with Q = 0 are counted elsewhere and P is conditioned on the others."""

    outcomes: tuple[tuple[Fraction, Fraction], ...]
    bound = None
    exact = False

    @cached_property
    def losses(self) -> Floats:
        return np.array([_log_ratio(p, q) for p, q in self.outcomes])

    @cached_property
    def log_masses(self) -> Floats:
        total = sum((p for p, _ in self.outcomes), Fraction(0))
        return np.array([_log_ratio(p, total) for p, _ in self.outcomes])

    @property
    def widest(self) -> Fraction:
        return max(Fraction(abs(loss)) for loss in self.losses.tolist())

    def outline(self) -> Law:
        spacing = self.widest / 2**40
        return Law(spacing, np.rint(self.losses / float(spacing)).astype(np.int64), self.log_masses)

    def own_spacing(self, finest: Fraction) -> Fraction:
        """The spacing within a per mille or so below `finest` whose multiples come nearest to all the losses."""
        losses, mass = self.losses, np.exp(self.log_masses)
        widest = float(self.widest)
        tried = max(1, min(_CANDIDATES, _MOST_RATIOS // len(losses)))
        cells = math.ceil(widest / float(finest)) + np.arange(tried)
        ratio = losses[:, None] / (widest / cells)
        above = ratio - np.rint(ratio)
        # What the law from below loses on average: the offset that the worst outcome needs, and the lowering.
        lowered = above + np.maximum(0, -above.min(axis=0))
        best = int(np.argmin((mass[:, None] * lowered).sum(axis=0) / cells))
        return Fraction(widest / float(cells[best]))

    def law(self, spacing: Fraction, upper: bool) -> Law:
        losses = self.losses
        slack = LOSS_ERROR * np.abs(losses)
        if upper:
            return _split(spacing, losses + slack, self.log_masses)
        return _lowered(spacing, losses - slack, self.log_masses)


def split_weights(position: Floats, h: float) -> tuple[Floats, Floats]:
    """How the mass of a loss `position`·h above a lattice point, 0 <= position <= 1, is split: (to it, to the next).

    Both e^0 and e^{-loss} must keep their mean: w + w' = 1 and w + w'e^{-h} = e^{-position·h}.
    """
    whole = -math.expm1(-h)
    below = np.exp(-position * h) * -np.expm1((position - 1) * h) / whole
    above = -np.expm1(-position * h) / whole
    return below, above


def _split(spacing: Fraction, losses: Floats, log_mass: Floats) -> Law:
    h = float(spacing)
    cell = np.floor(losses / h)
    below, above = split_weights(np.clip(losses / h - cell, 0, 1), h)
    index = np.concatenate([cell, cell + 1]).astype(np.int64)
    weight = np.concatenate([below, above])
    kept = weight > 0
    log_weight = np.log(weight[kept])
    return Law(spacing, index[kept], np.concatenate([log_mass, log_mass])[kept] + log_weight)


def _lowered(spacing: Fraction, losses: Floats, log_mass: Floats) -> Law:
    """Every loss to the nearest lattice point, and the whole lattice lowered until none has been raised."""
    h = float(spacing)
    cell = np.rint(losses / h)
    raised = float(np.max(cell * h * (1 + np.sign(cell) * LOSS_ERROR) - losses))
    return Law(spacing, cell.astype(np.int64), log_mass, max(0.0, raised))


def _log_ratio(p: Fraction, q: Fraction) -> float:
    """ln p/q to some units of the last place, also for ratios near one or outside the range of doubles."""
    ratio = p / q
    if Fraction(1, 2) < ratio < 2:
        return math.log1p(float(ratio - 1))
    return float(_PRECISE.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)).ln(_PRECISE))
