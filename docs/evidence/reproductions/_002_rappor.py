"""Jeong, Hong and Seo 2020, Fig. 3 and Fig. 14: what RAPPOR finds of a normal and of an exponential distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from report import Row

import ldp_budget

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from report import Report

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

VALUES = 100
SIZES = (10_000, 100_000, 1_000_000)
SURVEY = 10_000
SCALES = (10, 20)
EPSILON = "2.0433"

Rappor: Any = ldp_budget.mechanism("rappor")
DBitFlip: Any = ldp_budget.mechanism("d-bit-flip")
Cms: Any = ldp_budget.mechanism("cms")

PRINTED: Any = Rappor(bits=32, hashes=2, cohorts=64, f="0.5", p="0.25", q="0.75", domain_size=VALUES)


class Found(NamedTuple):
    """True and estimated counts (100,), standard errors, and which values the estimate kept."""

    held: Floats
    estimates: Floats
    errors: Floats
    kept: NDArray[np.bool_]

    @property
    def share_kept(self) -> float:
        """The share of the users whose value was kept."""
        return float(self.held[self.kept].sum() / self.held.sum())

    @property
    def misplaced(self) -> float:
        """Half of Σ|estimate - true|, over n: the share of the users who are counted at a wrong value."""
        return float(np.abs(self.estimates - self.held).sum() / 2 / self.held.sum())

    @property
    def stand_out(self) -> int:
        """How many values are counted more than two standard errors above zero."""
        return int((self.kept & (self.estimates > 2 * self.errors)).sum())


def decoded(made: Any, reports: Any, values: Ints, **options: Any) -> Found:
    estimate = made.estimate(reports, **options)
    kept = getattr(estimate, "selected", np.ones(VALUES, dtype=np.bool_))
    held = np.bincount(values, minlength=VALUES).astype(float)
    return Found(held, estimate.counts, estimate.std_errors, kept)


# -- Fig. 3 ---------------------------------------------------------------------------------------------------


def normal(report: Report) -> None:
    report.section(
        "Fig. 3: a normal distribution by RAPPOR",
        "Stated: k = 32, h = 2, m = 64, p = 0.25, q = 0.75, f = 0.5, and ε ≈ 2; 10,000, 100,000 and 1,000,000 "
        "values; a lasso selects candidates, and least squares count them. The plot is lost; what the text "
        "reads from it is compared. The distribution's parameters, the candidates and the lasso's penalty are "
        "not stated: here they are N(50, 10²), rounded, the hundred values 0 to 99, and a penalty at which a "
        "candidate that nobody holds is rarely kept. Every client is run.",
    )
    found = {users: _normal(users) for users in SIZES}
    report.compare(_fig_3_rows({users: lasso for users, (lasso, _) in found.items()}))
    report.text("Without the lasso, all hundred values counted by least squares:")
    header = ("n", "misplaced, lasso", "misplaced, least squares", "standard error of a share")
    report.table(header, [_decoder_line(users, *pair) for users, pair in found.items()])
    with report.picture("fig3", "N(50, 10²) by RAPPOR with the lasso: true (grey) and estimated shares") as figure:
        for axes, (users, (lasso, _)) in zip(figure.subplots(1, 3, sharey=True), found.items(), strict=True):
            _draw(axes, f"n = {users:,}", lasso)


def _normal(users: int) -> tuple[Found, Found]:
    rng = np.random.default_rng(3)
    values = np.clip(np.rint(rng.normal(50, 10, users)), 0, VALUES - 1).astype(np.int64)
    total = PRINTED.aggregate(PRINTED.randomize(values, rng=3, secrets=_secrets(values)))
    lasso, squares = (decoded(PRINTED, total, values, method=method) for method in ("lasso", "least-squares"))
    return lasso, squares


def _secrets(values: np.ndarray) -> list[bytes]:
    """A secret for each user, the same in every run, from which the permanent bits are drawn."""
    return [user.to_bytes(32, "big") for user in range(len(values))]


def _fig_3_rows(found: dict[int, Found]) -> Iterator[Row]:
    curve, cap = PRINTED.guarantee.curve, PRINTED.guarantee.cap
    one, two, lifetime = map(float, (*curve[:2], cap))
    why = f"of one report; two of the same value lose {two:.4f}, and any number {lifetime:.4f}"
    yield Row("Fig. 3, ε", "about 2", f"{one:.4f}", abs(one - 2) < 0.05, why)
    few, some, many = found.values()
    yield Row("Fig. 3, n = 10,000", "not enough to guess the distribution", _kept(few), few.share_kept < 0.5)
    yield Row("Fig. 3, n = 100,000", "the distribution, to some degree", _kept(some), 0.5 < some.share_kept < 0.95)
    missed = float(many.held[~many.kept].max() / many.held.sum())
    why = f"no value held by more than {100 * missed:.2g} % is missed"
    yield Row(
        "Fig. 3, n = 1,000,000", "all but the tails", _kept(many), many.share_kept > 0.95 and missed < 0.01, why
    )


def _kept(found: Found) -> str:
    places = np.flatnonzero(found.kept)
    ends = f" between {places[0]} and {places[-1]}" if len(places) else ""
    return f"{len(places)} of {VALUES} values{ends}, which {100 * found.share_kept:.0f} % of the users hold"


def _decoder_line(users: int, lasso: Found, squares: Found) -> tuple[str, ...]:
    error = f"{100 * float(squares.errors.mean()) / users:.2g} %"
    return (f"{users:,}", f"{100 * lasso.misplaced:.0f} %", f"{100 * squares.misplaced:.0f} %", error)


def _draw(axes: Any, title: str, found: Found) -> None:
    users = found.held.sum()
    axes.fill_between(range(VALUES), 100 * found.held / users, color="0.8", step="mid")
    places = np.flatnonzero(found.kept)
    axes.vlines(places, 0, 100 * found.estimates[places] / users, color="C1", linewidth=1.5)
    axes.set_title(title, fontsize=9)
    axes.set(xlabel="value", ylim=(-3, 8))


# -- Fig. 14 --------------------------------------------------------------------------------------------------


def exponential(report: Report) -> None:
    report.section(
        "Fig. 14: an exponential distribution by RAPPOR, dBitFlip and CMS",
        "Stated: 10,000 values. The plot is lost; neither ε, nor the distribution's mean, nor the parameters of "
        f"the mechanisms are stated. Ours: RAPPOR as in Fig. 3, dBitFlip with d = k = {VALUES}, CMS with k = 512 "
        f"and m = 128, all with the loss {EPSILON} of one report; exponentials of mean 10 and 20, cut down to 0 "
        "to 99. Every client is run.",
    )
    found = {scale: dict(_exponential(scale)) for scale in SCALES}
    report.compare(row for scale, by_name in found.items() for row in _fig_14_rows(scale, by_name))
    report.compare([_unsuitable_row(found[SCALES[-1]])])
    with report.picture(
        "fig14", "An exponential distribution of mean 20, true (grey) and estimated shares"
    ) as figure:
        for axes, (name, each) in zip(figure.subplots(1, 4, sharey=True), found[SCALES[-1]].items(), strict=True):
            _draw(axes, name, each)


def _exponential(scale: int) -> Iterator[tuple[str, Found]]:
    drawn = np.random.default_rng(14).exponential(scale, SURVEY)
    values = np.minimum(drawn, VALUES - 1).astype(np.int64)
    reports = PRINTED.randomize(values, rng=14, secrets=_secrets(values))
    yield "RAPPOR, lasso", decoded(PRINTED, reports, values, method="lasso")
    yield "RAPPOR, least squares", decoded(PRINTED, reports, values, method="least-squares")
    others = {
        "dBitFlip": DBitFlip(epsilon=EPSILON, buckets=VALUES, bits=VALUES),
        "CMS": Cms(epsilon=EPSILON, hashes=512, width=128, domain_size=VALUES),
    }
    for name, made in others.items():
        yield name, decoded(made, made.randomize(values, rng=14), values)


def _fig_14_rows(scale: int, found: dict[str, Found]) -> Iterator[Row]:
    lasso, _, flips, sketch = found.values()
    yield Row(
        f"Fig. 14, mean {scale}: RAPPOR",
        "a few values, unlike the distribution",
        _kept(lasso),
        lasso.kept.sum() <= 15,
    )
    said = f"{flips.stand_out} and {sketch.stand_out} two standard errors above zero, against {lasso.stand_out}"
    more = min(flips.stand_out, sketch.stand_out) > lasso.stand_out
    yield Row(f"Fig. 14, mean {scale}: dBitFlip and CMS", "more values than RAPPOR", said, more)
    said = ", ".join(f"{100 * _frequent_error(each):.0f} %" for each in (flips, sketch, lasso))
    what = f"Fig. 14, mean {scale}: error in the ten most frequent (dBitFlip, CMS, RAPPOR)"
    good = max(_frequent_error(flips), _frequent_error(sketch)) < 0.25
    yield Row(what, "the first two relatively useful", said, good, "" if good else "they are not")


def _unsuitable_row(found: dict[str, Found]) -> Row:
    lasso, squares, flips, _ = found.values()
    few = squares.stand_out <= lasso.stand_out
    times = float(squares.errors.mean() / flips.errors.mean())
    said = (
        f"least squares alone count every value, with {times:.2f} times the standard error of dBitFlip; "
        f"{squares.stand_out} values are two standard errors above zero, against {flips.stand_out}"
    )
    why = f"it is the lasso that leaves few values; RAPPOR needs {times**2:.1f} times the users of dBitFlip, at any n"
    return Row(
        "Fig. 14: RAPPOR with 10,000 users or fewer", "unsuitable, where dBitFlip and CMS are not", said, few, why
    )


def _frequent_error(found: Found) -> float:
    """The mean |estimate - true| of the ten most frequent values, over their mean count."""
    most = np.argsort(found.held)[-10:]
    return float(np.abs(found.estimates - found.held)[most].sum() / found.held[most].sum())
