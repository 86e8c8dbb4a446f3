"""Kang, Lee and Hong, section 5: l draws instead of one, what they give away, are worth and cost."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from _003_data import NORMAL, UNBIASED, Cell, RandomSubstitution, algorithm_2
from _003_matrix import posterior
from report import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _003_data import Floats
    from report import Report

CELLS = (Cell(NORMAL, 50, 5, 50_000, 4), Cell(NORMAL, 50, 10, 50_000, 4), Cell(NORMAL, 100, 10, 50_000, 4))


def section_5(report: Report) -> None:
    report.section(
        "Section 5: l draws",
        "No figures are printed here; the claims are tried at the N, γ and l of the experiments. Algorithm 2 was "
        "also run to the letter, drawing again until the l values differ; the library draws the whole set at once.",
    )
    report.compare(
        [*loss(), *duplicates(report.quick), *bias_and_variance(report.quick), *cost()],
    )
    same_loss(report)


def loss() -> Iterator[Row]:
    for cell in CELLS:
        where = f"N = {cell.size}, γ = {cell.gamma}, l = 4"
        independent = cell.repeated.describe()["amplification"]
        agrees = math.isclose(independent, cell.gamma**4, rel_tol=1e-9)
        yield Row(f"Section 5.1: l independent draws amplify by γ^l, {where}", cell.gamma**4, independent, agrees)
        shown = cell.distinct.describe()["amplification"]
        yield Row(
            f"Algorithm 2 keeps the amplification γ, {where}",
            cell.gamma,
            f"{shown:.6g}; {ordered(cell):.6g} if the order is seen",
            shown <= cell.gamma,
            "how often a draw is repeated depends on the true answer, so the set says more than one draw",
        )
    cell = CELLS[1]
    shown, seen, independent = (
        float(posterior(Fraction("0.05"), Fraction(amplification)))
        for amplification in (cell.distinct.describe()["amplification"], ordered(cell), cell.gamma**4)
    )
    promised = float(posterior(Fraction("0.05"), Fraction(cell.gamma)))
    yield Row(
        "Algorithm 2: a belief of 0.05 rises no further than by one draw, N = 50, γ = 10, l = 4",
        promised,
        f"{shown:.6g}; {seen:.6g} if the order is seen; {independent:.4g} for independent draws",
        shown <= promised,
        "the same amplification, as a belief: the (ρ₁, ρ₂) that one draw was chosen for are broken",
    )


def ordered(cell: Cell) -> float:
    made = RandomSubstitution(
        gamma=cell.gamma, domain_size=cell.size, draws=cell.draws, sampling="distinct", ordered=True
    )
    return float(made.describe()["amplification"])


def duplicates(quick: bool) -> Iterator[Row]:
    for cell in CELLS:
        sent = np.sort(cell.repeated.randomize(cell.answers[:: 10 if quick else 1], rng=5), axis=1)
        counted = (sent[:, 1:] == sent[:, :-1]).any(axis=1)
        share, noise = float(counted.mean()), float(counted.std()) / math.sqrt(len(sent))
        printed = cell.repeated.utility()["duplicate_probability"]
        yield Row(
            f"Theorem 5.1: P[s ≥ 2], N = {cell.size}, γ = {cell.gamma}, l = 4",
            printed,
            f"{share:.4f} ± {noise:.4f} counted",
            abs(share - printed) < 4 * noise,
            "the probability of any duplicate, not only of the true answer",
        )


def bias_and_variance(quick: bool) -> Iterator[Row]:
    for cell in CELLS:
        slopes = measured_slopes(cell, 2 if quick else 40)
        noise = float(slopes.std(ddof=1)) / math.sqrt(len(slopes))
        yield Row(
            f"Section 5.1: the mean of X̂*/l follows X with slope 1, N = {cell.size}, γ = {cell.gamma}, l = 4",
            1,
            f"{cell.slope:.4f}; {slopes.mean():.3f} ± {noise:.3f} by the letter of Algorithm 2",
            cell.slope > 0.999,
            "biased towards uniform: drawing again takes the true answer's excess away",
        )
    cell = CELLS[0]
    single = Cell(cell.kind, cell.size, cell.gamma, cell.users).repeated.total_variance()
    four = cell.repeated.total_variance()
    yield Row(
        "Theorem 5.2: Var(X̂*/l) = Var(X̂)/l, independent draws, N = 50, γ = 5, l = 4",
        "ratio 0.25",
        f"ratio {four / single:.6g}",
        math.isclose(four * 4, single, rel_tol=1e-9),
    )
    around, error = cell.slope**2 * cell.distinct.total_variance() / single, mean_square_ratio(cell)
    yield worse()
    yield Row(
        "Theorem 5.2 after Algorithm 2, on the normal data of n = 50,000",
        "ratio 0.25",
        f"variance {around:.4f}, with the bias {error:.4f}; unbiased {cell.distinct.total_variance() / single:.4f}",
        abs(error - 0.25) < 0.005,
        "distinct draws are not independent: the variance is smaller than printed, the mean square error larger",
    )


def worse() -> Row:
    """Where the bias outweighs what four draws gain: the data of Figure 2."""
    four = Cell(NORMAL, 50, 10, 50_000, 4)
    single, shown = Cell(NORMAL, 50, 10, 50_000).root_mean_square(), four.root_mean_square()
    return Row(
        "Section 5: l = 4 halves the error, on the data of Figure 2 (N = 50, γ = 10, n = 50,000)",
        f"{single:.4f} to {single / 2:.4f}",
        f"{single:.4f} to {shown:.4f}; unbiased {four.root_mean_square(UNBIASED):.4f}",
        shown < 0.55 * single,
        f"the bias alone is {four.bias:.4f}, more than the whole error of one draw",
    )


def mean_square_ratio(cell: Cell) -> float:
    one = Cell(cell.kind, cell.size, cell.gamma, cell.users)
    return (cell.root_mean_square() / one.root_mean_square()) ** 2


def measured_slopes(cell: Cell, runs: int) -> Floats:
    """The slope of X̂*/l over X, fitted to each of some runs of Algorithm 2."""
    centred = cell.counts - cell.users / cell.size
    found = []
    for run in range(runs):
        sets, _ = algorithm_2(cell, seed=cell.seed(run) + 10 * cell.gamma)
        support = np.bincount(sets.reshape(-1), minlength=cell.size)
        scale = (cell.gamma + cell.size - 1) / (cell.gamma - 1) / cell.draws
        found.append(scale * float(support @ centred) / float(centred @ centred))
    return np.array(found)


def cost() -> Iterator[Row]:
    for size, gamma in ((50, 5), (50, 10), (100, 10)):
        draws = size // 10
        made = RandomSubstitution(gamma=gamma, domain_size=size, draws=draws, sampling="distinct")
        each = made.utility()["expected_draws"] / draws
        yield Row(
            f"Section 5.3: about l times the work while l ≤ N/10, N = {size}, γ = {gamma}, l = {draws}",
            "l times",
            f"{each:.4f}·l",
            each < 1.1,
        )


def same_loss(report: Report) -> None:
    report.text(
        "What the abstract promises, any accuracy at the same privacy, can be put to the test by holding the loss of "
        "the whole report at ε = ln 10, the loss of one draw with γ = 10 (N = 50, n = 50,000):"
    )
    rows = [(draws, error(draws, "replacement"), error(draws, "distinct")) for draws in (1, 2, 4, 5, 8, 16)]
    report.table(("l", "bound of the error, independent draws", "bound, a set, unbiased"), rows)
    first, best = rows[0][2], min(rows, key=lambda row: row[2])
    report.compare(
        [
            Row(
                "Abstract and conclusion: l draws raise the accuracy as far as wanted at the privacy of one",
                f"bound {first / 2:.4f} at l = 4",
                f"bound {error(4, 'distinct'):.4f} at l = 4, least {best[2]:.4f} at l = {best[0]}",
                error(4, "distinct") <= first / 2 * 1.01,
                "at the same loss independent draws make the error larger, and a set is best near l = N/(e^ε+1) and "
                "worse beyond (subset selection)",
            )
        ]
    )


def error(draws: int, sampling: str) -> float:
    """The bound of Theorem 4.1 at ε = ln 10 of all draws together."""
    made: Any = RandomSubstitution(epsilon=math.log(10), domain_size=50, draws=draws, sampling=sampling)
    return float(made.utility(50_000)["relative_error_bound"])
