"""*Tick all that apply*: the sets of at most m of d options, the number of each, and the client programs of a set.

Sets are numbered by the combinatorial number system. With B_j(c) = Σ_{i≤j} C(c, i), the sets of at most j of the first c
options, a set whose largest option is c has the number B_j(c) plus the number of the rest among sets of at most j - 1. The
empty set has the number 0. With m = d the number is the one whose bits are the ticks.
"""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate
from math import comb, gcd
from typing import TYPE_CHECKING, Any

from .._validation import canonical_text
from ..errors import InvalidParameter, OutsideDomain
from .client_program import Program, answers, uint, whole
from .domain import Categories

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

MOST_OPTIONS = 200
MOST_SETS = 2**53
"""The most sets: a double holds the number of each."""
MOST_TICKS = 20
"""The most ticks of the client program of ticked sets."""
MOST_ITEMS = 255
"""The most options and dummies of that program."""


def starts(options: int, most: int) -> list[list[int]]:
    """Return for j = 1..most the row 0, B_j(0), …, B_j(options - 1): the first numbers of the sets with each largest option."""
    return [[0, *(sum(comb(c, i) for i in range(min(j, c) + 1)) for c in range(options))] for j in range(1, most + 1)]


class TickSets(Categories):
    """The sets of at most `most` of the options 0..options-1.

    Parameters:
        options: d, the number of options, from 1 to 200.
        most: m, the most ticks, from 1 to d.
        numbered: the most ticks of the sets that have a number, from m to d; by default m.

    Raises:
        InvalidParameter: the numbers are out of their ranges, or there are more than 2**53 sets.
    """

    options: int
    most: int
    numbered: int

    def __init__(self, options: int, most: int, numbered: int | None = None) -> None:
        if not 1 <= options <= MOST_OPTIONS:
            raise InvalidParameter("options", f"a whole number from 1 to {MOST_OPTIONS}", options)
        if not 1 <= most <= options:
            raise InvalidParameter("at_most", f"a whole number from 1 to the number of options, {options}", most)
        numbered = most if numbered is None else numbered
        size = sum(comb(options, i) for i in range(numbered + 1))
        if size > MOST_SETS:
            hint = f"With {options} options there are {size:,} sets of at most {most}. Take fewer options or ticks."
            raise InvalidParameter("at_most", f"such that there are at most {MOST_SETS:,} sets", most, hint=hint)
        super().__init__(size)
        object.__setattr__(self, "options", options)
        object.__setattr__(self, "most", most)
        object.__setattr__(self, "numbered", numbered)

    def __str__(self) -> str:
        return f"lists of up to {self.most} different numbers from 0 to {self.options - 1}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TickSets) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[int, int, int]:
        return self.options, self.most, self.numbered

    @property
    def names(self) -> int:
        return self.options

    @cached_property
    def _starts(self) -> list[list[int]]:
        return starts(self.options, self.numbered)

    def number_of(self, ticks: Iterable[int]) -> int:  # type: ignore[override]
        """Return the number of a set.

        Parameters:
            ticks: the ticked options; none for *none of them*.

        Raises:
            OutsideDomain: an option does not exist or is ticked twice, or there are more than `most` ticks.
        """
        listed = sorted(ticks, reverse=True)
        known = all(type(each) is int and 0 <= each < self.options for each in listed)
        if not known or len(set(listed)) != len(listed) or len(listed) > self.most:
            raise OutsideDomain(str(self), listed[::-1])
        return sum(self._starts[self.numbered - 1 - place][1 + each] for place, each in enumerate(listed))

    def ticks_of(self, number: int) -> list[int]:
        """Return the ticked options of a set, ascending.

        Parameters:
            number: the number of the set.
        """
        import bisect

        ticks, left = [], int(number)
        for row in reversed(self._starts):
            largest = bisect.bisect_right(row, left) - 2
            if largest < 0:
                break
            ticks.append(largest)
            left -= row[largest + 1]
        return ticks[::-1]

    def check(self, values: Any) -> NDArray[np.int64]:
        """Return values as numbers of sets.

        Parameters:
            values: a list of lists of ticked options; an array of True and False, shape (n, d); or numbers of sets.

        Returns:
            An integer array, shape (n,).

        Raises:
            OutsideDomain: a value is no set of this domain; the error names the first. No tick is dropped.
        """
        import numpy as np

        if isinstance(values, np.ndarray) and values.dtype == np.bool_ and values.shape[1:] == (self.options,):
            return self._numbers(values)
        if (
            isinstance(values, list | tuple)
            and values
            and all(isinstance(each, list | tuple | set) for each in values)
        ):
            return np.array([self._encoded(each, position) for position, each in enumerate(values)], np.int64)
        numbers = super().check(values)
        return numbers if self.most == self.numbered else self._numbers(self.ticked(numbers))

    def named(self, answers: Sequence[Any], names: Sequence[str]) -> NDArray[np.int64]:
        """Return answers in words as numbers of sets, see `ticks_in`.

        Parameters:
            answers: an answer for each user.
            names: the names of the options, in order.

        Raises:
            OutsideDomain: an answer is no set of this domain; the error names the first. No tick is dropped.
        """
        import numpy as np

        known: dict[Any, int] = {}
        for position, answer in enumerate(answers):
            key = answer if isinstance(answer, str) else repr(answer)
            try:
                known[key] = known[key] if key in known else self.number_of(ticks_in(answer, names))
            except OutsideDomain as error:
                few = isinstance(error.found, list) and f"at most {self.most} different options of {', '.join(names)}"
                raise OutsideDomain(few or error.domain, answer, position, hint=error.hint) from None
        return np.array([known[each if isinstance(each, str) else repr(each)] for each in answers], np.int64)

    def _encoded(self, ticks: Any, position: int) -> int:
        try:
            return self.number_of([each.item() if hasattr(each, "item") else each for each in ticks])
        except (OutsideDomain, TypeError):
            raise OutsideDomain(str(self), list(ticks), position) from None

    def _numbers(self, ticked: NDArray[np.bool_]) -> NDArray[np.int64]:
        import numpy as np

        counts = ticked.sum(axis=1)
        if (counts > self.most).any():
            position = int((counts > self.most).argmax())
            raise OutsideDomain(str(self), np.flatnonzero(ticked[position]).tolist(), position)
        rows = np.array([[0] * (self.options + 1), *self._starts], np.int64)
        larger = counts[:, np.newaxis] - np.cumsum(ticked, axis=1)
        left = np.where(ticked, self.numbered - larger, 0)
        numbers: NDArray[np.int64] = rows[left, np.arange(1, self.options + 1)].sum(axis=1)
        return numbers

    def ticked(self, numbers: Any) -> NDArray[np.bool_]:
        """Return which options each set holds, shape (n, d).

        Parameters:
            numbers: the numbers of sets, shape (n,).
        """
        import numpy as np

        left = np.asarray(numbers, np.int64).copy()
        found = np.zeros((len(left), self.options), np.bool_)
        for row in reversed(self._starts):
            place = np.searchsorted(row, left, side="right") - 1
            held = np.flatnonzero(place)
            found[held, place[held] - 1] = True
            left -= np.array(row, np.int64)[place]
        return found


