"""Checks of the server: estimates are unbiased with true standard errors, aggregates merge, files keep reports.

A simulation estimates many groups of users. It compares the mean and the spread of the estimates with the truth and
the standard errors. The spread of R groups of n users is compared with the standard error stated for all R·n users
together, which is far more accurate than that of a small group. The variance of a count grows with the users, that of
a mean falls. With R = 8000, an error of 10 % in a stated variance is detected.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.errors import NotSupported
from ldp_budget.registry.collections import Collection
from ldp_budget.reports.report_file import ReportWriter, read_reports
from ldp_budget.sdk.estimates import CountEstimate, MeanEstimate
from ldp_budget.sdk.frequency_oracle import FrequencyMechanism

from .. import SMALLER, Broken, NotChecked, expect, undefined
from ..exact import HOLDS, VIOLATED
from ..exact.estimators import check_estimator
from .parameter_checks import claim
from .statistics import draw, inputs_of, most_deviations, spread, twice, users_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldp_budget.sdk.estimates import Aggregate
    from ldp_budget.sdk.mechanism import Mechanism

    Floats = NDArray[np.float64]

# -- simulation of estimates -----------------------------------------------------------------------------------------


_GROUPS = 8_000
_SIMULATION_USERS = 24
_MOST_ANSWERS = 64
_LEAST_OFF = 50
"""The fewest groups whose estimate differs from the median, for the mean and variance to mean anything."""
_VISIBLE = 8.0
"""Above this loss, most of a variance may come from draws that are too rare for a simulation."""
# Hashing in a sketch is slow, so its variance is checked with fewer groups.
_SEEDED_GROUPS, _SEEDED_USERS = 1_500, 240


def check_by_simulation(mechanism: Mechanism) -> None:
    """Raise `Broken` if estimates are biased, or if their spread differs from their standard errors."""
    inputs = inputs_of(mechanism)
    try:
        estimate = mechanism.estimate(draw(mechanism, _mixed(inputs), 7))
    except NotSupported as error:
        raise NotChecked(undefined(mechanism, error, "estimate")) from None
    if isinstance(estimate, MeanEstimate):
        _check_means(mechanism, (inputs[0], inputs[len(inputs) // 2]))
    elif not (isinstance(estimate, CountEstimate) and estimate.unbiased):
        # An example is an estimate that selects answers first.
        raise NotChecked(f"a {type(estimate).__name__} does not say that it is unbiased")
    elif getattr(mechanism, "public_seed", None):
        twice(lambda seed: _seeded_problem(mechanism, inputs, seed))
    else:
        twice(lambda seed: _count_problem(mechanism, inputs, seed))


def _check_means(mechanism: Mechanism, values: tuple[float, ...]) -> None:
    """Check users at each of the values. Raises `NotChecked` if no value can be checked."""
    rare: list[NotChecked] = []
    for value in values:
        try:
            twice(lambda seed, value=value: _mean_problem(mechanism, value, seed))  # type: ignore[misc]
        except NotChecked as reason:
            rare.append(reason)
    if len(rare) == len(values):
        raise rare[0]


def _mixed(inputs: list[Any], users: int = _SIMULATION_USERS) -> Any:
    """Return values of which half are the first input, a third the second, the others the last."""
    places = np.resize([0, 1, 0, 1 % len(inputs), 0, -1], users)
    return np.array(inputs)[places]


def _counted(mechanism: Any, values: Any, answers: int) -> Floats:
    if isinstance(mechanism, FrequencyMechanism) and mechanism.answers == answers:
        held: Floats = mechanism.held(values).sum(axis=0).astype(np.float64)
        return held
    return np.bincount(values, minlength=answers).astype(np.float64)


def _count_problem(mechanism: Any, inputs: list[Any], seed: int) -> str:
    values = _mixed(inputs)
    reports = draw(mechanism, np.tile(values, _GROUPS), seed)
    counts = np.array([mechanism.estimate(group).counts[:_MOST_ANSWERS] for group in _groups(reports)])
    total = mechanism.estimate(reports)
    stated = total.std_errors[:_MOST_ANSWERS] ** 2 / _GROUPS
    truth = _counted(mechanism, values, len(total.counts))[:_MOST_ANSWERS]
    return _problem(mechanism, counts, truth, stated, "count")


def _seeded_problem(mechanism: Any, inputs: list[Any], seed: int) -> str:
    """Return the same for estimates that are unbiased over a public seed, such as that of hash functions.

    A seed whose hash functions leave some answers alike has no unbiased estimate, and is passed over.
    """
    values = _mixed(inputs, _SEEDED_USERS)
    counts, stated, answers = [], [], 0
    for group in range(_SEEDED_GROUPS):
        seeded = mechanism.replace(**{mechanism.public_seed: group})
        reports = draw(seeded, values, seed + group)
        try:
            estimate = seeded.estimate(reports)
        except NotSupported:
            continue
        if not estimate.unbiased:
            continue
        answers = len(estimate.counts)
        counts.append(estimate.counts[:_MOST_ANSWERS])
        stated.append(estimate.std_errors[:_MOST_ANSWERS] ** 2)
    if len(counts) < _SEEDED_GROUPS // 2:
        raise NotChecked("most public seeds leave answers alike, so that they have no estimate")
    truth = _counted(mechanism, values, answers)[:_MOST_ANSWERS]
    return _problem(mechanism, np.array(counts), truth, np.mean(stated, axis=0), "count")


def _mean_problem(mechanism: Any, value: float, seed: int) -> str:
    """Return a problem of estimates of users who all hold one value; "" if none.

    If the mechanism has an `error_at`, bias and variance must also match it.
    """
    reports = draw(mechanism, np.full(_GROUPS * _SIMULATION_USERS, value), seed)
    means = np.array([[mechanism.estimate(group).mean] for group in _groups(reports)])
    stated = np.array([mechanism.estimate(reports).std_error ** 2 * _GROUPS])
    error = getattr(mechanism, "error_at", None)
    bias, mse = error(value) if error is not None else (0.0, None)
    if not getattr(mechanism, "biased", False):
        bias = 0.0
    what = f"mean of users at {value}"
    found = _problem(mechanism, means, np.array([value + bias]), stated, what)
    if not found and mse is not None:
        found = _problem(
            mechanism,
            means,
            np.array([value + bias]),
            np.array([(mse - bias**2) / _SIMULATION_USERS]),
            f"{what} (error_at)",
        )
    return found


def _groups(reports: Any) -> Any:
    return reports.reshape(_GROUPS, _SIMULATION_USERS, *reports.shape[1:])


def _problem(mechanism: Mechanism, samples: Floats, truth: Floats, stated: Floats, what: str) -> str:
    """Return the problem of estimates (R, k) of the truth (k,) whose variances are stated (k,); "" if there is none.

    Estimates that hardly ever differ are left out. Raises `NotChecked` if all are.
    """
    rounding = 1e-9 * np.maximum(1.0, np.abs(truth))
    told = (np.abs(samples - np.median(samples, axis=0)) > rounding).sum(axis=0) >= _LEAST_OFF
    if not told.any():
        raise NotChecked(
            f"too rare to be seen: of {len(samples)} estimates of the {what} hardly one differs; {SMALLER}"
        )
    samples, truth, stated, rounding = samples[:, told], truth[told], stated[told], rounding[told]
    mean, variance, relative = spread(samples)
    off = (np.abs(mean - truth) - rounding) / np.sqrt(np.maximum(variance, 1e-300) / len(samples))
    worst = int(off.argmax())
    most = most_deviations(2 * len(truth))
    if off[worst] > most:
        return (
            f"the {what} is biased: on average {mean[worst]:.6g} where {truth[worst]:.6g} is true, "
            f"{off[worst]:.1f} standard errors off"
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(np.maximum(stated, variance) > rounding**2, stated / variance, 1.0)
    wrong = np.abs(1 / ratio - 1) / relative
    if getattr(mechanism, "errors_are_bounds", False):
        wrong[ratio > 1] = 0.0
    worst = int(wrong.argmax())
    if wrong[worst] > most:
        if ratio[worst] > 1 and claim(mechanism, 1) > _VISIBLE:
            raise NotChecked(
                f"too rare to be seen: what makes up the variance of the {what} at so large an ε; {SMALLER}"
            )
        return f"the variance of the {what} is stated {ratio[worst]:.4g} times as large as it is"
    return ""


# -- the checks ------------------------------------------------------------------------------------------------------


_USERS = 600


def estimator_is_unbiased(mechanism: Mechanism) -> None:
    """Check that estimates are unbiased and their standard errors true, by a proof or else by simulation."""
    try:
        found = check_estimator(mechanism)
    except NotSupported:
        check_by_simulation(mechanism)
        return
    if found.verdict == VIOLATED:
        raise Broken(found.why)
    if found.verdict != HOLDS:
        check_by_simulation(mechanism)


def aggregates_merge(mechanism: Mechanism) -> None:
    """Check that aggregates of parts merge in any order to that of the whole, and that foreign ones are refused."""
    reports = draw(mechanism, users_of(mechanism, _USERS), 7)
    whole = _aggregate(mechanism, reports)
    for cuts in ((200, 333), (0, 1), (599, 600)):
        first, *others = (reports[: cuts[0]], reports[cuts[0] : cuts[1]], reports[cuts[1] :])
        for order in ((first, *others), (*reversed(others), first)):
            total: Any = _aggregate(mechanism, order[0])
            for part in order[1:]:
                total = total.merge(_aggregate(mechanism, part))
            expect(_same(total, whole), f"parts cut at {cuts} do not merge to the aggregate of the whole")
    _same_estimates(mechanism, reports, whole)


def _aggregate(mechanism: Mechanism, reports: Any) -> Aggregate:
    try:
        return mechanism.aggregate(reports)
    except NotSupported as error:
        raise NotChecked(undefined(mechanism, error, "aggregate")) from None


def _same_estimates(mechanism: Mechanism, reports: Any, whole: Aggregate) -> None:
    try:
        direct = mechanism.estimate(reports)
    except NotSupported:
        return
    expect(_same(direct, mechanism.estimate(whole)), "an aggregate is estimated otherwise than its reports")


def _same(one: Any, other: Any) -> bool:
    """True if two aggregates or estimates are equal, down to the last digit."""
    own, theirs = vars(one), vars(other)
    return own.keys() == theirs.keys() and all(np.array_equal(own[name], theirs[name]) for name in own)


def reports_survive_the_file(mechanism: Mechanism) -> None:
    """Check that reports written to a report file in two blocks are read back unchanged."""
    reports = draw(mechanism, users_of(mechanism, _USERS), 7)
    collection = Collection("contract", mechanism)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reports"
        with ReportWriter(path, collection) as writer:
            writer.write(reports[:200])
            writer.write(reports[200:])
        read = np.concatenate(list(read_reports(path, collection)))
    expect(read.shape == reports.shape, f"reports of shape {reports.shape} are read back as {read.shape}")
    expect(np.array_equal(read, reports), "reports are read back from their file as others")
