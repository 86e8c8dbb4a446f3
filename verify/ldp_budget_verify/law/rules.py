"""The rules that derive the law of a client program, in the order in which they are tried."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ldp_budget.sdk.client_program import OPERATORS
from ldp_budget.sdk.report_law import Unknown

from .affine_slabs import AffineSlabs
from .all_outcomes import AllOutcomes
from .asked_items import AskedItems
from .corners import Numbers
from .hadamard_words import HadamardWords
from .independent_draws import IndependentDraws
from .independent_places import IndependentPlaces
from .ticked_sets import AskedOptions, TickedSets
from .tracked_answers import TrackedAnswers

if TYPE_CHECKING:
    from ldp_budget.sdk.client_program import Program
    from ldp_budget.sdk.report_law import Law

STRUCTURE: tuple[type[Law], ...] = (
    IndependentPlaces,
    IndependentDraws,
    TrackedAnswers,
    AffineSlabs,
    HadamardWords,
)
"""The rules that derive the law of any number of answers from the structure of the steps, in milliseconds."""

REBUILT: tuple[type[Law], ...] = (TickedSets, AskedOptions, AskedItems)
"""The rules that read a few numbers from a program and accept it only if it equals the one that they build from these."""

RULES: tuple[type[Law], ...] = (*REBUILT, *STRUCTURE, AllOutcomes, Numbers)


_MOST_WRITTEN = 20_000
_FEW_RUNS = 1 << 11
"""The most outcomes that are listed beside a rule."""


def law_of(program: Program) -> Law:
    """Return the law of one report of a program.

    At small sizes the list of all outcomes is held against the rule. The list is also returned in place of a bound.

    Parameters:
        program: the client program.

    Raises:
        Unknown: no rule derives the law; the message has the reason of each rule. Or a rule and the list differ.
    """
    try:
        found = law_by_structure(program)
    except Unknown as error:
        try:
            return _first((AllOutcomes, Numbers), program)
        except Unknown as more:
            raise Unknown(f"{error}; {more}") from None
    try:
        listed = AllOutcomes(program, _FEW_RUNS) if found.tight else AllOutcomes(program)
    except Unknown:
        return found
    ratio, most = listed.ratio, found.ratio
    bounded = listed.variation <= found.variation and (most is None or (ratio is not None and ratio <= most))
    if not bounded or (found.tight and (ratio, listed.variation) != (most, found.variation)):
        raise Unknown(f"the law by {found.rule} is not that of all outcomes listed")
    return found if found.tight else listed


def law_by_structure(program: Program) -> Law:
    """Return the law that the structure of the steps shows for any two answers, without a list of outcomes.

    Parameters:
        program: the client program.

    Raises:
        Unknown: no rule derives the law.
    """
    with suppress(Unknown):
        return _first(REBUILT, program)
    if _written_out(program) > _MOST_WRITTEN:
        raise Unknown(f"the steps have more than {_MOST_WRITTEN:,} operators, written out in place of their names")
    return _first(STRUCTURE, program)


def _written_out(program: Program) -> int:
    """Return how many operators the longest step has if earlier steps are written in place of their names."""
    lengths = dict[str, int]()

    def of(x: Any) -> int:
        if isinstance(x, list):
            return 1 + sum(map(of, x[1:]))
        return lengths.get(x, 0) if isinstance(x, str) else 0

    for name, x in program.steps:
        drawn = isinstance(x, list) and OPERATORS[x[0]].kind in ("draw", "memo")
        lengths[name] = min(1 if drawn else of(x), _MOST_WRITTEN + 1)
    return max(lengths.values(), default=0)


def _first(rules: tuple[type[Law], ...], program: Program) -> Law:
    reasons = []
    for rule in rules:
        try:
            return rule(program)  # type: ignore[call-arg]
        except Unknown as error:
            reasons.append(f"{rule.rule}: {error}")
    raise Unknown("; ".join(reasons))
