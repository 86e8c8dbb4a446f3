"""No charge, calibration or estimate of a built-in mechanism waits for a law to be derived."""

from __future__ import annotations

from typing import Any

import pytest

import ldp_budget
from ldp_budget import Accountant, Limit
from ldp_budget_verify.law import rules
from ldp_budget_verify.law.symbolic_intervals import Runs

pytestmark = pytest.mark.slow

RANGE = {"lower": 0, "upper": 1}
ANSWERS = {"domain_size": 7}
MATRIX = [["0.5", "0.25", "0.25"], ["0.25", "0.5", "0.25"], ["0.25", "0.25", "0.5"]]
MECHANISMS: dict[str, dict[str, Any]] = {
    "randomized-response": {"epsilon": 1},
    **{name: {"epsilon": 1, **ANSWERS} for name in ("grr", "sue", "oue", "subset-selection", "pgr")},
    "random-substitution": {"epsilon": 1, "draws": 2, **ANSWERS},
    "matrix-substitution": {"matrix": MATRIX},
    "cms": {"epsilon": 1, "hashes": 4, "width": 16, **ANSWERS},
    "hcms": {"epsilon": 1, "hashes": 4, "width": 16, **ANSWERS},
    "rappor": {"bits": 32, "hashes": 2, "cohorts": 4, "epsilon": 1, "epsilon_lifetime": 4, **ANSWERS},
    "loloha": {"epsilon_lifetime": 2, "epsilon_first": 1, **ANSWERS},
    "d-bit-flip": {"epsilon": 1, "buckets": 7, "bits": 2},
    "heavy-hitters": {"epsilon": 1, "length": 6},
    "one-bit-mean": {"epsilon": 1, "rounding": "0.25", "flip": "0.1", **RANGE},
    **{
        name: {"epsilon": 1, **RANGE}
        for name in ("laplace", "staircase", "bounded-laplace", "bounded-staircase", "square-wave", "hybrid")
    },
    "gaussian": {"epsilon": 1, "delta": "1e-6", **RANGE},
}


@pytest.fixture(autouse=True)
def _no_law(monkeypatch: pytest.MonkeyPatch) -> None:
    def derives(*given: Any, **named: Any) -> None:
        raise AssertionError("a law is derived")

    for kind in (*rules.RULES, Runs):
        monkeypatch.setattr(kind, "__init__", derives)


@pytest.mark.parametrize("name", MECHANISMS)
def test_charge_of_built_in_mechanism_derives_no_law(name: str) -> None:
    mechanism = ldp_budget.mechanism(name)(**MECHANISMS[name])
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon=10, delta="1e-3")])
        assert accountant.spend("ada", mechanism).status == "spent"
    assert mechanism.guarantee.to_json()
    mechanism.client_program()


@pytest.mark.parametrize("name", ["bounded-laplace", "bounded-staircase", "staircase", "hybrid", "square-wave"])
def test_estimate_of_built_in_numbers_derives_no_law(name: str) -> None:
    mechanism: Any = ldp_budget.mechanism(name)(**MECHANISMS[name])
    assert mechanism.estimate(mechanism.randomize([0.25] * 20)).reports == 20
