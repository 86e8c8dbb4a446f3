"""Kim, Park and Lee's numerical result: the mean squared error of the bounded mechanisms on heights."""

from __future__ import annotations

import functools
import math
import random
from typing import TYPE_CHECKING, Any

from report import Row

import ldp_budget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray
    from report import Report

    Prior = tuple[NDArray[np.float64], NDArray[np.int64]]

BOUNDED: Any = ldp_budget.mechanism("bounded-staircase")
LAPLACE: Any = ldp_budget.mechanism("bounded-laplace")

HEIGHTS = {"lower": "1.67", "upper": "1.85"}
USERS = 100_000
GAMMAS = ("0.16", "0.17", "0.18", "0.19", "0.2", "0.21", "0.22")
EPSILONS = ("0.2", "0.4", "0.6", "0.8", *(f"{step / 2:g}" for step in range(2, 21)))


@functools.cache
def drawn_heights() -> NDArray[np.float64]:
    """100,000 draws from N(1.758, 0.0538)."""
    import numpy as np

    draw = random.Random(2013)
    return np.array([draw.normalvariate(1.758, 0.0538) for _ in range(USERS)])


@functools.cache
def clipped() -> Prior:
    """The draws with what lies outside [l, u] moved to the nearer end, to the millimetre, as heights are."""
    import numpy as np

    return np.unique(drawn_heights().clip(1.67, 1.85).round(3), return_counts=True)


@functools.cache
def truncated() -> Prior:
    """The draws without those outside [l, u], to the millimetre."""
    import numpy as np

    heights = drawn_heights()
    return np.unique(heights[(heights >= 1.67) & (heights <= 1.85)].round(3), return_counts=True)


def mse(mechanism: Any, prior: Prior) -> float:
    return float(mechanism.prior_error(prior)[1])


def heights(report: Report) -> None:
    report.section(
        "The heights",
        "Printed: 100,000 random values from the normal distribution with mean 1.758 m and standard deviation "
        "0.0538, whose least and largest, 1.67 m and 1.85 m, serve as l and u.",
    )
    values = drawn_heights()
    below, above = float((values < 1.67).mean()), float((values > 1.85).mean())
    why = f"{below:.1%} of the draws are below 1.67 and {above:.1%} above 1.85; what became of those is not said"
    rows = [
        Row("mean", 1.758, f"{values.mean():.4f}", abs(float(values.mean()) - 1.758) < 5e-4),
        Row("standard deviation", 0.0538, f"{values.std():.4f}", abs(float(values.std()) - 0.0538) < 5e-4),
        Row("least value", 1.67, f"{values.min():.2f}", f"{values.min():.2f}" == "1.67", why),
        Row("largest value", 1.85, f"{values.max():.2f}", f"{values.max():.2f}" == "1.85", why),
    ]
    report.compare(rows)
    report.text(
        "From here on values outside [1.67, 1.85] are moved to the nearer end. That this is what the paper did, "
        "and did not leave them out, shows in the γ of Figure 2."
    )


def figure_2(report: Report) -> None:
    report.section(
        "Figure 2: mean squared error on the heights",
        "The figure is lost. Its text: for ε from 0.2 to 10 and γ from 0.16 to 0.22 the bounded staircase has a "
        "smaller MSE than bounded Laplace. Ours are the exact errors of the mechanisms averaged over the 100,000 "
        "heights; bounded Laplace has the scale (u − l)/ε, the smallest that is ε-LDP.",
    )
    report.compare(_figure_2_rows())
    other = winning_gammas(truncated)
    report.text(
        f"With the values outside left out, the winning γ are {_ends(other)}, in hundredths {_hundredths(other)}: "
        "the printed ends are those of values moved to the ends of the range."
    )
    chosen = ("0.2", "0.4", "1", "2", "3", "4", "6", "8", "10")
    report.text("The MSE in 10⁻⁴ m². The last column is the MSE of reporting 1.76 m whatever the height is.")
    report.table(("ε", "bounded Laplace", *(f"γ = {g}" for g in GAMMAS[::3]), "constant"), map(_mse_row, chosen))
    with report.picture("heights", "MSE on the heights over ε, values outside moved to the nearer end") as figure:
        axes = figure.add_subplot(xlabel="ε", ylabel="MSE, m²", yscale="log")
        ticks = [float(epsilon) for epsilon in EPSILONS]
        axes.plot(ticks, [laplace_mse(epsilon) for epsilon in EPSILONS], color="black", label="bounded Laplace")
        for gamma in GAMMAS[::3]:
            axes.plot(ticks, [staircase_mse(e, gamma) for e in EPSILONS], label=f"bounded staircase, γ = {gamma}")
        axes.axhline(constant_mse(), linestyle="--", color="#777777", label="constant 1.76 m")
        axes.legend(frameon=False)


@functools.cache
def laplace_mse(epsilon: str, prior: Callable[[], Prior] = clipped) -> float:
    return mse(LAPLACE.calibrate(epsilon=epsilon, **HEIGHTS), prior())


@functools.cache
def staircase_mse(epsilon: str, gamma: str, prior: Callable[[], Prior] = clipped) -> float:
    return mse(BOUNDED.calibrate(epsilon=epsilon, gamma=gamma, **HEIGHTS), prior())


def constant_mse() -> float:
    points, counts = clipped()
    return float(((points - 1.76) ** 2 * counts).sum() / counts.sum())


