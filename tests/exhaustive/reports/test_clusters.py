"""The same reports by way of CSV and a report file, Parquet and partitions, and one, two or four processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).resolve().parents[3] / "benchmarks" / "clusters.py"


def test_estimates_by_every_way_are_equal_in_little_memory(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="no pyarrow: pip install 'ldp-budget[interop]'")
    command = [sys.executable, str(BENCHMARK), "reports", "--reports", "300000", "--engines", "files,processes"]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "the same estimate to the last bit"
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")][2:]
    assert [row[0] for row in rows] == ["report file", "partitions", "1 processes", "2 processes", "4 processes"]
    assert all(0 < float(row[6]) < 300 for row in rows)  # MB
