"""The lookup of a certificate loads nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# -- the file -------------------------------------------------------------------------------------------------


def test_certificate_lookup_of_a_built_in_loads_nothing_heavy(tmp_path: Path) -> None:
    code = """
import sys
from ldp_budget.registry.certification import checked
assert not {"pluggy", "platformdirs", "ldp_budget.sdk.mechanism"} & set(sys.modules)
import ldp_budget
assert checked(ldp_budget.mechanism("oue")) == "exact"
assert not {"numpy", "scipy", "click", "ldp_budget_verify.contract"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, timeout=60)
