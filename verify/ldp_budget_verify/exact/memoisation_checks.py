"""Exact checks of client programs that hash the answer, or memoise it.

A public hash maps answers to cells. Some pairs of answers share a cell under some functions, and are harder to
distinguish than others. Which pairs do depends on the seed, and a few answers do not show it. So the guarantee is
checked for two answers that share no cell under any function. No other pair is easier to distinguish: the law of a
report is a mixture over the functions, and a divergence is jointly convex. Either the law is listed with the cell in
place of the answer, or two of the compared answers share no cell. For filters of several bits, the two answers have
all bits set and none in common.

A program that memoises a rounded number depends on the number only through the rounded value. Then that value takes
the place of the number.

A memoised value has draws of its own, made once from the secret. There may also be draws that all values share, such
as the buckets of a user. Given both, reports are independent and identically distributed. So any number of reports of
one value reveal no more than the law they are drawn from. That bounds the cap, and reports counted by kind give each
point of the curve. The draws of different values have to use different words of the secret. Then a history costs no
more than its values do one by one, for any shared draws.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from math import comb, lcm, prod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np

from ldp_budget.errors import NotSupported
from ldp_budget.guarantees import Memoised, Pure
from ldp_budget.guarantees.fixed_point import UP
from ldp_budget.sdk.client_program import OPERATORS
from ldp_budget.sdk.interpreter import evaluate
from ldp_budget_verify.law.all_outcomes import kept_laws, law, law_of_values
from ldp_budget_verify.law.totality import cannot_fail

from .derived_law import answers_are_alike
from .dominance import HOLDS, UNPROVEN, VIOLATED, Finding, check_largest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from decimal import Decimal
    from fractions import Fraction

    from ldp_budget.guarantees import Guarantee, Memoised
    from ldp_budget.sdk.client_program import Expression, Program

    Likely = dict[Any, Fraction]

# -- answers that are hashed -----------------------------------------------------------------------------------------


_MOST_FUNCTIONS = 1 << 14
"""The most functions under which the cells of a pair are compared."""
_MOST_MEMOS = 64
"""The most values of a memo whose curves are compared, every two of them."""


class Hashed(NamedTuple):
    """The step of a program that hashes the answer, if nothing else uses the answer."""

    step: str
    expression: list[Any]

    @property
    def function(self) -> Expression:
        found: Expression = self.expression[2]
        return found

    @property
    def size(self) -> int:
        return int(self.expression[4])


def hashed_step(program: Program) -> Hashed | None:
    """Return the only step that reads the answer, if it is a public hash with a literal size."""
    found = [Hashed(name, step) for name, step in program.steps if isinstance(step, list) and _is_hash(step)]
    readers = [name for name, step in program.steps if "value" in _names(step)]
    if len(found) != 1 or found[0].expression[3] != "value" or not str(found[0].expression[4]).isdecimal():
        return None
    # A draw from the secret only names the answer that it belongs to; its words are uniform for every answer.
    others = [name for name in readers if name != found[0].step]
    kept = {name for name, step in program.steps if _is_memo(step)}
    return found[0] if set(others) <= kept else None


def hashes_the_answer(program: Program) -> bool:
    """Return True if a public hash reads the answer anywhere."""
    return any(_hashes(step) for _, step in program.steps)


def _hashes(expression: Expression) -> bool:
    return isinstance(expression, list) and (_is_hash(expression) or any(map(_hashes, expression[1:])))


def _is_hash(expression: list[Any]) -> bool:
    return OPERATORS[expression[0]].kind == "hash"


def _is_memo(expression: Expression) -> TypeGuard[list[Any]]:
    return isinstance(expression, list) and OPERATORS[expression[0]].kind == "memo"


def _names(expression: Expression) -> Iterator[str]:
    if isinstance(expression, list):
        for each in expression[2 if OPERATORS[expression[0]].labelled else 1 :]:
            yield from _names(each)
    elif isinstance(expression, str):
        yield expression


# -- the law of cells ------------------------------------------------------------------------------------------------


Laws = dict[int, "dict[bytes, Fraction]"]


def cell_laws(program: Program, most: int, runs: int) -> tuple[Program, Laws] | None:
    """Return the program of cells, and the law of the report of each cell, or of two cells that cover all.

    Return None if these do not cover every answer, or a step that is left out may fail for some answer. Raises
    `NotSupported` if the draws have more than `most` outcomes.
    """
    if not cannot_fail(program):
        return None
    if program.memo not in ("", "value"):
        return _memo_laws(program, most, runs)
    hashed = hashed_step(program)
    if hashed is None and not program.memo:
        return _public_laws(program, most, runs)
    if hashed is None or hashed.expression[0] != "polynomial" or program.memo:
        return None
    alike, free = answers_are_alike(program), _is_free(program, hashed)
    if not alike and not free:
        return None
    reduced = _of_cells(program, hashed, free=free)
    first = law(reduced, 0, most)
    cells = range(hashed.size) if hashed.size * len(first) <= runs else range(min(2, hashed.size))
    if len(cells) < hashed.size and not alike:
        return None
    return reduced, {cell: law(reduced, cell, most) for cell in cells}


def _public_laws(program: Program, most: int, runs: int) -> tuple[Program, Laws] | None:
    """Return the law of each cell, if the answer enters one step alone, the cell, and else nothing but public draws.

    The draws that the cell is made of do not depend on the answer, and nothing after the cell reads them. So reports
    are a mixture over these draws of the reports of a cell, whichever cell an answer comes to.
    """
    steps = dict(program.steps)
    sent = {part[1] for part in program.report["parts"]}
    for name, step in program.steps:
        size = _literal_size(step)
        before = _ancestors(steps, step)
        private = {each for each in before if each == "value" or "value" in _ancestors(steps, steps.get(each, 0))}
        if size is None or "value" not in private or private & sent:
            continue
        drawn = [step for step in map(steps.get, before) if _draws(step)]
        after = {each for other, later in program.steps if other not in before | {name} for each in _names(later)}
        if after & before or not all(draw[0] == "below" and _count(draw[1]) is not None for draw in drawn):
            continue
        kept = tuple(
            (other, "value" if other == name else each) for other, each in program.steps if other not in before
        )
        parts = [part for part in program.report["parts"] if part[1] not in before]
        given = {"kind": "answer", "count": str(size), "text": False}
        reduced = replace(program, input=given, steps=kept, report={**program.report, "parts": parts})
        if answers_are_alike(reduced):
            return reduced, {cell: law(reduced, cell, most) for cell in range(min(size, 2))}
        first = law(reduced, 0, most)
        return None if size * len(first) > runs else (reduced, {v: law(reduced, v, most) for v in range(size)})
    return None


def _literal_size(step: Expression) -> int | None:
    """Return the number of values of a step that is a remainder or a hash of a literal size."""
    if not isinstance(step, list) or step[0] not in ("mod", "polynomial"):
        return None
    return _count(step[-1])


def _ancestors(steps: dict[str, Expression], expression: Expression) -> set[str]:
    """Return all names that an expression is made of, over any number of steps."""
    found: set[str] = set()
    waiting = list(_names(expression))
    while waiting:
        name = waiting.pop()
        if name not in found and not name.lstrip("-").isdecimal():
            found.add(name)
            waiting.extend(_names(steps.get(name, 0)))
    return found


def _draws(step: Expression | None) -> TypeGuard[list[Any]]:
    return isinstance(step, list) and OPERATORS[step[0]].kind in ("draw", "memo")


def _memo_laws(program: Program, most: int, runs: int) -> tuple[Program, Laws] | None:
    """Return the law of each value of the memo, if the reports depend on the answer only through the memo.

    Two histories of answers that are equal in the same places have memos that are equal there, for any words that all
    values share. So their reports are a mixture over these words: of the reports of two such histories of memos.
    """
    hashed, steps = hashed_step(program), dict(program.steps)
    if hashed is not None:
        # The cell is the memo. Given the function, which nothing else depends on, reports are those of the cell.
        known = hashed.step == program.memo and _is_used_once(program, hashed.function)
        last = hashed.size - 1 if known else None
    else:
        last = _last(program, steps.get(program.memo))
    if last is None or not 0 < last < _MOST_MEMOS:
        return None
    own = [(name, "value" if name == program.memo else step) for name, step in program.steps]
    kept: list[tuple[str, Expression]] = []
    parts = [part for part in program.report["parts"] if hashed is None or part[1] != hashed.function]
    used = {part[1] for part in parts} | {program.memo}
    for name, step in reversed(own):
        if name in used:
            kept.insert(0, (name, step))
            used |= set(_names(step))
    given = {"kind": "answer", "count": str(last + 1), "text": False}
    reduced = replace(program, input=given, steps=tuple(kept), report={**program.report, "parts": parts})
    # A report that shows the shared words is a mixture over them of other laws.
    memo: Any = steps[program.memo]
    words: Any = steps[memo[1][2]] if hashed is None else ["", ""]
    if words[1] in [step[1] for _, step in kept if _is_memo(step)]:
        return None
    first = law(reduced, 0, most)
    return None if (last + 1) * len(first) > runs else (reduced, {v: law(reduced, v, most) for v in range(last + 1)})


def _last(program: Program, memo: Expression | None) -> int | None:
    """Return the largest value of a memo rounded from a number and bits of the secret; None for other memos."""
    steps = dict(program.steps)
    if program.input["kind"] == "answer" or not isinstance(memo, list) or memo[0] != "shr":
        return None
    added, bits = memo[1:]
    if not isinstance(added, list) or added[:2] != ["add", "value"] or not isinstance(bits, int):
        return None
    words = steps.get(added[2])
    if not isinstance(words, list) or words[0] != "kept_top" or words[2] != 0 or not isinstance(words[3], int):
        return None
    # Each multiple of 2**bits is an answer, and is rounded to its own value for any words.
    last = int(program.input["last"])
    return last >> bits if words[3] <= bits and not last % (1 << bits) else None


def _is_free(program: Program, hashed: Hashed) -> bool:
    """Return True if the number of the function is drawn, and used for the hash and the report alone."""
    drawn = dict(program.steps).get(hashed.function) if isinstance(hashed.function, str) else None
    uses = Counter(name for _, step in program.steps for name in _names(step))
    return isinstance(drawn, list) and drawn[0] == "below" and uses[str(hashed.function)] == 1


def _of_cells(program: Program, hashed: Hashed, *, free: bool) -> Program:
    """Return the program with the cell in place of the answer.

    A function number that nothing depends on is dropped.
    """
    left_out = hashed.function if free else ""
    steps = [(name, "value" if name == hashed.step else step) for name, step in program.steps if name != left_out]
    parts = [part for part in program.report["parts"] if part[1] != left_out]
    given = {"kind": "answer", "count": str(hashed.size), "text": False}
    return replace(program, input=given, steps=tuple(steps), report={**program.report, "parts": parts})


# -- two answers that share no cell ----------------------------------------------------------------------------------


def pair_is_apart(guarantee: Guarantee, program: Program, first: int, second: int) -> bool:
    """Return True if no two answers are easier to distinguish than these two; the program treats answers alike.

    That is so if their cells differ under every function. For a guarantee of pure ε alone, one function is enough, if
    only the hash and the report depend on the function.
    """
    hashed = hashed_step(program)
    functions = None if hashed is None else _functions(program, hashed.function)
    if hashed is None or functions is None:
        return False
    apart = (_is_apart(hashed, number, first, second) for number in range(min(functions, _MOST_FUNCTIONS)))
    if isinstance(guarantee, Pure | Memoised) and _is_used_once(program, hashed.function):
        return any(apart)
    return functions <= _MOST_FUNCTIONS and all(apart)


def _is_apart(hashed: Hashed, function: int, first: int, second: int) -> bool:
    name, seed, _, _, *sizes = hashed.expression
    one, other = (evaluate([name, seed, function, value, *sizes], {}, None) for value in (first, second))
    if name == "polynomial":
        return bool(one != other)
    bits, most = np.array([one, other]), int(sizes[1])
    return bool((bits.sum(axis=1) == most).all() and not bits.all(axis=0).any())


def _functions(program: Program, function: Expression) -> int | None:
    """Return the number of functions that may be drawn; None if it is not a literal."""
    steps = dict(program.steps)
    if isinstance(function, list) and function[0] == "shr" and isinstance(function[2], int):
        places = _functions(program, function[1])
        return None if places is None else ((places - 1) >> function[2]) + 1
    while isinstance(function, str) and isinstance(steps.get(function), str):
        function = steps[function]
    drawn = steps.get(function) if isinstance(function, str) else None
    if not isinstance(drawn, list):
        return None
    if drawn[0] == "at" and drawn[2] == 0 and isinstance(drawn[1], str):
        kept = steps.get(drawn[1])
        return _count(kept[3]) if isinstance(kept, list) and kept[0] == "kept_belows" else None
    return _count(drawn[1]) if drawn[0] == "below" else None


def _count(number: Expression) -> int | None:
    return int(number) if isinstance(number, int) or (isinstance(number, str) and number.isdecimal()) else None


def _is_used_once(program: Program, function: Expression) -> bool:
    """Return True if the function, and the steps it comes from, enter only one other step. The report may show it."""
    uses = Counter(name for _, step in program.steps for name in _names(step))
    steps = dict(program.steps)
    while isinstance(function, str):
        if uses[function] != 1:
            return False
        step = steps.get(function)
        function = step[1] if isinstance(step, list) and step[0] == "at" else step if isinstance(step, str) else 0
    return function == 0


# -- reports of one secret over time ---------------------------------------------------------------------------------


_LONGEST = 40
"""The number of points of the curve that are checked."""
_MOST_KINDS = 100_000
"""The most ways to count reports by kind, times the laws that they may be drawn from."""
_VALUES = 3
"""The number of values that are checked together if they share words of the secret."""


def check_memoised(guarantee: Memoised, program: Program, values: Sequence[int], most: int) -> Iterator[Finding]:
    """Check the curve and the cap of each value alone, and that the values of one secret have draws of their own."""
    shared = shared_labels(program)
    kept = [kept_laws(program, value, shared, most) for value in values]
    together = [_merged(one.values()) for one in kept]
    yield from _on_the_curve(guarantee, together)
    alone = [_capped(guarantee, [one[words][1] for one in kept]) for words in kept[0]]
    if any(found.verdict != HOLDS for found in alone):
        # Over all users together, less may be lost than for a user whose shared draws are known.
        yield _capped(guarantee, together)
        yield _two_values(guarantee, program, values, most)
        yield Finding(UNPROVEN, "where the draws that all values share are known, a value loses more than the cap")
    if guarantee.values is not None and not _is_no_more(program, guarantee.values):
        yield from (_all_values(guarantee, guarantee.values, [one[words][1] for one in kept]) for words in kept[0])


def _merged(parts: Iterable[tuple[Fraction, Likely]]) -> Likely:
    """Return the laws that reports are drawn from, over the shared draws."""
    found: Likely = {}
    for weight, laws in parts:
        for each, likely in laws.items():
            found[each] = found.get(each, Fraction(0)) + weight * likely
    return found


def _capped(guarantee: Memoised, laws: list[Likely]) -> Finding:
    """Check the cap: any number of reports reveal no more than the law they are drawn from."""
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
    """Check all values of one secret together, against any other history that is equal in the same places.

    Each value is replaced by the other history's value through one middle law. So every law is left once and reached
    once.
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
    """Return the largest ratio of the first to the second; None if it is infinite."""
    if not one.keys() <= other.keys():
        return None
    return max(likely / other[each] for each, likely in one.items())


