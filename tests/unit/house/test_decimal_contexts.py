"""Certified figures and decisions do not depend on the decimal context of the caller.

Python's operators on `Decimal` round to the context of the calling thread, which is the caller's to set.
"""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Context, Decimal, localcontext
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import ambient_figures
from ldp_budget import Limit
from ldp_budget.accounting.policies import Plan, PlanTerms, Policy
from ldp_budget.guarantees import Approximate
from ldp_budget.guarantees.fixed_point import exact_sum, float_down

_SCRIPT = Path(ambient_figures.__file__)


@lru_cache
def _figures(context: str, *options: str) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, str(_SCRIPT), context, *options], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize(
    "context",
    [
        # A thread that may round nothing, below, sees what any of these does.
        pytest.param("one digit down", marks=pytest.mark.exhaustive),
        pytest.param("nothing rounded", marks=pytest.mark.exhaustive),
        pytest.param("three digits up", marks=pytest.mark.exhaustive),
        pytest.param("a hundred digits", marks=pytest.mark.exhaustive),
    ],
)
def test_figures_are_the_same_under_any_context(context: str) -> None:
    found, usual = _figures(context), _figures("default")
    assert {name: each for name, each in found.items() if each != usual[name]} == {}
    assert found.keys() == usual.keys()


@pytest.mark.exhaustive
def test_figures_are_the_same_in_a_thread_with_a_context_of_its_own() -> None:
    assert _figures("nothing rounded", "thread") == _figures("default")


def test_plan_prices_are_added_to_the_last_digit() -> None:
    shares = ("0.5", "1e-30", "1e-300")
    first, *others = [PlanTerms.of(Plan(((Approximate("0.1", each), 1),), Decimal(each))) for each in shares]
    policy = Policy("two", (Limit("lifetime", 1, "0.5"),), plan=first, earlier=tuple(others))
    epsilon, delta = policy.planned()
    assert delta == Decimal("0.5" + "0" * 28 + "1" + "0" * 269 + "1")
    assert policy.overdrawn_by((epsilon, delta)) is not None


def test_exact_sums_and_doubles_below_are_exact() -> None:
    with localcontext(Context(prec=3)):
        assert exact_sum([Decimal("1e400"), Decimal("1e-400"), Decimal("-1e400")]) == Decimal("1e-400")
        assert float_down(Decimal("1.2345")) == 1.2345
        assert float_down(Decimal("1.23456789012345678901234567890")) <= 1.2345678901234567
