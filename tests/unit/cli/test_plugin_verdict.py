"""Verdict of `plugin check`, and the checks as clauses."""

from __future__ import annotations

import re

import pytest

from ldp_budget.registry.plugins import Plugin
from ldp_budget_verify.commands.plugin import _verdict
from ldp_budget_verify.contract import CHECKS, statement_of

FAILING = {"checks": [{"check": "seed_decides", "verdict": "failed", "why": "it does not"}]}


@pytest.mark.parametrize(
    ("levels", "own", "said"),
    [
        (["audited"], False, "passed: audited, a good result. one: every check passed, and no search of the reports"),
        (["audited"], False, "No client in Python can get more than audited"),
        (["audited", "exact"], False, "The guarantee of two is proved."),
        (["exact", "exact"], True, "passed: exact. The guarantee of one, two is proved."),
        (["no"], False, "not passed: one could not be checked. The lines that begin with not audited say why."),
        ([], False, "not passed: a-plugin could not be checked."),
        (["exact", "failing"], False, "not passed: two: 1 failure. The lines that begin with failed say why."),
    ],
)
def test_verdict_of_a_check_says_if_it_passed(levels: list[str], own: bool, said: str) -> None:
    mechanisms = [
        {
            "mechanism": name,
            "checked": level.replace("failing", "no"),
            "examples": [{"declared": {}, "checks": [], "audits": [], **(FAILING if level == "failing" else {})}],
            "chosen": [],
        }
        for name, level in zip(("one", "two"), levels, strict=False)
    ]
    order = ("no", "audited", "exact")
    checked = min((each["checked"] for each in mechanisms), key=lambda level: order.index(str(level)), default="no")
    plugin = Plugin("ldp-budget" if own else "a-plugin", "")
    assert said in _verdict({"checked": checked, "mechanisms": mechanisms}, plugin)


@pytest.mark.parametrize("check", CHECKS)
def test_statement_of_a_check_is_a_clause_without_its_name(check: str) -> None:
    said = statement_of(check)
    assert re.fullmatch(r"the check that [^\n_]+[^.:]", said.replace("critical_inputs", ""))
    assert check not in said
