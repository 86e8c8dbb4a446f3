"""Kim, Park and Lee: the bounded staircase, its Theorem 6 and its comparison with bounded Laplace on heights.

Both figures are lost; what the text says of them is what can be compared.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from _001_heights import experiment, figure_2, heights
from report import Row

import ldp_budget
from ldp_budget_mechanisms.bounded_noise import epsilon_hat, printed_epsilon_hat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from report import Report

TITLE = "Kim, Park and Lee: the bounded staircase mechanism"

STAIRCASE: Any = ldp_budget.mechanism("staircase")
BOUNDED: Any = ldp_budget.mechanism("bounded-staircase")

FIGURE_1 = {"lower": 10, "upper": 20}


# -- Theorem 6 ------------------------------------------------------------------------------------------------


def printed_first_row(epsilon: Decimal, gamma: Decimal) -> Decimal:
    """ε̂ for 0 <= γ < ½, as printed."""
    growth = epsilon.exp()
    shift = gamma * growth - 1 + 2 * gamma
    root = (shift**2 + 8 * gamma * (1 - gamma) * growth).sqrt()
    return (2 * (1 - gamma) * growth / (root - shift)).ln()


def printed_hat(epsilon: Decimal, gamma: Decimal) -> Decimal:
    """ε̂ of the paper's Table 1."""
    if gamma == 1:
        return epsilon
    return (printed_first_row if 2 * gamma < 1 else printed_epsilon_hat)(epsilon, gamma)


def searched_loss(hat: Decimal, gamma: Decimal, cells: int) -> float:
    """The loss of definition 5 with f_{γ,ε̂}, by a search over every value and report of a grid on [0, 1].

    f is the density of the library's staircase. With γ in whole cells its steps fall on borders of cells, so sums
    are integrals, and the loss that is found is a true one, if not always quite the largest.
    """
    import numpy as np

    noise = STAIRCASE(epsilon=hat, gamma=gamma)
    levels = np.array([noise.density((distance + 0.5) / cells, 0.0) for distance in range(cells)])
    mirrored = np.concatenate([levels[::-1], levels])
    # Reports of the value at point v are in the cells that lie from v to the left and from v to the right.
    rows = (mirrored[cells - value : 2 * cells - value] for value in range(cells + 1))
    largest, smallest = np.zeros(cells), np.full(cells, np.inf)
    for row in rows:
        density = row / row.sum()
        largest, smallest = np.maximum(largest, density), np.minimum(smallest, density)
    return float(np.log(largest / smallest).max())


def theorem_6(report: Report) -> None:
    cells = 400 if report.quick else 2000
    report.section(
        "Theorem 6: ε̂ over γ",
        "Printed: with the ε̂ of Table 1 the mechanism of definition 5 is ε-LDP. Ours is the loss of that ε̂, found by "
        f"a search over all values and reports on a grid of {cells} cells. It may miss the worst case by a cell, "
        "so a row counts as reproduced if the loss is at most ε, and misses it by less than 1 %.",
    )
    cases = [(Decimal(epsilon), Decimal(gamma)) for epsilon in ("1", "3") for gamma in _TABLE_GAMMAS]
    report.compare(_theorem_row(*case, cells) for case in cases)
    report.text(
        "The second row needs 4(1−γ)e^ε where 4γ(1−γ)e^ε is printed, and the denominator no γ: "
        "e^ε̂ = ½(γe^ε + √(γ²e^{2ε} + 4(1−γ)e^ε)). With it:"
    )
    report.table(
        ("ε", "γ", "ε̂ printed", "ε̂ corrected", "loss printed", "loss corrected", "ε + ln(1/γ)"),
        (_corrected_row(*case, cells) for case in cases if Decimal("0.5") <= case[1] < 1),
    )
    _draw_hats(report)


_TABLE_GAMMAS = ("0.05", "0.1", "0.2", "0.3", "0.4", "0.45", "0.5", "0.6", "0.75", "0.9", "1")


def _theorem_row(epsilon: Decimal, gamma: Decimal, cells: int) -> Row:
    what = f"ε = {epsilon}, γ = {gamma}: loss"
    loss = searched_loss(printed_hat(epsilon, gamma), gamma, cells)
    if gamma == 1:
        return Row(what, f"≤ {epsilon}", f"{loss:.4f}", loss <= epsilon, "the output is uniform, whatever ε̂ is")
    if loss > float(epsilon) * (1 + 1e-9):
        return Row(what, epsilon, f"{loss:.4f}", False, "unsafe: ε + ln(1/γ) is lost")
    tight = loss > 0.99 * float(epsilon)
    return Row(what, epsilon, f"{loss:.4f}", tight, "" if tight else "safe, but looser than it need be")


