"""Exact checks of a client program against the guarantee: every outcome of every draw, in fractions.

`compare` is only a description; devices run the program. So whole reports are checked against the entire guarantee
for every pair of answers, and then against the description. An answer is covered by itself, in a range
(`law.corners`), or by the law of any two answers that a rule derives (`derived_law`). If not every answer is
covered, the program is unproven, and the finding names what was checked. For memoised reports, everything that one
secret ever gives is checked, see `memoisation_checks`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget._files import canonical_json
from ldp_budget.errors import NotSupported
from ldp_budget.guarantees import Memoised, Pure, Unbounded
from ldp_budget.sdk.channels import Comparison
from ldp_budget.sdk.interpreter import read
from ldp_budget_verify.law.all_outcomes import kept_laws, law

from .. import undefined
from .additive_noise import check_noise
from .derived_law import answers_are_alike, derived_law, description_of, law_within
from .dominance import HOLDS, UNPROVEN, VIOLATED, Finding, check, check_largest, worst
from .memoisation_checks import (
    cell_laws,
    check_memoised,
    hashes_the_answer,
    memo_tells_all,
    pair_is_apart,
    shared_labels,
)
from .numeric_grids import check_corners, check_grid

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from decimal import Decimal

    from ldp_budget.guarantees import Guarantee
    from ldp_budget.sdk.client_program import Program
    from ldp_budget.sdk.mechanism import Mechanism

    Law = dict[bytes, Fraction]

MOST_OUTCOMES = 4096
"""The most outcomes of a report of one answer."""
_MOST_RUNS = 20_000
"""The most outcomes of all answers together."""
_MOST_CELLS = 1_000_000
"""The most reports, counted for each pair of answers, of all compared pairs."""
_FEW = 6
"""The most inputs of which every pair is checked against its description."""
_REPEATS = (
    "its reports repeat draws of a secret, and what one loses given earlier reports was not looked at; promise"
    " `Memoised` for the same change pattern, if that will do"
)
_BY_HAND = "so samples and the audit check it"


@dataclass(frozen=True)
class ProgramFinding(Finding):
    """The result of a check of a client program.

    `every`: True if it covers every pair of answers. `laws`: the law of each answer if each was listed, else empty.
    """

    every: bool = False
    laws: tuple[Law, ...] = ()


def check_program(mechanism: Mechanism, inputs: Sequence[Any], most: int = MOST_OUTCOMES) -> ProgramFinding:
    """Check the law of a client program, of up to `most` outcomes; if it is unproven, the finding says why."""
    try:
        program = mechanism.client_program()
    except NotSupported as error:
        return ProgramFinding(UNPROVEN, undefined(mechanism, error, "client_program"))
    if program.memo and not memo_tells_all(program):
        why = f"its reports depend on more of the answer than {program.memo}, the memo that they are charged by"
        return ProgramFinding(VIOLATED, f"client program: {why}")
    added = check_noise(mechanism.guarantee, program) or check_grid(mechanism.guarantee, program)
    if added is not None:
        why = f"client program: {added.why}" if added.why else ""
        return ProgramFinding(added.verdict, why, added.verdict == HOLDS)
    if len(inputs) < 2:
        return ProgramFinding(UNPROVEN, f"there are no two inputs to run the client program for, {_BY_HAND}")
    try:
        return _checked(mechanism, program, inputs, most)
    except NotSupported as error:
        return ProgramFinding(UNPROVEN, f"the law of the client program is not listed, {_BY_HAND}: {error}")
    except _NoReport as error:
        return ProgramFinding(VIOLATED, f"client program: {error}")


def stand_for_all(mechanism: Mechanism, pairs: Sequence[tuple[Any, Any]]) -> bool:
    """Return True if one of the pairs is as easy to distinguish as any two answers, by the client program's steps."""
    try:
        program = mechanism.client_program()
    except NotSupported:
        return False
    law, guarantee = derived_law(program), mechanism.guarantee
    if law is not None and not isinstance(guarantee, Memoised) and law_within(guarantee, law).verdict == HOLDS:
        return True
    if not answers_are_alike(program):
        return False
    return not hashes_the_answer(program) or any(pair_is_apart(mechanism.guarantee, program, *pair) for pair in pairs)