def _on_the_curve(guarantee: Memoised, laws: list[Likely]) -> Iterator[Finding]:
    """Check t > 1 reports for each t, counted by kind, as far as they can be listed.

    Beyond, only the cap is proved.
    """
    rows = sorted({row for one in laws for each in one for row, _ in each})
    whole = _in_integers(laws, rows)
    needed = sum(point < guarantee.cap for point in guarantee.curve)
    for reports in range(2, max(2, min(needed, _LONGEST)) + 1):
        if comb(reports + len(rows) - 1, reports) * sum(map(len, laws)) > _MOST_KINDS:
            if reports <= needed:
                yield Finding(UNPROVEN, f"of the curve the points from {reports} reports on were not looked at")
            return
        bound = guarantee.curve[reports - 1] if reports <= len(guarantee.curve) else guarantee.cap
        yield _reports_within(bound, whole, len(rows), reports)
    if needed > _LONGEST:
        yield Finding(UNPROVEN, f"of the curve the first {_LONGEST} points were looked at")


def _in_integers(laws: list[Likely], rows: list[bytes]) -> list[list[tuple[int, list[int]]]]:
    """Return the weight of each table of each law, and its probability of each row, over common denominators."""
    tables = [
        [(likely, [dict(each).get(row, Fraction(0)) for row in rows]) for each, likely in one.items()] for one in laws
    ]
    weights = lcm(*(likely.denominator for one in tables for likely, _ in one))
    chances = lcm(*(chance.denominator for one in tables for _, some in one for chance in some))
    return [
        [(int(likely * weights), [int(chance * chances) for chance in some]) for likely, some in one]
        for one in tables
    ]


