"""The clients of random substitution as programs: the draws of `_substitution_reports`, one user at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ldp_budget.authoring.programs import Program, answers, uint, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ldp_budget.authoring.domain import Categories

    Steps = tuple[tuple[str, Any], ...]

# The others are 0..size-2; from the own answer on they are one more.
_SKIP_OWN: list[Any] = ["add", "others", ["ge", "others", "value"]]


def substitution_program(domain: Categories, draws: int, keep: int) -> Program:
    """Draws that may repeat."""
    steps: Steps = (
        ("kept", ["bits", whole(keep), draws]),
        ("others", ["belows", domain.size - 1, draws]),
        ("moved", _SKIP_OWN),
        ("drawn", ["where", "kept", "value", "moved"]),
    )
    return Program(answers(domain), steps, uint("drawn", domain.size - 1, None if draws == 1 else draws))


def set_program(domain: Categories, draws: int, include: int) -> Program:
    """A set, ascending."""
    own: list[Any] = ["where", "included", "value", ["at", "row", "place"]]
    steps: Steps = (
        ("others", ["subset", domain.size - 1, draws]),
        ("included", ["bit", whole(include)]),
        ("place", ["below", draws]),
        ("row", _SKIP_OWN),
        ("report", ["sort", ["put", "row", "place", own]]),
    )
    return Program(answers(domain), steps, uint("report", domain.size - 1, draws))


def sequence_program(domain: Categories, hazards: Sequence[int]) -> Program:
    """Distinct answers in the order of drawing."""
    own: list[Any] = ["where", ["at", "drawn", "place"], "value", ["at", "row", "place"]]
    steps: Steps = (
        ("set", ["subset", domain.size - 1, len(hazards)]),
        ("others", ["shuffle", "set"]),
        ("drawn", ["bits_each", ["list", *map(whole, hazards)]]),
        ("place", ["first", "drawn"]),
        ("row", _SKIP_OWN),
        ("report", ["put", "row", "place", own]),
    )
    return Program(answers(domain), steps, uint("report", domain.size - 1, len(hazards)))
