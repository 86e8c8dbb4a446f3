"""`ldp-budget` and its help load no mathematics."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    pass


# -- help ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["import ldp_budget", "from ldp_budget_cli import main; main()"])
def test_importing_and_help_load_no_mathematics(code: str) -> None:
    script = f"""
import sys
sys.argv = ["ldp-budget", "--help"]
try:
    {code}
except SystemExit:
    pass
heavy = {{"numpy", "scipy", "matplotlib", "sqlite3", "sqlite_utils", "ldp_budget_mechanisms"}}
print(sorted(heavy & set(sys.modules)), file=sys.stderr)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stderr == "[]\n"
