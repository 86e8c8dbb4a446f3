"""`ldp-budget estimate`: margins, distributions as text, JSON and rows, and answers that another survey garbled."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import CommandLine
from ldp_budget.reports.estimation import mean_margin, share_margin

pytestmark = pytest.mark.slow


def poll(command: CommandLine) -> None:
    """A yes-no question and a number, of 500 people each."""
    folder = Path(command.ledger).parent
    command("collection", "add", "mood", "grr", "--epsilon", "2", "--categories", "good,bad")
    command("collection", "add", "age", "hybrid", "--epsilon", "2", "--lower", "0", "--upper", "100")
    command("collection", "add", "pay", "bounded-laplace", "--epsilon", "2", "--lower", "0", "--upper", "100")
    rows = "".join(f"{'good' if at % 3 else 'bad'},{at % 100},{at % 2}\n" for at in range(500))
    (folder / "rows.csv").write_text(f"mood,age,region\n{rows}")
    for name, column in (("mood", "mood"), ("age", "age"), ("pay", "age")):
        words = ("--column", column, "--public", "region", "--out", folder / f"{name}.reports")
        command("randomize", name, folder / "rows.csv", *words)


@pytest.fixture
def polled(command: CommandLine, begun: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    begun(poll, command)
    monkeypatch.chdir(Path(command.ledger).parent)
    return command


@pytest.mark.parametrize("options", [(), ("--confidence", "0.9"), ("--unbiased",)])
def test_estimate_of_shares_has_the_margin_after_the_share(polled: CommandLine, options: tuple[str, ...]) -> None:
    kind = "--unbiased" if "--unbiased" in options else "--consistent"
    found = polled.json("estimate", "mood", "mood.reports", *options, kind)
    said = polled("estimate", "mood", "mood.reports", *options).stdout
    assert re.search(rf"share +margin \({90 if '0.9' in options else 95} %\) +low", said)
    for row in found["answers"]:
        assert re.search(rf"^{row['answer']} .* % +± {100 * share_margin(row, 500):.1f} pp ", said, re.MULTILINE)


def test_estimate_of_a_mean_has_the_margin_before_the_standard_error(polled: CommandLine) -> None:
    row = polled.json("estimate", "age", "age.reports")
    said = polled("estimate", "age", "age.reports").stdout
    assert re.search(r"mean +margin \(95 %\) +std_error +low +high", said)
    assert f"± {mean_margin(row):.3g} " in said
    assert mean_margin(row) == pytest.approx(1.96 * row["std_error"], rel=0.02)


def test_margin_of_a_biased_mean_includes_the_bias(polled: CommandLine) -> None:
    row = polled.json("estimate", "pay", "pay.reports")
    assert row["max_bias"] > 0
    assert mean_margin(row) >= row["max_bias"] + (row["high"] - row["low"]) / 2 - 1e-9
    assert f"± {mean_margin(row):.3g} " in polled("estimate", "pay", "pay.reports").stdout


def test_estimate_with_a_design_has_margins_of_groups_and_differences(polled: CommandLine) -> None:
    said = polled("estimate", "mood", "mood.reports", "--by", "region").stdout
    assert said.count("margin (95 %)") == 4
    assert re.search(r"^0 - 1 +good +-?[\d.]+ pp +± [\d.]+ pp +-?[\d.]+ pp", said, re.MULTILINE)
    said = polled("estimate", "age", "age.reports", "--by", "region").stdout
    assert len(re.findall(r"mean +margin \(95 %\) +std_error", said)) == 3


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


@pytest.fixture
def harassed(command: CommandLine, tmp_path: Path) -> CommandLine:
    command("policy", "set", "default", "--limit", "lifetime=4")
    command("collection", "add", "harassed", "one-sided", "--g", "0.3", "--categories", "no,yes")
    rows = [f"m{number},{'yes' if number < 37 else 'no'}" for number in range(100)]
    (tmp_path / "form.csv").write_text("\n".join(["user,harassed", *rows]) + "\n", encoding="utf-8")
    return command


def test_garbled_answers_are_estimated_with_their_interval(harassed: CommandLine, tmp_path: Path) -> None:
    given = tmp_path / "form.csv", "--column", "harassed", "--out", tmp_path / "h.reports", "--garbled"
    said = harassed("randomize", "harassed", *given).stderr
    assert 'no user was charged, and no limit can count them: "no" is not protected' in said
    rows = harassed.json("estimate", "harassed", tmp_path / "h.reports")["answers"]
    yes = next(row for row in rows if row["answer"] == "yes")
    assert yes["share"] == pytest.approx((0.37 - 0.3) / 0.7)
    assert (yes["low"], yes["high"]) == (0, 21)


def test_garbled_answers_are_neither_charged_nor_of_another_mechanism(harassed: CommandLine, tmp_path: Path) -> None:
    given = tmp_path / "form.csv", "--column", "harassed", "--out", tmp_path / "h.reports", "--garbled"
    said = harassed.error("randomize", "harassed", *given, "--spend", "--user-column", "user", code=2)
    assert "--garbled is for a collection with the mechanism one-sided, without --spend" in said
    harassed("collection", "add", "mood", "randomized-response", "--epsilon", 1, "--categories", "no,yes")
    assert "--garbled is for a collection with the mechanism one-sided" in harassed.error(
        "randomize", "mood", *given, code=2
    )
