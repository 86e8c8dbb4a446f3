"""The laws of ticked sets and of asked options, against lists of all outcomes and against the definition."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_budget.sdk.client_program import Program
from ldp_budget.sdk.tick_sets import TickSets, asked_program, set_program
from ldp_budget_verify.law import Unknown, law_of
from ldp_budget_verify.law.all_outcomes import AllOutcomes
from ldp_budget_verify.law.ticked_sets import AskedOptions, TickedSets

HALF = 2**63 + 12345


def by_ratio(masses: Any) -> dict[Any, tuple[Fraction, Fraction]]:
    sums: dict[Any, tuple[Fraction, Fraction]] = defaultdict(lambda: (Fraction(0), Fraction(0)))
    for p, q in masses:
        if p or q:
            sums[p / q] = sums[p / q][0] + p, sums[p / q][1] + q
    return dict(sums)


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [
        set_program(3, 1, 1, 1, HALF),
        set_program(5, 2, 1, 1, HALF),
        set_program(4, 1, 2, 1, HALF),
        set_program(4, 2, 2, 1, HALF),
        set_program(4, 2, 2, 2, HALF),
        asked_program(4, 2, HALF),
        asked_program(4, 4, HALF),
        asked_program(5, 1, HALF),
    ],
)
def test_law_of_every_two_answers_is_that_of_all_outcomes(program: Program) -> None:
    law, listed = law_of(program), AllOutcomes(program, 1 << 24)
    assert isinstance(law, TickedSets | AskedOptions)
    assert (law.ratio, law.variation) == (listed.ratio, listed.variation)
    for first, second in combinations(range(len(listed.laws)), 2):
        assert by_ratio(law.comparison(first, second).masses()) == by_ratio(listed.pair(first, second))


@pytest.mark.parametrize(
    ("options", "most", "size", "least"), [(5, 2, 2, 2), (7, 3, 3, 2), (12, 5, 2, 1), (12, 3, 3, 2)]
)
def test_law_of_ticked_sets_is_that_of_the_definition(options: int, most: int, size: int, least: int) -> None:
    law = TickedSets(set_program(options, most, size, least, HALF))
    domain = TickSets(options, most)
    reports = [set(each) for each in combinations(range(options + most), size)]
    held = Fraction(HALF, 2**64)

    def of(answer: int) -> list[Fraction]:
        ticks = domain.ticks_of(answer)
        own = {*ticks, *range(options, options + most - len(ticks))}
        many = [len(own & each) >= least for each in reports]
        return [held / sum(many) if each else (1 - held) / (len(many) - sum(many)) for each in many]

    answers = [0, 1, domain.size // 2, domain.size - 2, domain.size - 1]
    laws = {answer: of(answer) for answer in answers}
    for first, second in combinations(answers, 2):
        pairs = list(zip(laws[first], laws[second], strict=True))
        assert by_ratio(law.comparison(first, second).masses()) == by_ratio(pairs)
    ticks = domain.ticks_of(answers[2])
    for option in range(options):
        chance = sum(p for p, each in zip(laws[answers[2]], reports, strict=True) if option in each)
        assert chance == law.chance(1, 0) if option in ticks else law.chance(0, 1)


@pytest.mark.parametrize("program", [set_program(6, 2, 3, 2, HALF), asked_program(6, 3, HALF)])
def test_changed_program_of_ticks_has_no_law(program: Program) -> None:
    found = program.to_json()
    rule = TickedSets if "starts" in found["tables"] else AskedOptions
    for place, (name, step) in enumerate(found["steps"]):
        other = [*found["steps"]]
        other[place] = [
            name,
            ["add", 0, step] if step[0] not in ("bit", "below", "subset", "shuffle") else ["list", 0, 1],
        ]
        with pytest.raises((Unknown, ValueError)):
            rule(Program.from_json({**found, "steps": other}))


@given(st.integers(1, 30), st.data())
def test_number_of_a_set_and_its_ticks_are_inverse(options: int, data: st.DataObject) -> None:
    domain = TickSets(options, data.draw(st.integers(1, min(options, 6))))
    number = data.draw(st.integers(0, domain.size - 1))
    ticks = domain.ticks_of(number)
    assert domain.number_of(ticks) == number
    assert domain.check([ticks]).tolist() == domain.check(domain.ticked([number])).tolist() == [number]
    assert domain.ticked([number])[0].nonzero()[0].tolist() == ticks


@pytest.mark.parametrize("keep", [1, 2**64 // 8, 2**64 // 4, 2**64 // 2, 2**64 - 1])
@pytest.mark.parametrize("asked", [1, 2, 3])
def test_worst_of_asked_options_has_the_largest_loss_at_any_probability(asked: int, keep: int) -> None:
    program = asked_program(3, asked, keep)
    loss, listed = (rule(program).worst().loss for rule in (AskedOptions, AllOutcomes))
    assert loss is not None
    assert listed is not None
    assert float(loss) == pytest.approx(float(listed), abs=1e-12)
