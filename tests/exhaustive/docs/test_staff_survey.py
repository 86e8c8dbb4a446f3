"""The case study of a staff survey: the page runs as printed, and its figures are those of a run with other noise."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from doc_blocks import STUDIES, follow, page_environment
from study_output import numbers, shown_lines, words

PAGE = STUDIES / "staff-survey.md"
FIGURES = 7


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory, programs: str) -> list[tuple[str, str]]:
    """Each line of the page's figures, with that of a new run."""
    folder = tmp_path_factory.mktemp("study")
    found = follow(PAGE, folder, page_environment(folder, programs))
    assert found == [], "\n".join(found)
    run = [line for line in (folder / "year.txt").read_text(encoding="utf-8").splitlines() if line]
    return list(zip(shown_lines(PAGE, "sed"), run, strict=True))


def pairs(lines: list[tuple[str, str]], start: str, number: int = 1) -> Iterator[tuple[list[float], list[float]]]:
    """The numbers of the lines from one that begins so, on the page and in the run."""
    first = next(place for place, (shown, _) in enumerate(lines) if shown.startswith(start))
    for shown, printed in lines[first : first + number]:
        yield numbers(shown), numbers(printed)


def test_figures_of_the_page_have_the_words_of_a_new_run(lines: list[tuple[str, str]]) -> None:
    assert [words(shown) for shown, _ in lines] == [words(printed) for _, printed in lines]


@pytest.mark.parametrize(
    ("start", "number"), [("asked every", 5), ("week 36", 2), ("spent by", 1)], ids=["design", "canteen", "spent"]
)
def test_figures_without_noise_are_the_same(lines: list[tuple[str, str]], start: str, number: int) -> None:
    for shown, printed in pairs(lines, start, number):
        assert shown == printed


def test_what_goes_wrong_goes_wrong_as_shown(lines: list[tuple[str, str]]) -> None:
    for run in (0, 1):
        [down], [twice] = (list(pairs(lines, f"week {week}")) for week in (10, 12))
        assert down[run][1] == down[run][2] > 30, "all are asked on Monday"
        assert twice[run][1] == twice[run][2] > 30, "all are refused"
        (_, people, spent, refused, _), (_, spent_again, refused_again, repeated) = (
            each[run] for each in pairs(lines, "week 38", 2)
        )
        assert spent + refused == people == 300
        assert refused > 150
        assert (spent_again, refused_again, repeated) == (0, refused, spent)


def test_precision_of_the_page_is_that_of_a_new_run(lines: list[tuple[str, str]]) -> None:
    for title, tolerance in (("13 weeks", 0.1), ("1 week", 0.15)):
        _, *rows = pairs(lines, f"{title:18} planned", FIGURES + 1)
        for shown, printed in rows:
            assert printed[-6] == shown[-6], "the planned margin has no noise"
            assert printed[-5] == pytest.approx(shown[-5], rel=tolerance)
            for planned, _, largest, mean, _, _ in (shown[-6:], printed[-6:]):
                assert largest < 3 * planned
                assert abs(mean) < 1.3 * planned
        # Figures of 13 weeks share weeks and are off together, all year long; those of single weeks share none.
        least = 0.7 if title == "13 weeks" else 0.92
        for run in (0, 1):
            assert sum(row[run][-2] for row in rows) > least * sum(row[run][-1] for row in rows)


def test_quarters_of_the_page_have_the_truth_and_see_the_reorganization(lines: list[tuple[str, str]]) -> None:
    for shown, printed in pairs(lines, "quarter 1", 4):
        for figure in (slice(1, 5), slice(5, 9)):
            assert printed[figure][3] == shown[figure][3], "the truth has no noise"
            for share, low, high, true in (shown[figure], printed[figure]):
                assert low <= share <= high
                assert abs(share - true) < 20
    [(shown, printed)] = pairs(lines, "voice, from")
    assert shown[-1] < 0, "the interval of the page is below 0"
    assert printed[-3] < -5


def test_costs_of_the_page_are_those_of_a_new_run(lines: list[tuple[str, str]]) -> None:
    [year], [statement], [ledger] = (list(pairs(lines, start)) for start in ("52 weeks", "statement", "ledger"))
    assert year[0][:4] == year[1][:4]
    assert year[1][4] == pytest.approx(year[0][4], rel=0.05)
    assert all(run[5] < 100 for run in year)
    assert all(run[-1] <= 9 for run in statement), "the limit of a lifetime"
    assert ledger[1][:2] == pytest.approx(ledger[0][:2], rel=0.1)
