"""Grids: answers to several items of one scale, as one whole number, and the client program that randomizes them together.

With d answers to an item, the answers a_0, a_1, … are the number Σ a_i·d^i.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING, Any

from ..errors import InvalidParameter, OutsideDomain
from .client_program import Program, answers, uint, whole
from .domain import Categories

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

MOST_ITEMS = 50
MOST_ASKED = 20
MOST_ANSWERS = 40
MOST_GRIDS = 2**53
"""The most answers to all items together: a double holds the number of each."""


class GridAnswers(Categories):
    """The answers to `items` items, each one of 0..domain_size-1.

    Parameters:
        items: the number of items, from 1 to 50.
        domain_size: d, the number of answers to an item, from 2 to 40.

    Raises:
        InvalidParameter: the numbers are out of their ranges, or there are more than 2**53 answers together.
    """

    items: int
    domain_size: int

    def __init__(self, items: int, domain_size: int) -> None:
        if not 1 <= items <= MOST_ITEMS:
            raise InvalidParameter("items", f"a whole number from 1 to {MOST_ITEMS}", items)
        if not 2 <= domain_size <= MOST_ANSWERS:
            raise InvalidParameter("domain_size", f"a whole number from 2 to {MOST_ANSWERS}", domain_size)
        if domain_size**items > MOST_GRIDS:
            hint = f"{items} items of {domain_size} answers have {domain_size**items:,} together. Make two grids of them."
            raise InvalidParameter(
                "items", f"such that at most {MOST_GRIDS:,} answers are possible", items, hint=hint
            )
        super().__init__(domain_size**items)
        object.__setattr__(self, "items", items)
        object.__setattr__(self, "domain_size", domain_size)

    def __str__(self) -> str:
        return f"lists of {self.items} numbers from 0 to {self.domain_size - 1}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GridAnswers) and (self.items, self.domain_size) == (other.items, other.domain_size)

    def __hash__(self) -> int:
        return hash((self.items, self.domain_size))

    @property
    def names(self) -> int:
        return self.items * self.domain_size

    def number_of(self, chosen: Sequence[int]) -> int:  # type: ignore[override]
        """Return the number of the answers to all items.

        Parameters:
            chosen: the answer to each item.

        Raises:
            OutsideDomain: there are too many or too few, or one is none of the answers.
        """
        known = all(type(each) is int and 0 <= each < self.domain_size for each in chosen)
        if not known or len(chosen) != self.items:
            raise OutsideDomain(str(self), list(chosen))
        return sum(each * self.domain_size**place for place, each in enumerate(chosen))

    def check(self, values: Any) -> NDArray[np.int64]:
        """Return values as numbers.

        Parameters:
            values: a list of lists with the answer to each item; or numbers of these.

        Returns:
            An integer array, shape (n,).

        Raises:
            OutsideDomain: a value is no answer of this domain; the error names the first.
        """
        import numpy as np

        if isinstance(values, list | tuple) and values and all(isinstance(each, list | tuple) for each in values):
            numbers = []
            for position, each in enumerate(values):
                try:
                    numbers.append(self.number_of(each))
                except OutsideDomain as error:
                    raise OutsideDomain(error.domain, error.found, position) from None
            return np.array(numbers, np.int64)
        return super().check(values)

    def chosen(self, numbers: Any) -> NDArray[np.int64]:
        """Return the answer to each item, shape (n, items).

        Parameters:
            numbers: numbers of answers to all items, shape (n,).
        """
        import numpy as np

        powers = self.domain_size ** np.arange(self.items, dtype=np.int64)
        found: NDArray[np.int64] = np.asarray(numbers, np.int64)[:, np.newaxis] // powers % self.domain_size
        return found


def hit_weights(asked: int, answers: int, size: int) -> list[int]:
    """Return for each number i of sets that hold the answer the odds of all rows of such sets, as whole numbers.

    Parameters:
        asked: s, the number of sets.
        answers: d, the number of answers to an item.
        size: the number of answers in each set.
    """
    return [comb(asked, i) * size**i * (answers - size) ** (asked - i) for i in range(asked + 1)]


def grid_program(items: int, domain_size: int, asked: int, size: int, least: int, high: int) -> Program:
    """Return the program of a grid; the report is an ascending row of asked·size cells, item·domain_size + answer.

    Parameters:
        items: the number of items.
        domain_size: d, the number of answers to an item.
        asked: s, the items of a report.
        size: the answers in the set of each asked item, below d.
        least: t, the sets that hold the answer from which a report is the likelier one.
        high: 2**64·π.
    """
    from itertools import accumulate

    weights = hit_weights(asked, domain_size, size)
    upper, lower = weights[least:], weights[:least]
    slots = range(asked)
    steps: list[tuple[str, Any]] = [
        ("asked", ["subset", items, asked]),
        ("likelier", ["bit", whole(high)]),
        ("upper", ["below", whole(sum(upper))]),
        ("lower", ["below", whole(sum(lower))]),
        ("turns", ["shuffle", "slots"]),
    ]
    for slot in slots:
        steps += [(f"others{slot}", ["subset", domain_size - 1, size]), (f"place{slot}", ["below", size])]
    hits = ["where", "likelier", ["add", least, ["rank", "uppers", "upper"]], ["rank", "lowers", "lower"]]
    steps.append(("hits", hits))
    cells: list[Any] = []
    for slot in slots:
        item, row, place = ["at", "asked", slot], f"row{slot}", f"place{slot}"
        own = ["mod", ["div", "value", ["at", "powers", item]], domain_size]
        mine = ["where", ["lt", ["at", "turns", slot], "hits"], f"own{slot}", ["at", row, place]]
        steps += [
            (f"own{slot}", own),
            (row, ["add", f"others{slot}", ["ge", f"others{slot}", f"own{slot}"]]),
            (f"cells{slot}", ["add", ["mul", domain_size, item], ["put", row, place, mine]]),
        ]
        cells += [["at", f"cells{slot}", number] for number in range(size)]
    steps.append(("report", ["sort", ["list", *cells]]))
    tables = {
        "powers": [whole(domain_size**place) for place in range(items)],
        "uppers": [whole(each) for each in accumulate(upper)],
        "lowers": [whole(each) for each in accumulate(lower)],
        "slots": list(slots),
    }
    layout = uint("report", items * domain_size - 1, asked * size)
    return Program(answers(GridAnswers(items, domain_size)), tuple(steps), layout, tables)
