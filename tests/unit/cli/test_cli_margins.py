"""Margins of `ldp-budget estimate`: in front of the standard error, at the confidence that was asked for."""

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
