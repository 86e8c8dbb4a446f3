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

RULES: tuple[type[Law], ...] = (
    IndependentPlaces,
    IndependentDraws,
    TrackedAnswers,
    AffineSlabs,
    HadamardWords,
    AllOutcomes,
    Numbers,
)


def law_of(program: Program) -> Law:
    """Return the law of one report of a program.

    Parameters:
        program: the client program.

    Raises:
        Unknown: no rule derives the law; the message has the reason of each rule.
    """
    reasons = []
    for rule in RULES:
        try:
            return rule(program)  # type: ignore[call-arg]
        except Unknown as error:
            reasons.append(f"{rule.rule}: {error}")
    raise Unknown("; ".join(reasons))
