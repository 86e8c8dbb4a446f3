"""Every benchmark runs to its end at a small size. Its figures are not looked at."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "benchmarks"
SMALL = {
    "auditing": "",
    "certificates": "",
    "citus": "--turns 1 --seconds 0.2",
    "clients": "",
    "clusters": "reports --reports 20000 --engines files,processes",
    "compact_reports": "--quick",
    "composition": "",
    "consistency": "--runs 2",
    "data": "20000",
    "everyday_coverage": "--surveys 1 --people 20",
    "gaussian": "",
    "heavy_hitters": "--users 5000 --runs 1",
    "honest_floor": "",
    "ledger": "--quick",
    "mechanisms": "--quick",
    "postgres": "--seconds 0.2 --users 1000",
    "publication": "1000 200",
    "quantile_coverage": "--surveys 2",
    "randomizers": f"{sys.executable} --turns 1 --users 500 --only randomized",
    "reads": "--users 2000",
    "regression_coverage": "logistic 1 2",
    "scale_coverage": "",
    "scale_optimum": "",
    "service": "--quick --seconds 0.2 --requests 500 --lines 2000",
    "share_coverage": "--surveys 1 --design cell",
    "sizes": "--users 2000 --alone 20",
    "sliding_limits": "--turns 2 --users 8",
    "startup": "2",
    "verifying": "--entries 3000",
}
NEEDED = {"clients": ["node", "chromium"]}


def test_benchmarks_have_a_small_size_each() -> None:
    # `short_path` is no program: three others take its option `--against`.
    assert {path.stem for path in FOLDER.glob("*.py")} - {"short_path"} == {*SMALL}


@pytest.mark.parametrize("name", SMALL)
def test_benchmark_at_a_small_size_ends_without_an_error(name: str, tmp_path: Path) -> None:
    if name == "citus" and "LDP_BUDGET_TEST_CITUS" not in os.environ:
        pytest.skip("LDP_BUDGET_TEST_CITUS names no folder with the extension")
    for program in NEEDED.get(name, []):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing")
    command = [sys.executable, str(FOLDER / f"{name}.py"), *SMALL[name].split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 0, done.stderr


@pytest.mark.parametrize("name", ["ledger", "postgres", "service"])
def test_benchmark_against_another_checkout_ends_without_an_error(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / f"{name}.py"), "--against", str(ROOT), "--figure", "single"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