def _reports_within(bound: Decimal, laws: list[list[tuple[int, list[int]]]], rows: int, reports: int) -> Finding:
    """Check that so many reports, counted by row, lose at most `bound`. All laws have the same denominators."""
    counts = np.array(list(_counts(reports, rows)))
    likely: list[Any] = []
    for one in laws:
        total: Any = 0
        for weight, chances in one:
            powers = [np.array([chance**count for count in range(reports + 1)], dtype=object) for chance in chances]
            total = total + weight * prod(power[counts[:, row]] for row, power in enumerate(powers))
        likely.append(total)
    largest, least = 1, 1
    for each in zip(*likely, strict=True):
        most, fewest = max(each), min(each)
        if most and not fewest:
            return Finding(VIOLATED, "reports that one input can give are impossible for another")
        if most * least > largest * fewest:
            largest, least = most, fewest
    return check_largest(bound, Fraction(largest, least))


def _counts(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to divide a number among parts, in order."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for others in _counts(total - first, parts - 1):
            yield (first, *others)


def _two_values(guarantee: Memoised, program: Program, values: Sequence[int], most: int) -> Finding:
    """Check one report of each of two values of one secret, against those of two others."""
    pairs = list(permutations(values[:_VALUES], 2))
    try:
        laws: list[Likely] = [{**law_of_values(program, pair, most)} for pair in pairs]
    except NotSupported as error:
        return Finding(UNPROVEN, f"two values of one secret were not looked at: {error}")
    found = _within(UP.multiply(guarantee.curve[0], 2), laws)
    return found if found.verdict == HOLDS else Finding(found.verdict, f"of two values of one secret, {found.why}")


# -- the words of the secret that each value uses ----------------------------------------------------------------------


def shared_labels(program: Program) -> frozenset[str]:
    """Return the labels of draws that all values share. Raises `NotSupported` if a draw is neither shared nor own."""
    own, fixed = {"value", program.memo}, {*program.tables}
    kept, labels, shared = {"value", *program.tables}, Counter[str](), set[str]()
    for name, expression in program.steps:
        used = set(_memos_names(expression))
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
    """Return True if a report depends on `memo` and draws alone, and `memo` on the answer and the secret alone."""
    told, kept = {program.memo, *program.tables}, {"value", *program.tables}
    for name, expression in program.steps:
        used = set(_memos_names(expression))
        if used <= told:
            told.add(name)
        if used <= kept and not _reads_the_stream(expression):
            kept.add(name)
    parts = {part[1] for part in program.report["parts"]}
    drawn = {name for _, step in program.steps if _is_kept(step) for name in _memos_names(step)}
    return {each for each in parts | drawn if isinstance(each, str)} <= told and program.memo in kept


def _memos_names(expression: Expression) -> Iterator[str]:
    """Yield the names in an expression."""
    if isinstance(expression, list):
        operator = OPERATORS[expression[0]]
        for argument in expression[2 if operator.labelled else 1 :]:
            yield from _memos_names(argument)
    elif isinstance(expression, str) and not expression.lstrip("-").isdecimal():
        yield expression


def _reads_the_stream(expression: Expression) -> bool:
    return isinstance(expression, list) and OPERATORS[expression[0]].kind == "draw"


def _is_kept(expression: Expression) -> TypeGuard[list[Any]]:
    return isinstance(expression, list) and OPERATORS[expression[0]].kind == "memo"
