"""Reports of one kept draw: how much any number of them lose together, from the steps of the program.

A program with a memo draws in part from a secret, once for each memo, and in part afresh for each report. Given what is
kept, reports are independent and have one law. So t reports of a memo are a mixture, over what is kept, of t-fold
products. For endless reports that law itself shows: no number of reports tells more than what is kept.

- *Nothing is drawn afresh.* Every report equals the first one, and t reports lose what one does.
- *Independent places* (`independent_places`). The kept and the fresh bits of a place are its own, so t rows are a product
  over the places too. Of t reports of a place, all that counts is the number of ones: its chances are mixtures of
  p^k(1-p)^(t-k) over the kept bits, with p the chance of a one given these. The loss is that of h places of either
  answer, each at its largest ratio.
- *A kept answer of m* (`tracked_answers`), which is the own one with probability P and each other one with Q ≤ P; each
  report of the kept one shows it with p, and each other one with q ≤ p. With r = p/q and n_c reports that show c,
  the chances under the answers a and b are as 1 + K·r^(n_a)/S to 1 + K·r^(n_b)/S, S = Σ r^(n_c), K = (P-Q)/Q. The first
  share is largest, and the second least, where all reports show a.
- *A kept bit* of a number (`corners`), whose chance is affine in the number. Of t reports the number of ones counts. A
  ratio of two mixtures of the same two laws is monotone in either chance, so the two ends are the worst pair.

The memo of each of these is the answer, or the cell that a public map gives it with draws that are kept too. Two draws
never share words of the secret. What has another form is `Unknown`.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ldp_budget.sampling import ONE
from ldp_budget.sdk.client_program import OPERATORS, Program, uint
from ldp_budget.sdk.report_law import Unknown

from .symbolic_intervals import Affine, Runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ldp_budget.sdk.client_program import Expression


def _drawn(program: Program, kind: str) -> list[str]:
    """Return the names of the steps that draw from the stream ("draw") or from the secret ("memo")."""
    return [name for name, x in program.steps if isinstance(x, list) and OPERATORS[x[0]].kind == kind]


def _largest(masses: Iterable[tuple[Fraction, Fraction]]) -> Fraction:
    """Return the largest P/Q."""
    ratios = []
    for p, q in masses:
        if p and not q:
            raise Unknown("reports of one answer are impossible for another")
        if q:
            ratios.append(p / q)
    return max(ratios)


def _counts(mixture: list[tuple[Fraction, Fraction]], reports: int) -> list[Fraction]:
    """Return the chance of each row of reports by its number of ones, for a mixture of (weight, chance of a one)."""
    return [
        sum((w * p**ones * (1 - p) ** (reports - ones) for w, p in mixture), Fraction(0))
        for ones in range(reports + 1)
    ]


def _mixed(own: list[tuple[Fraction, Fraction]], other: list[tuple[Fraction, Fraction]], reports: int | None) -> Any:
    """Return (P, Q) of the numbers of ones; for endless reports, of the chances of a one."""
    if reports is not None:
        return list(zip(_counts(own, reports), _counts(other, reports), strict=True))
    sums: list[dict[Fraction, Fraction]] = [{}, {}]
    for side, mixture in zip(sums, (own, other), strict=True):
        for weight, p in mixture:
            side[p] = side.get(p, Fraction(0)) + weight
    return [(sums[0].get(p, Fraction(0)), sums[1].get(p, Fraction(0))) for p in {*sums[0], *sums[1]}]


# -- independent places ------------------------------------------------------------------------------------------------


def of_places(
    program: Program, given: Callable[[int, set[str]], Any], apart: list[tuple[int, int]], reports: int | None
) -> Fraction:
    """Return e^ε of reports of rows with kept bits.

    `given` as `IndependentPlaces.place_given`; `apart`: how many places are the first answer's alone and the second's.
    """
    if program.memo != "value":
        raise Unknown("what is kept is kept for something else than the answer")
    kept, fresh = set(_drawn(program, "memo")), set(_drawn(program, "draw"))
    sides = [given(own, kept) for own in (1, 0)]
    leaves = {name for _, _, names in sides for name in names}
    if not fresh <= leaves:
        raise Unknown("a draw that is made afresh is not of a single place")
    symbols = {symbol for found, _, _ in sides for _, likely in found for symbol in likely}
    if len(symbols) > 2:
        raise Unknown("a place shows more than a bit")
    one = max(symbols)
    own, other = ([(weight, likely.get(one, Fraction(0))) for weight, likely in found] for found, _, _ in sides)
    masses = _mixed(own, other, reports)
    high, low = _largest(masses), _largest((q, p) for p, q in masses)
    return max(high**first * low**second for first, second in apart)


# -- a kept answer -------------------------------------------------------------------------------------------------------


def of_answers(
    program: Program, cell: str, answers: int, likely: Callable[[Program], dict[Any, Fraction]], reports: int | None
) -> Fraction:
    """Return e^ε of reports of a kept answer.

    `cell`: the step that is the cell of an answer, "" without one; `answers`: the number of answers, or of cells.
    `likely` returns the law of the relation of a report to the own answer 0 and another one, 1.
    """
    steps = dict(program.steps)
    start = cell or "value"
    if program.memo != start:
        raise Unknown("what is kept is kept for something else than the answer or its cell")
    fresh = set(_drawn(program, "draw"))
    outer = {start, *_ancestors(steps, start)} if cell else set()
    if outer & fresh:
        raise Unknown("the cell of an answer is drawn afresh for each report")
    for name, _ in reversed(program.steps):
        inner = _ancestors(steps, name)
        if name in outer or start not in inner or ({name} | inner) & fresh:
            continue
        try:
            before, after = _parted(program, start, name, outer, answers)
        except ValueError as error:  # a step that is left out is needed, or another draw is kept
            raise Unknown(f"a report depends on more than what is kept of the answer: {error}") from None
        (own, others), (shows, misses) = (_kept_or_not(likely(each), answers) for each in (before, after))
        if own < others or shows < misses:
            raise Unknown("the own answer is kept or shown less often than others")
        if reports is None:
            return _largest([(own, others)])
        sides = (
            own * shows**reports + (1 - own) * misses**reports,
            others * shows**reports + (1 - others) * misses**reports,
        )
        return _largest([sides])
    raise Unknown("no step is what is kept of the answer")


def _parted(program: Program, start: str, kept: str, outer: set[str], answers: int) -> tuple[Program, Program]:
    """Return the program from the answer, or its cell, to what is kept of it, and the program from there on."""
    steps = dict(program.steps)
    inner = _ancestors(steps, kept) | {kept}
    first = [(name, x) for name, x in program.steps if name in inner - outer]
    second = [(name, x) for name, x in program.steps if name not in inner | outer]
    private = {start, "value", *(name for name in inner if start in _ancestors(steps, name) | {name})} - {kept}
    parts = [part for part in program.report["parts"] if part[1] not in inner | outer]
    sent = {part[1] for part in program.report["parts"]} - {part[1] for part in parts}
    # Given what is kept, the rest may use what all answers share, but nothing else that the answer enters.
    if (sent | set().union(*(names_of(x) for _, x in second))) & (private | {kept} & sent) or len(parts) != 1:
        raise Unknown("a report depends on more of the answer than what is kept of it")
    given = {"kind": "answer", "count": answers, "text": False}
    before = Program(
        given,
        tuple((name, renamed(x, start)) for name, x in first),
        uint(kept, answers - 1),
        program.tables,
        "value" if any(name in inner - outer for name in _drawn(program, "memo")) else "",
    )
    after = replace(
        program,
        input=given,
        steps=tuple((name, renamed(x, kept)) for name, x in second),
        report={**program.report, "parts": parts},
        memo="",
    )
    return before, after


def _kept_or_not(likely: dict[Any, Fraction], answers: int) -> tuple[Fraction, Fraction]:
    """Return how likely the own answer is sent, and how likely each single other one."""
    own, other = (likely.get((("answer", atom),), Fraction(0)) for atom in (0, 1))
    if own + (answers - 1) * other != 1:
        raise Unknown("what is kept, or shown, is no answer that is the own one or any other alike")
    return own, other


def _ancestors(steps: dict[str, Any], name: str) -> set[str]:
    """Return all names that a step depends on; a draw from the secret depends on what it is kept for."""
    found, waiting = set[str](), [name]
    while waiting:
        for each in names_of(steps.get(waiting.pop(), 0)):
            if each not in found and not each.lstrip("-").isdecimal():
                found.add(each)
                waiting.append(each)
    return found


def renamed(x: Expression, name: str) -> Expression:
    """Return an expression with `value` in place of a name."""
    if isinstance(x, list):
        label = 2 if OPERATORS[x[0]].labelled else 1
        return [*x[:label], *(renamed(each, name) for each in x[label:])]
    return "value" if x == name else x


def names_of(x: Expression) -> Iterator[str]:
    """Yield the names in an expression."""
    if isinstance(x, list):
        for each in x[2 if OPERATORS[x[0]].labelled else 1 :]:
            yield from names_of(each)
    elif isinstance(x, str):
        yield x


# -- a kept bit ----------------------------------------------------------------------------------------------------------


def of_bit(program: Program, last: int, reports: int | None) -> Fraction:
    """Return e^ε of reports of a kept bit of the numbers from 0 to `last`."""
    kept = [(name, x) for name, x in program.steps if isinstance(x, list) and OPERATORS[x[0]].kind == "memo"]
    if len(kept) != 1 or kept[0][1][0] != "kept_bits" or int(kept[0][1][4]) != 1 or kept[0][1][2] != "value":
        raise Unknown("what is kept is not a single bit")
    ((name, (_, _, _, t, _)),) = kept
    threshold = _threshold(t)
    ends = [Fraction(threshold.at(x), ONE) for x in (0, last)]
    shown = [_shown(program, last, name, bit) for bit in (0, 1)]
    one, other = ([(1 - end, shown[0]), (end, shown[1])] for end in ends)
    masses = _mixed(one, other, reports)
    return max(_largest(masses), _largest((q, p) for p, q in masses))


def _shown(program: Program, last: int, name: str, bit: int) -> Fraction:
    """Return the chance of a report of 1, given the kept bit; the same for every answer."""
    steps = tuple((each, ["list", bit] if each == name else x) for each, x in program.steps)
    runs = Runs(replace(program, steps=steps, memo=""), 0, last).runs
    places = {(run.start, run.stop) for run in runs}
    if not places <= {((0, 0), (0, 1)), ((0, 1), (0, 2))} or not all(run.constant for run in runs):
        raise Unknown("a report that is more than one bit")
    if any((run.first, run.last) != (0, last) for run in runs):
        raise Unknown("a report that depends on the answer besides the kept bit")
    return Fraction(sum(run.chance(0) for run in runs if run.start.plus == 1))


def _threshold(t: Expression) -> Affine:
    """Return a threshold that is affine in the answer."""
    if isinstance(t, int):
        return Affine(0, t)
    if t == "value":
        return Affine(1, 0)
    if isinstance(t, str) and t.isdecimal():
        return Affine(0, int(t))
    if isinstance(t, list) and t[0] in ("add", "mul"):
        a, b = map(_threshold, t[1:])
        if t[0] == "add":
            return Affine(a.slope + b.slope, a.plus + b.plus)
        if not a.slope or not b.slope:
            return Affine(a.plus * b.slope + b.plus * a.slope, a.plus * b.plus)
    raise Unknown("a threshold that is not affine in the answer")
