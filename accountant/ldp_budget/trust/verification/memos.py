"""What one secret gives away over time: the reports of a client program that memoises.

A memoised value has draws of its own, made once from the secret, and beside these there may be draws that all values
share, such as the buckets of a user. Given both, reports are independent and alike. So the reports of one value,
however many, say no more than which law they are drawn by: that bounds the cap, and reports counted by kind give each
point of the curve. The draws of different values have to be made of different words of the secret. Then a history
costs no more than its values do one by one, whatever the shared draws are.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, permutations
from math import comb, prod
from typing import TYPE_CHECKING, Any, TypeGuard

from ...authoring.operators import OPERATORS
from ...errors import NotSupported
from ...guarantees.amounts import UP
from .dominance import HOLDS, UNPROVEN, VIOLATED, Finding, check_largest
from .laws import kept_laws, law_of_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from decimal import Decimal

    from ...authoring.programs import Expression, Program
    from ...guarantees import Memoised

    Likely = dict[Any, Fraction]

_LONGEST = 40
"""Points of the curve that are looked at."""
_MOST_KINDS = 100_000
"""Ways in which reports can be counted by kind, for each law that they may be drawn by."""
_VALUES = 3
"""So many values are looked at together where they share words of the secret."""


def check_memoised(guarantee: Memoised, program: Program, values: Sequence[int], most: int) -> Iterator[Finding]:
    """The curve and the cap of each value alone, and whether the values of one secret have draws of their own."""
    shared = shared_labels(program)
    kept = [kept_laws(program, value, shared, most) for value in values]
    together = [_merged(one.values()) for one in kept]
    yield from _on_the_curve(guarantee, together)
    alone = [_capped(guarantee, [one[words][1] for one in kept]) for words in kept[0]]
    if any(found.verdict != HOLDS for found in alone):
        # Of all users together less may be lost than where the shared draws are known.
        yield _capped(guarantee, together)
        yield _two_values(guarantee, program, values, most)
        yield Finding(UNPROVEN, "where the draws that all values share are known, a value loses more than the cap")
    if guarantee.values is not None and not _is_no_more(program, guarantee.values):
        yield from (_all_values(guarantee, guarantee.values, [one[words][1] for one in kept]) for words in kept[0])


def _merged(parts: Iterable[tuple[Fraction, Likely]]) -> Likely:
    """The laws that reports are drawn by, over the shared draws."""
    found: Likely = {}
    for weight, laws in parts:
        for each, likely in laws.items():
            found[each] = found.get(each, Fraction(0)) + weight * likely
    return found


def _capped(guarantee: Memoised, laws: list[Likely]) -> Finding:
    """Which law reports are drawn by is all that ever so many of them tell."""
    return _within(guarantee.cap, laws)


def _within(bound: Decimal, laws: list[Likely]) -> Finding:
    largest = Fraction(1)
    for each in set().union(*laws):
        likely = [one.get(each, Fraction(0)) for one in laws]
        if not min(likely):
            return Finding(VIOLATED, "a report that one input can give is impossible for another")
        largest = max(largest, max(likely) / min(likely))
    return check_largest(bound, largest)


def _is_no_more(program: Program, values: int) -> bool:
    return program.input["kind"] == "answer" and int(program.input["count"]) <= values


def _all_values(guarantee: Memoised, values: int, laws: list[Likely]) -> Finding:
    """All values of one secret together, against any other history that is equal in the same places.

    From each value the way leads over one law to the value in its place. So every law is left once and reached once.
    """
    found = []
    for middle in laws:
        steps = [_largest(one, other) for own in laws for one, other in ((own, middle), (middle, own))]
        if None not in steps:
            found.append(prod((step for step in steps if step is not None), start=Fraction(1)))
    if found and check_largest(UP.multiply(guarantee.cap, values), min(found)).verdict == HOLDS:
        return Finding(HOLDS)
    return Finding(UNPROVEN, f"that all values together lose {values} times the cap at most is not shown")


def _largest(one: Likely, other: Likely) -> Fraction | None:
    """The largest ratio of the first to the second; None where it is infinite."""
    if not one.keys() <= other.keys():
        return None
    return max(likely / other[each] for each, likely in one.items())


def _on_the_curve(guarantee: Memoised, laws: list[Likely]) -> Iterator[Finding]:
    """t > 1 reports for each t, counted by kind, as far as they can be listed; beyond, the cap alone is proved."""
    rows = sorted({row for one in laws for each in one for row, _ in each})
    needed = sum(point < guarantee.cap for point in guarantee.curve)
    for reports in range(2, max(2, min(needed, _LONGEST)) + 1):
        if comb(reports + len(rows) - 1, reports) * sum(map(len, laws)) > _MOST_KINDS:
            if reports <= needed:
                yield Finding(UNPROVEN, f"of the curve the points from {reports} reports on were not looked at")
            return
        bound = guarantee.curve[reports - 1] if reports <= len(guarantee.curve) else guarantee.cap
        yield _within(bound, [_counted(one, rows, reports) for one in laws])
    if needed > _LONGEST:
        yield Finding(UNPROVEN, f"of the curve the first {_LONGEST} points were looked at")


def _counted(laws: Likely, rows: list[bytes], reports: int) -> Likely:
    """How likely reports in one order are, by how many there are of each kind; impossible ones are left out."""
    tables = [(likely, dict(each)) for each, likely in laws.items()]
    found: Likely = {}
    for kinds in combinations_with_replacement(rows, reports):
        chances = [prod((table.get(row, Fraction(0)) for row in kinds), start=likely) for likely, table in tables]
        chance = sum(chances, Fraction(0))
        if chance:
            found[kinds] = chance
    return found


def _two_values(guarantee: Memoised, program: Program, values: Sequence[int], most: int) -> Finding:
    """One report of each of two values of one secret, against those of two others."""
    pairs = list(permutations(values[:_VALUES], 2))
    try:
        laws: list[Likely] = [{**law_of_values(program, pair, most)} for pair in pairs]
    except NotSupported as error:
        return Finding(UNPROVEN, f"two values of one secret were not looked at: {error}")
    found = _within(UP.multiply(guarantee.curve[0], 2), laws)
    return found if found.verdict == HOLDS else Finding(found.verdict, f"of two values of one secret, {found.why}")


# -- which words of the secret are whose -----------------------------------------------------------------------------


def shared_labels(program: Program) -> frozenset[str]:
    """The labels of the draws that all values share. Raises `NotSupported` where draws are neither shared nor own."""
    own, fixed = {"value", program.memo}, {*program.tables}
    kept, labels, shared = {"value", *program.tables}, Counter[str](), set[str]()
    for name, expression in program.steps:
        used = set(_names(expression))
        if used <= fixed and not _reads_the_stream(expression):
            fixed.add(name)
        if used <= kept and not _reads_the_stream(expression):
            kept.add(name)
        if not _is_kept(expression):
            continue
        label, whose = expression[1:3]
        labels[label] += 1
        if name in fixed:
            shared.add(label)
        elif not isinstance(whose, str) or whose not in own or name not in kept:
            raise NotSupported(f"the draws of {label} are neither of one value nor shared by all")
    if labels and max(labels.values()) > 1:
        raise NotSupported(f"two draws may be made of the same words of the secret, those of {max(labels)}")
    return frozenset(shared)


def memo_tells_all(program: Program) -> bool:
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


def _is_kept(expression: Expression) -> TypeGuard[list[Any]]:
    return isinstance(expression, list) and OPERATORS[expression[0]].kind == "memo"
