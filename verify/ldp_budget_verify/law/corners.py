"""Numbers: the law of a report for any two answers x and y, from the corners of the regions of (x, y).

Statement. Let the reports be runs of numbers as in `intervals`, where each run has a chance that does not depend on the
answer, or holds a single number that does not move, with a chance affine in the answer. Draw the lines in the plane of
(x, y) on which an end of a run of x meets an end of a run of y, or two ends of the runs of one answer. Then for every
λ, H(λ) = Σ max(P - λQ, 0) of any two answers is at most that at some corner: a point where two of these lines, or of
the borders of the range of the answers, cross.

Proof sketch. The lines cut the plane into convex polygons. Within one of them all ends have one order. So the numbers
between two neighboring ends are as many as an affine function of (x, y) says, and each has a constant chance under
either answer: both masses are affine. A number that does not move is an end on either side of it, so nothing cuts it,
and its masses are affine because its chance is. For any set A of such parts, P(A) - λQ(A) is affine in (x, y), and its
largest value is at a corner of the polygon. H(λ) is the largest of these over all sets A, so it too is largest at a
corner. A corner that is no pair of whole numbers still bounds the pairs around it.

Nothing is derived where a chance changes with the answer and its run does not stay one number, as in a window that the
ends of the range cut off: there P(A) - λQ(A) may be concave, and no corner is the worst. The pairs at the corners are
then compared, the guarantee has to be declared, and `every_pair` is False. Of a few answers every pair is compared.

With a geometric draw, the parts further out than all runs of g = 0 repeat with the factor c, turn by turn. One turn
stands for all of them, times 1/(1-c).
"""

from __future__ import annotations

import functools
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise
from math import lcm
from typing import TYPE_CHECKING, Any, NamedTuple

from ldp_budget.sdk.channels import Comparison, Factor
from ldp_budget.sdk.client_program import OPERATORS
from ldp_budget.sdk.report_law import Law, Pairs, Unknown, Worst, loss_of

from .kept_draws import names_of, of_bit, renamed
from .symbolic_intervals import Affine, Run, Runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.sdk.client_program import Program

_MOST_LINES = 300
_MOST_CORNERS = 2_000
_MOST_PARTS = 400_000
"""The most parts of all pairs together."""
_FEW = 40
"""The most answers of which every pair is compared."""


