"""`estimate` of a distribution: a mean, quantiles and bins as text, JSON and rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import CommandLine

pytestmark = pytest.mark.slow


@pytest.fixture
def reports(command: CommandLine, tmp_path: Path) -> Path:
    values = "".join(f"{18 + place % 40}\n" for place in range(600))
    (tmp_path / "ages.csv").write_text("age\n" + values, encoding="utf-8")
    ends = ("--lower", 18, "--upper", 70, "--bins", 4)
    command("collection", "add", "age", "square-wave", "--epsilon", 2, *ends)
    command("randomize", "age", tmp_path / "ages.csv", "--column", "age", "--out", tmp_path / "age.reports")
    return tmp_path / "age.reports"


def test_estimate_of_square_wave_prints_mean_quantiles_and_bins(command: CommandLine, reports: Path) -> None:
    lines = command("estimate", "age", reports).stdout.splitlines()
    headers = [line.split() for line in lines if not line[:1].isdigit() and line.strip().isascii()]
    assert ["reports", "mean", "margin", "(95", "%)", "std_error", "low", "high"] in headers
    assert ["quantile", "value", "low", "high"] in headers
    assert ["low", "high", "share", "share_low", "share_high"] in headers
    assert lines[-1].split()[:2] == ["57", "70"]


def test_estimate_of_square_wave_as_json_has_quantiles_by_name(command: CommandLine, reports: Path) -> None:
    row = command.json("estimate", "age", reports)
    assert row["reports"] == 600
    assert 30 < row["quantiles"]["0.5"] < 45
    low, high = row["quantile_intervals"]["0.5"]
    assert low < row["quantiles"]["0.5"] < high
    assert [each["low"] for each in row["bins"]] == [18, 31, 44, 57]
    assert set(row["bins"][0]) == {"low", "high", "share", "share_low", "share_high"}
