"""Exact losses of memoised reports, by enumeration in fractions. It shares no code with the product.

A client has V cells. It draws one kept symbol for each cell, and each report shows the kept symbol of its cell through
a second draw. Two histories are compared that are equal in the same places: each cell of the one is mapped to a cell
of the other. Everything that an observer may see is enumerated, and so is every such mapping.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from ldp_budget.guarantees import Memoised


class Client(NamedTuple):
    """A memoising client: P[kept symbol | cell] and P[shown symbol | kept symbol], as rows of fractions."""

    kept: tuple[tuple[Fraction, ...], ...]
    shown: tuple[tuple[Fraction, ...], ...]

    @property
    def cells(self) -> range:
        return range(len(self.kept))

    @property
    def symbols(self) -> range:
        return range(len(self.shown[0]))

    @functools.cache  # noqa: B019
    def likelihood(self, cell: int, shown: tuple[int, ...]) -> Fraction:
        """The probability of the symbols that the reports of one cell show, in order."""
        return sum(
            (
                chance * math.prod((self.shown[memo][symbol] for symbol in shown), start=Fraction(1))
                for memo, chance in enumerate(self.kept[cell])
            ),
            Fraction(0),
        )

    def curve(self, reports: int) -> float:
        """ε(t): the largest loss of t reports of one cell against another one."""
        ratios = [
            self.likelihood(own, shown) / self.likelihood(other, shown)
            for shown in itertools.combinations_with_replacement(self.symbols, reports)
            for own, other in itertools.permutations(self.cells, 2)
        ]
        return math.log(max(ratios))

    @property
    def cap(self) -> float:
        """The loss of the kept symbol itself."""
        return math.log(
            max(a / b for own, other in itertools.permutations(self.kept, 2) for a, b in zip(own, other, strict=True))
        )


def grr(keep: Fraction, size: int) -> tuple[tuple[Fraction, ...], ...]:
    """Generalized randomized response over `size` symbols as a channel."""
    other = (1 - keep) / (size - 1)
    return tuple(tuple(keep if row == column else other for column in range(size)) for row in range(size))


def most_lost(client: Client, earlier: Sequence[int], window: Sequence[int]) -> float:
    """The most that the reports of a window lose, given the earlier ones.

    `earlier` and `window` are the cells of one history in order. The other history is every one that is equal in the
    same places. Cells are independent, so the worst case of each cell adds up.
    """
    cells = sorted({*earlier, *window})
    before, after = ({cell: history.count(cell) for cell in cells} for history in ([*earlier], [*earlier, *window]))
    found = 0.0
    for image in itertools.permutations(client.cells, len(cells)):
        total = 0.0
        for cell, other in zip(cells, image, strict=True):
            total += max(0.0, _log_most(client, cell, other, before[cell], after[cell]))
        found = max(found, total)
    return found


@functools.cache
def _log_most(client: Client, own: int, other: int, before: int, after: int) -> float:
    if after == before or own == other:
        return 0.0
    most = Fraction(0)
    for seen in itertools.combinations_with_replacement(client.symbols, before):
        prior = client.likelihood(own, seen) / client.likelihood(other, seen)
        for more in itertools.combinations_with_replacement(client.symbols, after - before):
            ratio = client.likelihood(own, seen + more) / client.likelihood(other, seen + more)
            most = max(most, ratio / prior)
    return math.log(most)


def all_lost(client: Client, history: Sequence[int]) -> float:
    """The most that all reports of a history lose, over whole observations: a check of `most_lost` without its steps."""
    cells = sorted(set(history))
    most = Fraction(0)
    for image in itertools.permutations(client.cells, len(cells)):
        other = [image[cells.index(cell)] for cell in history]
        for shown in itertools.product(client.symbols, repeat=len(history)):
            ratio = Fraction(1)
            for cell in cells:
                places = [place for place, each in enumerate(history) if each == cell]
                seen = tuple(shown[place] for place in places)
                ratio *= client.likelihood(cell, seen) / client.likelihood(other[places[0]], seen)
            most = max(most, ratio)
    return math.log(most)


BITS = tuple(itertools.product((0, 1), repeat=2))


def of_bits(low: Fraction, high: Fraction) -> tuple[tuple[Fraction, ...], ...]:
    """A channel over two independent bits: P[1] of a bit that is 0, and of one that is 1."""

    def chance(before: int, after: int) -> Fraction:
        one = high if before else low
        return one if after else 1 - one

    return tuple(tuple(math.prod(map(chance, before, after), start=Fraction(1)) for after in BITS) for before in BITS)


_KEPT = of_bits(Fraction(1, 5), Fraction(4, 5))
CLIENTS = {
    "loloha": Client(grr(Fraction(3, 4), 3), grr(Fraction(5, 8), 3)),
    # A filter of two bits, of which each of the two values sets one.
    "rappor": Client((_KEPT[BITS.index((0, 1))], _KEPT[BITS.index((1, 0))]), of_bits(Fraction(2, 5), Fraction(3, 4))),
}


def promise(client: Client, values: int | None, reports: int = 7) -> Memoised:
    """The guarantee of a client, from the oracle."""
    curve = [math.ceil(client.curve(t) * 1e12) / 1e12 for t in range(1, reports + 1)]
    cap = math.ceil(client.cap * 1e12) / 1e12
    return Memoised(tuple(f"{min(each, cap):.12f}" for each in curve), f"{cap:.12f}", values)
