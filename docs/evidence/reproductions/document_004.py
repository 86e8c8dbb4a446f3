"""FedTensor: the Gaussian mechanism, its loss and its σ. It prints a derivation and a formula, and no figures."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from report import Row

import ldp_budget
from ldp_budget.guarantees.gaussian_calibration import gaussian_delta, gaussian_sigma

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray
    from report import Report

TITLE = "FedTensor: the Gaussian mechanism"

GAUSSIAN: Any = ldp_budget.mechanism("gaussian")

EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
DELTAS = (1e-2, 1e-5, 1e-9)
SIGMAS = (0.5, 1.0, 2.0)


def normal_cdf(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def printed_delta(sigma: float, epsilon: float, sensitivity: float = 1.0) -> float:
    """δ = Φ(S/2σ − εσ/S), as printed."""
    return normal_cdf(sensitivity / (2 * sigma) - epsilon * sigma / sensitivity)


def textbook_sigma(epsilon: float, delta: float) -> float:
    """√(2 ln(1.25/δ))/ε for S = 1: not in the post, and often quoted (Dwork and Roth 2014, Theorem A.1)."""
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


# -- the loss -------------------------------------------------------------------------------------------------


@functools.cache
def drawn_losses(sigma: float, users: int) -> NDArray[np.float64]:
    """L of the reports of users who all hold the value 1, beside the value 0: S = 1."""
    import numpy as np

    made = GAUSSIAN(sigma=sigma, lower=0, upper=1)
    reports = made.randomize(np.ones(users), rng=round(100 * sigma))
    return np.array([math.log(made.density(o, 1.0)) - math.log(made.density(o, 0.0)) for o in reports.tolist()])


def _users(report: Report) -> int:
    return 20_000 if report.quick else 50_000


def distribution(report: Report) -> None:
    users = _users(report)
    report.section(
        "The loss is normal",
        f"Printed: L ~ N(s²/2σ², s²/σ²). Ours are {users} reports of the library's client at s = 1, the log-ratio of "
        "the two densities at each; a row counts as reproduced within four standard errors.",
    )
    report.compare(row for sigma in SIGMAS for row in _loss_rows(sigma, users))


def _loss_rows(sigma: float, users: int) -> Iterator[Row]:
    losses = drawn_losses(sigma, users)
    variance = 1 / sigma**2
    error = math.sqrt(variance / users)
    mean = float(losses.mean())
    yield _within(f"σ = {sigma:g}: E[L]", variance / 2, mean, error)
    yield _within(f"σ = {sigma:g}: Var[L]", variance, float(losses.var()), variance * math.sqrt(2 / users))
    skewness = float(((losses - mean) ** 3).mean() / losses.std() ** 3)
    yield _within(f"σ = {sigma:g}: skewness of L", 0.0, skewness, math.sqrt(6 / users))


def _within(what: str, printed: float, ours: float, error: float) -> Row:
    same = abs(ours - printed) < 4 * error
    return Row(
        what, f"{printed:.4f}", f"{ours:.4f} ± {error:.4f}", same, "" if same else "further off than by chance"
    )


# -- the printed formula --------------------------------------------------------------------------------------


def formula(report: Report) -> None:
    users = _users(report)
    report.section(
        "P[L > ε] by the printed formula",
        f"Printed: P[L > ε] = Φ(S/2σ − εσ/S). Ours is the share of the same {users} reports whose loss exceeds ε, "
        "and the library's bound, which differs from the formula by its upward rounding only.",
    )
    report.compare(_tail_row(sigma, epsilon, users) for sigma in SIGMAS for epsilon in (0.5, 1.0, 2.0))
    report.text("And it is largest at |s| = S, as is said; here at ε = 1, σ = 1, for ever larger s up to S = 1:")
    shares = (0.25, 0.5, 0.75, 1.0)
    deltas = [printed_delta(1, 1, s) for s in shares]
    increasing = deltas == sorted(deltas)
    ours = ", ".join(f"{delta:.3g}" for delta in deltas)
    why = "" if increasing else "another s is worse"
    report.compare([Row("P[L > 1] at s = 0.25, 0.5, 0.75, 1", "increasing", ours, increasing, why)])


def _tail_row(sigma: float, epsilon: float, users: int) -> Row:
    printed = printed_delta(sigma, epsilon)
    share = float((drawn_losses(sigma, users) > epsilon).mean())
    error = math.sqrt(printed * (1 - printed) / users)
    bound = gaussian_delta(epsilon, 1 / sigma, method="tail")
    same = abs(share - printed) < 4 * error and printed * (1 - 1e-12) <= bound <= printed * (1 + 1e-9)
    ours = f"{share:.5f} ± {error:.5f}; {bound:.6g}"
    return Row(f"σ = {sigma:g}, ε = {epsilon:g}: P[L > ε]", printed, ours, same, "" if same else "they differ")


# -- σ --------------------------------------------------------------------------------------------------------


def meaning(report: Report) -> None:
    users = _users(report)
    report.section(
        "Is δ the probability that L exceeds ε?",
        "Printed: (ε, δ)-DP *means* P[L > ε] ≤ δ, and equality there is the tightest bound. By definition it is that "
        "P[A] ≤ e^ε P′[A] + δ for every set A of reports. The least such δ is the mean of max(0, 1 − e^{ε−L}): of a "
        "report with L > ε only the excess counts. Ours is that mean over the simulated losses, then its exact value "
        "(Balle and Wang 2018, Theorem 8).",
    )
    report.compare(_meaning_row(sigma, epsilon, users) for sigma, epsilon in ((0.5, 2.0), (1.0, 1.0), (2.0, 0.5)))
    report.text(
        "The formula is safe, then: what is printed always keeps the promise. It asks for more noise than that takes."
    )
    report.compare(_safe_row(epsilon, delta) for epsilon, delta in ((0.1, 1e-5), (1.0, 1e-5), (10.0, 1e-2)))


def _meaning_row(sigma: float, epsilon: float, users: int) -> Row:
    import numpy as np

    excess = np.maximum(0, -np.expm1(epsilon - drawn_losses(sigma, users)))
    exact = gaussian_delta(epsilon, 1 / sigma)
    ours = f"{excess.mean():.5f} ± {excess.std() / users**0.5:.5f}; {exact:.5f}"
    why = f"sufficient, not necessary: P[L > ε] is {printed_delta(sigma, epsilon) / exact:.2f} times the least δ"
    return Row(
        f"σ = {sigma:g}: least δ for ε = {epsilon:g}", f"{printed_delta(sigma, epsilon):.5f}", ours, False, why
    )


def _safe_row(epsilon: float, delta: float) -> Row:
    sigma = gaussian_sigma(epsilon, delta)
    true = gaussian_delta(epsilon, 1 / sigma)
    what = f"the formula's σ = {sigma:.4f} meets ({epsilon:g}, {delta:g})"
    return Row(what, "yes", f"with δ = {true:.3g}", true <= delta, "" if true <= delta else "it does not")


def calibration(report: Report) -> None:
    report.section(
        "σ over ε and δ",
        "The post prints no σ. These solve its formula (tail) and the exact condition, both at S = 1, and stand "
        "beside the textbook's σ = √(2 ln(1.25/δ))/ε, which is proved for ε < 1 only. *δ, textbook* is what its σ "
        "really gives.",
    )
    rows = [_sigma_row(epsilon, delta) for delta in DELTAS for epsilon in EPSILONS]
    report.table(
        ("δ", "ε", "σ, tail", "σ, exact", "tail / exact", "σ, textbook", "δ, textbook", "textbook safe"), rows
    )
    report.text(
        "The textbook's σ is smaller than the least one, and so breaks its promise, "
        + "; ".join(f"at δ = {delta:g} above ε = {_textbook_fails_above(delta):.3f}" for delta in DELTAS)
        + "."
    )
    _draw_sigmas(report)


def _draw_sigmas(report: Report) -> None:
    caption = "σ over ε at S = 1, δ = 1e-5; and over the least σ, which the textbook's falls below"
    with report.picture("sigma", caption) as figure:
        left, right = figure.subplots(1, 2)
        epsilons = [0.1 * 200 ** (step / 60) for step in range(61)]
        exact = {delta: [gaussian_sigma(e, delta, method="exact") for e in epsilons] for delta in DELTAS}
        left.plot(epsilons, exact[1e-5], color="black", label="exact")
        for name, style, formula in (("tail, as printed", "-", gaussian_sigma), ("textbook", "--", textbook_sigma)):
            left.plot(epsilons, [formula(e, 1e-5) for e in epsilons], style, color="#c0392b", label=name)
            for delta, colour in zip(DELTAS, ("#e08e0b", "#c0392b", "#2e6da4"), strict=True):
                ratios = [formula(e, delta) / least for e, least in zip(epsilons, exact[delta], strict=True)]
                right.plot(epsilons, ratios, style, color=colour, label=f"{name}, δ = {delta:g}")
        right.axhline(1, color="black", linewidth=0.8)
        left.set(xlabel="ε", ylabel="σ", xscale="log", yscale="log")
        right.set(xlabel="ε", ylabel="σ / exact σ", xscale="log", ylim=(0.6, 3.4))
        left.legend(frameon=False)
        right.legend(frameon=False, fontsize="small")


def _sigma_row(epsilon: float, delta: float) -> tuple[object, ...]:
    tail, exact = gaussian_sigma(epsilon, delta), gaussian_sigma(epsilon, delta, method="exact")
    textbook = textbook_sigma(epsilon, delta)
    true = gaussian_delta(epsilon, 1 / textbook)
    shown = f"{tail:.4f}", f"{exact:.4f}", f"{tail / exact:.3f}", f"{textbook:.4f}", f"{true:.2e}"
    return f"{delta:g}", f"{epsilon:g}", *shown, true <= delta


def _textbook_fails_above(delta: float) -> float:
    low, high = 0.1, 1000.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        fails = textbook_sigma(middle, delta) < gaussian_sigma(middle, delta, method="exact")
        low, high = (low, middle) if fails else (middle, high)
    return high


PARTS = (
    ("the loss is normal", distribution),
    ("the printed formula", formula),
    ("what δ means", meaning),
    ("σ over ε and δ", calibration),
)