def check_given_memos(mechanism: Mechanism, inputs: Sequence[Any], most: int = MOST_OUTCOMES) -> Finding:
    """Check each report given all earlier uses of the secret, for guarantees that are not `Memoised`.

    Reports that repeat a draw are not independent, but such a guarantee composes over reports of any history. So it
    must hold between any law of reports of one input once the secret is known, and any law of another input. Draws
    that all inputs share are the same for both.
    """
    try:
        program = mechanism.client_program()
    except NotSupported:
        return Finding(UNPROVEN, _REPEATS) if mechanism.repeats else Finding(HOLDS)
    if not program.memo:
        return Finding(UNPROVEN, _REPEATS) if mechanism.repeats else Finding(HOLDS)
    if flip_hides_all(mechanism):
        return Finding(HOLDS)
    try:
        shared = shared_labels(program)
        kept = [kept_laws(program, read(program, value), shared, most) for value in inputs]
    except NotSupported:
        return Finding(UNPROVEN, _REPEATS)
    pairs = {
        frozenset((first, second))
        for one, other in combinations(kept, 2)
        for words in one
        for first, second in product(one[words][1], other[words][1])
        if first != second
    }
    if not pairs or len(pairs) > _MOST_RUNS:
        return Finding(UNPROVEN if pairs else HOLDS, _REPEATS if pairs else "")
    found = worst(
        finding for pair in pairs for finding in _pairs_within(mechanism.guarantee, dict(enumerate(map(dict, pair))))
    )
    return found if found.verdict == HOLDS else Finding(found.verdict, f"given earlier reports, {found.why}")


def flip_hides_all(mechanism: Mechanism) -> bool:
    """Return True if one report is within the guarantee even if its bit is known, except for a last fresh flip.

    This covers every two inputs, because the draws before the flip give a mixture of known bits.
    """
    if isinstance(mechanism.guarantee, Memoised):
        return False
    try:
        flip = _last_flip(mechanism.client_program())
    except NotSupported:
        return False
    return flip is not None and worst(_flipped_within(mechanism.guarantee, flip)).verdict == HOLDS


def _last_flip(program: Program) -> Fraction | None:
    """Return the probability of the fresh bit that is added last to a report of one bit; None for other programs."""
    steps: dict[Any, Any] = dict(program.steps)
    match program.report["parts"], [steps.get(part[1]) for part in program.report["parts"]]:
        case [_], [["xor", ["at", str(kept), 0], str(fresh)]]:
            bit, source = steps.get(fresh), steps.get(kept)
        case _:
            return None
    uses = canonical_json([*steps.values(), program.report]).count(f'"{fresh}"')
    match bit, source:
        case ["bit", str(threshold)], ["kept_bits", *_] if threshold.isdecimal() and uses == 1:
            return Fraction(int(threshold), 2**64)
    return None


def _flipped_within(guarantee: Guarantee, flip: Fraction) -> Iterator[Finding]:
    """Check reports of a known bit, except for the flip, against those of the other bit."""
    bit = {row: likely for row, likely in ((b"0", 1 - flip), (b"1", flip)) if likely}
    other = {row: likely for row, likely in ((b"1", 1 - flip), (b"0", flip)) if likely}
    yield from _pairs_within(guarantee, {0: bit, 1: other})


class _NoReport(Exception):  # noqa: N818 - reads as what it is
    """A program that makes no report."""


def _checked(mechanism: Mechanism, program: Program, inputs: Sequence[Any], most: int) -> ProgramFinding:
    cells = _over_cells(mechanism.guarantee, program, most)
    try:
        return _listed(mechanism, program, inputs, most, cells)
    except NotSupported as error:
        if cells is not None and cells.verdict == VIOLATED:
            return ProgramFinding(VIOLATED, f"client program: {cells.why}")
        if cells is None or cells.verdict != HOLDS:
            raise
        law = derived_law(program)
        if law is not None and law.tight:
            found = description_of(mechanism, law, *inputs[:2])
            why = f"client program: {found.why}" if found.why else ""
            return ProgramFinding(found.verdict, why, found.verdict == HOLDS)
        why = "its reports are within the promise for all cells, and are not compared with the description"
        return ProgramFinding(UNPROVEN, f"{why}: {error}", every=True)


