"""Kang, Lee and Hong 2009, section 6: Tables 1 to 4, the errors, the bounds and the random numbers drawn."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from _003_data import (
    ESTIMATORS,
    FITTED,
    NORMAL,
    PRINTED,
    UNIFORM,
    Cell,
    Comparison,
    algorithm_2,
    implied_spread,
    spread,
)
from _003_figures import FIGURES
from report import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from _003_data import Floats
    from matplotlib.axes import Axes
    from report import Report

RUNS = 100
DRAWS = (1, 2, 4)
SIZES = ((50, 5), (100, 10))
TABLES = {1: (NORMAL, 5_000), 2: (NORMAL, 50_000), 3: (UNIFORM, 5_000), 4: (UNIFORM, 50_000)}

# Table, N: for l = 1, 2, 4 the "actual standard error" and the "amount of computation (random numbers)".
ERRORS = {
    (1, 50): (0.6812, 0.4760, 0.3401),
    (1, 100): (0.8837, 0.6082, 0.4444),
    (2, 50): (0.2623, 0.1862, 0.1589),
    (2, 100): (0.3358, 0.2380, 0.1817),
    (3, 50): (1.3351, 0.9409, 0.6341),
    (3, 100): (1.6918, 1.1773, 0.8209),
    (4, 50): (0.4289, 0.2926, 0.2054),
    (4, 100): (0.5374, 0.3763, 0.2617),
}
NUMBERS = {
    (1, 50): (5_000, 10_131, 20_806),
    (1, 100): (5_000, 10_088, 20_529),
    (2, 50): (50_000, 101_326, 208_105),
    (2, 100): (50_000, 100_884, 205_274),
    (3, 50): (5_000, 10_134, 20_810),
    (3, 100): (5_000, 10_087, 20_525),
    (4, 50): (50_000, 101_331, 208_130),
    (4, 100): (50_000, 100_884, 205_269),
}
# The bounds are the same for both kinds of data; by n and N.
BOUNDS = {
    (5_000, 50): (1.3328, 0.9424, 0.6664),
    (5_000, 100): (1.6984, 1.2010, 0.8492),
    (50_000, 50): (0.4214, 0.2980, 0.2107),
    (50_000, 100): (0.5370, 0.3800, 0.2685),
}


def table_part(number: int) -> Callable[[Report], None]:
    """The part of the page for one table."""
    return functools.partial(table, number=number)


def table(report: Report, number: int) -> None:
    kind, users = TABLES[number]
    report.section(f"Section 6: Table {number}, n = {users:,}, {kind}", *introduction(number))
    simulated = {cell: cell.errors(2 if report.quick else 100) for cell in cells(number)}
    rows = [row for cell, errors in simulated.items() for row in entry(number, cell, errors)]
    report.compare(rows)
    report.text("Both estimators: mean error of the runs, and in brackets the root mean square in closed form.")
    report.table(("N", "γ", "l", "printed", *ESTIMATORS), [estimators(number, *item) for item in simulated.items()])


def introduction(number: int) -> Iterator[str]:
    if number == 1:
        yield (
            "All four tables: errors are those of X̂*/l after Algorithm 2, printed as means of a hundred runs. They "
            "count as reproduced within three standard errors of such a mean (ours ±, both in closed form from "
            "variance and bias); bounds within 0.0001, as the paper cuts digits off here and rounds them there; "
            "random numbers within three standard errors of the mean, beside the `expected_draws` of `utility`."
        )
    if TABLES[number][0] == NORMAL:
        yield (
            f"σ/N = {spread(TABLES[number][1]):.4f}, fitted to the entry N = 50, l = 1. The other entries of this "
            "table are tests."
        )


def cells(number: int) -> list[Cell]:
    kind, users = TABLES[number]
    return [Cell(kind, size, gamma, users, draws) for size, gamma in SIZES for draws in DRAWS]


# -- rows -----------------------------------------------------------------------------------------------------


def entry(number: int, cell: Cell, errors: dict[str, Floats]) -> Iterator[Row]:
    where, column = f"Table {number}, N = {cell.size}, γ = {cell.gamma}, l = {cell.draws}", DRAWS.index(cell.draws)
    yield error_row(where, Comparison(cell, ERRORS[number, cell.size][column], RUNS, errors[PRINTED]))
    bound = BOUNDS[cell.users, cell.size][column]
    close = abs(bound - cell.bound) < 1e-4
    why = "" if close else "printed is the rounding to three digits, 0.380, filled up with a zero"
    yield Row(f"{where}: bound", f"{bound:.4f}", f"{cell.bound:.5f}", close, why)
    yield numbers_row(where, cell, NUMBERS[number, cell.size][column])


def error_row(where: str, made: Comparison) -> Row:
    cell = made.cell
    what, shown = f"{where}: error", f"{made.printed:.4f}"
    if cell.kind == NORMAL and (cell.size, cell.draws) == (50, 1) and FITTED[cell.users] == made.printed:
        return Row(what, shown, made.ours, False, "σ is not stated; it was fitted to this entry")
    return Row(what, shown, made.ours, made.agrees, "" if made.agrees else f"{made.distance}; {reason(made)}")


def reason(made: Comparison) -> str:
    cell = made.cell
    uniform = Cell(UNIFORM, cell.size, cell.gamma, cell.users, cell.draws)
    implied = implied_spread(uniform, made.printed)
    if cell.kind == UNIFORM or implied is None:
        return "no reason found"
    unbiased, replaced = (cell.root_mean_square(name) for name in ESTIMATORS[1:])
    return (
        f"nor do the unbiased estimate ({unbiased:.4f}) or independent draws ({replaced:.4f}) give it on data that "
        f"fit l = 1; X̂*/l would on narrower data, σ/N = {implied:.4f}. The bias of X̂*/l is {cell.bias:.4f} here"
    )


def numbers_row(where: str, cell: Cell, shown: float) -> Row:
    _, drawn = algorithm_2(Cell(cell.kind, cell.size, cell.gamma, 5_000, cell.draws), seed=cell.seed(0))
    noise = float(drawn.std()) * cell.users**0.5 / RUNS**0.5
    ours = f"{cell.expected_draws:,.1f} ± {noise:.1f}"
    agrees = abs(shown - cell.expected_draws) <= 3 * noise + 0.5
    return Row(
        f"{where}: random numbers", f"{shown:,}", ours, agrees, "" if agrees else "outside the noise of the mean"
    )


def estimators(number: int, cell: Cell, errors: dict[str, Floats]) -> tuple[object, ...]:
    found = [f"{errors[name].mean():.4f} ({cell.root_mean_square(name):.4f})" for name in errors]
    shown = f"{ERRORS[number, cell.size][DRAWS.index(cell.draws)]:.4f}"
    # One draw is the same in every way.
    return (cell.size, cell.gamma, cell.draws, shown, *(found if cell.draws > 1 else [found[0]] * 3))


# -- the tables together --------------------------------------------------------------------------------------


def together(report: Report) -> None:
    report.section(
        "Section 6: the tables together",
        "What the printed errors of the normal data say about σ/N, entry by entry, by the closed form of X̂*/l after "
        "Algorithm 2. A data set can have one σ/N only, whatever l is.",
    )
    report.table(("normal data", "l = 1", "l = 2", "l = 4"), implied())
    report.text(
        "So the 5,000 users form a narrower bell than the 50,000; they are not a sample of the same. The l = 4 "
        "entries of Table 2 and Figure 8 do not fit the data of the entries beside them."
    )
    report.compare(remarks())
    with report.picture("tables", "Tables 1 to 4: printed (crosses) beside the root mean square errors.") as canvas:
        for place, (number, size) in enumerate(sorted(ERRORS, key=lambda key: (key[1], key[0])), start=1):
            draw(canvas.add_subplot(2, 4, place), number, size)


def implied() -> Iterator[tuple[str, ...]]:
    for number, (size, gamma) in ((n, s) for n in (1, 2) for s in SIZES):
        users = TABLES[number][1]
        shown = zip(DRAWS, ERRORS[number, size], strict=True)
        yield (
            f"Table {number}, N = {size}, γ = {gamma}, n = {users:,}",
            *(spread_text(Cell(UNIFORM, size, gamma, users, draws), error) for draws, error in shown),
        )
    for single, four in ((2, None), (4, 8), (6, 10)):
        size, gamma, users = FIGURES[single][1]
        cell = Cell(UNIFORM, size, gamma, users)
        last = spread_text(Cell(UNIFORM, size, gamma, users, 4), FIGURES[four][3]) if four else ""
        name = f"Figures {single} and {four}" if four else f"Figure {single}"
        yield f"{name}, N = {size}, γ = {gamma}, n = {users:,}", spread_text(cell, FIGURES[single][3]), "", last


def spread_text(uniform: Cell, error: float) -> str:
    found = implied_spread(uniform, error)
    return "none has it" if found is None else f"{found:.4f}"


def remarks() -> Iterator[Row]:
    ratios = {key: shown[0] / shown[2] for key, shown in ERRORS.items()}
    ours = {(n, cell.size): ratio(cell) for n in TABLES for cell in cells(n) if cell.draws == 4}
    short = [key for key, found in ours.items() if found < 2]
    yield Row(
        "Section 6: with l = 4 the error falls by a little less than √l = 2 (in print by "
        f"{min(ratios.values()):.2f} to {max(ratios.values()):.2f})",
        "a little less than 2",
        f"{min(ours.values()):.2f} to {max(ours.values()):.2f}; less than 2 in {len(short)} of 8",
        len(short) == len(ours),
        "less where the bias weighs, in normal data; more in uniform data, in print too, as distinct draws vary less",
    )
    four = cells(2)[2]
    falls = [ratio(four, name) for name in ESTIMATORS]
    yield Row(
        "Section 6: drawing again is the cause that it falls by less, Table 2, N = 50",
        "by 2 without",
        f"by {falls[2]:.2f} with replacement, {falls[0]:.2f} after Algorithm 2, {falls[1]:.2f} unbiased",
        falls[0] < falls[2] and abs(falls[2] - 2) < 1e-9,
        f"mostly by the bias of X̂*/l, {four.bias:.4f} of {four.root_mean_square():.4f}, which does not fall with n",
    )


def ratio(four: Cell, estimator: str = PRINTED) -> float:
    """How much the error falls from one draw to those of `four`."""
    one = Cell(four.kind, four.size, four.gamma, four.users)
    return one.root_mean_square() / four.root_mean_square(estimator)


def draw(axes: Axes, number: int, size: int) -> None:
    kind, users = TABLES[number]
    gamma = dict(SIZES)[size]
    made = [Cell(kind, size, gamma, users, draws) for draws in DRAWS]
    for name, style in zip(ESTIMATORS, ("-", "--", ":"), strict=True):
        axes.plot(DRAWS, [cell.root_mean_square(name) for cell in made], style, lw=1, label=name)
    axes.plot(DRAWS, ERRORS[number, size], "kx", ms=5, label="printed")
    axes.set_title(f"Table {number}, N = {size}", fontsize=7)
    axes.set_xticks(DRAWS)
    axes.set_ylim(bottom=0)
    axes.tick_params(labelsize=6)
    if (number, size) == (1, 50):
        axes.legend(fontsize=5)
    if size == SIZES[-1][0]:
        axes.set_xlabel("l", fontsize=7)
    if number == 1:
        axes.set_ylabel("error", fontsize=7)
