"""Kang, Lee and Hong, Figures 2 to 11: one data set, substituted and reconstructed, with one draw and with four."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from _003_data import NORMAL, PRINTED, UNBIASED, UNIFORM, Cell, Comparison
from report import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from report import Report

RUNS = 10
LARGE, SMALL, WIDE = (50, 10, 50_000), (50, 10, 10_000), (100, 10, 50_000)

# Figure: data, (N, γ, n), l, and the "actual standard error" in the text.
FIGURES: dict[int, tuple[str, tuple[int, int, int], int, float]] = {
    2: (NORMAL, LARGE, 1, 0.1185),
    3: (UNIFORM, LARGE, 1, 0.1929),
    4: (NORMAL, SMALL, 1, 0.2793),
    5: (UNIFORM, SMALL, 1, 0.4204),
    6: (NORMAL, WIDE, 1, 0.3372),
    7: (UNIFORM, WIDE, 1, 0.5708),
    8: (NORMAL, SMALL, 4, 0.1655),
    9: (UNIFORM, SMALL, 4, 0.2281),
    10: (NORMAL, WIDE, 4, 0.1880),
    11: (UNIFORM, WIDE, 4, 0.2529),
}
# Read off the words: what the text expects of a figure from another one.
EXPECTED = (
    ("Figure 4 from Figure 2, n a fifth", 0.2650, 0.1185, math.sqrt(5)),
    ("Figure 5 from Figure 3, n a fifth", 0.4313, 0.1929, math.sqrt(5)),
    ("Figure 6 from Figure 2, N doubled", 0.3352, 0.1185, 2**1.5),
    ("Figure 7 from Figure 3, N doubled", 0.5456, 0.1929, 2**1.5),
    ("Figure 8 from Figure 4, l = 4", 0.1396, 0.2793, 0.5),
    ("Figure 9 from Figure 5, l = 4", 0.2102, 0.4204, 0.5),
)
WHY = {
    8: "no data at all have it: after Algorithm 2 the mean square of X̂*/l is least, 0.2158², for uniform data. The "
    "unbiased estimate has {unbiased:.4f} on these data, independent draws {replaced:.4f}",
}


def cell_of(figure: int) -> Cell:
    kind, (size, gamma, users), draws, _ = FIGURES[figure]
    return Cell(kind, size, gamma, users, draws)


def figures_2_to_7(report: Report) -> None:
    report.section(
        "Section 4.2: Figures 2 to 7, one draw",
        'The data of the paper are synthetic: one set "follows a normal distribution", one a uniform one. No mean '
        "and no variance are stated, and the pictures are lost; what remains are the captions and the errors "
        "‖X̂−X‖/‖X‖ in the text, means of ten runs. The error depends on the data through ‖X‖ alone, so it does not "
        "matter where the bell stands or what shape it has, only how flat it is. Here σ/N is fitted to one entry of "
        "Table 2 (l = 1, N = 50), and used for every normal data set of 10,000 or 50,000 users.",
        "A printed error counts as reproduced within three standard errors of a mean of ten runs (ours ±). Figure 7 "
        'is captioned "normal", and is the uniform one by the text.',
    )
    report.compare([*bounds(), *errors(report, range(2, 8)), *expectations(EXPECTED[:4]), *remarks()])
    for pair in ((2, 3), (4, 5), (6, 7)):
        picture(report, *pair)


def figures_8_to_11(report: Report) -> None:
    report.section(
        "Section 6: Figures 8 to 11, four draws",
        "Algorithm 2 with l = 4, reconstructed with X̂*/l as printed, on the same synthetic data as above; section 6 "
        "uses no others.",
    )
    report.compare([*errors(report, range(8, 12)), *expectations(EXPECTED[4:]), *halved()])
    for pair in ((8, 9), (10, 11)):
        picture(report, *pair)


def bounds() -> Iterator[Row]:
    for (size, gamma, users), printed in ((LARGE, 0.2028), (SMALL, 0.4535), (WIDE, 0.5371)):
        ours = Cell(UNIFORM, size, gamma, users).bound
        what = f"Section 4.2: upper bound of the error, N = {size}, γ = {gamma}, n = {users:,}"
        yield Row(what, f"{printed:.4f}", f"{ours:.5f}", abs(printed - ours) < 1e-4)


def errors(report: Report, figures: range) -> Iterator[Row]:
    for figure in figures:
        kind, (size, _, users), draws, printed = FIGURES[figure]
        cell = cell_of(figure)
        made = Comparison(cell, printed, RUNS, cell.errors(2 if report.quick else 100)[PRINTED])
        what = f"Figure {figure}: error, {kind}, N = {size}, n = {users:,}" + (f", l = {draws}" if draws > 1 else "")
        why = "" if made.agrees else f"{made.distance}; {reason(figure)}"
        yield Row(what, f"{printed:.4f}", made.ours, made.agrees, why)


def reason(figure: int) -> str:
    cell = cell_of(figure)
    unbiased, replaced = cell.root_mean_square(UNBIASED), cell.root_mean_square("with replacement")
    return WHY.get(figure, "no reason found").format(unbiased=unbiased, replaced=replaced)


def expectations(claims: tuple[tuple[str, float, float, float], ...]) -> Iterator[Row]:
    for what, printed, before, factor in claims:
        ours = before * factor
        yield Row(f"Expectation of {what}", f"{printed:.4f}", f"{ours:.4f}", abs(printed - ours) < 1e-4)


def remarks() -> Iterator[Row]:
    factor = Cell(UNIFORM, *WIDE).bound / Cell(UNIFORM, *LARGE).bound
    yield Row(
        "Section 4.2: Theorem 4.1 says that doubling N multiplies the error by 2^1.5",
        f"{2**1.5:.3f}",
        f"{factor:.3f} at γ = 10, from N = 50 to 100",
        abs(factor / 2**1.5 - 1) < 0.01,
        "N^1.5 is the order for N far above γ; by the theorem itself Figures 6 and 7 follow with "
        f"{0.1185 * factor:.4f} and {0.1929 * factor:.4f}",
    )
    counts = cell_of(2).counts
    above = int((counts > 1000).sum())
    yield Row(
        'Section 4.2: most values of "Figure 1" (that is, 2) have more than 1,000 users',
        "most of 50",
        f"{above} of 50",
        above > 25,
        "the mean is 1,000; a bell as flat as the errors say has fewer than half its values above it",
    )
    below = int((cell_of(4).counts <= 200).sum())
    yield Row(
        "Section 4.2: most values of Figure 4 have no more than 200 users", "most of 50", f"{below} of 50", below > 25
    )


def halved() -> Iterator[Row]:
    for figure, single in ((8, 4), (9, 5), (10, 6), (11, 7)):
        printed = FIGURES[figure][3] / FIGURES[single][3]
        ours = cell_of(figure).root_mean_square() / cell_of(single).root_mean_square()
        yield Row(
            f"Section 6: l = 4 halves the error of Figure {single} (printed: {printed:.3f})",
            "0.5",
            f"{ours:.3f}",
            abs(ours - 0.5) < 0.05,
            "" if abs(ours - 0.5) < 0.05 else "X̂*/l is biased towards uniform, and these data are not uniform",
        )


# -- pictures -------------------------------------------------------------------------------------------------


def picture(report: Report, left: int, right: int) -> None:
    draws = "" if FIGURES[left][2] == 1 else ", four draws"
    size, gamma, users = FIGURES[left][1]
    caption = (
        f"Figures {left} (normal) and {right} (uniform): N = {size}, γ = {gamma}, n = {users:,}{draws}; one run."
    )
    with report.picture(f"figures-{left}-{right}", caption) as canvas:
        for place, figure in enumerate((left, right), start=1):
            draw(canvas.add_subplot(1, 2, place), figure)


def draw(axes: Axes, figure: int) -> None:
    cell = cell_of(figure)
    found, values = cell.estimates(0), np.arange(cell.size)
    axes.stairs(cell.counts, np.arange(cell.size + 1) - 0.5, fill=True, color="0.8", label="data")
    single = cell.draws == 1
    axes.plot(values, found[PRINTED], lw=1, color="tab:red", label="reconstructed" if single else "X̂*/l")
    if not single:
        axes.plot(values, found[UNBIASED], lw=1, ls="--", color="tab:blue", label="unbiased")
    axes.set_title(
        f"Figure {figure}: error {cell.error(found[PRINTED]):.4f} (printed {FIGURES[figure][3]:.4f})", fontsize=8
    )
    axes.set_xlabel("value", fontsize=8)
    axes.set_ylabel("users", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.legend(fontsize=7)