_NONE = "none"
_SEPARATORS = ";", ",", None


def ticks_in(answer: Any, names: Sequence[str]) -> list[int]:
    """Return the options that an answer names: a list of names, or a text such as `bus; train`, `Good,Bad` or `bus train`.

    An option may hold a separator itself: a text that is one option is that option. `none` is the empty set, unless an option
    is called so.

    Parameters:
        answer: the answer.
        names: the names of the options, in order.

    Raises:
        OutsideDomain: the answer names something that is no option, or is empty.
    """
    places = {canonical_text(name): place for place, name in enumerate(names)}
    expected = f"options of {', '.join(names)}, such as {names[0]}; {names[1]}, or none"
    if isinstance(answer, str):
        text = canonical_text(answer)
        if text in places:
            return [places[text]]
        if text.casefold() == _NONE:
            return []
        splits = [[canonical_text(part) for part in text.split(mark) if part.strip()] for mark in _SEPARATORS]
        found = next((parts for parts in splits if parts and all(part in places for part in parts)), None)
        if found is None:
            hint = "" if text else "Write none if nothing was ticked."
            raise OutsideDomain(expected, answer, hint=hint)
        return [places[part] for part in found]
    listed = list(answer) if isinstance(answer, list | tuple | set | frozenset) else [answer]
    if not all(isinstance(each, str) and canonical_text(each) in places for each in listed):
        raise OutsideDomain(expected, answer)
    return [places[canonical_text(each)] for each in listed]


