"""Thousands of random programs, and of programs with changed steps or numbers: none is judged better than it is."""

from __future__ import annotations

import json
import random
from collections import Counter
from math import inf
from typing import Any

import pytest

from changed_numbers import changed, good_programs, judge
from changed_programs import any_changed, judged, random_program
from checker_vectors import verdict
from generated_programs import Generator, TooManyOutcomesError, loss_of, sealed, stating, undefined
from ldp_budget_verify.shipped_checkers import checker

CHECK = checker("check_law")


@pytest.mark.parametrize("seed", range(1000, 1010))
def test_check_law_two_thousand_programs_that_state_too_little_are_not_proved(seed: int) -> None:
    generator, chance = Generator(seed), random.Random(seed)
    honest = proved = made = 0
    while made < 2000:
        definition = generator.definition()
        try:
            loss = loss_of(definition)
        except TooManyOutcomesError:
            continue
        asked = [sealed(undefined(stating(definition, 40), chance))]
        if loss > 1e-9:
            asked.append(stating(definition, loss * (1 - 1e-9)))
        for each in asked:
            assert verdict(CHECK, json.dumps(each).encode()) != "proved", each
        made += len(asked)
        if loss < inf:
            honest += 1
            proved += verdict(CHECK, json.dumps(stating(definition, loss * (1 + 1e-9) + 1e-12)).encode()) == "proved"
    assert proved > honest / 2


@pytest.mark.parametrize("seed", range(2000, 2010))
@pytest.mark.parametrize("maker", [any_changed, random_program])
def test_rules_judge_none_of_200_programs_too_good(maker: Any, seed: int) -> None:
    found, wrong = judged(random.Random(seed), maker, 200)
    assert not wrong
    assert found["all", "programs"] == 200


_PROGRAMS = 1_500


def test_numbers_of_changed_programs_is_never_too_good() -> None:
    good, chance, found = good_programs(), random.Random("changed numbers"), Counter[str]()
    while sum(found.values()) < _PROGRAMS:
        try:
            program = changed(chance, chance.choice(good))
        except ValueError:
            continue
        verdict = judge(program)
        assert not verdict.startswith("too good"), (verdict, program.steps, program.report)
        found[verdict] += 1
    assert found["equal"] + found["bound"] >= 800
