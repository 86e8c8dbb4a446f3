"""Does a client program keep the promise? Decided from its law, every outcome of every draw in fractions.

What `compare` says is a description; the program is what devices run. So whole reports are held against the promise,
for every answer where that can be listed, and then against the description. Of memoised reports two of one secret are
looked at together, and `memo`, by which they are charged, has to tell all of the answer that a report depends on.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np

from ...authoring.channels import Comparison
from ...authoring.interpreter import read
from ...authoring.operators import OPERATORS
from ...errors import NotSupported
from ...guarantees import Memoised, Unbounded
from .._advice import undefined
from .dominance import HOLDS, UNPROVEN, VIOLATED, Finding, check, check_largest, worst
from .laws import law

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from decimal import Decimal

    from ...authoring.base import Mechanism
    from ...authoring.programs import Expression, Program

    Law = dict[bytes, Fraction]

MOST_OUTCOMES = 4096
"""Of a report of one answer."""
_MOST_RUNS = 20_000
"""Of all answers together; where that is too few, critical inputs stand for all."""
_RING = 3
"""Of so many inputs the last is held against the first, too."""
_BY_HAND = "so samples and the audit stand for it"


def check_program(mechanism: Mechanism, inputs: Sequence[Any], most: int = MOST_OUTCOMES) -> Finding:
    """What the law of a client program, of up to `most` outcomes, says of it; where it is unproven, why."""
    try:
        program = mechanism.client_program()
    except NotSupported as error:
        return Finding(UNPROVEN, undefined(mechanism, error, "client_program"))
    if program.memo and not _memo_tells_all(program):
        why = f"its reports depend on more of the answer than {program.memo}, the memo that they are charged by"
        return Finding(VIOLATED, f"client program: {why}")
    if len(inputs) < 2:
        return Finding(UNPROVEN, f"there are no two inputs to run the client program for, {_BY_HAND}")
    try:
        laws = {value: _law(program, read(program, value), most) for value in inputs}
        found = worst([*_promised(mechanism, program, laws), _described(mechanism, program, laws)])
    except NotSupported as error:
        return Finding(UNPROVEN, f"the law of the client program is not listed, {_BY_HAND}: {error}")
    except _NoReport as error:
        found = Finding(VIOLATED, str(error))
    return Finding(found.verdict, f"client program: {found.why}" if found.why else "")


class _NoReport(Exception):  # noqa: N818 - reads as what it is
    """A program that comes to no report."""


def _law(program: Program, value: int, most: int, reports: int = 1) -> Law:
    try:
        return law(program, value, most, reports)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise _NoReport(f"it makes no report of {value}: {error}") from None


# -- against the promise ---------------------------------------------------------------------------------------------


def _promised(mechanism: Mechanism, program: Program, laws: dict[Any, Law]) -> Iterator[Finding]:
    """Whole reports against the guarantee."""
    guarantee = mechanism.guarantee
    if isinstance(guarantee, Unbounded):
        yield Finding(HOLDS)
        return
    if isinstance(guarantee, Memoised):
        yield _within(guarantee.curve[0], list(_every(program, laws)))
        try:
            two = [_law(program, read(program, value), MOST_OUTCOMES, 2) for value in laws]
        except NotSupported:
            return  # too many; one report was looked at
        yield _within(_of_two(guarantee), two)
        return
    promised = guarantee.loss()
    if promised is not None and not promised[1]:
        yield _within(promised[0], list(_every(program, laws)))
        return
    for first, second in combinations(laws.values(), 2):
        rows = sorted(first.keys() | second.keys())
        sides = [[one.get(row, Fraction(0)) for row in rows] for one in (first, second)]
        comparison = Comparison.rows(*sides)
        yield from (check(guarantee, each) for each in (comparison, comparison.swapped()))


def _every(program: Program, laws: dict[Any, Law]) -> Iterable[Law]:
    """The laws of all answers, where they can be listed; else those that are given."""
    answers = int(program.input["count"]) if program.input["kind"] == "answer" else None
    if answers is None or answers * max(map(len, laws.values())) > _MOST_RUNS:
        return laws.values()
    known = {read(program, value): one for value, one in laws.items()}
    return [known[value] if value in known else _law(program, value, _MOST_RUNS) for value in range(answers)]


def _within(bound: Decimal, laws: list[Law]) -> Finding:
    """Whether no report is more than e^bound times as likely for one answer as for another."""
    largest = Fraction(1)
    for row in set().union(*laws):
        each = [one.get(row, Fraction(0)) for one in laws]
        if not min(each):
            return Finding(VIOLATED, "a report that one input can give is impossible for another")
        largest = max(largest, max(each) / min(each))
    return check_largest(bound, largest)


def _of_two(guarantee: Memoised) -> Decimal:
    return guarantee.curve[1] if len(guarantee.curve) > 1 else guarantee.cap


# -- against the description -----------------------------------------------------------------------------------------


def _described(mechanism: Mechanism, program: Program, laws: dict[Any, Law]) -> Finding:
    """Whether outcomes are exactly as likely as `compare` says: of each input against the next, both ways."""
    try:
        for pair in pairwise([*laws, *([] if len(laws) < _RING else [next(iter(laws))])]):
            for first, second in (pair, pair[::-1]):
                if not _as_described(mechanism, program, laws, first, second):
                    return Finding(VIOLATED, f"the law of the program is not what compare({first}, {second}) says")
    except NotSupported as error:
        return Finding(UNPROVEN, f"its reports are within the promise, and what they say is not described: {error}")
    return Finding(HOLDS)


def _as_described(mechanism: Mechanism, program: Program, laws: dict[Any, Law], first: Any, second: Any) -> bool:
    masses = mechanism.compare(first, second).masses()
    rows = sorted(laws[first].keys() | laws[second].keys())
    reports = np.frombuffer(b"".join(rows), program.report["dtype"]).reshape(len(rows), *program.report["shape"])
    codes = np.asarray(mechanism.outcomes(reports, first, second)).tolist()
    if not all(0 <= code < len(masses) for code in codes):
        return False
    for side, value in enumerate((first, second)):
        one = laws[value]
        common = lcm(*(likely.denominator for likely in one.values()))
        sums = [0] * len(masses)
        for row, code in zip(rows, codes, strict=True):
            likely = one.get(row)
            if likely is not None:
                sums[int(code)] += likely.numerator * (common // likely.denominator)
        if any(found != mass[side] * common for found, mass in zip(sums, masses, strict=True)):
            return False
    return True


# -- what a memo says ------------------------------------------------------------------------------------------------


def _memo_tells_all(program: Program) -> bool:
    """Whether a report is worked out of `memo` and draws alone, and `memo` of the answer and the secret alone."""
    told, kept = {program.memo, *program.tables}, {"value", *program.tables}
    for name, expression in program.steps:
        used = set(_names(expression))
        if used <= told:
            told.add(name)
        if used <= kept and not _reads_the_stream(expression):
            kept.add(name)
    parts = {part[1] for part in program.report["parts"]}
    drawn = {name for _, step in program.steps if _is_kept(step) for name in _names(step)}
    return {each for each in parts | drawn if isinstance(each, str)} <= told and program.memo in kept


def _names(expression: Expression) -> Iterator[str]:
    """The names in an expression."""
    if isinstance(expression, list):
        operator = OPERATORS[expression[0]]
        for argument in expression[2 if operator.labelled else 1 :]:
            yield from _names(argument)
    elif isinstance(expression, str) and not expression.lstrip("-").isdecimal():
        yield expression


def _reads_the_stream(expression: Expression) -> bool:
    return isinstance(expression, list) and OPERATORS[expression[0]].kind == "draw"


def _is_kept(expression: Expression) -> bool:
    return isinstance(expression, list) and OPERATORS[expression[0]].kind == "memo"
