"""The contract of mechanisms in an author's own test run, with pytest and without it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

"""The mechanisms with draws whose outcomes can all be listed."""
"""The mechanisms that list the words they find, with a count for no other word."""


# -- the whole of it ------------------------------------------------------------------------------------------


AUTHORS_TESTS = """
from broken_mechanisms import OnlySetsBits
from careless_mechanisms import Priced
from ldp_budget.testing import MechanismContract

class TestOnlySetsBits(MechanismContract):
    mechanism = OnlySetsBits
    targets = ({"domain_size": 4},)

class TestPriced(MechanismContract):
    mechanism = Priced
"""


@pytest.mark.exhaustive
def test_contract_reports_failures_and_reasons_of_skips(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(AUTHORS_TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "helpers")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert "TestOnlySetsBits::test_guarantee_is_exact[domain_size=4]" in done.stdout
    assert "a report that one input can give is impossible for another" in done.stdout
    assert "priced names no inputs to compare" in done.stdout
    # Without targets, parameters are found by trying.
    failed = [line.split("::")[1] for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert set(failed) == {"TestOnlySetsBits"}


@pytest.mark.exhaustive
def test_contract_works_without_pytest_and_its_tests_name_the_package() -> None:
    code = (
        "import sys; sys.modules['pytest'] = None\n"
        "from ldp_budget_verify import contract; assert contract.CHECKS; print('checks')\n"
        "from ldp_budget.testing import MechanismContract"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "checks\n")
    assert "ImportError: ldp_budget.testing needs pytest: pip install 'ldp-budget[testing]'" in done.stderr
