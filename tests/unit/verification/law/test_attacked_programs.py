"""Programs that look like those of a rule and lose more, or have too many branches: they are refused."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from typing import Any

import pytest

from ldp_budget.sdk.client_program import Program, record
from ldp_budget_verify.law import Unknown, law_of
from ldp_budget_verify.law.all_outcomes import AllOutcomes, law

MANY = 1000
HALF, QUARTER, MOST = str(2**63), str(2**62), str(3 * 2**62)


def program(
    steps: list[Any], *parts: Any, answers: int = MANY, tables: dict[str, Any] | None = None, memo: str = ""
) -> Program:
    given = {"kind": "answer", "count": answers if answers < 2**53 else str(answers), "text": False}
    return Program(given, tuple((name, x) for name, x in steps), record(list(parts)), tables or {}, memo)


def kept_or_other(answers: int = MANY) -> list[Any]:
    """An answer that is kept or replaced, and if it is the own one: a bit that must not be shown."""
    other = ["add", "o", ["ge", "o", "value"]]
    steps = [("k", ["bit", MOST]), ("o", ["below", answers - 1]), ("u", ["where", "k", "value", other])]
    return [*steps, ("own", ["eq", "u", "value"])]


TOLD_BY = {
    "one of two draws": ([("x", ["below", 2]), ("z", ["below", 999]), ("s", ["where", "own", "x", "z"])], 1),
    "the bound of a draw": ([("s", ["below", ["where", "own", 2, 999]])], 1),
    "the bound of many draws": ([("s", ["belows", ["where", "own", 2, 999], 20])], 20),
    "the bound of rising draws": ([("s", ["belows_from", ["where", "own", 2, 999], 20])], 20),
    "the chance of bits": ([("s", ["bits", ["where", "own", HALF, 0], 20])], 20),
    "one of two tables": ([("s", ["where", "own", "one", "other"])], 2),
}


@pytest.mark.parametrize(("steps", "count"), TOLD_BY.values(), ids=TOLD_BY)
def test_law_of_a_draw_chosen_by_a_hidden_bit_is_unknown(steps: list[Any], count: int) -> None:
    tables = {"one": [1, 2], "other": [3, 4]}
    made = program([*kept_or_other(), *steps], ["uint", "u", 2, 1], ["uint", "s", 2, count], tables=tables)
    with pytest.raises(Unknown):
        law_of(made)


def test_law_of_buckets_doubled_by_a_hidden_bit_is_unknown() -> None:
    drawn = [("wide", ["below", str(2**40)]), ("f", ["belows_from", 2, 1]), ("b", ["floyd", "f", 2])]
    sent = ("s", ["where", "own", "b", ["mul", 2, "b"]])
    made = program(
        [*kept_or_other(2), *drawn, sent], ["uint", "u", 1, 1], ["uint", "s", 1, 1], ["uint", "wide", 8, 1], answers=2
    )
    with pytest.raises(Unknown):
        law_of(made)


@pytest.mark.parametrize("after", [["div", "x", 2], ["eq", "x", 0], ["mod", ["add", "x", 1], 2], ["xor", "x", "b"]])
def test_law_of_a_row_used_after_public_numbers_were_added_is_never_less(after: list[Any]) -> None:
    def made(answers: int) -> Program:
        steps = [("b", ["bits", QUARTER, answers]), ("r", ["xor", ["onehot", "value", answers], "b"])]
        steps += [("u", ["below", 2]), ("x", ["add", "r", "u"]), ("y", after)]
        return program(steps, ["uint", "y", 1, answers], ["uint", "u", 1, 1], answers=answers)

    own, other = (law(made(3), value) for value in (0, 1))
    true = max(max(p / other[row], other[row] / p) for row, p in own.items()) if own.keys() == other.keys() else None
    with suppress(Unknown):
        found = law_of(made(300)).ratio
        assert found is None or (true is not None and found >= true)


def test_law_of_kept_numbers_below_a_huge_bound_is_unknown() -> None:
    answers = 3 * 2**61
    steps = [
        ("k", ["kept_bits", "keep", "value", MOST, 1]),
        ("o", ["kept_belows", "other", "value", str(answers - 1), 1]),
        ("p", ["at", "o", 0]),
        ("u", ["where", ["at", "k", 0], "value", ["add", "p", ["ge", "p", "value"]]]),
    ]
    with pytest.raises(Unknown, match="kept number"):
        law_of(program(steps, ["uint", "u", 8, 1], answers=answers, memo="value"))


def test_law_of_one_of_two_rows_is_not_called_exact() -> None:
    steps = [("b", ["bits", MOST, 3]), ("c", ["bit", QUARTER]), ("o", ["onehot", "value", 3])]
    made = program([*steps, ("r", ["where", "c", "b", "o"])], ["packed", "r", 3], answers=3)
    assert law_of(made).ratio == max(
        max(p / law(made, 1)[row], law(made, 1)[row] / p) for row, p in law(made, 0).items()
    )


def test_law_of_a_draw_below_a_computed_number_covers_compared_answers() -> None:
    made = program([("s", ["below", ["add", 1, "value"]]), ("r", ["eq", "s", 0])], ["uint", "r", 1, 1])
    assert not law_of(made).every_pair


# -- size ----------------------------------------------------------------------------------------------------------------


def rows(count: int) -> Program:
    steps = [(f"b{place}", ["bits", QUARTER, MANY]) for place in range(count)]
    return program([*steps, ("y", ["list", *(["at", name, "value"] for name, _ in steps)])], ["packed", "y", count])


def rising(count: int) -> Program:
    return program(
        [("f", ["belows_from", 2, count]), ("r", ["xor", "value", ["at", "f", 0]])], ["uint", "r", 1, 1], answers=2
    )


def filters(hashes: int) -> Program:
    steps = [("f", ["bloom", "s", 0, "value", 4096, hashes]), ("b", ["bits", QUARTER, 4096])]
    return program([*steps, ("r", ["xor", "f", "b"])], ["packed", "r", 4096])


def decoys(count: int) -> Program:
    steps = [("x", ["belows", MANY - 1, count]), ("y", ["sort", ["add", "x", ["ge", "x", "value"]]])]
    return program(steps, ["uint", "y", 2, count])


def doubled(start: Any, times: int) -> list[Any]:
    steps: list[Any] = [("x0", start)]
    return [*steps, *((f"x{place + 1}", ["xor", f"x{place}", f"x{place}"]) for place in range(times))]


def shared_rows(times: int) -> Program:
    steps = [("b", ["bits", QUARTER, MANY]), *doubled(["xor", "b", ["onehot", "value", MANY]], times)]
    return program(steps, ["packed", f"x{times}", MANY])


LARGE = {
    "numbers written out": program(doubled(["add", "value", 1], 60), ["uint", "x60", 2, 1]),
    "rows written out": shared_rows(60),
    "bits of rows": rows(30),
    "draws that may meet": decoys(16),
    "outcomes of a draw": rising(17),
    "places": filters(2000),
}


@pytest.mark.slow
@pytest.mark.parametrize("made", LARGE.values(), ids=LARGE)
def test_law_of_endlessly_many_branches_is_unknown(made: Program) -> None:
    with pytest.raises(Unknown):
        law_of(made)


def test_outcomes_of_a_vector_of_millions_are_not_listed() -> None:
    steps = [*kept_or_other(4), ("w", ["below", 40]), ("z", ["at", ["onehot", "w", 2**23], 5])]
    made = program(steps, ["uint", "u", 1, 1], answers=4)
    with pytest.raises(Unknown, match="outcomes"):
        AllOutcomes(made)


def test_curve_of_a_listed_law_is_unknown() -> None:
    steps = [("k", ["kept_bits", "a", "value", ["mul", ["add", "value", 1], QUARTER], 1]), ("c", ["bit", HALF])]
    made = program([*steps, ("r", ["eq", "k", "c"])], ["uint", "r", 1, 1], answers=3, memo="value")
    with pytest.raises(Unknown):
        AllOutcomes(made).curve(2)


def test_guarantee_of_a_ratio_beyond_the_doubles_is_its_loss() -> None:
    steps = [("f", ["bloom", "s", 0, "value", 64, 20]), ("b", ["bits", 1, 64]), ("r", ["xor", "f", "b"])]
    found = law_of(program(steps, ["packed", "r", 64]))
    assert found.ratio == Fraction(2**64 - 1) ** 40
    assert found.guarantee().epsilon >= 1774.45
