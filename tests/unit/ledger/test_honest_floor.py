"""The floor of the benchmarks does what a ledger must do: `verify` accepts it, and retries find its records."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import ldp_budget
from ldp_budget import Accountant

PLACE = Path(ldp_budget.__file__).parents[2] / "benchmarks" / "honest_floor.py"


def test_ledger_of_the_honest_floor_is_verified_and_answers_retries() -> None:
    spec = importlib.util.spec_from_file_location("honest_floor", PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    users = ["user-0", "user-1"]
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", module.LIMITS)
        accountant.spend_many(users, module.REPORT)
        floor = module.Floor(accountant)
        answers = [floor.charge([(user, key) for user in users]) for key in ("a", "b", "a")]
        assert answers[0] == answers[2] != answers[1]
        again = accountant.spend("user-0", module.REPORT, key="a")
        assert (again.repeated, again.receipt) == (True, answers[0][0][1])
        assert accountant.verify().ok