def hit_weights(own: int, others: int, size: int) -> list[int]:
    """Return for each number i of own items the number of `size`-subsets of own and other items with i own ones."""
    return [comb(own, i) * comb(others, size - i) for i in range(min(own, size) + 1)]


def running(weights: Iterable[int]) -> list[int]:
    """Return running totals."""
    return list(accumulate(weights))


def set_program(options: int, most: int, size: int, least: int, high: int) -> Program:
    """Return the program of ticked sets; the report is an ascending row of `size` items, dummies from d on.

    Parameters:
        options: d, the number of options.
        most: m, the most ticks, and the number of dummies.
        size: k, the items of a report, at most d.
        least: t, the own items from which a report is the likelier one.
        high: 2**64·π.
    """
    weights = hit_weights(most, options, size)
    upper, lower = (_reduced(part) for part in (weights[least:], weights[:least]))
    steps: list[tuple[str, Any]] = [
        ("likelier", ["bit", whole(high)]),
        ("upper", ["below", whole(sum(upper))]),
        ("lower", ["below", whole(sum(lower))]),
        ("drawn", ["subset", options, size]),
        ("order", ["shuffle", "places"]),
        ("turns", ["shuffle", "slots"]),
    ]
    left, items = "value", []
    for slot in range(most, 0, -1):
        first, largest = ["at", "starts", slot - 1], f"largest{slot}"
        steps.append((largest, ["sub", ["rank", first, left], 1]))
        steps.append((f"left{slot - 1}", ["sub", left, ["at", first, largest]]))
        left = f"left{slot - 1}"
        items.append(["where", ["ge", largest, 1], ["sub", largest, 1], options + slot - 1])
    steps += [("own", ["list", *items]), ("held", ["sort", "own"])]
    others = "drawn"
    for slot in range(most):
        steps.append((f"others{slot}", ["add", others, ["ge", others, ["at", "held", slot]]]))
        others = f"others{slot}"
    hits = ["where", "likelier", ["add", least, ["rank", "uppers", "upper"]], ["rank", "lowers", "lower"]]
    row: list[Any] = [["at", others, ["at", "order", place]] for place in range(size)]
    for place in range(min(most, size)):
        row[place] = ["where", ["lt", place, "hits"], ["at", "own", ["at", "turns", place]], row[place]]
    steps += [("hits", hits), ("report", ["sort", ["list", *row]])]
    tables = {
        "starts": [[whole(each) for each in row] for row in starts(options, most)],
        "uppers": [whole(each) for each in running(upper)],
        "lowers": [whole(each) for each in running(lower)],
        "places": list(range(size)),
        "slots": list(range(most)),
    }
    return Program(answers(TickSets(options, most)), tuple(steps), uint("report", options + most - 1, size), tables)


def _reduced(weights: list[int]) -> list[int]:
    return [each // gcd(*weights) for each in weights]


def asked_program(options: int, asked: int, keep: int) -> Program:
    """Return the program of asked options; the report is a row of 2·option + bit.

    Parameters:
        options: d, the number of options.
        asked: s, the options of a report.
        keep: 2**64·π.
    """
    steps: tuple[tuple[str, Any], ...] = (
        ("asked", ["subset", options, asked]),
        ("kept", ["bit", whole(keep)]),
        ("other", ["below", whole(2**asked - 1)]),
        ("cell", ["join", ["and", ["shr", "value", "asked"], 1]]),
        ("shown", ["where", "kept", "cell", ["add", "other", ["ge", "other", "cell"]]]),
        ("report", ["add", ["mul", 2, "asked"], ["and", ["shr", "shown", "places"], 1]]),
    )
    layout = uint("report", 2 * options - 1, asked)
    return Program(answers(TickSets(options, options)), steps, layout, {"places": list(range(asked))})
