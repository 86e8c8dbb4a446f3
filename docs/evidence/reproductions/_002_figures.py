"""Jeong, Hong and Seo 2020, section 4: what its text says of the survey's error plots, Fig. 15 and 16."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from _002_errors import REPEATS, Errors, best_row, percent, repeats_of
from _002_survey import (
    EPSILONS,
    FIVE,
    FOUR,
    HASHES,
    SIZES,
    SKETCH,
    UNSCALED,
    WIDTH,
    exact_mean_square,
    held_by,
    largest_errors,
    sketch,
    sketch_counts,
    sketch_estimates,
)
from report import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure
    from report import Report

K = tuple(2**power for power in range(3, 11))


# -- Fig. 15 --------------------------------------------------------------------------------------------------


def hash_functions(report: Report) -> None:
    repeats = repeats_of(report)
    errors = {(users, epsilon): _errors_by_k(users, epsilon, repeats) for users in SIZES for epsilon in EPSILONS}
    report.section(
        "Fig. 15: the hash functions of CMS",
        f"Stated: CMS with m = {WIDTH}, k = 8, 16, …, 1,024, ε = 0.1, 0.5, 1, 2, 5, for 500, 1,000, 5,000 and "
        f"10,000 users; means of {REPEATS:,} repeats. The plot is lost; what its text reads from it is compared. "
        f"Ours: {repeats:,} repeats.",
    )
    report.compare(_k_rows(errors, repeats))
    report.text(
        "The exact variance of a count has a term Σ f′(f′−1)/(k(m−1)) over the counts f′ of the other answers, "
        "for users who share function and answer. It grows with n² and does not depend on ε, so k matters most "
        "where users are many and noise is small: the contrary of what is printed. With one fixed draw of the "
        "functions for all repeats it is no different, as their collisions then shift every repeat alike."
    )
    caption = "CMS, mean of the largest error over k; from above ε = 0.1, 0.5, 1, 2, 5"
    with report.picture("fig15", caption) as figure:
        for axes, users in _panels(figure, "k"):
            for epsilon in EPSILONS:
                axes.plot(K, 100 * errors[users, epsilon])


def _panels(figure: Figure, label: str) -> Iterator[tuple[Any, int]]:
    """Axes for every n, both logarithmic."""
    every = figure.subplots(1, len(SIZES), sharey=True)
    every[0].set_ylabel("mean largest error, %")
    for axes, users in zip(every, SIZES, strict=True):
        axes.set(title=f"n = {users:,}", xscale="log", yscale="log", xlabel=label)
        axes.minorticks_off()
        yield axes, users


def _errors_by_k(users: int, epsilon: str, repeats: int) -> Any:
    """The mean largest error for each of K."""
    held = held_by(users)
    rng = np.random.default_rng([15, users, EPSILONS.index(epsilon)])
    means = []
    for hashes in K:
        made = sketch(epsilon, hashes)
        estimates = sketch_estimates(made, sketch_counts(made, held, repeats, rng), users)
        means.append(largest_errors(estimates, held).mean())
    return np.array(means)


def _k_rows(errors: dict[tuple[int, str], Any], repeats: int) -> Iterator[Row]:
    for users in (500, 1000):
        ours = float(errors[users, "0.1"].mean())
        near = abs(ours - 1) < 0.05
        why = "" if near else "nothing stops the error at 100 %; the axis of the plot may have"
        yield Row(f"n = {users:,}, ε = 0.1: mean largest error", "100 %", percent(ours), near, why)
    yield _chance_row(errors[1000, "0.5"], repeats)
    (users, epsilon), spread = max(_spreads(errors, SIZES, EPSILONS[1:]), key=lambda found: found[1])
    why = "collisions add most where n and ε are large and k is small"
    where = f"n = {users:,}, ε = {epsilon}: {100 * spread:.2f} points"
    yield Row(
        "where k changes the error most (ε > 0.1)",
        "n = 1,000, ε = 0.5: 0.48 points",
        where,
        (users, epsilon) == (1000, "0.5"),
        why,
    )
    yield _small_effect(errors)
    last = max(_growth(*pair, 1024, 512) for pair in itertools.product(SIZES, EPSILONS))
    said = f"the exact rms error is up to {percent(last)} larger"
    yield Row("k = 512 in place of 1,024", "no great effect", said, last < 0.1, "" if last < 0.1 else "it is")


def _growth(users: int, epsilon: str, hashes: int, fewer: int) -> float:
    """By how much the root mean square of the error is larger with fewer hash functions."""
    many, few = (exact_mean_square(SKETCH, users, epsilon, k) for k in (hashes, fewer))
    return float((few / many) ** 0.5 - 1)


def _chance_row(means: Any, repeats: int) -> Row:
    """The change from k = 256 to 512 for n = 1,000 and ε = 0.5, from the means for each of K."""
    at = K.index(256)
    # The largest of five normal errors spreads by 0.36 of its mean.
    errors = [0.36 * float(means[at]) * (2 / times) ** 0.5 for times in (repeats, REPEATS)]
    gap, error, printed_error = (100 * value for value in (abs(float(means[at + 1] - means[at])), *errors))
    exact = 100 * float(means[at]) * _growth(1000, "0.5", 512, 256)
    why = (
        f"chance: two means of {REPEATS:,} repeats are {printed_error:.2f} points apart (one standard error) "
        f"where k does nothing, and by the exact variances it does {exact:.4f} points"
    )
    what = "n = 1,000, ε = 0.5: from k = 256 to 512 the error changes by"
    return Row(what, "0.48 points", f"{gap:.2f} ± {error:.2f} points", exact > 0.4, why)


def _spreads(
    errors: dict[tuple[int, str], Any], sizes: tuple[int, ...], epsilons: tuple[str, ...]
) -> Iterator[tuple[tuple[int, str], float]]:
    for pair in itertools.product(sizes, epsilons):
        yield pair, float(errors[pair].max() - errors[pair].min())


def _small_effect(errors: dict[tuple[int, str], Any]) -> Row:
    found = [100 * spread for _, spread in _spreads(errors, SIZES[2:], EPSILONS[2:])]
    several = {pair: means[K.index(256) :] for pair, means in errors.items()}
    from_256 = max(100 * spread for _, spread in _spreads(several, SIZES[2:], EPSILONS[2:]))
    why = f"answers collide more with fewer functions; from k = 256 to 1,024 it is at most {from_256:.2f}"
    what = "n ≥ 5,000, ε ≥ 1: from k = 8 to 1,024 the error changes by"
    ours = f"{min(found):.2f} to {max(found):.2f} points"
    return Row(what, "at most 0.05 points", ours, max(found) <= 0.05, why)


# -- Fig. 16 --------------------------------------------------------------------------------------------------


def error_plots(report: Report) -> None:
    errors = Errors(report)
    report.section(
        "Fig. 16: CMS, 4BitFlip and 5BitFlip",
        f"Stated: CMS with k = {HASHES}, m = {WIDTH} beside dBitFlip with d = 4 and 5, means of {REPEATS:,} "
        f"repeats. The plot is lost; what its text reads from it is compared. Ours are means of {errors.runs} "
        f"runs of {errors.repeats:,} repeats.",
    )
    caption = "Mean of the largest error over ε; dashed: 4BitFlip if the factor k/d is left out"
    with report.picture("fig16", caption) as figure:
        for axes, users in _panels(figure, "ε"):
            for name, style in ((SKETCH, "C0-"), (FOUR, "C1-"), (FIVE, "C2-"), (UNSCALED, "C1--")):
                ours = [100 * errors(name, users, epsilon) for epsilon in EPSILONS]
                axes.plot(list(map(float, EPSILONS)), ours, style, label=name)
        figure.axes[0].legend(frameon=False, fontsize=7)
    report.compare(_plot_rows(errors))


def _plot_rows(errors: Errors) -> Iterator[Row]:
    for users in (500, 1000):
        yield best_row("Fig. 16", errors, users, "0.1", FOUR)
    least = min(errors(name, users, "0.1") for name in (FIVE, SKETCH) for users in (500, 1000))
    yield Row("n ≤ 1,000, ε = 0.1: error", "90 % or more", f"{percent(least)} or more", least >= 0.9)
    four, dropped = errors(FOUR, 1000, "0.5"), errors(UNSCALED, 1000, "0.5")
    why = f"without the factor k/d it would be {percent(dropped)}; 5BitFlip has {percent(errors(FIVE, 1000, '0.5'))}"
    yield Row("4BitFlip at ε = 0.5 keeps an error of 20 % (n = 1,000)", "20 %", percent(four), four <= 0.2, why)
    yield _small_survey_row(errors)
    worst = max(errors(name, 5000, "1") for name in (FIVE, FOUR, SKETCH))
    yield Row("n = 5,000, ε = 1: error of all three", "10 % or less", f"{percent(worst)} or less", worst <= 0.1)
    yield from _large_survey_rows(errors)


def _small_survey_row(errors: Errors) -> Row:
    pairs = [(users, epsilon) for users in (500, 1000) for epsilon in ("2", "5")]

    def mean(*names: str) -> float:
        return float(np.mean([errors(name, *pair) for name in names for pair in pairs]))

    both = mean(FIVE, SKETCH)
    why = f"4BitFlip, which is left out there, has {percent(mean(FOUR))}, and without k/d {percent(mean(UNSCALED))}"
    what = "n ≤ 1,000, ε = 2 and 5: mean error of CMS and 5BitFlip"
    return Row(what, "4 %", percent(both), abs(both - 0.04) < 0.005, why)


def _large_survey_rows(errors: Errors) -> Iterator[Row]:
    pairs = itertools.product((FIVE, FOUR, SKETCH), EPSILONS)
    falls = [errors(name, 10_000, epsilon) / errors(name, 5000, epsilon) for name, epsilon in pairs]
    said = f"to {min(falls):.2f} – {max(falls):.2f} of it"
    yield Row("from 5,000 to 10,000 users the error falls", "everywhere", said, max(falls) < 1)
    ours = [errors(name, 10_000, "5") for name in (FIVE, SKETCH)]
    said = " and ".join(map(percent, ours))
    yield Row("n = 10,000, ε = 5: 5BitFlip and CMS", "below 1 %", said, max(ours) < 0.01)
    apart = 100 * float(np.mean([errors(FIVE, 10_000, epsilon) * _behind(epsilon) for epsilon in EPSILONS]))
    why = f"CMS has {percent(_behind('2'))} more at ε = 2 and {percent(_behind('5'))} more at ε = 5, of small errors"
    what = "n = 10,000: CMS and 5BitFlip are apart, in the mean over ε, by"
    yield Row(what, "2 points", f"{apart:.2f} points", abs(apart - 2) < 0.5, why)


def _behind(epsilon: str) -> float:
    """By how much the exact rms error of CMS is larger than that of 5BitFlip, for 10,000 users."""
    cms, five = (exact_mean_square(name, 10_000, epsilon) for name in (SKETCH, FIVE))
    return float((cms / five) ** 0.5 - 1)
