"""What every mechanism must keep to, as plain functions that take a mechanism: no test framework is needed.

Each check in `CHECKS` returns where the mechanism passes, raises `Broken` where it does not, and `NotChecked` where
it does not apply or nothing can be said. A statistical check compares reports of the shipped client from fixed
seeds, and calls a mechanism broken only where two independent samples agree: of honest mechanisms less than one in a
million fails. `ldp_budget.testing` makes pytest tests of them, and `certify` a certificate.
"""

from __future__ import annotations

from ._certifying import certify
from ._checks import CHECKS, FAILED, PASSED, SKIPPED, Result, run, run_all
from ._examples import examples_of, made
from ._finding import find_plugin
from ._outcome import Broken, NotChecked

__all__ = [
    "CHECKS",
    "FAILED",
    "PASSED",
    "SKIPPED",
    "Broken",
    "NotChecked",
    "Result",
    "certify",
    "examples_of",
    "find_plugin",
    "made",
    "run",
    "run_all",
]
