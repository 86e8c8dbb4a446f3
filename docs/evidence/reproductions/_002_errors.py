"""Jeong, Hong and Seo, section 4: the mean largest errors of the survey's mechanisms, and which of these is least."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from _002_survey import (
    FIVE,
    FOUR,
    SKETCH,
    client_estimates,
    exact_mean_square,
    held_by,
    largest_errors,
    mean_errors,
)
from report import Row

if TYPE_CHECKING:
    from report import Report

REPEATS, QUICK_REPEATS = 3000, 100
RUNS, QUICK_RUNS = 10, 2
CLIENT_REPEATS = 1000
"""Surveys in which every client draws its report, at most: most of the time goes into them."""


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def repeats_of(report: Report) -> int:
    return QUICK_REPEATS if report.quick else REPEATS


class Errors:
    """Mean largest errors, by mechanism, n and ε."""

    def __init__(self, report: Report) -> None:
        self.repeats, self.runs = repeats_of(report), QUICK_RUNS if report.quick else RUNS

    def each(self, users: int, epsilon: str) -> dict[str, Any]:
        return mean_errors(users, epsilon, self.repeats, self.runs)

    def __call__(self, name: str, users: int, epsilon: str) -> float:
        return float(self.each(users, epsilon)[name].mean())

    def firsts(self, users: int, epsilon: str, names: tuple[str, ...]) -> dict[str, int]:
        """In how many runs each of the mechanisms had the least."""
        found = self.each(users, epsilon)
        first = np.argmin([found[name] for name in names], axis=0)
        return {name: int((first == place).sum()) for place, name in enumerate(names)}

    def shown(self, users: int, epsilon: str, names: tuple[str, ...]) -> dict[str, str]:
        """The means, and in brackets in how many runs each was least."""
        firsts = self.firsts(users, epsilon, names)
        return {name: f"{percent(self(name, users, epsilon))} ({firsts[name]})" for name in names}


def best_row(place: str, errors: Errors, users: int, epsilon: str, printed: str) -> Row:
    """The mechanism printed as best, beside all three in the order of their exact variances."""
    names = (FIVE, FOUR, SKETCH)
    ranking = sorted(names, key=lambda name: exact_mean_square(name, users, epsilon))
    shown = errors.shown(users, epsilon, names)
    said = ", ".join(f"{name} {shown[name]}" for name in ranking)
    same = ranking[0] == printed
    why = "" if same else _why_not(users, epsilon, printed, ranking[0])
    return Row(f"{place}, n = {users:,}, ε = {epsilon}: least", printed, said, same, why)


def _why_not(users: int, epsilon: str, printed: str, best: str) -> str:
    ratio = exact_mean_square(printed, users, epsilon) / exact_mean_square(best, users, epsilon)
    why = f"its exact variance is {percent(ratio - 1)} larger than that of {best}"
    return f"{why}; see below for the factor k/d" if printed == FOUR else why


# -- counts in place of clients -------------------------------------------------------------------------------


def simulation(report: Report) -> None:
    repeats = min(repeats_of(report), CLIENT_REPEATS)
    report.section(
        "How the surveys are repeated",
        f"Fig. 15, Fig. 16 and Table 2 are means of {REPEATS:,} repeats of surveys with up to 10,000 users. Here "
        "the clients are not run one by one: the counts that the server reads are drawn, as sums of binomials, "
        "from the very distribution that they have given the users' answers, and are estimated by the library. "
        f"The table sets that beside surveys in which every client draws its report ({repeats:,} with each "
        "mechanism, 500 users, ε = 1): the mean of the largest error, and the root mean square of the error in a "
        "share beside the exact one.",
        "The error is the paper's: the largest |estimate − true|/n over the five answers. The answers are "
        "uniform, drawn once for each n, and the same for every mechanism and ε. A CMS draws its hash functions "
        "anew in every repeat, as step 1 of Fig. 4 has it.",
    )
    errors = Errors(report)
    header = (
        "mechanism",
        "largest error, clients",
        "largest error, counts drawn",
        "apart by",
        "rms, clients",
        "exact",
    )
    report.table(header, [_simulation_row(errors, name, repeats) for name in (FIVE, FOUR, SKETCH)])


def _simulation_row(errors: Errors, name: str, repeats: int) -> tuple[str, ...]:
    held = held_by(500)
    estimates = client_estimates(name, 500, "1", repeats)
    clients, drawn = largest_errors(estimates, held), errors(name, 500, "1")
    error = clients.std() * np.sqrt(1 / repeats + 1 / errors.runs / errors.repeats)
    apart = f"{(clients.mean() - drawn) / error:+.1f} standard errors"
    squares = (((estimates - held) ** 2).mean() / 500**2, exact_mean_square(name, 500, "1"))
    rms = [percent(square**0.5) for square in squares]
    return (name, percent(clients.mean()), percent(drawn), apart, *rms)
