"""Is `estimate` unbiased, and are its standard errors true? Decided from the channel.

Where the estimated count of an answer is a sum over the reports, each adds what its outcome is worth. Those worths,
found from reports of the shipped client one at a time, and the exact odds of the outcomes give the mean and the
variance that one user adds, without a simulation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import LdpBudgetError
from ..guarantees import Memoised, Unbounded
from .dominance import HOLDS, UNPROVEN, VIOLATED, Finding

if TYPE_CHECKING:
    from ..base import Mechanism
    from ..frequency import FrequencyMechanism

_SAMPLES = 4096
_CLOSE = 1e-7
_NEARLY = 0.05
_BATCH = 500
_MOST_ANSWERS = 2**12
_LOOKS = 3
_SILENT = Finding(UNPROVEN)


def check_estimator(mechanism: Mechanism) -> Finding:
    """Whether the estimated counts are unbiased with true standard errors; `unproven` where the channel is silent."""
    from ..frequency import FrequencyMechanism

    if not isinstance(mechanism, FrequencyMechanism):
        return _SILENT
    try:
        if mechanism.answers > _MOST_ANSWERS or mechanism.public_seed:
            return _SILENT
        first, *others = mechanism.critical_inputs()
        worths = [_Worths(mechanism, first, other) for other in reversed(others)]
        return _check(mechanism, worths) if all(each.known for each in worths) else _SILENT
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
        import numpy as np

        self._mechanism, self._first = mechanism, first
        self._masses = [tuple(map(float, mass)) for mass in mechanism.compare(first, second).masses()]
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
        import numpy as np

        places = np.flatnonzero(self._codes == code)[:_LOOKS].tolist()
        seen = [self.count(self.reports[place : place + 1]) for place in places]
        same = max(seen) - min(seen) <= _CLOSE * (1 + max(map(abs, seen)))
        return seen[0] if same else None

    def count(self, reports: Any) -> float:
        """The estimated count of the first answer."""
        return float(self._mechanism.estimate(reports).counts[self._first])

    @property
    def known(self) -> bool:
        """Whether every outcome that can occur was seen, and is worth the same whenever it does."""
        return all(self._worths.get(code) is not None for code, mass in enumerate(self._masses) if any(mass))

    def moment(self, side: int, power: int) -> float:
        """The mean of a power of what a user adds who holds the first answer (side 0) or the second (1)."""
        return sum(mass[side] * self._value(code) ** power for code, mass in enumerate(self._masses) if any(mass))

    def variances(self) -> tuple[float, float]:
        """What a user adds to the variance of the count, who holds the first answer or the second."""
        return self.moment(0, 2) - 1, self.moment(1, 2)

    def batch(self) -> tuple[Any, float]:
        """Some of the reports of both, and the sum of what they are worth one by one."""
        step = max(1, len(self.reports) // _BATCH)
        return self.reports[::step], sum(self._value(code) for code in self._codes[::step].tolist())

    @property
    def scale(self) -> float:
        return max(1.0, *(abs(worth) for worth in self._worths.values() if worth is not None))

    def _value(self, code: int) -> float:
        worth = self._worths[code]
        assert worth is not None
        return worth


def _check(mechanism: FrequencyMechanism, worths: list[_Worths]) -> Finding:
    for each in worths:
        own, other = each.moment(0, 1), each.moment(1, 1)
        if max(abs(own - 1), abs(other)) > _CLOSE * each.scale:
            adds = f"{own:.9g} to the own count and {other:.9g} to another"
            return Finding(VIOLATED, f"the estimate is biased: a user adds {adds}")
    batch, total = worths[0].batch()
    estimate, first = mechanism.estimate(batch), mechanism.critical_inputs()[0]
    if abs(float(estimate.counts[first]) - total) > _CLOSE * worths[0].scale * len(batch):
        return Finding(VIOLATED, "the estimate of many reports is not the sum of what each is worth")
    # Standard errors are those at the estimated share, so they are checked at the share the batch itself shows.
    share = min(max(total / len(batch), 0.0), 1.0)
    true = [len(batch) * (share * own + (1 - share) * other) for own, other in (each.variances() for each in worths)]
    if max(true) - min(true) > _CLOSE * max(true):
        return _SILENT  # the variance depends on what the others hold, of which two answers do not tell
    stated = float(estimate.std_errors[first]) ** 2
    if abs(stated - true[0]) > _CLOSE * true[0]:
        if abs(stated - true[0]) < _NEARLY * true[0]:
            return _SILENT  # the shares may be estimated in another way than here
        return Finding(VIOLATED, f"the variance of a count is stated {stated / true[0]:.6g} times as large as it is")
    return Finding(HOLDS)
