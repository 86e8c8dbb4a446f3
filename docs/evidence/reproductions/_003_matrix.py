"""Kang, Lee and Hong, sections 3 and 4.1: privacy breaches, the γ-diagonal matrix, and Theorems 3.1, 3.2 and 4.1."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from _003_data import NORMAL, UNIFORM, Cell, RandomSubstitution
from report import Row

import ldp_budget

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from report import Report

MatrixSubstitution: Any = ldp_budget.mechanism("matrix-substitution")
CELLS = (Cell(UNIFORM, 50, 5, 50_000), Cell(UNIFORM, 50, 10, 50_000), Cell(UNIFORM, 100, 10, 50_000))


def sections_3_and_4_1(report: Report) -> None:
    report.section(
        "Sections 3 and 4.1: breaches, the matrix, Theorems 3.1, 3.2 and 4.1",
        "The claims are printed as formulas; the figures beside them are for ρ₁ = 0.05, ρ₂ = 0.5, and for the N and "
        "γ of the paper's experiments.",
    )
    report.compare([*breaches(), *condition_numbers(), *reconstruction(report.quick), *theorem_4_1()])


def posterior(prior: Fraction, amplification: Fraction) -> Fraction:
    """What a belief becomes by the most telling report of that amplification."""
    return prior * amplification / (1 - prior + prior * amplification)


def breaches() -> Iterator[Row]:
    low, high = Fraction("0.05"), Fraction("0.5")
    limit = high * (1 - low) / (low * (1 - high))
    chosen = RandomSubstitution.calibrate(rho1=0.05, rho2=0.5, domain_size=50)
    amplification, risen = chosen.describe()["amplification"], chosen.utility()["max_posterior"]
    yield Row(
        "Theorem 3.1: no breach while ρ₂(1−ρ₁)/(ρ₁(1−ρ₂)) > γ",
        f"posterior < {float(high)} for γ < {float(limit):g}",
        f"posterior 0.5 − {0.5 - risen:.1e} at γ = 19 − {19 - amplification:.1e}",
        risen < high,
    )
    reached = posterior(low, limit)
    yield Row(
        "Section 3.2.1: the same from γ ≤ ρ₂(1−ρ₁)/(ρ₁(1−ρ₂))",
        "posterior < 0.5 for γ ≤ 19",
        f"posterior {float(reached):g} at γ = 19",
        reached < high,
        "the inequality has to be strict: definition 3.1 calls it a breach when the posterior reaches ρ₂",
    )


# -- condition numbers ----------------------------------------------------------------------------------------


def gamma_diagonal(size: int, gamma: int) -> NDArray[np.float64]:
    return (np.ones((size, size)) + (gamma - 1) * np.eye(size)) / (gamma + size - 1)


def two_level(gamma: int) -> NDArray[np.float64]:
    """A symmetric 64×64 matrix with the entries γ and 1, times a constant, where a Hadamard matrix has -1 and 1."""
    block = np.ones((4, 4)) - 2 * np.eye(4)
    signs = np.kron(np.kron(block, block), block)
    weights = np.where(signs < 0, float(gamma), 1.0)
    return weights / float(weights[0].sum())


def as_mechanism(matrix: NDArray[np.float64]) -> Any:
    return MatrixSubstitution(matrix=[[repr(float(entry)) for entry in row] for row in matrix])


def condition_numbers() -> Iterator[Row]:
    for cell in CELLS:
        printed = 1 + cell.size / (cell.gamma - 1)
        ours = as_mechanism(gamma_diagonal(cell.size, cell.gamma)).utility()["condition_number"]
        yield Row(
            f"Section 3.2.1: condition number 1 + N/(γ−1), N = {cell.size}, γ = {cell.gamma}",
            printed,
            ours,
            math.isclose(printed, ours, rel_tol=1e-9),
        )
    diagonal, other = as_mechanism(gamma_diagonal(64, 5)), as_mechanism(two_level(5))
    least, found = (made.utility()["condition_number"] for made in (diagonal, other))
    loss = float(other.guarantee.loss()[0])
    yield Row(
        "Section 3.2.1: no symmetric matrix within γ has a smaller one, N = 64, γ = 5",
        least,
        f"{found:.6g}, at e^ε = {math.exp(loss):.6g}",
        found >= least - 1e-9,
        "the entries γ and 1 arranged as in a symmetric regular Hadamard matrix do better, also in total variance: "
        f"{other.total_variance():.4g} instead of {diagonal.total_variance():.4g} per user. The claim holds for "
        "positive definite matrices, whose trace bounds the least eigenvalue",
    )


# -- Theorem 3.2 and Theorem 4.1 ------------------------------------------------------------------------------


def reconstruction(quick: bool) -> Iterator[Row]:
    cell = Cell(NORMAL, 50, 10, 5_000 if quick else 50_000)
    reports = cell.repeated.randomize(cell.answers, rng=3)
    ours = cell.repeated.estimate(reports).counts
    printed = cell.printed_counts(cell.repeated.aggregate(reports))
    solved = as_mechanism(gamma_diagonal(50, 10)).estimate(reports).counts
    for what, counts in (("X̂ᵢ = (γ+N−1)/(γ−1)·Yᵢ − n/(γ−1)", printed), ("X̂ = M⁻¹Y", solved)):
        apart = float(np.abs(counts - ours).max())
        yield Row(f"Theorem 3.2: {what}, N = 50, γ = 10", "the estimate", f"{apart:.1e} users apart", apart < 1e-6)


def theorem_4_1() -> Iterator[Row]:
    for cell in CELLS:
        size, gamma = cell.size, cell.gamma
        printed = math.sqrt((size - 1) * (size + 2 * gamma - 2) * cell.users) / (gamma - 1)
        ours = math.sqrt(cell.users * cell.repeated.total_variance())
        yield Row(
            f"Theorem 4.1: σ of X̂ = √((N−1)(N+2γ−2)n)/(γ−1), N = {size}, γ = {gamma}, n = 50,000",
            printed,
            ours,
            math.isclose(printed, ours, rel_tol=1e-9),
        )
    flat, bell = (Cell(kind, 50, 5, 50_000) for kind in (UNIFORM, NORMAL))
    ratios = [cell.root_mean_square() / cell.bound for cell in (flat, bell)]
    yield Row(
        "Theorem 4.1: error ≤ √(N(N−1)(N+2γ−2))/((γ−1)√n), N = 50, γ = 5, n = 50,000",
        "error/bound ≤ 1",
        f"{ratios[0]:.4f} on uniform data, {ratios[1]:.4f} on normal",
        max(ratios) < 1 + 1e-9,
    )
    yield from orders()


def orders() -> Iterator[Row]:
    gamma, size = growth(50, 10, 50, 11), growth(50, 10, 51, 10)
    yield Row(
        "Section 4.1: σ of X̂ falls about as 1/√γ",
        "γ^−0.5",
        f"γ^{gamma:.2f} at N = 50, γ = 10".replace("-", "−"),
        abs(gamma + 0.5) < 0.1,
        "it falls about as 1/γ while γ is small beside N, as in all the experiments; as 1/√γ only for γ far above N",
    )
    yield Row("Section 4.1: σ of X̂ grows about as N", "N^1", f"N^{size:.2f} at N = 50, γ = 10", abs(size - 1) < 0.2)


def growth(size: int, gamma: int, size_after: int, gamma_after: int) -> float:
    """The exponent of N or of γ in σ, between two neighbouring values of it."""
    before, after = (
        math.sqrt(Cell(UNIFORM, n, g, 1).repeated.total_variance())
        for n, g in ((size, gamma), (size_after, gamma_after))
    )
    return math.log(after / before) / math.log(size_after / size * gamma_after / gamma)
