"""Small programs of numbers, good ones and changed ones, and the list of all outcomes that judges what is derived."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

from ldp_budget.errors import NotSupported
from ldp_budget.sdk.client_program import OPERATORS, Program, falling, float64, uint
from ldp_budget_verify.law import Unknown
from ldp_budget_verify.law.all_outcomes import law
from ldp_budget_verify.law.corners import Numbers

HALF, MOST = str(2**63), str(2**64 // 10 * 7)
_MOST_OUTCOMES = 2_000
_SWAPS = [("add", "sub"), ("ge", "lt"), ("min", "max"), ("mul", "add"), ("div", "mod"), ("xor", "and"), ("eq", "ge")]

Masses = dict[bytes, Fraction]


def numbers(steps: list[Any], last: int, report: dict[str, Any] | None = None, **more: Any) -> Program:
    given = {"kind": "number", "lower": "0.0", "upper": "1.0", "times": repr(float(last)), "last": last}
    return Program(given, tuple(map(tuple, steps)), report or float64(steps[-1][0], 0.5, 1.0), **more)


def moving(last: int, width: int, kept: str = MOST, own: str = "cell") -> list[Any]:
    return [
        ["kept", ["bit", kept]],
        ["near", ["below", width]],
        ["far", ["below", last]],
        ["inside", ["add", "value", "near"]],
        ["outside", ["add", "far", ["where", ["ge", "far", "value"], width, 0]]],
        [own, ["where", "kept", "inside", "outside"]],
    ]


def hybrid(last: int, width: int, low: int, high: int) -> list[Any]:
    upper = ["bit_at", ["add", str(2**61), ["mul", "value", str(2**63 // last)]]]
    mixed = ["where", "windowed", "own", ["where", "upper", high, low]]
    return [["windowed", ["bit", HALF]], *moving(last, width, own="own"), ["upper", upper], ["cell", mixed]]


def crossing(width: int, times: int, back: int) -> list[Any]:
    """Return one window that moves up with the number, and one that moves down."""
    return [
        ["up", ["bit", MOST]],
        ["near", ["below", width]],
        ["far", ["below", width + 2]],
        ["rising", ["add", ["mul", "value", times], "near"]],
        ["falling", ["sub", ["add", "far", back], "value"]],
        ["r", ["where", "up", "rising", "falling"]],
    ]


def window(cells: int, reach: int, high: int, low: int) -> list[Any]:
    return [
        ["first", ["max", ["sub", "value", reach], 0]],
        ["inside", ["sub", ["min", ["add", "value", reach], cells], "first"]],
        ["window", ["mul", high, "inside"]],
        ["drawn", ["below", ["add", "window", ["mul", low, ["sub", cells, "inside"]]]]],
        ["beside", ["div", ["sub", "drawn", "window"], low]],
        ["other", ["add", "beside", ["where", ["ge", "beside", "first"], "inside", 0]]],
        ["own", ["add", "first", ["div", "drawn", high]]],
        ["cell", ["where", ["lt", "drawn", "window"], "own", "other"]],
    ]


def steps_of_noise(cells: int, reach: int, count: Any = None) -> list[Any]:
    return [
        ["digits", ["bits_each", ["list", MOST, HALF]]],
        ["upper", ["below", reach]],
        ["lower", ["below", cells - reach]],
        ["is_upper", ["bit", MOST]],
        ["left", ["bit", HALF]],
        ["distance", ["add", ["mul", count or ["join", "digits"], cells], ["where", "is_upper", "upper", ["add", reach, "lower"]]]],
        ["cell", ["add", "value", ["where", "left", ["sub", -1, "distance"], "distance"]]],
    ]  # fmt: skip


def laplace_weights(cells: int) -> tuple[list[Any], dict[str, Any]]:
    right = ["at", "below", ["sub", cells, "value"]]
    steps = [
        ["left", ["at", "below", "value"]],
        ["drawn", ["below", ["add", "left", right]]],
        ["is_left", ["lt", "drawn", "left"]],
        ["distance", ["sub", ["rank", "below", ["where", "is_left", "drawn", ["sub", "drawn", "left"]]], 1]],
        ["cell", ["where", "is_left", ["sub", ["sub", "value", 1], "distance"], ["add", "value", "distance"]]],
    ]
    return steps, {"below": falling("9", "0.7", 5, 0, cells)}


def good_programs() -> list[Program]:
    """Return small programs of each shape of the built-in mechanisms of numbers."""
    found = [
        *(numbers(moving(last, width), last) for last, width in ((4, 2), (5, 7), (6, 1), (8, 3))),
        *(numbers(hybrid(last, width, *at), last) for last, width, at in ((5, 2, (1, 4)), (4, 3, (0, 6)))),
        *(numbers(window(*each), each[0]) for each in ((6, 2, 3, 1), (5, 1, 4, 2), (6, 4, 5, 2), (7, 2, 2, 1))),
        *(numbers(steps_of_noise(cells, reach), cells) for cells, reach in ((4, 1), (5, 3))),
        numbers([["report", ["bit_at", ["add", str(2**62), ["mul", "value", str(2**60)]]]]], 6, uint("report", 1)),
        numbers([["n", ["below", 6]], ["r", ["div", ["add", "n", "value"], 3]]], 5, uint("r", 255)),
        numbers([["n", ["below", 5]], ["r", ["mod", ["add", "n", "value"], 7]]], 6, uint("r", 255)),
        numbers([["n", ["below", 7]], ["r", ["add", ["mul", "value", 2], "n"]]], 5, uint("r", 255)),
        numbers([["n", ["below", 5]], ["r", ["sub", ["add", "n", 9], "value"]]], 6, uint("r", 255)),
        numbers(crossing(6, 1, 9), 6, uint("r", 255)),
        numbers(crossing(5, 3, 15), 5, uint("r", 255)),
        numbers([["n", ["below", 4]], ["r", ["add", ["div", "value", 3], "n"]]], 7, uint("r", 255)),
        numbers(
            [["n", ["bit_at", ["mul", ["shr", "value", 1], str(2**61)]]], ["r", ["add", "n", 3]]], 7, uint("r", 255)
        ),
        numbers([["n", ["below", 9]], ["r", ["min", ["max", ["add", "n", "value"], 4], 8]]], 5, uint("r", 255)),
    ]
    steps, tables = laplace_weights(5)
    totals = {"totals": [[2, 5, 9], [1, 4, 9], [4, 6, 9]]}
    ranked = [["u", ["below", 9]], ["r", ["rank", ["at", "totals", "value"], "u"]]]
    return [*found, numbers(steps, 5, tables=tables), numbers(ranked, 2, uint("r", 255), tables=totals)]


# -- changes -------------------------------------------------------------------------------------------------------------


def _spots(x: Any, path: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    if not isinstance(x, list):
        return [path]
    start = 2 if OPERATORS[x[0]].labelled else 1
    return [path, *(spot for place in range(start, len(x)) for spot in _spots(x[place], (*path, place)))]


def _changed(r: random.Random, x: Any, path: tuple[int, ...], names: list[str]) -> Any:
    if path:
        return [*x[: path[0]], _changed(r, x[path[0]], path[1:], names), *x[path[0] + 1 :]]
    if isinstance(x, list):
        for pair in _SWAPS:
            if x[0] in pair and r.random() < 0.7:
                return [pair[1 - pair.index(x[0])], *x[1:]]
        if x[0] == "where":
            return [x[0], x[1], x[3], x[2]]
        return r.choice([x[-1], [x[0], *reversed(x[1:])] if len(x) == 3 else x, ["add", x, "value"]])
    if isinstance(x, int) or x.lstrip("-").isdecimal():
        n = int(x)
        return str(n + r.choice([-(2**60), 2**60])) if abs(n) > 2**53 else n + r.choice([-2, -1, 1, 2])
    return r.choice([*names, "value", 0, 3])


def changed(r: random.Random, program: Program) -> Program:
    """Return the program with one or two changed steps. Raises ValueError for one that no interpreter would run."""
    steps = [list(step) for step in program.steps]
    for _ in range(r.choice([1, 1, 2])):
        place = r.randrange(len(steps))
        names = [name for name, _ in steps[:place]]
        steps[place][1] = _changed(r, steps[place][1], r.choice(_spots(steps[place][1])), names)
    return replace(program, steps=tuple(map(tuple, steps)))


# -- the judge -----------------------------------------------------------------------------------------------------------


def listed(program: Program) -> list[Masses]:
    """Return the law of every answer from the list of all outcomes. Raises if some outcome comes to no report."""
    return [law(program, value, _MOST_OUTCOMES) for value in range(int(program.input["last"]) + 1)]


def excess(p: Masses, q: Masses, slope: Fraction) -> Fraction:
    """Return Σ max(P - λQ, 0)."""
    return sum((max(each - slope * q.get(row, 0), Fraction(0)) for row, each in p.items()), Fraction(0))


def slopes_of(laws: list[Masses]) -> list[Fraction]:
    """Return odds at which the excess of all pairs is compared: some of those at which it bends, and 1."""
    found = {Fraction(1), Fraction(3, 2)}
    for p, q in combinations(laws, 2):
        found |= {p[row] / q[row] for row in p.keys() & q.keys()}
    return sorted(found)[:: max(1, len(found) // 8)]


def _numbered(pair: Any) -> tuple[Masses, Masses]:
    return tuple({b"%d" % place: mass[side] for place, mass in enumerate(pair)} for side in (0, 1))  # type: ignore[return-value]


def judge(program: Program) -> str:
    """Return "refused", "equal" or "bound" if what is derived is at least what the list says, else "too good: ..."."""
    laws: list[Masses] | None
    try:
        laws = listed(program)
    except NotSupported:
        return "not listed"
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        laws = None
    try:
        derived = Numbers(program)
        pairs = derived.pairs()
    except Unknown:
        return "refused"
    if laws is None:
        return "too good: some outcome fails"
    slopes, last = slopes_of(laws), len(laws) - 1
    for x, y in ((0, last), (last, 0), (last // 2, last)):
        mine = _numbered(derived.compare(x, y))
        if any(excess(*mine, slope) != excess(laws[x], laws[y], slope) for slope in slopes):
            return f"too good: the law of {x} and {y}"
    if not derived.every_pair:
        return "declared"
    both = [each for pair in map(_numbered, pairs) for each in (pair, pair[::-1])]
    true = [each for pair in combinations(laws, 2) for each in (pair, pair[::-1])]
    tight = True
    for slope in slopes:
        bound = max((excess(*pair, slope) for pair in both), default=Fraction(0))
        largest = max(excess(*pair, slope) for pair in true)
        if bound < largest:
            return f"too good: {float(bound)} for {float(largest)} at {float(slope)}"
        tight &= bound == largest
    ruled_out = any(p.keys() != q.keys() for p, q in true)
    if ruled_out and derived.ratio is not None:
        return "too good: a report is impossible"
    return "equal" if tight and ruled_out == (derived.ratio is None) else "bound"