def _figure_2_rows() -> Iterator[Row]:
    ratios = {(e, g): staircase_mse(e, g) / laplace_mse(e) for e in EPSILONS for g in GAMMAS}
    wins, cases = sum(ratio < 1 for ratio in ratios.values()), len(ratios)
    worst = max(ratios, key=ratios.__getitem__)
    ours = f"in {wins} of {cases} cases; closest {ratios[worst]:.4f} at ε = {worst[0]}, γ = {worst[1]}"
    why = "" if wins == cases else "not in all cases"
    yield Row("γ from 0.16 to 0.22, ε from 0.2 to 10: MSE below bounded Laplace's", "yes", ours, wins == cases, why)
    interval = winning_gammas(clipped)
    ours = f"{_ends(interval)}; in hundredths {_hundredths(interval)}"
    same = _hundredths(interval) == "0.16 to 0.22"
    why = "the lower end is set at ε = 0.2, the upper one at ε = 10"
    yield Row("all γ with a smaller MSE at every ε from 0.2 to 10", "0.16 to 0.22", ours, same, why)
    least = min(EPSILONS, key=lambda e: ratios[e, "0.19"])
    gain = 1 - ratios[least, "0.19"]
    ours = f"by up to {gain:.0%}, at ε = {least}, γ = 0.19"
    yield Row("some γ improves the trade-off", "yes", ours, gain > 0, "" if gain > 0 else "none found")


def _ends(interval: tuple[float, float]) -> str:
    return f"{interval[0]:.4f} to {interval[1]:.4f}"


def _hundredths(interval: tuple[float, float]) -> str:
    """The interval rounded inwards."""
    low, high = interval
    return f"{math.ceil(100 * low) / 100} to {math.floor(100 * high) / 100}"


def winning_gammas(prior: Callable[[], Prior]) -> tuple[float, float]:
    """The ends of the γ around 0.19 that have a smaller MSE than bounded Laplace at every ε of the figure."""
    return _winning_end(0.02, prior), _winning_end(0.48, prior)


def _winning_end(end: float, prior: Callable[[], Prior]) -> float:
    """How far from γ = 0.19 towards `end` the staircase wins at every ε."""

    for epsilon in EPSILONS:
        if not _wins(epsilon, end, prior):
            end = _last_winning(epsilon, end, prior)
    return end


def _last_winning(epsilon: str, outside: float, prior: Callable[[], Prior]) -> float:
    inside = 0.19
    while abs(outside - inside) > 1e-5:
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if _wins(epsilon, middle, prior) else (inside, middle)
    return inside


def _wins(epsilon: str, gamma: float, prior: Callable[[], Prior]) -> bool:
    return staircase_mse(epsilon, f"{gamma:.6f}", prior) < laplace_mse(epsilon, prior)


def _mse_row(epsilon: str) -> tuple[object, ...]:
    errors = [laplace_mse(epsilon), *(staircase_mse(epsilon, gamma) for gamma in GAMMAS[::3]), constant_mse()]
    return epsilon, *(f"{error * 1e4:.3f}" for error in errors)


def experiment(report: Report) -> None:
    users = 10_000 if report.quick else USERS
    report.section(
        "The experiment itself",
        f"The same by the random reports of {users} users, drawn by the library's clients; MSE in 10⁻⁴ m² with its "
        "standard error. At ε = 0.2, γ = 0.16 the two mechanisms differ by less than one experiment can tell.",
    )
    values = drawn_heights()[:users].clip(1.67, 1.85)
    cases = [(epsilon, gamma) for epsilon in ("0.2", "1", "2", "5", "10") for gamma in ("0.16", "0.22")]
    rows = [_measured(*case, values, seed) for seed, case in enumerate(cases)]
    report.table(("ε", "γ", "MSE, bounded staircase", "MSE, bounded Laplace", "ratio", "exact ratio"), rows)
    report.text(
        "Reports of both are pulled towards 1.76 m. What a server makes of the reports, their mean, therefore does "
        "not converge to the mean of the heights, and for ε ≤ 1 the constant 1.76 m has a smaller MSE than either:"
    )
    report.table(
        ("ε", "mechanism", "mean report at 1.67 m", "error of the mean height", "MSE over that of 1.76"), _biases()
    )


def _measured(epsilon: str, gamma: str, values: NDArray[np.float64], seed: int) -> tuple[object, ...]:
    staircase = BOUNDED.calibrate(epsilon=epsilon, gamma=gamma, **HEIGHTS)
    laplace = LAPLACE.calibrate(epsilon=epsilon, **HEIGHTS)
    (ours, error), (rival, rival_error) = (
        _measured_mse(made, values, seed) for made, seed in ((staircase, 2 * seed), (laplace, 2 * seed + 1))
    )
    exact = staircase_mse(epsilon, gamma) / laplace_mse(epsilon)
    shown = f"{ours:.3f} ± {error:.3f}", f"{rival:.3f} ± {rival_error:.3f}"
    return epsilon, gamma, *shown, f"{ours / rival:.4f}", f"{exact:.4f}"


def _measured_mse(made: Any, values: NDArray[np.float64], seed: int) -> tuple[float, float]:
    """The MSE of one report of each user, and its standard error, in 10⁻⁴ m²."""
    squares = (made.randomize(values, rng=seed) - values) ** 2 * 1e4
    return float(squares.mean()), float(squares.std() / len(squares) ** 0.5)


def _biases() -> Iterator[tuple[object, ...]]:
    for epsilon in ("0.2", "1", "3", "10"):
        staircase = BOUNDED.calibrate(epsilon=epsilon, gamma="0.19", **HEIGHTS)
        for made in (staircase, LAPLACE.calibrate(epsilon=epsilon, **HEIGHTS)):
            at_edge, _ = made.error_at(1.67)
            bias, error = made.prior_error(clipped())
            yield epsilon, made.name, f"{1.67 + at_edge:.4f}", f"{bias:+.5f}", f"{error / constant_mse():.3f}"
