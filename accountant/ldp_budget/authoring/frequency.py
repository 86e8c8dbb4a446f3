"""Frequency estimation: what every mechanism has in common that asks for one of d answers.

A report *supports* answer v with probability p_v where v is the user's answer and q_v where it is not. From the
support counts C_v of n reports, (C_v - n·q_v)/(p_v - q_v) is an unbiased estimate of how many users hold v, with
variance n·[q(1-q)/(p-q)² + f(1-p-q)/(p-q)] where f is the share of users who do. Source: document 000; Wang, Blocki,
Li and Jha 2017, Theorem 2, with the term in f that they leave out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from .base import Mechanism
from .domain import Categories, check_users
from .estimates import CountAggregate, CountEstimate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from .estimates import Aggregate

_FEW = 32


class FrequencyMechanism(Mechanism):
    """A mechanism over the answers 0..answers-1. Subclasses give `support_probabilities` and `support`."""

    public_seed: ClassVar[str] = ""
    """The field that seeds public randomness, where only over its draws the estimate is unbiased."""

    @classmethod
    def for_answers(cls, epsilon: Any, domain_size: int) -> Self:
        """The one that is ranked against others at `epsilon` for that many answers, by default calibrated so.

        Override it where more must be chosen, or the fields have other names. Raises `InvalidParameter`, or
        `NotSupported` where there is none.
        """
        return cls._for_ranking(epsilon=epsilon, domain_size=domain_size)

    @property
    def answers(self) -> int:
        """d, the number of possible answers."""
        raise NotImplementedError

    @property
    def domain(self) -> Categories:
        """The answers 0..d-1."""
        return Categories(self.answers)

    @property
    def support_probabilities(self) -> list[tuple[Fraction, Fraction]]:
        """(p_v, q_v), exactly as the client draws: one pair for every answer, or one pair for all of them."""
        raise NotImplementedError

    @property
    def draws_per_report(self) -> int:
        """How many independent draws one report holds; `support` counts every one of them."""
        return 1

    def support(self, reports: Any) -> tuple[int, NDArray[np.int64]]:
        """How many reports there are, and how many of them support each answer, shape (d,)."""
        raise NotImplementedError

    def critical_inputs(self) -> Sequence[int]:
        """Every answer where there are few; else some of them, as all answers are treated alike."""
        d = self.answers
        return range(d) if d <= _FEW else (0, 1, d // 2, d - 1)

    def aggregate(self, reports: Any) -> Aggregate:
        return CountAggregate(self.fingerprint, *self.support(reports))

    def estimate(self, reports: Any) -> CountEstimate:
        import numpy as np

        total = self.total(reports)
        _, q = self._probabilities()
        gap = self._gap()
        n = total.reports
        counts = (total.support / self.draws_per_report - n * q) / gap
        shares = np.clip(counts / n, 0, 1)
        zero, slope = self._variance()
        return CountEstimate(n, counts, np.sqrt(n * (zero + slope * shares)))

    def utility(self, users: int | None = None) -> dict[str, Any]:
        zero, slope = self._variance()
        worst = float(zero.max())
        result = {
            "variance_per_user": worst,
            "variance_per_unit_frequency": float(slope[zero.argmax()]),
            "total_variance_per_user": self.total_variance(),
        }
        if users is not None:
            check_users(users)
            result["std_error"] = (worst / users) ** 0.5
        return result

    def share_errors(self, users: int) -> tuple[float, float]:
        """The standard error of a share from `users` reports: at worst, and the root of its mean square."""
        zero, slope = self._variance()
        worst = float((zero + slope.clip(min=0)).max())
        return (worst / users) ** 0.5, (self.total_variance() / self.answers / users) ** 0.5

    def total_variance(self) -> float:
        """The variance per user of all the counts together, for any answers the users may have given."""
        zero, slope = self._variance()
        repeat = self.answers // len(zero)
        return float(repeat * zero.sum() + slope.max())

    def _probabilities(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        import numpy as np

        pairs = self.support_probabilities
        return np.array([float(p) for p, _ in pairs]), np.array([float(q) for _, q in pairs])

    def _gap(self) -> NDArray[np.float64]:
        """p - q, subtracted exactly: at small ε the two nearly agree."""
        import numpy as np

        return np.array([float(p - q) for p, q in self.support_probabilities])

    def _variance(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The variance per user of each count at zero frequency, and how fast it grows with the frequency."""
        import numpy as np

        pairs = self.support_probabilities
        draws = self.draws_per_report
        zero = np.array([float(q * (1 - q) / (p - q) ** 2 / draws) for p, q in pairs])
        slope = np.array([float((1 - p - q) / (p - q) / draws) for p, q in pairs])
        return zero, slope
