"""The steps of a program on whole ranges of numbers: each report is uniform on a run of numbers.

Statement. Take answers x from a range of whole numbers, and draws that are uniform below a bound affine in x. If every
step is affine in x and in at most one draw, or compares two such numbers, then the report is a mixture of runs: with
a chance h(x) for each number, it is uniform on the numbers from s(x) up to e(x), with s and e affine in x.

Proof sketch. A draw is kept as the interval of its values that are still possible, with ends affine in x. A comparison
of affine numbers holds for the values of the draw on one side of a cut, which is affine in x. It splits the interval
in two, and the range of x where the cut leaves the interval. So every branch ends with an affine function of one draw,
uniform on its interval. A whole quotient by k of such a function is uniform too where k divides both ends; for a
single x, its first and last value have weights of their own. Each number of a run has the chance of the branch's coins,
times 1/b for the reported draw, uniform below b, and (e - s)/b for each other draw, of which e - s values are left.

A geometric draw g may only be added, times a whole number T: the run then stands for the runs that are g·T further out,
g = 0, 1, 2, …, each c times as likely as the one before.

What is not of these forms is refused (`Unknown`), and so is a program with too many branches.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from ldp_budget.sampling import ONE
from ldp_budget.sdk.client_program import OPERATORS, Ascending
from ldp_budget.sdk.interpreter import evaluate
from ldp_budget.sdk.operator_forms import check_draw
from ldp_budget.sdk.report_law import Unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ldp_budget.sdk.client_program import Expression, Program

MOST_RUNS = 70_000
"""The most branches of a program: a table of 2**15 weights on either side of an answer has as many."""
_MOST_STATES = 60_000
_FEW_POINTS = 64
"""The most answers that are taken one by one where a step is not affine in them."""
_MOST_TURNS = 64
_CHEAP = 64
"""So many entries of a vector count as one branch."""
_MOST_DRAWN = 2**63
_LARGEST_DOUBLE = 2.0**1000
_HUGE = 2**2048


class Affine(NamedTuple):
    """slope·x + plus."""

    slope: int
    plus: int

    def at(self, x: Any) -> Any:
        return self.slope * x + self.plus

    def less(self, other: Affine) -> Affine:
        """Return the difference of the two."""
        return Affine(self.slope - other.slope, self.plus - other.plus)


class Line(NamedTuple):
    """floor((times·u + slope·x + plus) / over) + rise·x + then + turns·g, of an answer x and draws u and g."""

    draw: str = ""
    times: int = 0
    slope: int = 0
    plus: int = 0
    over: int = 1
    rise: int = 0
    then: int = 0
    turns: int = 0

    @property
    def is_affine(self) -> bool:
        """True if it depends on the answer alone."""
        return not self.times and not self.turns and self.over == 1

    @property
    def affine(self) -> Affine:
        return Affine(self.slope, self.plus)


class Ranked(NamedTuple):
    """sign·rank(table, line) + plus, for a single answer: a draw that falls between the entries of a long table."""

    table: list[int]
    line: Line
    sign: int = 1
    plus: int = 0


class Interval(NamedTuple):
    """The values of a draw below `bound` that are still possible: from `low` up to `high`."""

    low: Affine
    high: Affine
    bound: Affine

    @property
    def whole(self) -> bool:
        return self.low == (0, 0) and self.high == self.bound


class Run(NamedTuple):
    """A report that is uniform on the numbers from `start` up to `stop`, for answers from `first` to `last`.

    Each number has the chance (above[0] + above[1]·x + …) / (2**(64·coins)·Πbelow(x)). With `turns` T, that is the run
    of g = 0.
    """

    first: int
    last: int
    start: Affine
    stop: Affine
    above: tuple[int, ...]
    coins: int
    below: tuple[Affine, ...]
    turns: int = 0

    def chance(self, x: Any) -> Fraction:
        """Return the chance of each number."""
        above, below = 0, ONE**self.coins
        for coefficient in reversed(self.above):
            above = above * x + coefficient
        for each in self.below:
            below *= each.at(x)
        return Fraction(above, below) if isinstance(x, int) else Fraction(above) / below

    @property
    def constant(self) -> bool:
        """True if the chance does not depend on the answer."""
        return len(self.above) == 1 and not any(each.slope for each in self.below)


class _Fixed(list[Any]):
    """A table without lines, so that no entry has to be looked at."""


def _fixed(table: Any) -> Any:
    if not isinstance(table, list) or isinstance(table, Ascending):
        return table
    if table and isinstance(table[0], list):
        return _Fixed(map(_fixed, table))
    return Ascending(table) if table == sorted(table) else _Fixed(table)


class _State(NamedTuple):
    """A branch: the answers and draws that lead to it, what is known on it, and its chance."""

    first: int
    last: int
    known: dict[str, Any]
    draws: dict[str, Interval]
    weight: int = 1
    coins: int = 0
    above: tuple[Affine, ...] = ()

    def cut(self, first: int, last: int) -> _State:
        return self._replace(first=first, last=last)


@dataclass
class Runs:
    """The runs of the reports of the answers from `first` to `last`.

    Raises `Unknown` for a program of which the statement is not known to hold.
    """

    program: Program
    first: int
    last: int
    fall: Fraction | None = field(default=None, init=False)
    """c, if the program has a geometric draw."""

    def __post_init__(self) -> None:
        self._left = _MOST_STATES
        self._kind = _report_of(self.program)
        _check_labels(self.program)

    @cached_property
    def runs(self) -> list[Run]:
        """All runs."""
        try:
            return self._merged(list(self._all()))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise Unknown(f"a step may fail: {error}") from None

    def _all(self) -> Any:
        known = {name: _fixed(table) for name, table in self.program.table_values.items()}
        known["value"] = Line(slope=1)
        waiting = [(0, _State(self.first, self.last, known, {}))]
        steps, sent, count = self.program.steps, self._kind[1], 0
        while waiting:
            place, state = waiting.pop()
            if place < len(steps):
                name, x = steps[place]
                for after, found in self._values(x, state, name):
                    waiting.append((place + 1, after._replace(known={**after.known, name: found})))
                continue
            for run in self._reported(state, _settled(state.known[sent], state)):
                count += 1
                if count > MOST_RUNS:
                    raise Unknown(f"the reports fall into more than {MOST_RUNS:,} runs")
                yield run

    @staticmethod
    def _merged(runs: list[Run]) -> list[Run]:
        """Add up the chances of runs of the same numbers."""
        sums: dict[Any, Run] = {}
        for run in runs:
            key = (*run[:4], run.below, run.turns)
            same = sums.get(key)
            if same is not None:
                low, high = sorted((same, run), key=lambda each: each.coins)
                more = ONE ** (high.coins - low.coins)
                run = high._replace(above=_added_up(high.above, [each * more for each in low.above]))
            sums[key] = run
        return [run for run in sums.values() if any(run.above)]

    # -- the report --------------------------------------------------------------------------------------------------

    def _reported(self, state: _State, found: Any) -> Any:
        below, above = [], list(state.above)
        line = Line(plus=found) if isinstance(found, int) else found
        ranked = line if isinstance(line, Ranked) else None
        line = line.line if isinstance(line, Ranked) else line
        if not isinstance(line, Line):
            raise Unknown("a report that is no number")
        for name, (low, high, bound) in state.draws.items():
            if name == line.draw and line.times:
                below.append(bound)
            elif not Interval(low, high, bound).whole:
                above.append(high.less(low))
                below.append(bound)
        for start, stop, each in _between_entries(ranked, state) if ranked else self._pieces(line, state):
            self._check_report(state, start, stop, line.turns)
            chance = [state.weight * each]
            for factor in above:
                chance = _times(chance, factor)
            yield Run(
                state.first,
                state.last,
                start,
                stop,
                _added_up(chance, ()),
                state.coins,
                tuple(sorted(below)),
                line.turns,
            )

    def _pieces(self, line: Line, state: _State) -> list[tuple[Affine, Affine, int]]:
        """Return runs of the reports, and how many values of the draw come to each number."""
        if not line.times:
            if line.over != 1:
                raise Unknown("a quotient of the answer")
            return [(line.affine, Affine(line.slope, line.plus + 1), 1)]
        low, high, _ = state.draws[line.draw]
        k, rise = line.over, Affine(line.rise, line.then)
        if abs(line.times) != 1:
            raise Unknown("a multiple of a draw leaves gaps")
        if line.times == 1:
            ends = _sum(low, line.affine), _sum(high, line.affine)
        else:
            ends = _sum(line.affine.less(high), Affine(0, 1)), _sum(line.affine.less(low), Affine(0, 1))
        if all(number % k == 0 for end in ends for number in end):
            start, stop = (Affine(end.slope // k, end.plus // k) for end in ends)
            return [(_sum(start, rise), _sum(stop, rise), k)]
        if state.first != state.last:
            raise Unknown("a quotient of a draw with remainders, of a range of answers")
        first, stop_at = (end.at(state.first) for end in ends)
        return [
            (Affine(0, start + rise.at(state.first)), Affine(0, stop + rise.at(state.first)), each)
            for start, stop, each in _quotients(first, stop_at, k)
        ]

    def _check_report(self, state: _State, start: Affine, stop: Affine, turns: int) -> None:
        part = self._kind
        corners = [end.at(x) for end in (start, stop) for x in (state.first, state.last)]
        if part[0] == "uint":
            if turns or min(corners) < 0 or max(corners) > 256 ** int(part[2]):
                raise Unknown("a report may be too large for its bytes")
            return
        origin, step, plus = float(part[2]), float(part[3]), int(part[4])
        if any(abs(origin) + abs(float(each + plus) * step) > _LARGEST_DOUBLE for each in corners):
            raise Unknown("a report may be too large for a double")

    # -- expressions -------------------------------------------------------------------------------------------------

    def _values(self, x: Expression, state: _State, name: str = "") -> list[tuple[_State, Any]]:
        """Return the branches, and the value on each."""
        if isinstance(x, int):
            return [(state, x)]
        if isinstance(x, str):
            return [(state, _settled(state.known[x], state) if x in state.known else int(x))]
        self._left -= 1
        if self._left < 0:
            raise Unknown("too many branches")
        op, *given = x
        states: list[tuple[_State, tuple[Any, ...]]] = [(state, ())]
        for each in given[1 if OPERATORS[op].labelled else 0 :]:
            states = [(after, (*done, v)) for one, done in states for after, v in self._values(each, one)]
        if len(states) == 1:
            return self._call(op, states[0][1], states[0][0], name)
        return [found for after, done in states for found in self._call(op, done, after, name)]

    def _call(self, op: str, given: tuple[Any, ...], state: _State, name: str) -> list[tuple[_State, Any]]:
        if OPERATORS[op].kind in ("draw", "memo"):
            return self._draw(op, given, state, name)
        given = tuple(_settled(each, state) for each in given)
        if OPERATORS[op].kind == "hash":
            raise Unknown("a hash")
        if not any(_has_lines(each) for each in given):
            if op not in ("at", "rank"):
                self._left -= sum(len(each) for each in given if isinstance(each, list)) // _CHEAP
            names = [f"a{place}" for place in range(len(given))]
            return [(state, evaluate([op, *names], dict(zip(names, given, strict=True)), None))]
        match op, given:
            case "list", _:
                return [(state, list(given))]
            case "where", (0 | 1 as c, a, b):
                return [(state, a if c else b)]
            case "at", (list() as vector, int(place)) if 0 <= place < len(vector):
                return [(state, vector[place])]
            case "at", (list(), Line(is_affine=True)) if state.last - state.first < _FEW_POINTS:
                points = (state.cut(x, x) for x in range(state.first, state.last + 1))
                return [found for one in points for found in self._call(op, given, one, name)]
            case "rank", (list() as table, Line() as line):
                return self._rank(table, line, state)
            case (("lt" | "ge" | "eq"), (a, b)):
                return self._compare(op, a, b, state)
            case (("min" | "max"), (a, b)):
                return [(s, a if (op == "min") == bool(c) else b) for s, c in self._compare("lt", a, b, state)]
            case "mod", (Line() as line, int(k)) if k > 0:
                return self._rest(line, k, state)
            case "div", (Line(is_affine=True) as line, int(k)) if k > 0 and line.slope % k:
                return [(one, turn) for one, turn, _ in self._turns(line, k, state)]
            case "shr", (Line(is_affine=True) as line, int(k)) if 0 <= k <= 64 and line.slope % (1 << k):
                return [(one, turn) for one, turn, _ in self._turns(line, 1 << k, state)]
        found = _arithmetic(op, given)
        if isinstance(found, Line) and any(abs(each) > _HUGE for each in found[1:]):
            raise Unknown("a number of too many bits")
        return [(state, found)]

    # -- draws -------------------------------------------------------------------------------------------------------

    def _draw(self, op: str, given: tuple[Any, ...], state: _State, name: str) -> list[tuple[_State, Any]]:
        if not any(map(_has_lines, given)):
            check_draw(op, list(given))
        match op, given:
            case "bit", (t,):
                return self._coin(t, state)
            case "bit_at", (t,):
                return self._coin(t, state, most=ONE - 1)
            case "kept_bits", (v, t, 1) if _is_word(v, state):
                return [(one, [bit]) for one, bit in self._coin(t, state)]
            case "bits_each", (list() as vector,):
                found: list[tuple[_State, list[int]]] = [(state, [])]
                for t in vector:
                    found = [(two, [*bits, bit]) for one, bits in found for two, bit in self._coin(t, one)]
                    self._left -= len(found)
                    if self._left < 0:
                        raise Unknown("too many branches")
                return list(found)
            case "below", (bound,):
                return self._below(bound, state, name)
            case "kept_top", (v, int(k)) if _is_word(v, state):
                return self._below(1 << k, state, name)
            case "geometric", (int(t),) if 0 < t < ONE and self.fall in (None, Fraction(t, ONE)):
                if self.fall is None:
                    self.fall, self._geometric = Fraction(t, ONE), name
                if self._geometric == name:
                    return [(state, Line(turns=1))]
        raise Unknown(f"{op} is no draw of one number")

    @staticmethod
    def _coin(t: Any, state: _State, most: int = ONE) -> list[tuple[_State, int]]:
        line = Line(plus=t) if isinstance(t, int) else t
        if not isinstance(line, Line) or not line.is_affine:
            raise Unknown("a coin that depends on a draw")
        if not all(0 <= line.affine.at(x) <= most for x in (state.first, state.last)):
            raise Unknown("a coin with a chance beyond one")
        sides = [(0, Affine(-line.slope, ONE - line.plus)), (1, line.affine)]
        found = []
        for bit, chance in sides:
            if chance == (0, 0):
                continue
            if chance == (0, ONE):
                found.append((state, bit))
            elif chance.slope:
                after = state._replace(coins=state.coins + 1, above=(*state.above, chance))
                found.append((after, bit))
            else:
                after = state._replace(coins=state.coins + 1, weight=state.weight * chance.plus)
                found.append((after, bit))
        return found

    @staticmethod
    def _below(bound: Any, state: _State, name: str) -> list[tuple[_State, Any]]:
        line = Line(plus=bound) if isinstance(bound, int) else bound
        if not isinstance(line, Line) or not line.is_affine:
            raise Unknown("a draw whose bound depends on a draw")
        if not all(1 <= line.affine.at(x) <= _MOST_DRAWN for x in (state.first, state.last)):
            raise Unknown("a draw below no number from 1 to 2**63")
        draws = {**state.draws, name: Interval(Affine(0, 0), line.affine, line.affine)}
        return [(state._replace(draws=draws), Line(draw=name, times=1))]

    # -- comparisons -------------------------------------------------------------------------------------------------

    def _compare(self, op: str, a: Any, b: Any, state: _State) -> list[tuple[_State, int]]:
        if op == "ge":
            return [(one, 1 - less) for one, less in self._compare("lt", a, b, state)]
        if op == "eq":
            found = []
            for one, less in self._compare("lt", a, b, state):
                if less:
                    found.append((one, 0))
                else:
                    found += [(two, 1 - more) for two, more in self._compare("lt", b, a, one)]
            return found
        return [(one, int(less)) for one, less in _below_zero(_difference(a, b), state)]

    def _rank(self, table: list[int], line: Line, state: _State) -> list[tuple[_State, Any]]:
        if _has_lines(table) or not all(isinstance(each, int) for each in table):
            raise Unknown("a rank in a table that is not fixed")
        if not isinstance(table, Ascending) and (len(table) > _MOST_TURNS or table != sorted(table)):
            raise Unknown("a rank in a table that does not ascend")
        low, high = _bounds(line, state)
        first, last = bisect_right(table, low), bisect_right(table, high)
        if last - first > _MOST_TURNS:
            if line.over != 1 or line.times != 1 or state.first != state.last:
                raise Unknown("a rank in a long table, of a range of answers or of a multiple of a draw")
            return [(state, Ranked(table, line))]
        rest, found = [state], list[tuple[_State, Any]]()
        for place in range(first, last):
            sides = [side for one in rest for side in _below_zero(_difference(line, table[place]), one)]
            found += [(one, place) for one, less in sides if less]
            rest = [one for one, less in sides if not less]
            self._left -= 1
            if self._left < 0:
                raise Unknown("too many branches")
        return found + [(one, last) for one in rest]

    def _rest(self, line: Line, k: int, state: _State) -> list[tuple[_State, Any]]:
        if line.over != 1:
            raise Unknown("the rest of a quotient")
        return [(one, _settled(rest, one)) for one, _, rest in self._turns(line, k, state)]

    @staticmethod
    def _turns(line: Line, k: int, state: _State) -> list[tuple[_State, int, Line]]:
        """Return the branches on which the quotient by k is one number, with that number and the rest."""
        low, high = _bounds(line, state)
        first, last, left, found = low // k, high // k, [state], list[tuple[_State, int, Line]]()
        if last - first > _MOST_TURNS:
            raise Unknown("the rest of a wide number")
        for turn in range(first, last + 1):
            own, beyond = (line._replace(plus=line.plus - each * k) for each in (turn, turn + 1))
            sides = [side for one in left for side in _below_zero(beyond, one)]
            found += [(one, turn, own) for one, less in sides if less]
            left = [one for one, less in sides if not less]
        return found


# -- polynomials, the constant first -----------------------------------------------------------------------------------


def _times(polynomial: Sequence[int], by: Affine) -> list[int]:
    found = [each * by.plus for each in (*polynomial, 0)]
    for place, each in enumerate(polynomial):
        found[place + 1] += each * by.slope
    return found


def _added_up(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """Return the sum, without leading zeros."""
    found = [x + y for x, y in zip_longest(a, b, fillvalue=0)]
    while len(found) > 1 and not found[-1]:
        found.pop()
    return tuple(found)


# -- arithmetic of lines ------------------------------------------------------------------------------------------------


def _sum(a: Affine, b: Affine) -> Affine:
    return Affine(a.slope + b.slope, a.plus + b.plus)


def _has_lines(value: Any) -> bool:
    return isinstance(value, Line | Ranked) or (
        isinstance(value, list) and not isinstance(value, Ascending | _Fixed) and any(map(_has_lines, value))
    )


def _settled(value: Any, state: _State) -> Any:
    """Return an affine number of a single answer as a whole number."""
    if isinstance(value, Line) and value.is_affine and (not value.slope or state.first == state.last):
        return value.affine.at(state.first)
    return value


def _arithmetic(op: str, given: tuple[Any, ...]) -> Any:
    match op, given:
        case ("add", (Ranked() as a, int(b)) | (int(b), Ranked() as a)):
            return a._replace(plus=a.plus + b)
        case "sub", (Ranked() as a, int(b)):
            return a._replace(plus=a.plus - b)
        case "sub", (int(b), Ranked() as a):
            return a._replace(sign=-a.sign, plus=b - a.plus)
        case "add", (a, b):
            return _added(a, b)
        case "sub", (a, b):
            return _difference(a, b)
        case "mul", (Line() as a, int(b)) | (int(b), Line() as a):
            return _scaled(a, b)
        case "shl", (Line() as a, int(k)) if 0 <= k <= 64:
            return _scaled(a, 1 << k)
        case "shr", (Line() as a, int(k)) if 0 <= k <= 64:
            return _divided(a, 1 << k)
        case "div", (Line() as a, int(k)) if k > 0:
            return _divided(a, k)
    raise Unknown(f"{op} of a draw or of a range of answers")


def _added(a: Any, b: Any) -> Any:
    a, b = (Line(plus=each) if isinstance(each, int) else each for each in (a, b))
    if not isinstance(a, Line) or not isinstance(b, Line):
        raise Unknown("sums of vectors of draws")
    if a.over == 1 and b.over == 1:
        if a.times and b.times and a.draw != b.draw:
            raise Unknown("a sum of two draws")
        times = a.times + b.times
        return Line(
            (a.draw or b.draw) if times else "", times, a.slope + b.slope, a.plus + b.plus, turns=a.turns + b.turns
        )
    if a.over == 1:
        a, b = b, a
    if b.over != 1 or b.times:
        raise Unknown("a sum of two draws")
    return a._replace(rise=a.rise + b.slope, then=a.then + b.plus, turns=a.turns + b.turns)


def _scaled(a: Line, b: int) -> Line:
    if a.over != 1:
        if b == 1:
            return a
        raise Unknown("a multiple of a quotient")
    return Line(a.draw if b else "", a.times * b, a.slope * b, a.plus * b, turns=a.turns * b)


def _difference(a: Any, b: Any) -> Any:
    if isinstance(b, Line) and b.over != 1:
        if isinstance(a, Line) and a.over != 1:
            raise Unknown("a difference of two quotients")
        # a - floor(E/k) - T = floor(-E'/k) + …: as -floor(e/k) = floor((k - 1 - e)/k) for whole numbers.
        k = b.over
        minus = Line(b.draw, -b.times, -b.slope, k - 1 - b.plus, k, -b.rise, -b.then, -b.turns)
        return _added(minus, a)
    return _added(a, _scaled(b, -1) if isinstance(b, Line) else -b if isinstance(b, int) else b)


def _divided(a: Line, k: int) -> Line:
    if a.turns:
        raise Unknown("a quotient of a geometric draw")
    if a.over == 1:
        if not a.times:
            if a.slope % k:
                raise Unknown("a quotient of a range of answers")
            return Line(slope=a.slope // k, plus=a.plus // k)
        return a._replace(over=k)
    # floor((floor(E/m) + T)/k) = floor((E + m·T)/(m·k))
    return Line(a.draw, a.times, a.slope + a.over * a.rise, a.plus + a.over * a.then, a.over * k)


def _bounds(line: Line, state: _State) -> tuple[int, int]:
    """Return the least and the largest value."""
    if line.turns:
        raise Unknown("a comparison of a geometric draw")
    ends = [line.affine]
    if line.times:
        low, high, _ = state.draws[line.draw]
        ends = [
            Affine(line.times * end.slope + line.slope, line.times * (end.plus - less) + line.plus)
            for end, less in ((low, 0), (high, 1))
        ]
    found = [end.at(x) // line.over + line.rise * x + line.then for end in ends for x in (state.first, state.last)]
    # Between the ends, the quotient and rise·x may fall and rise: the sum of the extremes bounds both.
    if line.over != 1 and line.rise:
        quotients = [end.at(x) // line.over for end in ends for x in (state.first, state.last)]
        rises = [line.rise * x for x in (state.first, state.last)]
        return min(quotients) + min(rises) + line.then, max(quotients) + max(rises) + line.then
    return min(found), max(found)


def _below_zero(line: Any, state: _State) -> list[tuple[_State, bool]]:
    """Split at line < 0."""
    if isinstance(line, int):
        return [(state, line < 0)]
    if not isinstance(line, Line):
        raise Unknown("a comparison of vectors of draws")
    if line.turns:
        raise Unknown("a comparison of a geometric draw")
    # floor(E/k) + T < 0 just where E + k·T < 0
    times, rest = line.times, Affine(line.slope + line.over * line.rise, line.plus + line.over * line.then)
    if not times:
        return [(state.cut(first, last), negative) for first, last, negative in signs(rest, state.first, state.last)]
    low, high, bound = state.draws[line.draw]
    # times·u + rest < 0: u < cut, or u >= cut for a negative factor
    if times > 0:
        if rest.slope % times and state.first != state.last:
            raise Unknown("a multiple of a draw against a range of answers")
        cut = _ceiling(rest, -times, state)
    else:
        if rest.slope % times and state.first != state.last:
            raise Unknown("a multiple of a draw against a range of answers")
        cut = _sum(_floor(rest, -times, state), Affine(0, 1))
    found = []
    for first, last, none in signs(cut.less(_sum(low, Affine(0, 1))), state.first, state.last):  # cut <= low
        if none:
            found.append((state.cut(first, last), times < 0))
            continue
        for start, stop, every in signs(high.less(_sum(cut, Affine(0, 1))), first, last):  # high <= cut
            if every:
                found.append((state.cut(start, stop), times > 0))
                continue
            for ends, less in (((low, cut), times > 0), ((cut, high), times < 0)):
                draws = {**state.draws, line.draw: Interval(*ends, bound)}
                found.append((state.cut(start, stop)._replace(draws=draws), less))
    return found


def _ceiling(rest: Affine, by: int, state: _State) -> Affine:
    """Return ceil(rest/by)."""
    if rest.slope % by:
        return Affine(0, -(-rest.at(state.first) // by))
    return Affine(rest.slope // by, -(-rest.plus // by))


def _floor(rest: Affine, by: int, state: _State) -> Affine:
    """Return floor(rest/by)."""
    if rest.slope % by:
        return Affine(0, rest.at(state.first) // by)
    return Affine(rest.slope // by, rest.plus // by)


def signs(affine: Affine, first: int, last: int) -> list[tuple[int, int, bool]]:
    """Return the ranges of x, and for each True if the number is negative there."""
    slope, plus = affine
    if slope == 0:
        return [(first, last, plus < 0)]
    if slope > 0:
        end = (-plus - 1) // slope  # the last x at which it is negative
        ranges = [(first, min(end, last), True), (max(first, end + 1), last, False)]
    else:
        end = -((-plus - 1) // -slope)  # the first x at which it is negative
        ranges = [(first, min(end - 1, last), False), (max(first, end), last, True)]
    return [each for each in ranges if each[0] <= each[1]]


def _between_entries(ranked: Ranked, state: _State) -> Iterator[tuple[Affine, Affine, int]]:
    """Yield the ranks of the possible values of the draw, and how many of these come to each."""
    low, high = _bounds(ranked.line, state)
    place, stop = bisect_right(ranked.table, low), bisect_right(ranked.table, high)
    for start, end in pairwise((low, *ranked.table[place:stop], high + 1)):
        rank = ranked.sign * place + ranked.plus
        place += 1
        if end > start:
            yield Affine(0, rank), Affine(0, rank + 1), end - start


def _quotients(first: int, stop: int, k: int) -> list[tuple[int, int, int]]:
    """Return runs of the quotients by k of the numbers from `first` up to `stop`, and how many come to each."""
    a, b = first // k, (stop - 1) // k
    if a == b:
        return [(a, a + 1, stop - first)]
    found = [(a, a + 1, k - first % k)]
    if b > a + 1:
        found.append((a + 1, b, k))
    return [*found, (b, b + 1, (stop - 1) % k + 1)]


# -- the program ---------------------------------------------------------------------------------------------------------


def _is_word(v: Any, state: _State) -> bool:
    """Return True if a number may name words of the secret."""
    low, high = (v, v) if isinstance(v, int) else _bounds(v, state) if isinstance(v, Line) else (-ONE, ONE)
    return low >= -(2**63) and high < 2**63


def _report_of(program: Program) -> list[Any]:
    """Return the only part of the report, a single number."""
    parts: list[list[Any]] = program.report["parts"]
    if len(parts) != 1 or parts[0][0] not in ("uint", "float64") or (parts[0][0] == "uint" and parts[0][3] != 1):
        raise Unknown("a report that is not one number")
    return parts[0]


def _check_labels(program: Program) -> None:
    """Refuse draws from a secret that may share words with each other."""
    labels = [x[1] for _, x in program.steps if isinstance(x, list) and OPERATORS[x[0]].kind == "memo"]
    if len(set(labels)) != len(labels):
        raise Unknown("two draws that may be made of the same words of the secret")