def _corrected_row(epsilon: Decimal, gamma: Decimal, cells: int) -> tuple[object, ...]:
    hats = printed_hat(epsilon, gamma), epsilon_hat(epsilon, gamma)
    losses = [f"{searched_loss(hat, gamma, cells):.4f}" for hat in hats]
    return epsilon, gamma, *(f"{hat:.4f}" for hat in hats), *losses, f"{float(epsilon) - math.log(gamma):.4f}"


def _draw_hats(report: Report) -> None:
    gammas = [Decimal(step) / 200 for step in range(1, 200)]
    with report.picture(
        "epsilon-hat", "ε̂ over γ at ε = 1: Table 1 as printed, and its second row corrected"
    ) as figure:
        axes = figure.add_subplot(xlabel="γ", ylabel="ε̂")
        upper = [gamma for gamma in gammas if 2 * gamma >= 1]
        printed = [float(printed_hat(Decimal(1), gamma)) for gamma in upper]
        axes.plot(
            [float(gamma) for gamma in upper], printed, "--", color="#c0392b", label="printed second row: unsafe"
        )
        ours = [float(epsilon_hat(Decimal(1), gamma)) for gamma in gammas]
        axes.plot([float(gamma) for gamma in gammas], ours, color="#2e6da4", label="first row; second row corrected")
        axes.plot([0.3], [float(epsilon_hat(Decimal(1), Decimal("0.3")))], "o", color="black", label="Figure 1")
        axes.legend(frameon=False)


# -- Figure 1 -------------------------------------------------------------------------------------------------


def figure_1(report: Report) -> None:
    report.section(
        "Figure 1: the densities",
        "The figure is lost; its text names t = 18, l = 10, u = 20, γ = 0.3, ε = 1.",
    )
    made = BOUNDED.calibrate(epsilon=1, gamma="0.3", **FIGURE_1)
    hat = made.parameters["epsilon_hat"]
    plain = STAIRCASE.calibrate(epsilon=1, gamma="0.3", **FIGURE_1)
    report.compare(_figure_1_rows(made, plain))
    with report.picture("densities", "Densities of the reports of t = 18 and t = 16, at γ = 0.3, ε = 1") as figure:
        axes = figure.add_subplot(xlabel="report y", ylabel="density")
        reports = [step / 50 for step in range(1501)]
        for value, colour in ((18, "#2e6da4"), (16, "#e08e0b")):
            densities = [made.density(y, value) for y in reports]
            axes.plot(reports, densities, color=colour, label=f"bounded, t = {value}, ε̂ = {hat:.4f}")
        axes.plot(reports, [plain.density(y, 18) for y in reports], "--", color="#777777", label="staircase, t = 18")
        axes.legend(frameon=False)


def _figure_1_rows(made: Any, plain: Any) -> Iterator[Row]:
    hat = made.parameters["epsilon_hat"]
    yield Row("ε̂", "about 0.7703", f"{hat:.6f}", f"{hat:.4f}" == "0.7703")
    mass = _mass_within(plain, 18)
    yield Row("the staircase leaves [10, 20]", "yes", f"with probability {1 - mass:.4f}", mass < 1)
    differs = made.density(15.5, 18) != made.density(13.5, 16)
    ours = f"density 2.5 below t: {made.density(15.5, 18):.5f} at t = 18, {made.density(13.5, 16):.5f} at t = 16"
    yield Row("the bounded density depends on t", "yes", ours, differs)
    loss = searched_loss(Decimal(1), Decimal("0.3"), 400)
    why = "f_{γ,ε} in definition 5 is a misprint for f_{γ,ε̂}, as â_t(γ, ε̂) and Theorem 6 show"
    yield Row("definition 5 with f_{γ,ε}: loss", 1, f"{loss:.4f}", loss <= 1, why)


def _mass_within(mechanism: Any, value: float) -> float:
    """The probability of a report in [10, 20]; the steps of γ = 0.3 end on whole cells of 0.01."""
    return math.fsum(mechanism.density(10 + (cell + 0.5) / 100, value) for cell in range(1000)) / 100


PARTS = (
    ("Theorem 6", theorem_6),
    ("Figure 1", figure_1),
    ("the heights", heights),
    ("Figure 2", figure_2),
    ("the experiment", experiment),
)
