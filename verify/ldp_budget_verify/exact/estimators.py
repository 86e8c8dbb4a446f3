"""Exact checks of `estimate`, from the channel: it is unbiased, and its standard errors are true.

If the estimated count of an answer is a sum over the reports, each report contributes a value that depends on its
outcome. These contributions are found from reports of the shipped client, one at a time. With the exact probabilities
of the outcomes, they give the mean and the variance that one user contributes, without a simulation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.errors import LdpBudgetError, NotSupported
from ldp_budget.guarantees import Memoised, Unbounded
from ldp_budget.sdk.frequency_oracle import FrequencyMechanism

from .dominance import HOLDS, UNPROVEN, VIOLATED, Finding, worst

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from fractions import Fraction

    from ldp_budget.sdk.mechanism import Mechanism

_SAMPLES = 4096
_CLOSE = 1e-7
_FAR = 0.5
_MOST_OUTCOMES = 2**12
_MOST_ANSWERS = 2**12
_MOST_COUNTS = 2**8
_FEW_REPORTS = 256
_LOOKS = 3
_SILENT = Finding(UNPROVEN)


def check_estimator(mechanism: Mechanism, laws: Sequence[Mapping[bytes, Fraction]] = ()) -> Finding:
    """Check that the estimated counts are unbiased with true standard errors; `unproven` without a channel.

    `laws`: the laws of the reports of each answer, if they are known. Then the count of each answer is checked for
    every report.
    """
    if not isinstance(mechanism, FrequencyMechanism):
        return _SILENT
    found = worst([_check_roles(mechanism), _check_every_count(mechanism, laws)])
    return found if found.why or found.verdict != UNPROVEN else _SILENT


def _check_roles(mechanism: FrequencyMechanism) -> Finding:
    """Check the counts of a few answers, with their standard errors."""
    try:
        if mechanism.domain.size > _MOST_ANSWERS or mechanism.public_seed or _counts_parts(mechanism):
            return _SILENT
        roles = _roles(mechanism)
        worths = [[_Worths(mechanism, first, other) for other in roles if other != first] for first in roles]
        if not all(each.known for answer in worths for each in answer):
            return _SILENT
        return worst([*(_check(mechanism, answer) for answer in worths), _check_utility(mechanism, worths)])
    except LdpBudgetError:
        return _SILENT  # there is no client, or the estimate needs more arguments


def _counts_parts(mechanism: FrequencyMechanism) -> bool:
    """True if counts are of parts of an answer, such as options, so that one user adds to several."""
    return mechanism.answers != mechanism.domain.size


def _roles(mechanism: FrequencyMechanism) -> list[Any]:
    inputs = list(mechanism.critical_inputs())
    return list(dict.fromkeys((inputs[0], inputs[len(inputs) // 2], inputs[-1])))


def _check_every_count(mechanism: FrequencyMechanism, laws: Sequence[Mapping[bytes, Fraction]]) -> Finding:
    """Check the counts of all answers: for every report if the laws are known, else for some reports."""
    try:
        if len(laws) == mechanism.domain.size:
            return _check_laws(mechanism, laws)
        if mechanism.public_seed:
            return _SILENT  # it is unbiased over the draw of the hash functions, and this is only one draw
        if _counts_parts(mechanism):
            return _SILENT
        if len(_roles(mechanism)) == mechanism.domain.size:
            return Finding(HOLDS)  # the roles include all answers
        return _check_samples(mechanism) if mechanism.domain.size <= _MOST_COUNTS else _SILENT
    except LdpBudgetError:
        return _SILENT


def _check_laws(mechanism: FrequencyMechanism, laws: Sequence[Mapping[bytes, Fraction]]) -> Finding:
    layout = mechanism.client_program().report
    rows = sorted(set().union(*laws))
    reports = np.frombuffer(b"".join(rows), layout["dtype"]).reshape(len(rows), *layout["shape"])
    counts = _counts_of_each(mechanism, reports)
    scale = max(1.0, float(np.abs(counts).max()))
    if np.abs(mechanism.estimate(reports).counts - counts.sum(axis=0)).max() > _CLOSE * scale * len(rows):
        return Finding(VIOLATED, "the estimate of many reports is not the sum of what each is worth")
    chances = np.array([[float(one.get(row, 0)) for row in rows] for one in laws])
    means = chances @ counts
    off = np.abs(means - mechanism.held(range(len(laws))))
    if off.max() > _CLOSE * scale:
        if mechanism.public_seed:
            return _SILENT  # cells of two answers collide under this draw of the hash functions
        own, other = np.unravel_index(int(off.argmax()), off.shape)
        adds = f"a user who holds {own} adds {means[own, other]:.9g} to the count of {other}"
        return Finding(VIOLATED, f"the estimate is biased: {adds}")
    return Finding(HOLDS)


def _check_samples(mechanism: FrequencyMechanism) -> Finding:
    """Check that an outcome contributes the same to each answer as to the first, which is checked by itself."""
    size = mechanism.domain.size
    first, second = 0, 1
    worths = _Worths(mechanism, first, second)
    if not worths.known:
        return _SILENT
    values = np.resize(np.arange(size), max(_FEW_REPORTS, size))
    secrets = _secrets(mechanism, 0)
    reports = mechanism.randomize(values, rng=2, secrets=secrets and secrets[: len(values)])
    counts = _counts_of_each(mechanism, reports)
    comparison = mechanism.compare(first, second)
    for answer in range(size):
        other = second if answer == first else first
        if mechanism.compare(answer, other) != comparison:
            return _SILENT
        codes = np.asarray(mechanism.outcomes(reports, answer, other)).tolist()
        if not worths.knows(codes):
            return _SILENT
        off = np.abs(counts[:, answer] - [worths.worth_of(code) for code in codes])
        if off.max() > _CLOSE * worths.scale:
            found = f"a report is worth {counts[int(off.argmax()), answer]:.9g} to the count of {answer}"
            return Finding(VIOLATED, f"the estimate is biased: {found}, and one alike another number to {first}")
    return Finding(HOLDS)


def _counts_of_each(mechanism: FrequencyMechanism, reports: Any) -> Any:
    """Return the estimated counts of each report by itself, (reports, answers)."""
    return np.array([mechanism.estimate(reports[place : place + 1]).counts for place in range(len(reports))])


def _secrets(mechanism: FrequencyMechanism, side: int) -> list[bytes] | None:
    """Return a secret for each sampled user, if the mechanism memoises."""
    if not isinstance(mechanism.guarantee, Memoised | Unbounded):
        return None
    return [(side * _SAMPLES + user).to_bytes(32, "little") for user in range(_SAMPLES)]


class _Worths:
    """The contribution of each outcome of comparing two answers to the estimated count of the first."""

    def __init__(self, mechanism: FrequencyMechanism, first: int, second: int) -> None:
        self._mechanism, self.first = mechanism, first
        comparison = mechanism.compare(first, second)
        if comparison.size > _MOST_OUTCOMES:
            raise NotSupported("the outcomes are too many to check each of them")
        self._masses = [tuple(map(float, mass)) for mass in comparison.masses()]
        self.reports = np.concatenate(
            [
                mechanism.randomize(np.full(_SAMPLES, value), rng=side, secrets=_secrets(mechanism, side))
                for side, value in enumerate((first, second))
            ]
        )
        self._codes = np.asarray(mechanism.outcomes(self.reports, first, second)).astype(np.int64)
        self._worths = {code: self._worth(code) for code in np.unique(self._codes).tolist()}

    def _worth(self, code: int) -> float | None:
        """Return the estimate of one report of that outcome; None if it depends on the rest of the report."""
        places = np.flatnonzero(self._codes == code)[:_LOOKS].tolist()
        seen = [self.count(self.reports[place : place + 1]) for place in places]
        same = max(seen) - min(seen) <= _CLOSE * (1 + max(map(abs, seen)))
        return seen[0] if same else None

    def count(self, reports: Any) -> float:
        """Return the estimated count of the first answer."""
        return float(self._mechanism.estimate(reports).counts[self.first])

    @property
    def known(self) -> bool:
        """True if every possible outcome was seen, and always contributes the same."""
        return all(self._worths.get(code) is not None for code, mass in enumerate(self._masses) if any(mass))

    def knows(self, codes: Iterable[int]) -> bool:
        """Return True if all of these outcomes were seen."""
        return all(self._worths.get(code) is not None for code in set(codes))

    def mean(self, side: int) -> float:
        """Return the mean contribution of a user who holds the first answer (side 0) or the second (1)."""
        return sum(mass[side] * self.worth_of(code) for code, mass in enumerate(self._masses) if any(mass))

    def variance(self, side: int) -> float:
        """Return the variance of the contribution of such a user, whose mean is 1 or 0."""
        mean = 1 - side
        return sum(
            mass[side] * (self.worth_of(code) - mean) ** 2 for code, mass in enumerate(self._masses) if any(mass)
        )

    def batches(self) -> list[tuple[Any, float]]:
        """Return three batches with their sums of contributions: both answers, the first alone, the other alone."""
        parts = (slice(None), slice(0, _SAMPLES), slice(_SAMPLES, None))
        return [(self.reports[part], sum(map(self.worth_of, self._codes[part].tolist()))) for part in parts]

    @property
    def scale(self) -> float:
        return max(1.0, *(abs(worth) for worth in self._worths.values() if worth is not None))

    def worth_of(self, code: int) -> float:
        """Return the contribution of a report of that outcome; all must be known."""
        worth = self._worths[code]
        assert worth is not None
        return worth


def _check(mechanism: FrequencyMechanism, worths: list[_Worths]) -> Finding:
    for each in worths:
        own, other = each.mean(0), each.mean(1)
        if max(abs(own - 1), abs(other)) > _CLOSE * each.scale:
            adds = f"{own:.9g} to the own count and {other:.9g} to another"
            return Finding(VIOLATED, f"the estimate is biased: a user adds {adds}")
    others = [each.variance(1) for each in worths]
    if max(others) - min(others) > _CLOSE * max(others):
        return _SILENT  # the variance depends on the other users' answers, of which a few answers are not enough
    ratios = [_stated_over_true(mechanism, worths[0], *batch) for batch in worths[0].batches()]
    if None in ratios:
        return Finding(VIOLATED, "the estimate of many reports is not the sum of what each is worth")
    off = [ratio for ratio in ratios if ratio is not None and abs(ratio - 1) > _CLOSE]
    if not off:
        return Finding(HOLDS)
    alike = len(off) == len(ratios) and max(off) - min(off) <= _CLOSE * max(off)
    if not alike and max(abs(ratio - 1) for ratio in off) < _FAR:
        return _SILENT  # the shares, and with them the errors, may be estimated in another way than here
    worst_ratio = max(off, key=lambda ratio: abs(ratio - 1))
    return Finding(VIOLATED, f"the variance of a count is stated {worst_ratio:.6g} times as large as it is")


def _check_utility(mechanism: FrequencyMechanism, worths: list[list[_Worths]]) -> Finding:
    """Check that the published variance is that of a count at zero frequency, for the answer where it is largest."""
    stated = mechanism.utility().get("variance_per_user")
    found = [each.variance(1) for answer in worths for each in answer]
    if stated is None:
        return Finding(HOLDS)
    too_small = stated < max(found) * (1 - _CLOSE)
    # If all checked answers are alike, so are the others.
    too_large = max(found) - min(found) <= _CLOSE * max(found) and stated > max(found) * (1 + _CLOSE)
    if too_small or too_large:
        why = f"utility states a variance of {stated:.6g} for a count; it is {max(found):.6g}"
        return Finding(VIOLATED, why)
    return Finding(HOLDS)


def _stated_over_true(mechanism: FrequencyMechanism, worths: _Worths, batch: Any, total: float) -> float | None:
    """Return the stated variance divided by the true one at the batch's share; None if the count is not a sum."""
    estimate, count = mechanism.estimate(batch), worths.count(batch)
    if abs(count - total) > _CLOSE * worths.scale * len(batch):
        return None
    # Standard errors are those at the estimated share, also beyond [0, 1], and at least those of no holders, or of all.
    share, ends = count / len(batch), (worths.variance(0), worths.variance(1))
    true = len(batch) * max(share * ends[0] + (1 - share) * ends[1], min(ends))
    stated = float(estimate.std_errors[worths.first]) ** 2
    if max(stated, true) <= len(batch) * (_CLOSE * worths.scale) ** 2:
        return 1.0  # neither is more than the rounding of floats: each such user adds the same
    return stated / true if true else math.inf
