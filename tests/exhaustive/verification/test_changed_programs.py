"""Four thousand programs with changed steps, and random ones: no rule of the law judges one too good."""

from __future__ import annotations

import random
from typing import Any

import pytest

from changed_programs import any_changed, judged, random_program


@pytest.mark.parametrize("seed", range(2000, 2010))
@pytest.mark.parametrize("maker", [any_changed, random_program])
def test_rules_judge_none_of_200_programs_too_good(maker: Any, seed: int) -> None:
    found, wrong = judged(random.Random(seed), maker, 200)
    assert not wrong
    assert found["all", "programs"] == 200
