"""trvoid: unary encoding, symmetric (SUE) and optimized (OUE). It prints formulas and no figures."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

from report import Row

import ldp_budget
from ldp_budget.guarantees.dominating_pairs import dominating_pair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from report import Report

TITLE = "trvoid: unary encoding"

UNARY: Any = ldp_budget.mechanism("unary-encoding")
SUE: Any = ldp_budget.mechanism("sue")
OUE: Any = ldp_budget.mechanism("oue")

USERS = 400


# -- as printed -----------------------------------------------------------------------------------------------


def printed_loss(p: float, q: float) -> float:
    return math.log(p * (1 - q) / ((1 - p) * q))


def printed_variance(p: float, q: float) -> float:
    """Var*/n, the first form."""
    return q * (1 - q) / (p - q) ** 2


def printed_variance_in_q(epsilon: float, q: float) -> float:
    """Var*/n, the second form."""
    growth = math.exp(epsilon) - 1
    return (growth * q + 1) ** 2 / (growth**2 * (1 - q) * q)


def printed_sue(epsilon: float) -> tuple[float, float]:
    root = math.exp(epsilon / 2)
    return root / (root + 1), 1 / (root + 1)


def printed_oue(epsilon: float) -> tuple[float, float]:
    return 0.5, 1 / (math.exp(epsilon) + 1)


# -- the parts ------------------------------------------------------------------------------------------------


def loss(report: Report) -> None:
    report.section(
        "The privacy loss of p and q",
        "Printed: ε = ln( p(1−q) / ((1−p)q) ). Ours is the worst ratio over all eight reports and all pairs of the "
        "three fruits of the post's example, each report's probability multiplied out in whole fractions.",
    )
    report.compare(_loss_row(*pair) for pair in (("0.75", "0.25"), ("0.5", "0.25"), ("0.9", "0.3"), ("0.6", "0.05")))


def _loss_row(p: str, q: str) -> Row:
    printed, ours = printed_loss(float(p), float(q)), enumerated_loss(Fraction(p), Fraction(q))
    declared = float(UNARY(p=p, q=q, domain_size=3).guarantee.epsilon)
    same = math.isclose(printed, ours, rel_tol=1e-12) and math.isclose(declared, ours, rel_tol=1e-12)
    return Row(f"ε of p = {p}, q = {q}", printed, ours, same, "" if same else "the two differ")


def enumerated_loss(p: Fraction, q: Fraction) -> float:
    """ε by enumeration of the reports [b₁, b₂, b₃] of the answers 1, 2 and 3."""
    reports = list(product((0, 1), repeat=3))
    rows = [[_probability(report, answer, p, q) for report in reports] for answer in range(3)]
    epsilon, _ = dominating_pair(rows).loss()
    return float(epsilon)


def _probability(report: tuple[int, ...], answer: int, p: Fraction, q: Fraction) -> Fraction:
    ones = (p if place == answer else q for place in range(len(report)))
    return math.prod((one if bit else 1 - one for one, bit in zip(ones, report, strict=True)), start=Fraction(1))


def probabilities(report: Report) -> None:
    report.section(
        "p and q of SUE and OUE",
        "Printed: p = e^{ε/2}/(e^{ε/2}+1), q = 1/(e^{ε/2}+1) for SUE; p = ½, q = 1/(e^ε+1) for OUE. Ours are what "
        "the library calibrates, p rounded down and q rounded up.",
    )
    report.compare(
        _probability_row(encoding, printed, epsilon)
        for encoding, printed in ((SUE, printed_sue), (OUE, printed_oue))
        for epsilon in (0.5, 1.0, 2.0, 4.0)
    )


def _probability_row(encoding: Any, printed: Any, epsilon: float) -> Row:
    p, q = printed(epsilon)
    ours = encoding.calibrate(epsilon=epsilon, domain_size=3).parameters
    same = math.isclose(p, ours["p"], rel_tol=1e-12) and math.isclose(q, ours["q"], rel_tol=1e-12)
    name = encoding.name.upper()
    return Row(
        f"{name}, ε = {epsilon:g}: p, q", _two(p, q), _two(ours["p"], ours["q"]), same, "" if same else "differ"
    )


def _two(p: float, q: float) -> str:
    return f"{p:.6g}, {q:.6g}"


def optimum(report: Report) -> None:
    report.section(
        "Var* and its minimum",
        "Printed: Var* = nq(1−q)/(p−q)², the same written in ε and q, and that it is least at p = ½, q = 1/(e^ε+1). "
        "Ours is the least of 999 encodings with the same ε and q = 0.001, 0.002, …, so q is known to three places.",
    )
    curves = {epsilon: list(_variances(epsilon)) for epsilon in (1.0, 2.0, 4.0)}
    report.compare(row for epsilon, curve in curves.items() for row in _optimum_rows(epsilon, curve))
    with report.picture("variance", "Var*/n over q at fixed ε; a circle for OUE, a square for SUE") as figure:
        axes = figure.add_subplot(xlabel="q", ylabel="Var* per user", yscale="log")
        for epsilon, curve in curves.items():
            axes.plot([q for q, _ in curve], [variance for _, variance in curve], label=f"ε = {epsilon:g}")
            for marker, (p, q) in (("o", printed_oue(epsilon)), ("s", printed_sue(epsilon))):
                axes.plot([q], [printed_variance(p, q)], marker, color="black")
        axes.set_ylim(0.03, 30)
        axes.legend(frameon=False)


def _variances(epsilon: float) -> Iterator[tuple[float, float]]:
    """(q, variance per user) of the encodings with the loss ε, as the library states it."""
    growth = math.exp(epsilon)
    for step in range(1, 1000):
        q = step / 1000
        p = growth * q / (1 - q + growth * q)
        yield q, UNARY(p=p, q=q, domain_size=2).utility()["variance_per_user"]


def _optimum_rows(epsilon: float, curve: list[tuple[float, float]]) -> Iterator[Row]:
    p, q = printed_oue(epsilon)
    forms = printed_variance(p, q), printed_variance_in_q(epsilon, q)
    ours = OUE.calibrate(epsilon=epsilon, domain_size=3).utility()["variance_per_user"]
    same = all(math.isclose(form, ours, rel_tol=1e-9) for form in forms)
    yield Row(f"OUE, ε = {epsilon:g}: Var*/n, two forms", _two(*forms), ours, same, "" if same else "they differ")
    found, _ = min(curve, key=lambda point: point[1])
    near = abs(found - q) <= 1e-3
    yield Row(f"ε = {epsilon:g}: q of the least Var*", f"{q:.3f}", f"{found:.3f}", near, "" if near else "elsewhere")


def simulation(report: Report) -> None:
    repeats = 300 if report.quick else 1000
    report.section(
        "The variance of a count",
        f"Var* is printed as the variance of the aggregated counts. Ours is the variance of the estimates in "
        f"{repeats} simulated surveys of {USERS} users, d = 4, divided by {USERS}; a row counts as reproduced within "
        "four of its standard errors. For an answer that a share f of the users gives, the exact variance is "
        "Var*/n + f(1−p−q)/(p−q) per user: the second term is 0 for SUE and f for OUE.",
    )
    cases = [(encoding, epsilon) for encoding in (SUE, OUE) for epsilon in (2.0, 4.0)]
    report.compare(row for seed, case in enumerate(cases) for row in _simulated_rows(*case, repeats, seed))


def _simulated_rows(encoding: Any, epsilon: float, repeats: int, seed: int) -> Iterator[Row]:
    import numpy as np

    made = encoding.calibrate(epsilon=epsilon, domain_size=4)
    answers = np.repeat([0, 1], USERS // 2)
    reports = made.randomize(np.tile(answers, repeats), rng=seed).reshape(repeats, USERS, -1)
    counts = np.array([made.estimate(survey).counts for survey in reports])
    variances = counts.var(axis=0, ddof=1) / USERS
    error = math.sqrt(2 / (repeats - 1))
    p, q = made.parameters["p"], made.parameters["q"]
    printed = printed_variance(p, q)
    for answer, share in ((3, 0.0), (0, 0.5)):
        ours = float(variances[answer])
        same = abs(ours / printed - 1) < 4 * error
        why = "" if same else f"Var* leaves out f(1−p−q)/(p−q) = {share * (1 - p - q) / (p - q):.3f}"
        what = f"{made.name.upper()}, ε = {epsilon:g}, f = {share:g}: variance per user"
        yield Row(what, f"{printed:.4f}", f"{ours:.4f} ± {ours * error:.4f}", same, why)


def totals(report: Report) -> None:
    report.section(
        "Is OUE the better one?",
        "Printed: OUE has the p and q that minimise the variance. Ours is the variance per user summed over the d "
        "counts, which does not depend on the answers.",
    )
    cases = ((1.0, 100), (1.0, 10), (1.0, 4), (3.0, 5), (5.0, 10), (10.0, 100))
    report.compare(_total_row(epsilon, size) for epsilon, size in cases)
    report.text("From which ε on SUE has the smaller sum:")
    report.table(("d", "SUE is better"), [(size, _crossing(size)) for size in (2, 3, 4, 5, 6, 10, 20, 100, 1000)])


def _total(encoding: Any, epsilon: float, size: int) -> float:
    return float(encoding.calibrate(epsilon=epsilon, domain_size=size).total_variance())


def _total_row(epsilon: float, size: int) -> Row:
    sue, oue = (_total(encoding, epsilon, size) for encoding in (SUE, OUE))
    better = oue < sue
    why = "" if better else "SUE has the smaller sum, since Var* is that of an answer nobody gave"
    return Row(f"ε = {epsilon:g}, d = {size}: the better one", "OUE", f"SUE {sue:.4g}, OUE {oue:.4g}", better, why)


def _crossing(size: int) -> str:
    low, high = 1e-3, 30.0

    def sue_is_better(epsilon: float) -> bool:
        return _total(SUE, epsilon, size) < _total(OUE, epsilon, size)

    if sue_is_better(low):
        return "at every ε"
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if sue_is_better(middle) else (middle, high)
    return f"above ε = {high:.3f}"


PARTS = (
    ("the loss of p and q", loss),
    ("p and q", probabilities),
    ("the minimum of Var*", optimum),
    ("simulated variances", simulation),
    ("sums over the answers", totals),
)
