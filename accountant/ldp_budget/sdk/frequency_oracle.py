"""Frequency oracles: the base class of every mechanism that asks for one of d answers.

A report *supports* answer v with probability p_v where v is the user's answer, and q_v where it is not. From the
support counts C_v of n reports, (C_v - n·q_v)/(p_v - q_v) is an unbiased estimate of the number of users who hold v.
Its variance is n·[q(1-q)/(p-q)² + f(1-p-q)/(p-q)], where f is the share of users who hold v. Source: Wang, Blocki, Li
and Jha 2017, Theorem 2, with the term in f that they omit.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ..errors import NotSupported
from .domain import Categories, check_users
from .mechanism import Mechanism

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from .channel_estimator import ChannelEstimator
    from .channels import Comparison
    from .client_program import Program
    from .estimates import Aggregate, CountEstimate, SupportLaw
    from .report_law import Law
    from .report_relations import Relation
    from .share_laws import Cumulants

MOST_ANSWERS = 4 * 10**6
"""The most answers that are all counted. An estimate of so many takes a few hundred megabytes, and seconds."""

_FEW = 32


def choice_bits(size: int, chosen: int, *, ordered: bool = False) -> int:
    """Return the bits that number all sets, or if `ordered` all sequences, of `chosen` different ones out of `size`."""
    ways = math.lgamma(size + 1) - math.lgamma(size - chosen + 1) - (0.0 if ordered else math.lgamma(chosen + 1))
    # The logarithms are rounded, and a power of two is not to need one more.
    return math.ceil(ways / math.log(2) - 1e-6)


def _size_in_bits(program: Program, answers: int) -> int:
    """Return the number of bits that number all possible reports."""
    from .report_relations import draws_distinct
    from .value_ranges import ValueRanges

    ranges, bits = ValueRanges(program).of_name, 0
    for kind, name, *sizes in program.report["parts"]:
        if kind == "packed":
            bits += sizes[0]
        elif kind == "float64":
            bits += 64
        else:
            size, count = sizes
            most = min(ranges[name][1], 256**size - 1)
            width = 2 if most + 1 == 2 * answers else 1  # places of answers with a bit each
            if draws_distinct(program):
                ordered = any(isinstance(step, list) and step[0] == "shuffle" for _, step in program.steps)
                bits += (width - 1) * count + choice_bits((most + 1) // width, count, ordered=ordered)
            else:
                bits += count * most.bit_length()
    return bits


class FrequencyMechanism(Mechanism):
    """A mechanism over the answers 0..answers-1.

    A subclass defines `client(self, value, draw)`, and all else follows from it, see `client_mechanism`. Or it defines
    `guarantee`, `client_program` and `support_probabilities`; where its reports have none of the relations to answers
    that `report_relations` knows, also `support`.

    Parameters:
        declared: the fields, by name.

    Raises:
        InvalidParameter: as for `Mechanism`.
    """

    public_seed: ClassVar[str] = ""
    """The field that seeds public randomness, where the estimate is unbiased only over that randomness."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not callable(vars(cls).get("client")):
            return
        from .client_mechanism import ClientMechanism

        if not issubclass(cls, ClientMechanism):
            others = tuple(base for base in cls.__bases__ if base is not FrequencyMechanism)
            cls.__bases__ = (*others, ClientMechanism, FrequencyMechanism)

    @classmethod
    def for_answers(cls, epsilon: Any, domain_size: int) -> Self:
        """Return the mechanism that is ranked against others at `epsilon` and that many answers.

        By default it is calibrated to these two. Override the method where more must be chosen, or the fields have
        other names.

        Parameters:
            epsilon: the ε of one report.
            domain_size: the number of answers.

        Raises:
            InvalidParameter: `epsilon` or `domain_size` is out of its range.
            NotSupported: no mechanism of this class fits.
        """
        return cls._for_ranking(epsilon=epsilon, domain_size=domain_size)

    @property
    def answers(self) -> int:
        """d, the number of possible answers: by default the field `domain_size`."""
        size: int | None = getattr(self, "domain_size", None)
        if size is None:
            raise NotImplementedError
        return size

    @property
    def domain(self) -> Categories:
        """The answers 0..d-1."""
        return Categories(self.answers)

    def held(self, values: Any) -> NDArray[np.bool_]:
        """Return which of the counted answers each value holds, shape (n, d): its own one.

        Parameters:
            values: one for each user, as `randomize` takes them.
        """
        import numpy as np

        own: NDArray[np.bool_] = np.asarray(values)[:, np.newaxis] == np.arange(self.answers)
        return own

    @property
    def support_probabilities(self) -> list[tuple[Fraction, Fraction]]:
        """(p_v, q_v), exactly as the client draws: one pair for every answer, or one pair for all of them."""
        raise NotImplementedError

    @property
    def draws_per_report(self) -> int:
        """The number of independent draws in a report; `support` counts each of them."""
        return 1

    @property
    def _estimator(self) -> ChannelEstimator | None:
        """The estimator by least squares of a mechanism with few reports; None where supports of answers are counted."""
        return None

    @functools.cached_property
    def _relation(self) -> Relation | None:
        """The relation of a report to each answer, from the client program; None where `support` is defined without it."""
        if type(self).support is not FrequencyMechanism.support:
            return None
        from .report_relations import relation_of

        return relation_of(self.client_program(), self.answers)

    def check_reports(self, reports: Any) -> None:
        if self._relation is None:
            super().check_reports(reports)
        else:
            self._relation.check(reports)

    def support(self, reports: Any) -> tuple[int, NDArray[np.int64]]:
        """Return the number of reports, and the number that support each answer, an array (d,).

        By default a report supports the answers that it holds, see `report_relations`.

        Parameters:
            reports: an array whose first axis is the users, as `randomize` returns it.

        Raises:
            NotSupported: `reports` are not reports of this mechanism.
        """
        if self._relation is None:
            raise NotImplementedError
        count, found = self._relation.counts(reports)
        return count, found[1]

    @property
    def errors_are_bounds(self) -> bool:
        """True if standard errors are upper bounds: their squares are right on average or too large, not exact."""
        return False

    def critical_inputs(self) -> Sequence[int]:
        """Return every answer where there are few; else some of them, as all answers are treated alike."""
        d = self.answers
        return range(d) if d <= _FEW else (0, 1, d // 2, d - 1)

    def aggregate(self, reports: Any) -> Aggregate:
        from .estimates import CountAggregate

        return CountAggregate(self.fingerprint, *self.support(reports))

    def estimate(self, reports: Any, *, consistent: bool = False) -> CountEstimate:
        """Return an unbiased estimate with standard errors, from reports or from an aggregate of them.

        Parameters:
            reports: as `aggregate` takes them; or an aggregate.
            consistent: True for counts >= 0 that add up to the number of reports, which are biased; see `consistency`.

        Raises:
            NotSupported: `reports` are not reports of this mechanism, or there are none.
            InvalidParameter: `consistent` is neither True nor False.
        """
        from .consistency import maybe_consistent

        estimator = self._law if self._estimator is None else self._estimator
        return maybe_consistent(estimator.estimate(self.total(reports)), consistent)

    def contributions(self, reports: Any) -> NDArray[np.float64]:
        """Return (support - q)/(p - q) of each report and answer, shape (n, d); see `Mechanism.contributions`.

        Where `support` is defined without a relation, it asks for the support of each distinct report. Then override it
        where reports are mostly distinct.

        Parameters:
            reports: as `aggregate` takes them.

        Raises:
            NotSupported: `reports` are not reports of this mechanism, or it does not list its answers.
        """
        import numpy as np

        from .interpreter import as_reports

        if self._relation is not None:
            return self._law.counts(self._relation.of_each(self._relation.check(reports)), 1)
        rows = as_reports(reports)
        if not rows.ndim or not len(rows):
            return np.zeros((0, self.answers))
        distinct, places = np.unique(rows, axis=0, return_inverse=True)
        each = [self._contribution(distinct[place : place + 1]) for place in range(len(distinct))]
        found: NDArray[np.float64] = np.stack(each)[places.reshape(-1)]
        return found

    @property
    def contribution_law(self) -> Cumulants:
        """The variance and the third cumulant of a contribution, of those who hold an answer and of others, each (d,)."""
        import numpy as np

        from .share_laws import Cumulants

        if self._estimator is not None:
            return self._estimator.cumulants()
        return Cumulants(*(np.broadcast_to(part, (self.answers,)) for part in self._law.cumulants()))

    @property
    def least_noise(self) -> NDArray[np.float64]:
        """The least variance that randomization alone gives to a contribution of each answer, (d,)."""
        import numpy as np

        law = self.contribution_law
        least: NDArray[np.float64]
        least = np.minimum(law.other, law.held) if self._estimator is None else self._estimator.spread.min(axis=1)
        return least

    @property
    def contribution_noise(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(at_zero, slope), each (d,): randomization gives a contribution the variance at_zero + slope·1{answer}, or less."""
        import numpy as np

        if self._estimator is not None:
            most = self._estimator.spread.max(axis=1)
            return most, 0 * most
        law, ones = self._law, np.ones(self.answers)
        return law.at_zero * ones, (law.at_one - law.at_zero) * ones

    def _contribution(self, report: Any) -> NDArray[np.float64]:
        """Return the contribution of one report, an array (d,)."""
        support = self.support(report)[1]
        return self._law.counts(support, 1) if self._estimator is None else self._estimator.inverse @ support

    @property
    def report_bits(self) -> int | None:
        """The size of a report in bits: those that number all possible reports. None without a client program."""
        try:
            program = self.client_program()
        except NotSupported:
            return None
        return _size_in_bits(program, self.domain.size)

    def utility(self, users: int | None = None) -> dict[str, Any]:
        if self._estimator is None:
            law = self._law
            worst = float(law.at_zero.max())
            slope = {"variance_per_unit_frequency": float(law.slope[law.at_zero.argmax()])}
        else:
            worst, slope = self._estimator.worst_at_zero(), {}
        result = {"variance_per_user": worst, **slope, "total_variance_per_user": self.total_variance()}
        if users is not None:
            check_users(users)
            result["std_error"] = (worst / users) ** 0.5
        return result

    def share_errors(self, users: int) -> tuple[float, float]:
        """Return the standard error of a share: the largest, and the root mean square over the answers.

        Parameters:
            users: the number of users who report.

        Raises:
            InvalidParameter: `users` is not a whole number >= 1.
        """
        check_users(users)
        if self._estimator is None:
            law = self._law
            worst = max(float(law.at_zero.max()), float(law.at_one.max()))
        else:
            worst = float(self._estimator.spread.max())
        return (worst / users) ** 0.5, (self.total_variance() / self.answers / users) ** 0.5

    def total_variance(self) -> float:
        """Return the variance per user of all counts together, for the answers of the users that make it largest."""
        if self._estimator is not None:
            return float(self._estimator.spread.sum(axis=0).max())
        return self._law.total_variance(self.answers)

    # -- the law of a report -----------------------------------------------------------------------------

    @functools.cached_property
    def report_law(self) -> Law:
        """The law of one report, derived from the client program once.

        Built-in mechanisms state their guarantee from the parameters instead, so that the rounding of thresholds changes
        no stored price; `verify` holds it against this law.

        Raises:
            NotSupported: there is no client program, or no rule derives the law of any two answers exactly.
        """
        from .report_law import law_of

        found = law_of(self.client_program())
        if not (found.every_pair and found.tight):
            raise NotSupported(f"the law of mechanism {self.name} is only bounded, by {found.rule}")
        return found

    def compare(self, first: int, second: int) -> Comparison:
        """Return the comparison of two answers that the client program's law has; see `Mechanism.compare`.

        Parameters:
            first: an answer.
            second: another answer.

        Raises:
            NotSupported: there is no client program, or its law is not derived exactly.
        """
        return self.report_law.comparison(first, second)

    def outcomes(self, reports: Any, first: int, second: int) -> Any:
        """Return the outcome of `compare` that each report has; see `Mechanism.outcomes`.

        Parameters:
            reports: as `randomize` returns them.
            first: an answer.
            second: another answer.

        Raises:
            NotSupported: as for `compare`; or reports of this form are not numbered.
        """
        return self.report_law.outcomes(reports, first, second)

    @functools.cached_property
    def _law(self) -> SupportLaw:
        from .estimates import SupportLaw

        return SupportLaw.of(self.support_probabilities, self.draws_per_report)
