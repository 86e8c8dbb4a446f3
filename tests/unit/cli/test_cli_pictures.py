"""Pictures: what they say is read off matplotlib's objects, and off the text of an SVG."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import ldp_budget
from command_line import CommandLine
from ldp_budget import Accountant
from ldp_budget.reports.report_file import ReportWriter

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure
from matplotlib.text import Text

ANSWERS = ("red", "green", "blue")
MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Every figure in place of being written, the last one last: that takes most of the time."""
    figures: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *arguments, **options: figures.append(figure))
    return figures


def said(figure: Figure) -> str:
    """All that a figure says, with single spaces."""
    return " ".join(" ".join(each.get_text() for each in figure.findobj(Text)).split())


def title(figure: Figure) -> str:
    """The first line of the heading."""
    return str(figure.get_suptitle()).split("\n")[0]


def bars(axes: Any) -> dict[str, float]:
    """The length of each bar, by the label at its middle."""
    names = dict(zip(axes.get_yticks(), (each.get_text() for each in axes.get_yticklabels()), strict=True))
    found = {names[round(each.get_y() + each.get_height() / 2, 9)]: each.get_width() for each in axes.patches}
    assert len(found) == len(axes.patches) == len(names)
    return found


def ends(axes: Any) -> list[tuple[float, float]]:
    """The ends of the intervals, bar by bar."""
    lines = axes.collections[0].get_segments()
    return [(line[0][0], line[1][0]) for line in lines]


def collection(
    command: CommandLine, name: str = "poll", answers: tuple[str, ...] = ANSWERS, epsilon: str = "3"
) -> Any:
    """A collection in the ledger, to be drawn from."""
    made = ldp_budget.Collection(
        name, ldp_budget.mechanism("oue")(epsilon=epsilon, domain_size=len(answers)), answers
    )
    with Accountant(command.ledger) as accountant:
        accountant.add_collection(made)
    return made


def reports(made: Any, path: Path, values: list[int], seed: int = 1) -> Path:
    with ReportWriter(path, made) as writer:
        writer.write(made.mechanism.randomize(values, rng=seed))
    return path


# -- the file ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("suffix", MAGIC)
def test_plot_has_the_format_of_its_suffix(command: CommandLine, tmp_path: Path, suffix: str) -> None:
    made = collection(command)
    file = reports(made, tmp_path / "a.reports", [0, 1, 2, 2] * 20)
    for picture in (tmp_path / f"one.{suffix}", tmp_path / f"two.{suffix.upper()}"):
        picture.write_text("what was there is replaced")
        command("estimate", "poll", file, "--plot", picture)
        assert picture.read_bytes().startswith(MAGIC[suffix])


# -- estimate ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_plot_bars_have_label_interval_and_percent(command: CommandLine, tmp_path: Path, drawn: list[Figure]) -> None:
    made = collection(command)
    file = reports(made, tmp_path / "a.reports", [0] * 50 + [1] * 30 + [2] * 20)
    rows = command.json("estimate", "poll", file, "--confidence", "0.9", "--plot", tmp_path / "x.png")["answers"]
    [axes] = drawn[-1].axes
    assert title(drawn[-1]) == "poll: 100 reports, 90 % confidence intervals"
    assert "oue, ε = 3 each report" in said(drawn[-1])
    assert bars(axes) == {row["answer"]: pytest.approx(100 * row["share"]) for row in rows}
    assert list(bars(axes)) == list(ANSWERS)
    for (low, high), row in zip(ends(axes), rows, strict=True):
        assert low == pytest.approx(100 * row["share_low"])
        assert high == pytest.approx(100 * row["share_high"])
    assert axes.get_xlabel() == "share of users, %"
    table = command("estimate", "poll", file, "--unbiased").stdout
    for each, row in zip(axes.texts, rows, strict=True):
        assert re.search(rf"{row['answer']} .* {re.escape(each.get_text())} ", table)
        assert each.xy[1] == rows.index(row), "at its bar"
