"""The rules that derive the law of a client program, in the order in which they are tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .affine_slabs import AffineSlabs
from .all_outcomes import AllOutcomes
from .corners import Numbers
from .hadamard_words import HadamardWords
from .independent_draws import IndependentDraws
from .independent_places import IndependentPlaces
from .law import Unknown
from .tracked_answers import TrackedAnswers

if TYPE_CHECKING:
    from ..client_program import Program
    from .law import Law

STRUCTURE: tuple[type[Law], ...] = (
    IndependentPlaces,
    IndependentDraws,
    TrackedAnswers,
    AffineSlabs,
    HadamardWords,
)
"""The rules that derive the law of any number of answers from the structure of the steps, in milliseconds."""

RULES: tuple[type[Law], ...] = (*STRUCTURE, AllOutcomes, Numbers)


def law_of(program: Program) -> Law:
    """Return the law of one report of a program.

    Parameters:
        program: the client program.

    Raises:
        Unknown: no rule derives the law; the message has the reason of each rule.
    """
    return _first(RULES, program)


def law_by_structure(program: Program) -> Law:
    """Return the law that the structure of the steps shows for any two answers, without a list of outcomes.

    Parameters:
        program: the client program.

    Raises:
        Unknown: no rule derives the law.
    """
    return _first(STRUCTURE, program)


def _first(rules: tuple[type[Law], ...], program: Program) -> Law:
    reasons = []
    for rule in rules:
        try:
            return rule(program)  # type: ignore[call-arg]
        except Unknown as error:
            reasons.append(f"{rule.rule}: {error}")
    raise Unknown("; ".join(reasons))