class Numbers(Law):
    """The law of a report of a number, or of a few answers, by runs of numbers."""

    rule = "runs of numbers"

    def __init__(self, program: Program) -> None:
        self._turns, self.program = from_places(from_memo(program))
        given = self.program.input
        if given["kind"] == "word":
            raise Unknown("words are no numbers")
        self.last = int(given["last"]) if given["kind"] == "number" else int(given["count"]) - 1
        if self.last < 1:
            raise Unknown("a single answer")
        self._runs: Runs | None = Runs(self.program, 0, self.last)
        self.few = self.last <= _FEW
        try:
            self.every_pair = _is_affine(self._runs.runs) or self.few
        except Unknown:
            # Of numbers, a declared guarantee may still be checked for the two ends.
            if not self.few and given["kind"] != "number":
                raise
            self._runs, self.every_pair = None, self.few
        self.compare(0, self.last)
        _ = self.corners  # gives up here if they are too many

    # -- two answers -------------------------------------------------------------------------------------------------

    @functools.lru_cache(maxsize=8)  # noqa: B019 - one law is short-lived
    def _alone(self, x: Any) -> tuple[list[Run], Fraction | None]:
        """Return the runs of one answer, and c of the geometric draw."""
        if self._runs is None:
            runs = Runs(self.program, x, x)
            return runs.runs, runs.fall
        every = self._runs.runs
        return [run for run in every if run.first <= x <= run.last], self._runs.fall

    @functools.lru_cache(maxsize=2)  # noqa: B019 - for the pair that __init__ compares
    def compare(self, first: Any, second: Any) -> Pairs:
        """Return (P, Q) of the parts on which the laws of both answers are constant."""
        return self._parts(first, second).merged()

    def _parts(self, first: Any, second: Any) -> Parts:
        (one, fall), (two, _) = (self._alone(x) for x in (first, second))
        return parts_of(one, first, two, second, fall)

    def _place(self, answer: int) -> int:
        """Return the place of an answer, where the report depends on the place alone."""
        return answer if self._turns is None else bisect_right(self._turns, answer)

    def _answers(self, pair: tuple[Any, Any]) -> tuple[int, int]:
        """Return the least answers of two places, where the report depends on the place alone."""
        first, second = map(int, pair)
        turns = None if self._turns is None else (0, *self._turns)
        return (first, second) if turns is None else (turns[first], turns[second])

    def comparison(self, first: int, second: int) -> Comparison:
        return Comparison.of(Factor(tuple(self._parts(self._place(first), self._place(second)).ordered())))

    def outcomes(self, numbers: NDArray[np.int64], first: int, second: int) -> NDArray[np.int64]:
        """Return the outcome of `comparison` of each number that is sent.

        Parameters:
            numbers: whole numbers, in the units of the report before it is laid out, shape (n,).
            first: an answer.
            second: another answer.

        Raises:
            Unknown: the numbers have no bounds.
        """
        import numpy as np

        first, second = self._place(first), self._place(second)
        rows = self._parts(first, second).rows
        if _turn(self._alone(first)[0], self._alone(second)[0]):
            raise Unknown("numbers without bounds")
        starts = [start for start, *_ in rows]
        return np.asarray(np.searchsorted(starts, numbers, side="right") - 1, np.int64)

    @functools.cached_property
    def corners(self) -> list[tuple[Any, Any]]:
        """The pairs of answers that are compared."""
        if self._runs is None or not _is_affine(self._runs.runs):
            if self.few:
                return list(combinations(range(self.last + 1), 2))
            if self._runs is None:
                return [(0, self.last)]
        found = corners_of(self._runs.runs, self.last)
        if not self.every_pair:
            found = list({tuple(sorted((round(x), round(y)))) for x, y in found})
        return found

    def pairs(self) -> list[Pairs]:
        return self._pairs

    @functools.cached_property
    def _pairs(self) -> list[Pairs]:
        found, left = [], _MOST_PARTS
        for x, y in self.corners:
            pair = self.compare(x, y)
            left -= len(pair)
            if left < 0:
                raise Unknown("the pairs of answers have too many parts")
            found.append(pair)
        return list({frozenset(Counter(pair).items()): pair for pair in found}.values())

    def worst(self) -> Worst:
        best: tuple[Fraction, Any] | None = None
        for x, y in self.corners:
            for p, q in self.compare(x, y):
                for pair, (a, b) in (((x, y), (p, q)), ((y, x), (q, p))):
                    if a and (best is None or not b or a / b > best[0]):
                        if not b:
                            return Worst(self._answers(pair), "a run that only the first one gives", None)
                        best = a / b, pair
        assert best is not None
        return Worst(self._answers(best[1]), "a run of numbers", loss_of(best[0], Fraction(1)))

    # -- one answer --------------------------------------------------------------------------------------------------

    def moments(self, x: int) -> tuple[Fraction, Fraction]:
        """Return the mean and the mean square of the whole number that is sent.

        Raises:
            Unknown: the number has no bounds.
        """
        x = self._place(x)
        runs, fall = self._alone(x)
        if fall is not None:
            raise Unknown("the reports have no bounds")
        mean = square = Fraction(0)
        for run in runs:
            a, b, chance = run.start.at(x), run.stop.at(x), run.chance(x)
            mean += chance * ((b - a) * (a + b - 1) // 2)
            square += chance * ((b - 1) * b * (2 * b - 1) // 6 - (a - 1) * a * (2 * a - 1) // 6)
        return mean, square

    def _curve(self, reports: int | None) -> Fraction:
        return of_bit(self.program, self.last, reports)


# -- two laws ------------------------------------------------------------------------------------------------------------


class Parts(NamedTuple):
    """The parts of the numbers on which both laws are constant, in order.

    `rows`: (start, stop, p, q), with the chances p/scales[0] and q/scales[1] of each number. Parts before `low` and from
    `high` on are a turn that stands for all turns further out, `more` times as likely together.
    """

    rows: list[tuple[Any, Any, int, int]]
    scales: tuple[int, int]
    low: Any
    high: Any
    more: Fraction

    def masses(self, rows: Any) -> Pairs:
        """Return (P, Q) of parts: (size, p, q, True if they are no turn that stands for others)."""
        found = []
        for size, p, q, near in rows:
            times = Fraction(size) if near else size * self.more
            found.append((times * Fraction(p, self.scales[0]), times * Fraction(q, self.scales[1])))
        if any(sum(side) != 1 for side in zip(*found, strict=True)):
            raise Unknown("the runs of a report do not add up to one")
        return found

    def ordered(self) -> Pairs:
        """Return (P, Q) of each part, in order."""
        return self.masses((stop - start, p, q, self.low <= start < self.high) for start, stop, p, q in self.rows)

    def merged(self) -> Pairs:
        """Return (P, Q) of the parts; those with equal chances are added up."""
        sizes: Counter[tuple[int, int, bool]] = Counter()
        for start, stop, p, q in self.rows:
            if p or q:
                sizes[p, q, self.low <= start < self.high] += stop - start
        return self.masses((size, *chances) for chances, size in sizes.items())


def parts_of(one: list[Run], x: Any, two: list[Run], y: Any, fall: Fraction | None) -> Parts:
    """Return the parts of two answers; `fall` is c of a geometric draw."""
    sides = [_at(one, x), _at(two, y)]
    turn = _turn(one, two)
    ends = [end for side in sides for start, stop, _, _ in side for end in (start, stop)]
    low, high = min(ends), max(ends)
    more, limits = Fraction(1), (low, high)
    if turn:
        assert fall is not None
        more, limits = 1 / (1 - fall), (low - turn, high + turn)
        sides = [list(_repeated(side, fall, limits)) for side in sides]
    scales = [lcm(*{chance.denominator for _, _, chance, _ in side}) for side in sides]
    steps = [_steps(side, scale) for side, scale in zip(sides, scales, strict=True)]
    p = q = 0
    rows = []
    for start, stop in pairwise(sorted({*steps[0], *steps[1], low, high, *limits})):
        p, q = p + steps[0].get(start, 0), q + steps[1].get(start, 0)
        rows.append((start, stop, p, q))
    return Parts(rows, (scales[0], scales[1]), low, high, more)


def _at(runs: list[Run], x: Any) -> list[tuple[Any, Any, Fraction, int]]:
    """Return (start, stop, chance of each number, turns) of the runs of one answer, without empty ones."""
    found = ((run.start.at(x), run.stop.at(x), run.chance(x), run.turns) for run in runs)
    return [each for each in found if each[0] < each[1] and each[2]]


def _steps(runs: Any, base: int) -> dict[Any, int]:
    """Return the changes of the chance of a number, times `base`, by the number at which it changes."""
    changes: dict[Any, int] = {}
    for start, stop, chance, _ in runs:
        size = chance.numerator * (base // chance.denominator)
        changes[start] = changes.get(start, 0) + size
        changes[stop] = changes.get(stop, 0) - size
    return changes


def _turn(*sides: list[Run]) -> int:
    """Return by how much a run moves with the geometric draw, 0 if none does."""
    turns = {abs(run.turns) for side in sides for run in side} - {0}
    if len(turns) > 1:
        raise Unknown("runs that move by different numbers")
    return turns.pop() if turns else 0


def _repeated(runs: Any, fall: Fraction, limits: tuple[Any, Any]) -> Iterator[tuple[Any, Any, Fraction, int]]:
    """Yield the runs of all g, cut off at the limits."""
    low, high = limits
    for start, stop, chance, turn in runs:
        if not turn:
            yield start, stop, chance, 0
            continue
        chance *= 1 - fall
        while start < high and stop > low:
            yield max(start, low), min(stop, high), chance, turn
            start, stop, chance = start + turn, stop + turn, chance * fall


# -- corners -------------------------------------------------------------------------------------------------------------


def _is_affine(runs: list[Run]) -> bool:
    """Return True if every mass is affine in the answers where the order of the ends is fixed."""
    for run in runs:
        if run.constant or run.first == run.last:
            continue
        fixed = run.start.slope == run.stop.slope == 0 and run.stop.plus - run.start.plus == 1
        if not fixed or run.turns or any(each.slope for each in run.below) or len(run.above) > 2:
            return False
    return True


def corners_of(runs: list[Run], last: int) -> list[tuple[Any, Any]]:
    """Return the corners of the regions of two answers from 0 to `last`, in one order of the two."""
    regions = _regions(runs, last)
    turn = _turn(runs)
    if len(regions) * len(regions) > _MOST_CORNERS:
        raise Unknown("the answers fall into too many ranges")
    found: dict[tuple[Any, Any], None] = {}
    moves = {end.slope for run in runs for end in (run.start, run.stop)}
    alike = len(regions) == 1 and len(moves) == 1 and moves != {0} and all(run.constant for run in runs)
    for place, own in enumerate(regions):
        for other in regions[place:]:
            for x, y in _corners_within(_ends(runs, own), own, _ends(runs, other), other, turn):
                pair = (x, y) if x <= y else (y, x)
                # If all ends move alike, the distance of two answers is all that counts.
                found[(Fraction(0), pair[1] - pair[0]) if alike else pair] = None
            if len(found) > _MOST_CORNERS:
                raise Unknown("the regions of two answers have too many corners")
    return [pair for pair in found if pair[0] != pair[1]]


def _ends(runs: list[Run], region: tuple[int, int]) -> list[Affine]:
    return sorted({end for run in runs if run.first <= region[0] <= run.last for end in (run.start, run.stop)})


def _regions(runs: list[Run], last: int) -> list[tuple[int, int]]:
    """Return ranges of answers within which the runs are the same and their ends have one order."""
    borders = {0, last + 1, *(run.first for run in runs), *(run.last + 1 for run in runs)}
    found = []
    for first, stop in pairwise(sorted(borders)):
        inner, ends = {first, stop}, _ends(runs, (first, stop - 1))
        slopes = sorted({end.slope for end in ends})
        if len(slopes) > 1:
            if any(run.turns for run in runs):
                raise Unknown("repeated runs that move apart")
            if len(ends) ** 2 > _MOST_PARTS:
                raise Unknown("too many ends of runs")
            for a, b in combinations(ends, 2):
                if a.slope != b.slope:
                    # Neither the last answer before they meet nor the first one after is within the other's range.
                    meet = Fraction(b.plus - a.plus, a.slope - b.slope)
                    if first <= meet < stop:
                        whole = meet.denominator == 1
                        inner |= {int(meet), int(meet) + 1} if whole else {-int(-meet // 1)}
        found += list(pairwise(sorted(each for each in inner if first <= each <= stop)))
        if len(found) > _MOST_LINES:
            raise Unknown("the answers fall into too many ranges")
    return [(start, stop - 1) for start, stop in found]


def _corners_within(
    ends: list[Affine], own: tuple[int, int], others: list[Affine], other: tuple[int, int], turn: int
) -> Iterator[tuple[Any, Any]]:
    """Yield the crossings, within the two ranges, of the lines on which an end of x meets one of y."""
    # A line is a·x + b·y = c.
    lines = {(1, 0, own[0]), (1, 0, own[1]), (0, 1, other[0]), (0, 1, other[1])}
    for a in sorted({end.slope for end in ends}):
        pluses = [end.plus for end in ends if end.slope == a]
        for b in sorted({end.slope for end in others}):
            reach = [a * x - b * y for x in own for y in other]
            theirs = sorted({end.plus for end in others if end.slope == b})
            lines |= {(a, -b, c) for c in _differences(pluses, theirs, min(reach), max(reach), turn) if a or b}
            if len(lines) > _MOST_LINES:
                raise Unknown("the ends of runs meet on too many lines")
    for (a, b, c), (d, e, f) in combinations(sorted(lines), 2):
        if det := a * e - b * d:
            x, y = Fraction(c * e - b * f, det), Fraction(a * f - c * d, det)
            if own[0] <= x <= own[1] and other[0] <= y <= other[1]:
                yield x, y


def _differences(own: list[int], others: list[int], low: int, high: int, turn: int) -> set[int]:
    """Return the differences other - own from `low` to `high`, also of numbers any whole number of turns apart."""
    found: set[int] = set()
    for plus in own:
        first, last = (0, 0)
        if turn:
            first, last = (low + plus - others[-1]) // turn, -((others[0] - plus - high) // turn)
        for step in range(first, last + 1):
            start = plus - step * turn
            place = bisect_left(others, low + start)
            while place < len(others) and others[place] - start <= high:
                found.add(others[place] - start)
                place += 1
            if len(found) > _MOST_LINES:
                raise Unknown("the ends of runs meet on too many lines")
    return found


# -- kept draws ----------------------------------------------------------------------------------------------------------


def from_memo(program: Program) -> Program:
    """Return the program from the memo on, with the memo in place of the answer.

    Reports depend on the answer through the memo alone. For each outcome of the draws that make the memo, two answers
    become two memos, and divergences are jointly convex. So no two answers are told apart better than some two memos.
    """
    if program.memo in ("", "value"):
        return program
    steps = dict(program.steps)
    match steps.get(program.memo):
        case ["shr", ["add", "value", str(words)], int(bits)]:
            drawn = steps.get(words)
        case _:
            raise Unknown("a memo that is no rounded number")
    last = int(program.input.get("last", -1))
    if (
        not (isinstance(drawn, list) and drawn[0] == "kept_top" and drawn[2:] == [0, bits])
        or last < 0
        or last % (1 << bits)
    ):
        raise Unknown("a memo that is no rounded number")
    place = [name for name, _ in program.steps].index(program.memo) + 1
    before = {"value", *(name for name, _ in program.steps[: place - 1])}
    after = program.steps[place:]
    if any(before & set(names_of(x)) for _, x in after) or program.report["parts"][0][1] in before:
        raise Unknown("a report that depends on more of the answer than its memo")
    if drawn[1] in {x[1] for _, x in after if isinstance(x, list) and OPERATORS[x[0]].kind == "memo"}:
        raise Unknown("two draws that may be made of the same words of the secret")
    inner = tuple((name, renamed(x, program.memo)) for name, x in after)
    given = {"kind": "answer", "count": (last >> bits) + 1, "text": False}
    memo = "value" if any(isinstance(x, list) and OPERATORS[x[0]].kind == "memo" for _, x in inner) else ""
    parts = [
        [kind, "value" if name == program.memo else name, *more] for kind, name, *more in program.report["parts"]
    ]
    return replace(program, input=given, steps=inner, report={**program.report, "parts": parts}, memo=memo)


def from_places(program: Program) -> tuple[list[int] | None, Program]:
    """Return the least answer of each place, and the program with places as answers; None for any other program.

    Where the answer enters by one step alone, its rank in a public ascending table, reports depend on the answer through the
    place alone. So two answers are told apart as their places are, and every two places have answers.
    """
    last = int(program.input.get("last", 0))
    ranks = [place for place, (_, x) in enumerate(program.steps) if isinstance(x, list) and x[0] == "rank"]
    if not ranks or program.memo:
        return None, program
    at = ranks[0]
    name, x = program.steps[at]
    assert isinstance(x, list)
    table: Any = x[1]
    if (
        x[2] != "value"
        or not isinstance(table, list)
        or table[0] != "list"
        or not all(type(turn) is int for turn in table[1:])
    ):
        return None, program
    turns: list[int] = table[1:]
    others = [each for place, (_, each) in enumerate(program.steps) if place != at]
    reported = {part[1] for part in program.report["parts"]}
    ascends = all(low < high for low, high in pairwise((0, *turns, last + 1)))
    if "value" in {*reported, *(each for x in others for each in names_of(x))} or name in reported or not ascends:
        return None, program
    steps = tuple((one, renamed(x, name)) for place, (one, x) in enumerate(program.steps) if place != at)
    given = {"kind": "answer", "count": len(turns) + 1, "text": False}
    return turns, replace(program, input=given, steps=steps)
