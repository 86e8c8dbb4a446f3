"""Is `estimate` unbiased, and are its standard errors true? Decided from the channel.

Where the estimated count of an answer is a sum over the reports, each adds what its outcome is worth. Those worths,
found from reports of the shipped client one at a time, and the exact odds of the outcomes give the mean and the
variance that one user adds, without a simulation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...authoring.frequency import FrequencyMechanism
from ...errors import LdpBudgetError, NotSupported
from ...guarantees import Memoised, Unbounded
from .dominance import HOLDS, UNPROVEN, VIOLATED, Finding, worst

if TYPE_CHECKING:
    from ...authoring.base import Mechanism

_SAMPLES = 4096
_CLOSE = 1e-7
_FAR = 0.5
_MOST_OUTCOMES = 2**12
_MOST_ANSWERS = 2**12
_LOOKS = 3
_SILENT = Finding(UNPROVEN)


def check_estimator(mechanism: Mechanism) -> Finding:
    """Whether the estimated counts are unbiased with true standard errors; `unproven` where the channel is silent."""
    if not isinstance(mechanism, FrequencyMechanism):
        return _SILENT
    try:
        if mechanism.domain.size > _MOST_ANSWERS or mechanism.public_seed:
            return _SILENT
        inputs = list(mechanism.critical_inputs())
        roles = dict.fromkeys((inputs[0], inputs[len(inputs) // 2], inputs[-1]))
        worths = [[_Worths(mechanism, first, other) for other in roles if other != first] for first in roles]
        if not all(each.known for answer in worths for each in answer):
            return _SILENT
        return worst([*(_check(mechanism, answer) for answer in worths), _check_utility(mechanism, worths)])
    except LdpBudgetError:
        return _SILENT  # there is no client, or no estimate without more being said


def _secrets(mechanism: FrequencyMechanism, side: int) -> list[bytes] | None:
    """Secrets of as many users as are sampled, where the mechanism memoises."""
    if not isinstance(mechanism.guarantee, Memoised | Unbounded):
        return None
    return [(side * _SAMPLES + user).to_bytes(32, "little") for user in range(_SAMPLES)]


class _Worths:
    """What each outcome of comparing two answers adds to the estimated count of the first."""

    def __init__(self, mechanism: FrequencyMechanism, first: int, second: int) -> None:
        self._mechanism, self.first = mechanism, first
        comparison = mechanism.compare(first, second)
        if comparison.size > _MOST_OUTCOMES:
            raise NotSupported("the outcomes are too many to see each of them")
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
        """What one report of that outcome is estimated to be; None where that depends on what else it says."""
        places = np.flatnonzero(self._codes == code)[:_LOOKS].tolist()
        seen = [self.count(self.reports[place : place + 1]) for place in places]
        same = max(seen) - min(seen) <= _CLOSE * (1 + max(map(abs, seen)))
        return seen[0] if same else None

    def count(self, reports: Any) -> float:
        """The estimated count of the first answer."""
        return float(self._mechanism.estimate(reports).counts[self.first])

    @property
    def known(self) -> bool:
        """Whether every outcome that can occur was seen, and is worth the same whenever it does."""
        return all(self._worths.get(code) is not None for code, mass in enumerate(self._masses) if any(mass))

    def mean(self, side: int) -> float:
        """What a user adds on average who holds the first answer (side 0) or the second (1)."""
        return sum(mass[side] * self._value(code) for code, mass in enumerate(self._masses) if any(mass))

    def variance(self, side: int) -> float:
        """The variance of what such a user adds, whose mean is 1 or 0."""
        mean = 1 - side
        return sum(
            mass[side] * (self._value(code) - mean) ** 2 for code, mass in enumerate(self._masses) if any(mass)
        )

    def batches(self) -> list[tuple[Any, float]]:
        """Some reports of both, of the first alone and of the other, with the sum of what each is worth by itself."""
        parts = (slice(None), slice(0, _SAMPLES), slice(_SAMPLES, None))
        return [(self.reports[part], sum(map(self._value, self._codes[part].tolist()))) for part in parts]

    @property
    def scale(self) -> float:
        return max(1.0, *(abs(worth) for worth in self._worths.values() if worth is not None))

    def _value(self, code: int) -> float:
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
        return _SILENT  # the variance depends on what the others hold, of which a few answers do not tell
    ratios = [_stated_over_true(mechanism, worths[0], *batch) for batch in worths[0].batches()]
    if None in ratios:
        return Finding(VIOLATED, "the estimate of many reports is not the sum of what each is worth")
    off = [ratio for ratio in ratios if ratio is not None and abs(ratio - 1) > _CLOSE]
    if not off:
        return Finding(HOLDS)
    alike = len(off) == len(ratios) and max(off) - min(off) <= _CLOSE * max(off)
    if not alike and max(abs(ratio - 1) for ratio in off) < _FAR:
        return _SILENT  # the shares may be estimated in another way than here, and with them the errors
    worst_ratio = max(off, key=lambda ratio: abs(ratio - 1))
    return Finding(VIOLATED, f"the variance of a count is stated {worst_ratio:.6g} times as large as it is")


def _check_utility(mechanism: FrequencyMechanism, worths: list[list[_Worths]]) -> Finding:
    """Whether the published variance is that of a count at zero frequency, for the answer where it is largest."""
    stated = mechanism.utility().get("variance_per_user")
    found = [each.variance(1) for answer in worths for each in answer]
    if stated is None:
        return Finding(HOLDS)
    too_small = stated < max(found) * (1 - _CLOSE)
    # Where all the answers looked at are alike, so are the others.
    too_large = max(found) - min(found) <= _CLOSE * max(found) and stated > max(found) * (1 + _CLOSE)
    if too_small or too_large:
        why = f"utility states a variance of {stated:.6g} for a count; it is {max(found):.6g}"
        return Finding(VIOLATED, why)
    return Finding(HOLDS)


def _stated_over_true(mechanism: FrequencyMechanism, worths: _Worths, batch: Any, total: float) -> float | None:
    """How the stated variance compares, at the share the batch shows; None where the count is no sum."""
    estimate, count = mechanism.estimate(batch), worths.count(batch)
    if abs(count - total) > _CLOSE * worths.scale * len(batch):
        return None
    # Standard errors are those at the estimated share: at that of the estimate itself, as near an end of [0, 1] the
    # last digit of the share may decide.
    share = min(max(count / len(batch), 0.0), 1.0)
    true = len(batch) * (share * worths.variance(0) + (1 - share) * worths.variance(1))
    stated = float(estimate.std_errors[worths.first]) ** 2
    return stated / true if true else (math.inf if stated else 1.0)
