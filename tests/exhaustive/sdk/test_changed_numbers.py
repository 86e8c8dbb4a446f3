"""Programs of numbers with changed steps: none is judged better than the list of all its outcomes."""

from __future__ import annotations

import random
from collections import Counter

from changed_numbers import changed, good_programs, judge

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
