"""Every mechanism whose guarantee holds for repeated draws refuses to draw without the secret that repeats them."""

from __future__ import annotations

from typing import Any

import pytest

import ldp_budget
from ldp_budget.errors import InvalidParameter
from ldp_budget.guarantees import Memoised
from ldp_budget.registry.collections import Collection

BLOOM = {"bits": 16, "hashes": 1, "cohorts": 2, "f": "0.5", "p": "0.25", "q": "0.75"}
MEMOISED = (
    ("rappor", BLOOM),
    ("loloha", {"epsilon_lifetime": 2, "epsilon_first": 1, "domain_size": 6}),
    ("d-bit-flip", {"epsilon": 1, "buckets": 4, "bits": 2, "memoize": True}),
    ("one-bit-mean", {"epsilon": 1, "maximum": 10, "rounding": 5, "flip": "0.2"}),
)


@pytest.mark.parametrize(("name", "parameters"), MEMOISED)
def test_randomize_of_a_memoised_mechanism_without_secrets_is_refused(name: str, parameters: dict[str, Any]) -> None:
    made = ldp_budget.mechanism(name)(**parameters)
    assert isinstance(made.guarantee, Memoised)
    for drawing in (made, Collection("mine", made)):
        with pytest.raises(InvalidParameter, match="secrets is missing"):
            drawing.randomize([1, 0])
