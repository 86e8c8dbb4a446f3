"""Pictures: what they say is read off matplotlib's objects, and off the text of an SVG."""

from __future__ import annotations

import re
import sys
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import ldp_budget
from command_line import CommandLine
from fixed_clock import Clock
from ldp_budget import Accountant
from ldp_budget.reports.report_file import ReportWriter

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure
from matplotlib.text import Text

from ldp_budget_cli.plots import figure as labels
from ldp_budget_cli.plots.charts import plot_estimate
from ldp_budget_cli.plots.mechanism import MOST, plot_mechanism

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


@pytest.mark.parametrize("name", ["picture.txt", "picture", "picture.jpeg", "png"])
def test_plot_with_another_suffix_is_wrong_usage(command: CommandLine, tmp_path: Path, name: str) -> None:
    message = command.error("estimate", "nowhere", "nothing", "--plot", tmp_path / name, code=2)
    assert f"--plot must be a file that ends in .png, .svg or .pdf: got {tmp_path / name}" in message
    assert not (tmp_path / name).exists()


@pytest.mark.slow
def test_plot_to_an_unwritable_place_is_a_sentence(command: CommandLine, tmp_path: Path) -> None:
    calibrate = ("calibrate", "oue", "--epsilon", 1, "--domain-size", 7, "--plot")
    assert "no.png: No such file" in command.error(*calibrate, tmp_path / "nowhere" / "no.png")
    (tmp_path / "folder.png").mkdir()
    assert "folder.png: it is not a regular file" in command.error(*calibrate, tmp_path / "folder.png")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.png"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("calibrate", "oue", "--epsilon", 1, "--domain-size", 7),
        ("compare", "--epsilon", 1, "--domain-size", 7, "--users", 9),
        ("estimate", "poll", "poll.reports"),
        ("balance", "alice"),
    ],
)
def test_every_plot_without_matplotlib_names_the_extra(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[object, ...]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    message = command.error(*arguments, "--plot", tmp_path / "x.png")
    assert message == "Error: A plot needs matplotlib. Install it: pip install 'ldp-budget[plot]'\n"
    assert not (tmp_path / "x.png").exists()


@pytest.mark.slow
def test_plot_ignores_the_users_matplotlib_settings_and_keeps_them(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import matplotlib

    sizes: list[float] = []
    monkeypatch.setattr(
        Figure, "savefig", lambda figure, *_, **__: sizes.append(figure.axes[0].xaxis.label.get_fontsize())
    )
    with matplotlib.rc_context({"font.size": 20}):
        command("compare", "--epsilon", 1, "--domain-size", 7, "--users", 9, "--plot", tmp_path / "x.svg")
        assert matplotlib.rcParams["font.size"] == 20
    assert sizes == [10]


# -- labels and fonts ----------------------------------------------------------------------------------------


def test_plot_labels_keep_both_ends_and_differ() -> None:
    long = [f"Neither satisfied nor dissatisfied with how the town handles {what}" for what in ("dogs", "cats")]
    cut = labels.labels([*long, "x" * 200, "x" * 201, "만족" * 40, "a\tb\nc\x1b", ""])
    assert len(set(cut)) == len(cut)
    for each in cut:
        lines = each.split("\n")
        assert len(lines) <= labels.LINES
        assert max(map(len, lines)) <= labels.LABEL_WIDTH
    assert cut[0].startswith("Neither")
    assert cut[0].endswith("dogs")
    assert cut[-2:] == ["a b c", "(empty)"]
    assert labels.labels(["short", "also short"]) == ["short", "also short"]


@pytest.mark.slow
def test_plot_texts_with_dollars_and_braces_are_literal(command: CommandLine, tmp_path: Path) -> None:
    answers = ("$10–$20", "a_b^{c}", "만족한다", "<&>")
    made = collection(command, answers=answers)
    file = reports(made, tmp_path / "a.reports", [0, 1, 2, 3] * 20)
    shown = command("estimate", "poll", file, "--plot", tmp_path / "x.svg")
    texts = (tmp_path / "x.svg").read_text(encoding="utf-8")
    for text in ("$10–$20", "a_b^{c}", "만족한다", "&lt;&amp;&gt;", "poll: 80 reports, 95 % confidence intervals"):
        assert f">{text}<" in texts
    assert shown.stderr == "", "the reader's fonts show it"


@pytest.mark.slow
def test_characters_without_a_font_warn_once(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labels, "FONTS", labels.FONTS[:1])
    made = collection(command, answers=("만족한다", "불만이다"))
    file = reports(made, tmp_path / "a.reports", [0, 1] * 20)
    with warnings.catch_warnings(record=True) as flood:
        warnings.simplefilter("always")
        shown = command("estimate", "poll", file, "--plot", tmp_path / "x.png")
    assert flood == []
    assert shown.stderr.count("\n") == 1
    assert "has boxes for characters that no installed font has. Install Noto Sans CJK" in shown.stderr


@pytest.mark.slow
def test_character_that_the_usual_font_lacks_comes_from_the_next_one(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.font_manager import findfont, get_font

    # Matplotlib brings this one along; it replaces a Korean or Chinese font.
    usual, other = (set(get_font(findfont(name)).get_charmap()) for name in (labels.FONTS[0], "STIXGeneral"))
    sign = chr(next(code for code in sorted(other - usual) if chr(code).isalpha() and code < 0xE000))
    monkeypatch.setattr(labels, "FONTS", (labels.FONTS[0], "no such font", "STIXGeneral"))
    made = collection(command, answers=(sign, "plain"))
    file = reports(made, tmp_path / "a.reports", [0, 1] * 20)
    assert command("estimate", "poll", file, "--plot", tmp_path / "x.png").stderr == ""


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


@pytest.mark.slow
def test_plot_of_many_answers_draws_the_largest(command: CommandLine, tmp_path: Path, drawn: list[Figure]) -> None:
    names = tuple(f"answer {place}" for place in range(500))
    made = collection(command, answers=names)
    file = reports(made, tmp_path / "a.reports", [7] * 300 + [9] * 200 + list(range(500)))
    rows = command.json("estimate", "poll", file, "--plot", tmp_path / "x.png")["answers"]
    shown = bars(drawn[-1].axes[0])
    assert len(shown) == MOST
    assert list(shown)[:2] == ["answer 7", "answer 9"]
    assert list(shown.values()) == sorted((100 * row["share"] for row in rows), reverse=True)[:MOST]
    assert f"the {MOST} largest, largest first, of 500 answers; {500 - MOST} left out" in said(drawn[-1])
    command("estimate", "poll", file, "--plot", tmp_path / "x.png", "--top", 1)
    assert list(bars(drawn[-1].axes[0])) == ["answer 7"]
    assert "the largest of 500 answers; 499 left out" in said(drawn[-1])


@pytest.mark.slow
def test_plot_draws_negative_estimates(tmp_path: Path, drawn: list[Figure]) -> None:
    made = ldp_budget.Collection("poll", ldp_budget.mechanism("oue")(epsilon=1, domain_size=2), ("yes", "no"))
    rows = [
        {"answer": "yes", "count": -3, "share": -0.3, "share_low": -0.3, "share_high": 0.1, "adjusted_share": 0.0},
        {"answer": "no", "count": 13, "share": 1.3, "share_low": 0.8, "share_high": 1.3, "adjusted_share": 1.0},
    ]
    found = {"reports": 10, "answers": rows, "adjusted": "simplex"}
    plot_estimate(made, found, str(tmp_path / "x.png"))
    [axes] = drawn[-1].axes
    assert bars(axes) == {"yes": -30, "no": 130}
    low, high = axes.get_xlim()
    assert low < -30
    assert high > 130
    assert [each.get_text() for each in axes.texts] == ["-30.0 %", "130.0 %"]
    [legend] = [[each.get_text() for each in axes.get_legend().get_texts()]]
    assert legend == ["estimate", "95 % interval", "adjusted (simplex), for showing: not unbiased"]


@pytest.mark.slow
def test_plot_of_a_mean_has_interval_range_and_bias(
    command: CommandLine, tmp_path: Path, drawn: list[Figure]
) -> None:
    made = ldp_budget.Collection("age", ldp_budget.mechanism("bounded-laplace")(epsilon=1, lower=18, upper=70))
    with Accountant(command.ledger) as accountant:
        accountant.add_collection(made)
    file = reports(made, tmp_path / "a.reports", [20, 30, 60] * 30)
    row = command.json("estimate", "age", file, "--plot", tmp_path / "x.png")
    [axes] = drawn[-1].axes
    assert title(drawn[-1]) == "age: 90 reports, 95 % confidence intervals"
    assert ends(axes) == [(pytest.approx(row["low"]), pytest.approx(row["high"]))]
    assert axes.get_xlabel() == "estimated mean of the users' values, which are numbers from 18 to 70"
    assert f"{row['mean']:.6g} ({row['low']:.6g} to {row['high']:.6g})" in said(drawn[-1])
    assert f"biased by at most {row['max_bias']:.4g}" in said(drawn[-1])


# -- rounds --------------------------------------------------------------------------------------------------


@pytest.fixture
def rounds(command: CommandLine, tmp_path: Path) -> list[Path]:
    made = collection(command)
    return [
        reports(made, tmp_path / f"week-{week}.reports", [0] * 60 + [1] * (10 * week) + [2] * 20, seed=week)
        for week in (1, 2, 3)
    ]


def test_estimate_by_round_gives_one_estimate_each(command: CommandLine, rounds: list[Path]) -> None:
    found = command.json("estimate", "poll", *rounds, "--by-round")["rounds"]
    for path, each in zip(rounds, found, strict=True):
        assert each == {"round": path.name, **command.json("estimate", "poll", path)}
    lines = command("estimate", "poll", *rounds, "--by-round").stdout.splitlines()
    assert lines[0] == "3 rounds; 95 % confidence intervals"
    assert lines[1].startswith("Consistent counts: at least 0")
    assert lines[2].split() == ["round", "reports", "answer", "count", "share", "low", "high", "unbiased"]
    assert [line.split()[:3] for line in lines[3:]] == [
        [path.name, str(80 + 10 * week), answer] for week, path in enumerate(rounds, 1) for answer in ANSWERS
    ]


@pytest.mark.slow
def test_plot_of_rounds_has_a_trend_for_each_answer(
    command: CommandLine, rounds: list[Path], tmp_path: Path, drawn: list[Figure]
) -> None:
    found = command.json("estimate", "poll", *rounds, "--by-round", "--plot", tmp_path / "x.png")["rounds"]
    assert title(drawn[-1]) == "poll: 3 rounds of 90 to 110 reports, 95 % confidence intervals"
    assert drawn[-1].get_supylabel() == "share of users, %"
    panels = drawn[-1].axes
    assert [axes.get_title(loc="left") for axes in panels] == list(ANSWERS)
    for place, axes in enumerate(panels):
        rows = [each["answers"][place] for each in found]
        assert axes.lines[0].get_ydata() == pytest.approx([100 * row["share"] for row in rows])
        segments = axes.collections[0].get_segments()
        for (low, high), row in zip(segments, rows, strict=True):
            assert (low[1], high[1]) == pytest.approx((100 * row["share_low"], 100 * row["share_high"]))
    assert [each.get_text() for each in panels[-1].get_xticklabels()] == [path.name for path in rounds]


def test_estimate_by_round_with_top_keeps_the_same_answers(command: CommandLine, rounds: list[Path]) -> None:
    found = command.json("estimate", "poll", *rounds, "--by-round", "--top", 2)["rounds"]
    everything = command.json("estimate", "poll", *rounds, "--by-round")["rounds"]
    sums = dict.fromkeys(ANSWERS, 0.0)
    for each in everything:
        for row in each["answers"]:
            sums[row["answer"]] += row["count"]
    largest = sorted(sums, key=lambda answer: -sums[answer])[:2]
    assert [[row["answer"] for row in each["answers"]] for each in found] == [largest] * 3
    lines = command("estimate", "poll", *rounds, "--by-round", "--top", 2).stdout.splitlines()
    assert lines[1] == "The 2 largest of 3 answers. Their counts are more likely too large than too small"


@pytest.mark.slow
def test_plot_of_rounds_with_many_answers_has_panels(
    command: CommandLine, tmp_path: Path, drawn: list[Figure]
) -> None:
    made = collection(command, answers=tuple(f"answer {place}" for place in range(40)))
    files = [reports(made, tmp_path / f"{n}.reports", [3] * 90 + list(range(40)), seed=n) for n in (1, 2)]
    command("estimate", "poll", *files, "--by-round", "--plot", tmp_path / "x.png")
    panels = [axes for axes in drawn[-1].axes if axes.get_visible()]
    assert len(panels) == 12
    assert panels[0].get_title(loc="left") == "answer 3"
    assert "the 12 largest, largest first, of 40 answers; 28 left out" in said(drawn[-1])


@pytest.mark.slow
def test_estimate_by_round_of_a_mean_gives_means(command: CommandLine, tmp_path: Path, drawn: list[Figure]) -> None:
    made = ldp_budget.Collection("age", ldp_budget.mechanism("laplace")(epsilon=1, lower=18, upper=70))
    with Accountant(command.ledger) as accountant:
        accountant.add_collection(made)
    files = [reports(made, tmp_path / f"{n}.reports", [20, 30, 60] * 30, seed=n) for n in (1, 2)]
    rows = [command.json("estimate", "age", path) for path in files]
    arguments = ("estimate", "age", *files, "--by-round", "--plot", tmp_path / "x.png")
    assert command.json(*arguments)["rounds"] == [
        {"round": path.name, **row} for path, row in zip(files, rows, strict=True)
    ]
    [axes] = drawn[-1].axes
    assert axes.lines[0].get_ydata() == pytest.approx([row["mean"] for row in rows])
    assert command(*arguments).stdout.splitlines()[0].split()[:3] == ["round", "reports", "mean"]


def test_rounds_with_one_file_name_show_their_folders(
    command: CommandLine, rounds: list[Path], tmp_path: Path
) -> None:
    (tmp_path / "later").mkdir()
    other = tmp_path / "later" / rounds[0].name
    other.write_bytes(rounds[1].read_bytes())
    result = command("estimate", "poll", rounds[0], other, "--by-round", "--json")
    assert str(other) in result.stdout
    message = command.error("estimate", "poll", rounds[0], rounds[1], rounds[0], "--by-round", code=2)
    assert f"--by-round must be a file for each round: got {rounds[0]} 2 times" in message
    twins = command("estimate", "poll", rounds[1], other, "--by-round").stderr
    assert "have the same content; two rounds here are one" in twins
    message = command.error("estimate", "poll", *rounds, "--by-round", "--independent", code=2)
    assert "--independent and --by-round exclude each other" in message


def test_rounds_of_memoized_reports_note_the_shared_noise(command: CommandLine, tmp_path: Path) -> None:
    mechanism = ldp_budget.mechanism("d-bit-flip")(epsilon=1, buckets=4, bits=4, memoize=True)
    made = ldp_budget.Collection("poll", mechanism)
    with Accountant(command.ledger) as accountant:
        accountant.add_collection(made)
    paths = [tmp_path / f"{n}.reports" for n in (1, 2)]
    for path in paths:
        with ReportWriter(path, made) as writer:
            values = [0, 1, 2, 3] * 9
            writer.write(made.mechanism.randomize(values, secrets=b"a secret of all of them"))
    assert "rounds are not independent" in command("estimate", "poll", *paths, "--by-round").stderr


# -- compare -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_plot_of_a_comparison_names_the_request(command: CommandLine, tmp_path: Path, drawn: list[Figure]) -> None:
    asked = ("compare", "--epsilon", 1, "--domain-size", 7, "--users", 944, "--lower", 18, "--upper", 70)
    rows = command.json(*asked, "--plot", tmp_path / "x.png")
    assert title(drawn[-1]) == "Predicted errors: ε = 1, 7 answers, values from 18 to 70, 944 users"
    shares, numbers = drawn[-1].axes
    errors = [100 * row["mean_std_error"] for row in rows if row["kind"] == "frequency"]
    assert list(bars(shares).values()) == pytest.approx(errors)
    assert [each.get_text() for each in shares.texts] == [f"{each:.2f} %" for each in errors]
    assert shares.get_xlabel() == "standard error of a share, %"
    assert "cms (hashes=1024, width=1024)" in bars(shares)
    assert list(bars(numbers)) == [row["mechanism"] for row in rows if row["kind"] == "numeric"]
    assert numbers.get_xlabel() == "error of the estimated mean, at worst, in the unit of the values"
    low, high = shares.get_ylim()
    assert low > high, "best on top"


# -- calibrate -----------------------------------------------------------------------------------------------

CALIBRATED: dict[str, dict[str, Any]] = {
    "gaussian": {"epsilon": 1, "delta": "1e-6", "sensitivity": 2},
    "laplace": {"epsilon": 1, "lower": 0, "upper": 1},
    "staircase": {"epsilon": 1, "sensitivity": 1},
    "bounded-laplace": {"epsilon": 1, "lower": 0, "upper": 1},
    "bounded-staircase": {"epsilon": 1, "lower": 0, "upper": 1, "gamma": "0.3"},
    "randomized-response": {"truth": "0.5", "yes": "0.5"},
    "unary-encoding": {"p": "0.5", "q": "0.25", "domain_size": 7},
    "sue": {"epsilon": 1, "domain_size": 7},
    "oue": {"epsilon": 1, "domain_size": 7},
    "random-substitution": {"gamma": 10, "domain_size": 50},
    "subset-selection": {"epsilon": 1, "domain_size": 50},
    "pgr": {"epsilon": 1, "domain_size": 50},
    "matrix-substitution": {"matrix": [["0.75", "0.25"], ["0.25", "0.75"]]},
    "rappor": {"bits": 32, "hashes": 2, "cohorts": 8, "f": "0.5", "p": "0.5", "q": "0.75"},
    "cms": {"epsilon": 20, "hashes": 16, "width": 64},
    "hcms": {"epsilon": 2, "hashes": 16, "width": 64},
    "one-bit-mean": {"epsilon": 1, "maximum": 24},
    "hybrid": {"epsilon": 1, "lower": 0, "upper": 1},
    "square-wave": {"epsilon": 1, "lower": 0, "upper": 1},
    "d-bit-flip": {"epsilon": 1, "buckets": 16, "bits": 4},
}
ONE_SETTING = {"unary-encoding", "matrix-substitution"}
"""A mechanism declared by its probabilities has its own ε only."""


def test_plot_tests_cover_every_mechanism() -> None:
    from ldp_budget.registry.plugins import registry

    ours = {mechanism.name for mechanism, plugin in registry().items() if plugin.name == "mechanisms"}
    assert ours <= set(CALIBRATED)


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("name", CALIBRATED)
def test_plot_of_a_mechanism_has_its_error_against_epsilon(name: str, tmp_path: Path, drawn: list[Figure]) -> None:
    mechanism = ldp_budget.mechanism(name)(**CALIBRATED[name])
    plot_mechanism(mechanism, str(tmp_path / "x.png"))
    axes = drawn[-1].axes[0]
    own = mechanism.guarantee.epsilon
    assert title(drawn[-1]).startswith(f"{name}, ε = {own:.6g}")
    assert axes.get_xlabel().startswith("ε of one report")
    assert re.search("variance|error", axes.get_ylabel())
    curve, here = (list(zip(*line.get_data(), strict=True)) for line in axes.lines[:2])
    assert here[0][0] == own
    assert f"here: ε = {own:.4g}, error {here[0][1]:.4g}" in said(drawn[-1])
    assert bool(curve) == (name not in ONE_SETTING)
    errors = [error for _, error in curve]
    assert errors == sorted(errors, reverse=True) or name == "random-substitution"
    assert len(drawn[-1].axes) == (2 if name in ("laplace", "bounded-laplace", "bounded-staircase") else 1)


@pytest.mark.slow
def test_plot_with_users_has_the_error_of_the_estimate(
    command: CommandLine, tmp_path: Path, drawn: list[Figure]
) -> None:
    arguments = ("calibrate", "sue", "--epsilon", 1, "--domain-size", 7, "--users", 944)
    found = command.json(*arguments, "--plot", tmp_path / "x.png")
    [axes] = drawn[-1].axes
    assert title(drawn[-1]) == "sue, ε = 1 each report, 944 users"
    assert axes.get_ylabel() == "standard error of a share, %"
    assert axes.lines[1].get_ydata() == pytest.approx([100 * found["utility"]["std_error"]])
    assert "domain_size = 7" in said(drawn[-1])


@pytest.mark.slow
def test_plot_densities_differ_by_line_style(tmp_path: Path, drawn: list[Figure]) -> None:
    plot_mechanism(ldp_budget.mechanism("laplace")(epsilon=1, lower=0, upper=1), str(tmp_path / "x.png"))
    lines = drawn[-1].axes[1].lines
    assert len({line.get_linestyle() for line in lines}) == len(lines) == 3
    legend = [each.get_text() for each in drawn[-1].axes[1].get_legend().get_texts()]
    assert legend == ["value 0 (lower end)", "value 0.5 (centre)", "value 0.8 (four fifths)"]
    assert "always saying the centre" in said(drawn[-1])


def test_plot_without_a_predicted_error_says_so(tmp_path: Path) -> None:
    import click

    class Silent(type(ldp_budget.mechanism("oue")(epsilon=1, domain_size=3))):  # type: ignore[misc]
        name = "silent"

        def utility(self, users: int | None = None) -> dict[str, Any]:
            return {}

    with pytest.raises(click.ClickException, match="--plot: silent predicts no error"):
        plot_mechanism(Silent(epsilon=1, domain_size=3), str(tmp_path / "x.png"))
    assert list(tmp_path.iterdir()) == []


# -- balance -------------------------------------------------------------------------------------------------


def coin(epsilon: str) -> ldp_budget.Mechanism:
    return ldp_budget.mechanism("randomized-response")(epsilon=epsilon)


@pytest.mark.slow
def test_plot_of_a_balance_has_steps_for_each_limit(
    command: CommandLine, tmp_path: Path, drawn: list[Figure]
) -> None:
    clock = Clock()
    clock.now = datetime(2025, 3, 4, 12, tzinfo=UTC)
    with Accountant(command.ledger, clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=4,1e-6", "day=1", "month=9,1e-6,zcdp"])
        for _ in range(3):
            accountant.spend("alice", coin("0.5"))
            clock.advance(days=1)
        over_time = accountant.remaining_over_time("alice")
    command("balance", "alice", "--plot", tmp_path / "x.png")
    figure = drawn[-1]
    assert title(figure) == "alice: what is left of each limit, policy default"
    lifetime, delta, day, month = figure.axes
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "lifetime limit (basic) of ε = 4, δ = 1e-06: ε left",
        "lifetime limit (basic) of ε = 4, δ = 1e-06: δ left",
        "day limit (basic) of ε = 1: ε left",
        "month limit (zcdp) of ε = 9, δ = 1e-06: ρ left",
    ]
    assert [axes.get_ylabel() for axes in figure.axes] == ["ε left", "δ left", "ε left", "ρ left"]
    assert list(lifetime.lines[0].get_ydata()) == [4, 3.5, 3, 2.5, 2.5]
    assert set(delta.lines[0].get_ydata()) == {1e-6}
    assert list(day.lines[0].get_ydata())[:6] == [1, 0.5, 1, 0.5, 1, 0.5]
    assert all(axes.lines[0].get_drawstyle() == "steps-post" for axes in figure.axes)
    [marks] = [line for line in day.lines if line.get_marker() == "^"]
    refills = [
        left.at for found in over_time if found.limit.period == "day" for left in found.course if left.refilled
    ]
    assert list(marks.get_xdata())[: len(refills)] == refills
    assert not [line for line in lifetime.lines if line.get_marker() == "^"]
    assert "▲ a new window refills it" in said(figure)
    assert figure.axes[-1].get_xlabel() == "time, UTC"
    assert month.lines[0].get_ydata()[0] == pytest.approx(over_time[2].to_json()["capacity"]["rho"])


@pytest.mark.slow
def test_plot_of_an_unknown_user_has_everything_left(
    command: CommandLine, tmp_path: Path, drawn: list[Figure]
) -> None:
    command("policy", "set", "default", "--limit", "lifetime=4")
    command("balance", "bob", "--plot", tmp_path / "x.png")
    assert list(drawn[-1].axes[0].lines[0].get_ydata()) == [4, 4]
    assert "nothing was charged" in said(drawn[-1])


def test_plot_of_an_erased_user_is_refused(command: CommandLine, tmp_path: Path) -> None:
    command("policy", "set", "default", "--limit", "lifetime=4")
    command("spend", "alice", "randomized-response", "--epsilon", 1)
    command("erase", "alice", "--yes")
    message = command.error("balance", "alice", "--plot", tmp_path / "x.png")
    assert "--plot: there is nothing to draw, because alice was erased" in message
    assert not (tmp_path / "x.png").exists()
