"""Frequency estimation: what every mechanism has in common that asks for one of d answers.

A report *supports* answer v with probability p_v where v is the user's answer and q_v where it is not. From the
support counts C_v of n reports, (C_v - n·q_v)/(p_v - q_v) is an unbiased estimate of how many users hold v, with
variance n·[q(1-q)/(p-q)² + f(1-p-q)/(p-q)] where f is the share of users who do. Source: Wang, Blocki, Li and
Jha 2017, Theorem 2, with the term in f that they leave out.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ClassVar, Self

from .domain import Categories, check_users
from .mechanism import Mechanism

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from .estimates import Aggregate, CountEstimate, SupportLaw

MOST_ANSWERS = 4 * 10**6
"""Answers that are all counted: an estimate of so many takes a few hundred megabytes and seconds."""

_FEW = 32


class FrequencyMechanism(Mechanism):
    """A mechanism over the answers 0..answers-1. Subclasses give `support_probabilities` and `support`.

    Parameters:
        declared: the fields, by name.

    Raises:
        InvalidParameter: as for `Mechanism`.
    """

    public_seed: ClassVar[str] = ""
    """The field that seeds public randomness, where only over its draws the estimate is unbiased."""

    @classmethod
    def for_answers(cls, epsilon: Any, domain_size: int) -> Self:
        """The one that is ranked against others at `epsilon` for that many answers, by default calibrated so.

        Override it where more must be chosen, or the fields have other names.

        Parameters:
            epsilon: of one report.
            domain_size: how many answers there are.

        Raises:
            InvalidParameter: one of them is out of its range.
            NotSupported: there is none.
        """
        return cls._for_ranking(epsilon=epsilon, domain_size=domain_size)

    @property
    def answers(self) -> int:
        """d, the number of possible answers. Subclasses give it."""
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
        """How many reports there are, and how many of them support each answer, an array (d,). Subclasses give it.

        Parameters:
            reports: an array whose first axis is the users, as `randomize` gave it.

        Raises:
            NotSupported: these are no reports of this mechanism.
        """
        raise NotImplementedError

    @property
    def errors_are_bounds(self) -> bool:
        """Whether standard errors are upper bounds: their squares right on average, or too large, but not exact."""
        return False

    def critical_inputs(self) -> Sequence[int]:
        """Every answer where there are few; else some of them, as all answers are treated alike.

        Raises:
            Nothing.
        """
        d = self.answers
        return range(d) if d <= _FEW else (0, 1, d // 2, d - 1)

    def aggregate(self, reports: Any) -> Aggregate:
        from .estimates import CountAggregate

        return CountAggregate(self.fingerprint, *self.support(reports))

    def estimate(self, reports: Any) -> CountEstimate:
        return self._law.estimate(self.total(reports))

    def utility(self, users: int | None = None) -> dict[str, Any]:
        law = self._law
        worst = float(law.at_zero.max())
        result = {
            "variance_per_user": worst,
            "variance_per_unit_frequency": float(law.slope[law.at_zero.argmax()]),
            "total_variance_per_user": self.total_variance(),
        }
        if users is not None:
            check_users(users)
            result["std_error"] = (worst / users) ** 0.5
        return result

    def share_errors(self, users: int) -> tuple[float, float]:
        """The standard error of a share: at worst, and the root of its mean square over the answers.

        Parameters:
            users: how many report.

        Raises:
            InvalidParameter: `users` is no whole number >= 1.
        """
        check_users(users)
        law = self._law
        worst = max(float(law.at_zero.max()), float(law.at_one.max()))
        return (worst / users) ** 0.5, (self.total_variance() / self.answers / users) ** 0.5

    def total_variance(self) -> float:
        """The variance per user of all the counts together, for any answers the users may have given.

        Raises:
            Nothing.
        """
        return self._law.total_variance(self.answers)

    @functools.cached_property
    def _law(self) -> SupportLaw:
        from .estimates import SupportLaw

        return SupportLaw.of(self.support_probabilities, self.draws_per_report)
