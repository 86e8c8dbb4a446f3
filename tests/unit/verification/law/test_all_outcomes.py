"""The rule of all outcomes: exact pairs, the worst report, and what it refuses to list."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from ldp_budget.sdk.client_program import Program, record
from ldp_budget_verify.law import Unknown, law_of

HALF, MOST = str(2**63), str(2**64 // 10 * 9)


def program(*steps: tuple[str, Any], count: int = 4, sent: str = "r", size: int = 1) -> Program:
    return Program({"kind": "answer", "count": count, "text": False}, steps, record([["uint", sent, size, 1]]))


def test_law_of_kept_answer_gives_its_odds() -> None:
    kept = program(("k", ["bit", HALF]), ("o", ["below", 4]), ("r", ["where", "k", "value", "o"]))
    law = law_of(kept)
    assert law.every_pair
    assert (law.ratio, law.variation) == (Fraction(5), Fraction(1, 2))


def test_worst_of_leaking_program_names_pair_report_and_loss() -> None:
    leak = program(("k", ["bit", MOST]), ("t", ["eq", "value", 2]), ("r", ["where", "k", "t", 0]))
    law = law_of(leak)
    pair, report, loss = law.worst()
    assert law.ratio is None
    assert (pair, report, loss) == ((2, 0), "01", None)
    with pytest.raises(ValueError, match="loses without a bound, more than the stated ε: 1"):
        law.guarantee(Decimal(1))


@pytest.mark.parametrize(
    "large",
    [
        program(("a", ["below", str(2**60)]), ("r", ["mod", ["add", "a", "value"], 4])),
        program(("r", ["mod", "value", 4]), count=2**20),
        program(("a", ["bits", HALF, 2**20]), ("r", ["at", "a", "value"])),
        program(("a", ["belows_from", str(2**60), 1]), ("r", ["mod", ["add", ["at", "a", 0], "value"], 4])),
        program(("a", ["geometric", HALF]), ("r", ["min", "a", "value"])),
    ],
)
def test_law_of_too_many_outcomes_is_refused_at_once(large: Program) -> None:
    with pytest.raises(Unknown, match="all outcomes: "):
        law_of(large)


def test_law_of_program_without_report_for_some_answer_is_unknown() -> None:
    with pytest.raises(Unknown, match="answer 1 comes to no report"):
        law_of(program(("r", ["mul", "value", 256])))