def _listed(
    mechanism: Mechanism, program: Program, inputs: Sequence[Any], most: int, cells: Finding | None
) -> ProgramFinding:
    known = {read(program, value): value for value in inputs}
    laws = {value: _law(program, value, most) for value in known}
    every = _every(program, laws)
    if cells is not None and cells.verdict == HOLDS:
        within: Iterable[Finding] = [cells]  # the cells cover all answers, and are fewer
    else:
        within = _promised(mechanism.guarantee, program, laws if every is None else every, most)
    least = _least_of((every or laws).values())
    described = _described(mechanism, program, {known[value]: one for value, one in laws.items()}, least)
    found = worst([*within, described])
    if every is None:
        looked = cells or _by_corners(mechanism.guarantee, program)
        if looked.verdict != HOLDS:
            found = worst([found, looked])
    why = f"client program: {found.why}" if found.why else ""
    listed = tuple(every.values()) if every is not None and len(every) == _answers(program) else ()
    return ProgramFinding(found.verdict, why, found.verdict == HOLDS, listed)


def _answers(program: Program) -> int:
    """Return the number of whole numbers that an answer can be."""
    given = program.input
    if given["kind"] == "word":
        return int(256 ** int(given["length"]))
    return int(given["count"]) if given["kind"] == "answer" else int(given["last"]) + 1


def _law(program: Program, value: int, most: int) -> Law:
    try:
        return law(program, value, most)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise _NoReport(f"it makes no report of {value}: {error}") from None


def _every(program: Program, laws: dict[int, Law]) -> dict[int, Law] | None:
    """Return the laws of all answers, or of some that cover all as the steps treat all alike; None if neither."""
    answers = _answers(program)
    if answers * max(map(len, laws.values())) <= _MOST_RUNS:
        return {value: laws[value] if value in laws else _law(program, value, _MOST_RUNS) for value in range(answers)}
    if program.input["kind"] != "answer" or hashes_the_answer(program):
        return None
    return laws if answers_are_alike(program) else None


def _over_cells(guarantee: Guarantee, program: Program, most: int) -> Finding | None:
    """Check the guarantee by the law of any two answers, cells or values of a memo; None if no law is known."""
    if program.memo and not isinstance(guarantee, Memoised):
        return None
    law = derived_law(program)
    if law is not None and not isinstance(guarantee, Memoised):
        return law_within(guarantee, law)
    try:
        found_laws = cell_laws(program, most, _MOST_RUNS)
    except NotSupported:
        return None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return Finding(UNPROVEN, "some cell, or some value of its memo, comes to no report")
    if found_laws is None:
        return None
    reduced, laws = found_laws
    try:
        found = worst(_promised(guarantee, reduced, laws, most))
    except NotSupported as error:
        return Finding(UNPROVEN, str(error))
    if found.verdict != VIOLATED or program.memo:  # every value of the memo is that of some answer
        return found
    return Finding(UNPROVEN, f"of two answers that share no cell, if there are any, {found.why}")


# -- comparison with the guarantee -------------------------------------------------------------------------------------


def _promised(guarantee: Guarantee, program: Program, laws: dict[int, Law], most: int) -> Iterator[Finding]:
    """Check whole reports of these answers against the entire guarantee."""
    if isinstance(guarantee, Unbounded):
        yield Finding(HOLDS)
    elif isinstance(guarantee, Memoised):
        yield _within(guarantee.curve[0], list(laws.values()))
        yield from check_memoised(guarantee, program, list(laws), most)
    else:
        yield from _pairs_within(guarantee, laws)


def _pairs_within(guarantee: Guarantee, laws: dict[int, Law]) -> Iterator[Finding]:
    promised = guarantee.loss()
    if promised is not None and not promised[1]:
        yield _within(promised[0], list(laws.values()))
    if isinstance(guarantee, Pure):
        return
    comparisons, complete = _compared(list(laws.values()))
    yield from (check(guarantee, each) for each in comparisons)
    if not complete:
        why = f"of the pairs of {len(laws)} answers the first {_MOST_CELLS:,} outcomes were compared"
        yield Finding(UNPROVEN, why)


def _compared(laws: list[Law]) -> tuple[list[Comparison], bool]:
    """Return the distinct comparisons of the distinct laws, in both orders; and True if they cover every pair."""
    distinct = list({frozenset(one.items()): one for one in laws}.values())
    common = lcm(*(likely.denominator for one in distinct for likely in one.values()))
    rows = sorted(set().union(*distinct))
    scaled = [[_numerator(one.get(row), common) for row in rows] for one in distinct]
    different: dict[frozenset[Any], list[tuple[int, int]]] = {}
    left = _MOST_CELLS
    for first, second in combinations(scaled, 2):
        left -= len(rows)
        if left < 0:
            break
        masses = Counter(zip(first, second, strict=True))
        different.setdefault(frozenset(masses.items()), list(masses.elements()))
    found = []
    for masses_ in different.values():
        sides = [[Fraction(mass[side], common) for mass in masses_] for side in (0, 1)]
        found += [Comparison.rows(*sides), Comparison.rows(*sides[::-1])]
    return list(dict.fromkeys(found)), left >= 0


