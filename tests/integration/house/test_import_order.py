"""`ldp_budget.mechanism` stays a function when modules are imported in any order."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.exhaustive  # that no module is called like it is seen by test_architecture.py
def test_mechanism_stays_a_function_after_imports() -> None:
    code = """
import importlib, pathlib, pkgutil, ldp_budget
for module in pkgutil.walk_packages(ldp_budget.__path__, "ldp_budget."):
    importlib.import_module(module.name)
assert ldp_budget.mechanism("oue").name == "oue"
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