def _numerator(likely: Fraction | None, common: int) -> int:
    return 0 if likely is None else likely.numerator * (common // likely.denominator)


def _within(bound: Decimal, laws: list[Law]) -> Finding:
    """Check that no report is more than e^bound times as likely for one answer as for another."""
    largest, never = Fraction(1), Fraction(0)
    for row in set().union(*laws):
        least, most = (side(one.get(row, never) for one in laws) for side in (min, max))
        if not least:
            return Finding(VIOLATED, "a report that one input can give is impossible for another")
        largest = max(largest, most / least)
    return check_largest(bound, largest)


# -- too many answers to list ------------------------------------------------------------------------------------------


def _by_corners(guarantee: Guarantee, program: Program) -> Finding:
    """Check all answers by the pairs at the corners of their regions, see `ldp_budget_verify.law.corners`."""
    answers = _answers(program)
    if isinstance(guarantee, Memoised):
        return Finding(UNPROVEN, "what one secret gives over time was looked at for a few answers")
    try:
        found = check_corners(guarantee, program)
        why = "what one answer changes is not the same along a range of answers"
    except NotSupported as error:
        found, why = None, str(error)
    return found or Finding(UNPROVEN, f"not every one of its {answers:,} answers was looked at: {why}")


# -- comparison with the description -----------------------------------------------------------------------------------


def _least_of(laws: Iterable[Law]) -> Law:
    """Return the least probability of each report over these laws."""
    listed = list(laws)
    return {row: min(one.get(row, Fraction(0)) for one in listed) for row in set().union(*listed)}


def _described(mechanism: Mechanism, program: Program, laws: dict[Any, Law], least: Law) -> Finding:
    """Check that outcomes are exactly as likely as `compare` says: each input against the next, in both orders.

    `least` is the least probability of each report for any input that was looked at; no floor may be above it.
    """
    try:
        for pair in _described_pairs(list(laws)):
            for first, second in (pair, pair[::-1]):
                if not _as_described(mechanism, program, laws, first, second):
                    return Finding(VIOLATED, f"the law of the program is not what compare({first}, {second}) says")
                if not _above_floors(mechanism, program, laws[first], laws[second], least, first, second):
                    why = f"a report of some input is less likely than the floors of compare({first}, {second}) say"
                    return Finding(VIOLATED, why)
    except NotSupported as error:
        return Finding(UNPROVEN, f"its reports are within the promise, and what they say is not described: {error}")
    return Finding(HOLDS)


def _described_pairs(inputs: list[Any]) -> Iterable[tuple[Any, Any]]:
    """Return every pair of a few inputs; of more, each against the next, and the last against the first."""
    if len(inputs) <= _FEW:
        return combinations(inputs, 2)
    return zip(inputs, [*inputs[1:], inputs[0]], strict=True)


def _outcomes_of(mechanism: Mechanism, program: Program, rows: list[bytes], first: Any, second: Any) -> list[int]:
    reports = np.frombuffer(b"".join(rows), program.report["dtype"]).reshape(len(rows), *program.report["shape"])
    codes: list[int] = np.asarray(mechanism.outcomes(reports, first, second)).tolist()
    return codes


def _above_floors(
    mechanism: Mechanism, program: Program, one: Law, other: Law, least: Law, first: Any, second: Any
) -> bool:
    """Return True if no input's report falls below its share of a floor, in the proportions of P + Q."""
    comparison = mechanism.compare(first, second)
    floors, masses = comparison.floors(), comparison.masses()
    if floors is None:
        return True
    rows = sorted(one.keys() | other.keys())
    for row, code in zip(rows, _outcomes_of(mechanism, program, rows, first, second), strict=True):
        both = one.get(row, Fraction(0)) + other.get(row, Fraction(0))
        if least[row] * sum(masses[code]) < floors[code] * both:
            return False
    return True


def _as_described(mechanism: Mechanism, program: Program, laws: dict[Any, Law], first: Any, second: Any) -> bool:
    masses = mechanism.compare(first, second).masses()
    rows = sorted(laws[first].keys() | laws[second].keys())
    codes = _outcomes_of(mechanism, program, rows, first, second)
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
