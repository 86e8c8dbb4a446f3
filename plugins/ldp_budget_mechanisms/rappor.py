"""RAPPOR: Bloom filters behind a permanent and an instantaneous randomized response.

Source: Erlingsson, Pihur and Korolova 2014.

A user belongs to one of m cohorts, which is public. The value sets h of k bits, by hash functions of the cohort.
Each bit B of this filter is replaced, once for the value, by

    B' = 1 with probability f/2,  0 with probability f/2,  B otherwise,

and each report shows of every bit S = 1 with probability q where B' = 1, and p where B' = 0.

`_rappor_loss` computes the privacy loss over time, and `_rappor_reports` decodes the reports on the server.
"""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget.guarantees import SAME_CHANGE_PATTERN, Guarantee, Memoised
from ldp_budget.guarantees.fixed_point import DOWN, UP, float_above, float_below
from ldp_budget.sampling import ONE
from ldp_budget.sdk.channels import Case, Comparison, Factor
from ldp_budget.sdk.domain import Categories, check_users
from ldp_budget.sdk.mechanism import Mechanism
from ldp_budget.sdk.parameters import flag, integer, optional_integer, optional_real

from ._citations import CASE_STUDY
from ._rappor_loss import (
    MOST_POINTS,
    Response,
    Thresholds,
    calibrated,
    change_loss,
    curve,
    drawn,
    fresh_pair,
    shown_bits,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.sdk.client_program import Program
    from ldp_budget.sdk.estimates import CountEstimate

    from ._rappor_reports import BitLaw, BloomFamily, CohortAggregate

_MOST_ANSWERS = 10**12
_MOST_COUNTERS = 2**24
_MOST_PREDICTED = 500
_MOST_WORK = 2**31
_TRIED = 64
_PROBABILITIES = ("f", "p", "q")
_TARGETS = ("epsilon", "epsilon_lifetime")


class Rappor(Mechanism):
    """RAPPOR from f, p and q, or from the loss of one report and of all reports of a value (then q = 1-p).

    Values are integers, 0..domain_size-1 if the domain is declared, and hashed as their decimal text.

    The guarantee. t reports that repeat one memoised value lose ε(t) ≤ ε(∞), for any shown bits, so their number may
    be
    chosen adaptively. Permanent bits of different values are independent. So a user whose values a, b, ... are
    reported
    t_a, t_b, ... times loses at most ε(t_a) + ε(t_b) + ...: against any other values in a history that is *equal in
    the
    same places*, the relation `same change pattern`. Overlapping filters do no harm: values that share bits differ in
    fewer.

    It does not hold for `any inputs`. All k bits, not only the 2h where two values differ, show whether two reports
    come
    from the same permanent bits. So, in time, reports show whether a value changed or came back: `change_loss`. With
    `any_inputs` no bits are permanent: each report draws its own, loses ε(1) and adds to the others.
    """

    name = "rappor"
    summary = "a Bloom filter of the value, noised once for good and again in every report"
    source = f"Erlingsson, Pihur and Korolova, RAPPOR, CCS 2014; {CASE_STUDY}, section 3.1"

    targets = ("epsilon", *_PROBABILITIES)
    public_seed = "seed"
    hides_repeats = True

    bits = integer("bits of the Bloom filter, k", at_least=2, at_most=2**16)
    hashes = integer("hash functions, h", at_least=1, at_most=64)
    cohorts = integer("cohorts of users, m, each with hash functions of its own", at_least=1, at_most=4096)
    f = optional_real("probability that a permanent bit is a fair coin", at_least=1e-300, below=1)
    p = optional_real("probability that a report shows a one for a permanent 0", at_least=0, below=1)
    q = optional_real("probability that a report shows a one for a permanent 1", above=0, at_most=1)
    epsilon = optional_real("privacy loss of one report, in place of f, p, q", above=0, at_most=10**6)
    epsilon_lifetime = optional_real("privacy loss of all reports of one value", above=0, at_most=10**6)
    any_inputs = flag("draw new permanent bits in every report, so that a change of value is hidden as well")
    seed = integer(
        "draws the public hash functions; a collection draws its own", at_least=0, at_most=2**63 - 1, default=0
    )
    domain_size = optional_integer(
        "number of possible answers, all of them candidates", at_least=2, at_most=_MOST_ANSWERS
    )
    values = optional_integer(
        "most different answers of one user, which the client promises and keeps; charges without labels stop at "
        "that many caps",
        at_least=1,
        at_most=_MOST_ANSWERS,
    )

    def check(self) -> None:
        if self.hashes > self.bits:
            raise InvalidParameter("hashes", f"at most the number of bits, {self.bits}", self.hashes)
        if self.bits * self.cohorts > _MOST_COUNTERS:
            raise InvalidParameter(
                "cohorts", f"at most {_MOST_COUNTERS // self.bits} with bits = {self.bits}", self.cohorts
            )
        self._check_target()
        if self.values is not None and self.any_inputs:
            raise InvalidParameter("values", "left out with any_inputs, which keeps no bits", self.values)
        if not self.thresholds.informative:
            option = "epsilon" if self.epsilon is not None else "p"
            expected = "a value whose reports differ from random bits at a precision of 64 bits"
            raise InvalidParameter(option, expected, self.declared[option])

    def _check_target(self) -> None:
        """Check that either f, p, q with p < q, or epsilon < epsilon_lifetime are given."""
        given = {name for name in (*_PROBABILITIES, *_TARGETS) if name in self.declared}
        missing = [name for name in _PROBABILITIES if name not in given]
        if given & set(_TARGETS):
            missing = [name for name in _TARGETS if name not in given]
            if given & set(_PROBABILITIES):
                found = f"{', '.join(sorted(given))} together"
                raise InvalidParameter(
                    "epsilon", "given with epsilon_lifetime alone, or left out for f, p and q", found
                )
        if missing:
            option = missing[0] if given else "epsilon"
            hint = "Give f, p and q, or epsilon and epsilon_lifetime."
            raise InvalidParameter(option, self.fields[option].expected, hint=hint)
        if self.p is not None and self.q is not None and self.p >= self.q:
            raise InvalidParameter("p", f"less than q, {self.q}", self.p)
        if self.epsilon is not None and self.epsilon_lifetime is not None and self.epsilon >= self.epsilon_lifetime:
            raise InvalidParameter("epsilon", f"less than epsilon_lifetime, {self.epsilon_lifetime}", self.epsilon)

    # -- parameters and guarantee -----------------------------------------------------------------------

    @functools.cached_property
    def thresholds(self) -> Thresholds:
        """f/2, p and q as the client draws them: f and p rounded up, q down, so that no ε(t) is exceeded."""
        if self.epsilon is not None and self.epsilon_lifetime is not None:
            return calibrated(self.epsilon, self.epsilon_lifetime, self.hashes)
        return drawn(self._response)

    @functools.cached_property
    def _response(self) -> Response:
        """The probabilities whose losses are stated: the declared ones, or the drawn ones if calibrated."""
        if self.f is None or self.p is None or self.q is None:
            return self.thresholds.response()
        return Response(DOWN.divide(self.f, Decimal(2)), self.p, self.q)

    @property
    def pseudonyms(self) -> int:
        return 1 if self.any_inputs else self.cohorts

    @property
    def parameters(self) -> dict[str, float]:
        if self.f is not None and self.p is not None and self.q is not None:
            return {"f": float(self.f), "p": float(self.p), "q": float(self.q)}
        flip, zero, one = map(Decimal, self.thresholds)
        return {
            "f": float_above(UP.divide(flip, Decimal(ONE // 2))),
            "p": float_above(UP.divide(zero, Decimal(ONE))),
            "q": float_below(DOWN.divide(one, Decimal(ONE))),
        }

    @functools.cached_property
    def _curve(self) -> tuple[list[Decimal], Decimal]:
        """ε(1), ε(2), ... and ε(∞); the declared targets replace calibrated ones."""
        points, cap = curve(self._response, self.hashes)
        if self.epsilon is not None and self.epsilon_lifetime is not None:
            cap = self.epsilon_lifetime
            points = [self.epsilon, *(min(max(point, self.epsilon), cap) for point in points[1:])]
        return points, cap

    @property
    def guarantee(self) -> Guarantee:
        points, cap = self._curve
        if self.any_inputs:
            return fresh_pair(self._response, self.thresholds, self.hashes, points[0])
        return Memoised(tuple(points), cap, self.values, SAME_CHANGE_PATTERN)

    @property
    def memoised_values(self) -> int | None:
        """The declared answers, or the promised ones: the permanent bits of each are drawn once, independently."""
        stated = [each for each in (self.domain_size, self.values) if each is not None]
        return None if self.any_inputs else min(stated, default=None)

    @property
    def notes(self) -> tuple[str, ...]:
        points, cap = self._curve
        one, two, last = (f"{float(loss):.6g}" for loss in (points[0], points[min(1, len(points) - 1)], cap))
        if self.any_inputs:
            return (f"No bits are kept, so k reports lose k times {one}; kept ones would lose {last} at most.",)
        notes = [
            f"One report loses {one}, two of the same value {two}, any number {last} at most; the ε of Jeong, "
            "Hong and Seo (2020) is that of one report.",
            "The promise holds against values that repeat in the same places. Whether a value changed or came back "
            f"can show beyond it{self._change()}; any_inputs hides that.",
        ]
        if len(points) == MOST_POINTS:
            notes.append(f"The curve is listed up to {MOST_POINTS} reports; more are charged up to the cap.")
        return tuple(notes)

    def _change(self) -> str:
        loss, charged = change_loss(self._response, self.hashes, self.bits), 2 * self._curve[0][0]
        return (
            f": the loss between two reports of one value and of two values is at least {loss:.6g}"
            if loss > charged
            else ""
        )

    def at_epsilon(self, epsilon: Any) -> Self:
        """Return the same mechanism with another loss of one report and the same loss of all of them."""
        kept = {name: value for name, value in self.declared.items() if name not in _PROBABILITIES}
        return type(self)(**{"epsilon_lifetime": self._curve[1], **kept, "epsilon": epsilon})

    # -- client -----------------------------------------------------------------------------------------

    @property
    def domain(self) -> Categories:
        """The declared answers, else any integer of up to twelve digits, as they are hashed."""
        return Categories(_MOST_ANSWERS, listed=False) if self.domain_size is None else Categories(self.domain_size)

    @property
    def _lot(self) -> int | None:
        return max(1, 2**17 // self.bits)

    def client_program(self) -> Program:
        """Return the program with a secret, as a device always has one; with `any_inputs` nothing is stored."""
        from ldp_budget.sdk.client_program import Program, answers, record, whole

        flip, zero, one = map(whole, self.thresholds)
        fresh: tuple[list[Any], list[Any]] = (["below", self.cohorts], ["bits", flip, self.bits])
        kept: tuple[list[Any], list[Any]] = (
            ["kept_belows", "cohort", 0, self.cohorts, 1],
            ["kept_bits", "permanent bits", "value", flip, self.bits],
        )
        drawn, flips = fresh if self.any_inputs else kept
        steps: tuple[tuple[str, Any], ...] = (
            ("drawn", drawn),
            ("cohort", "drawn" if self.any_inputs else ["at", "drawn", 0]),
            ("filter", ["bloom", str(self.seed), "cohort", "value", self.bits, self.hashes]),
            ("flips", flips),
            ("permanent", ["xor", "filter", "flips"]),
            ("ones", ["bits", one, self.bits]),
            ("zeros", ["bits", zero, self.bits]),
            ("row", ["where", "permanent", "ones", "zeros"]),
        )
        report = record([["uint", "cohort", 2, 1], ["packed", "row", self.bits]])
        return Program(answers(self.domain), steps, report, memo="" if self.any_inputs else "value")

    @functools.cached_property
    def _family(self) -> BloomFamily:
        from ._rappor_reports import BloomFamily

        return BloomFamily(self.bits, self.hashes, self.seed, self.cohorts)

    # -- verification -----------------------------------------------------------------------------------

    def critical_inputs(self) -> Sequence[int]:
        """Return the two of the first values whose filters differ in the most bits, in any of the first cohorts."""
        return self._family.furthest_apart(min(self.domain.size, _TRIED), _TRIED)

    def _differing(self, first: int, second: int) -> Counter[tuple[int, int]]:
        """Count cohorts by (i, j): the first value alone sets i bits, the second alone j."""
        own, other = (side.sum(axis=1).tolist() for side in self._family.alone(first, second))
        return Counter(zip(own, other, strict=True))

    def compare(self, first: int, second: int) -> Comparison:
        return self.compare_repeated(first, second, 1)

    def compare_repeated(self, first: int, second: int, reports: int | None) -> Comparison:
        """Compare the number of reports that show each bit that only one value sets.

        For endless reports, the permanent bit itself.
        """
        set_, unset = (shown_bits(self.thresholds, one, reports) for one in (True, False))
        own, other = Factor.of(set_, unset), Factor.of(unset, set_)
        differing = sorted(self._differing(first, second).items())
        return Comparison(
            tuple(Case(Fraction(n, self.cohorts), (own,) * i + (other,) * j) for (i, j), n in differing)
        )

    def outcomes(self, reports: Any, first: int, second: int) -> Any:
        from ._rappor_reports import number_reports

        return number_reports(reports, self._family.alone(first, second))

    def check_reports(self, reports: Any) -> None:
        from ._rappor_reports import check_reports

        check_reports(reports, self.cohorts, self.bits)

    # -- server -----------------------------------------------------------------------------------------

    def aggregate(self, reports: Any) -> CohortAggregate:
        """Return exact counts by cohort and bit. Raises `NotSupported` for anything but this mechanism's reports."""
        from ._rappor_reports import CohortAggregate, count_bits

        users, support = count_bits(reports, self.cohorts, self.bits)
        return CohortAggregate(self.fingerprint, int(users.sum()), support, users)

    def estimate(
        self, reports: Any, candidates: Any = None, *, method: str | None = None, consistent: bool = False
    ) -> CountEstimate:
        """Return how many users hold each of `candidates`, integers, shape (M,); by default the declared domain.

        `method`: "least-squares" is unbiased. Its standard errors are those of the noise and of the spread of users
        over cohorts, if every user holds one of the candidates. "lasso" (extra `rappor`) first selects the candidates
        that stand out, for lists longer than the reports can distinguish. Its standard errors are those of least
        squares as if the selection had been known. It misses rare candidates, and a `SelectedEstimate` says which
        were kept. None is least squares if the candidates' filters are independent, and the lasso if not.
        Memory: 8·m·k·M bytes for the candidates' filters. With `consistent`, the counts are >= 0 and add up to the
        number of reports, or to at most that if candidates are named.

        Raises `NotSupported` if there are no candidates or reports, the filters cannot distinguish the candidates, or
        scikit-learn is needed and missing; `OutsideDomain` and `InvalidParameter` for bad candidates and methods.
        """
        from ._rappor_reports import decode

        if method not in (None, "least-squares", "lasso"):
            raise InvalidParameter("method", "one of least-squares, lasso", repr(method))
        total = self.total(reports)
        found = decode(total, self._family.of_candidates(self._candidates(candidates)), self._law, method)
        from ldp_budget.sdk.consistency import maybe_consistent

        return maybe_consistent(replace(found, complete=candidates is None), consistent)

    def _candidates(self, candidates: Any) -> NDArray[np.int64]:
        if candidates is None:
            if self.domain_size is None:
                raise NotSupported("this rappor has no domain_size", hint="Pass the candidates to estimate.")
            candidates = range(self.domain_size)
        listed = self.domain.check(candidates)
        if not 0 < len(listed) == len(set(listed.tolist())):
            raise InvalidParameter("candidates", "at least one value, without repetitions", f"{len(listed)} values")
        return listed

    @functools.cached_property
    def _law(self) -> BitLaw:
        from ._rappor_reports import BitLaw

        flip, zero, one = (Fraction(part, ONE) for part in self.thresholds)
        low, high = zero + flip * (one - zero), one - flip * (one - zero)
        gap = high - low
        return BitLaw(float(low), float(gap), float(low * (1 - low) / gap**2), float(high * (1 - high) / gap**2))

    def utility(self, users: int | None = None) -> dict[str, Any]:
        """Return the errors of estimates.

        `bit_variance_per_user` is that of a corrected count t_ij, at bits that are not set. With a domain of at most 500, and
        M²·m·k up to 2**31, whose filters can be distinguished, `variance_per_user` is added. It is that of the least-squares
        count of the worst answer: an answer without users, while the other answers are equally frequent.
        """
        if users is not None:
            check_users(users)
        result = {"bit_variance_per_user": self._law.variance_zero}
        variance = self._worst_variance
        if variance is not None:
            result["variance_per_user"] = variance
            if users is not None:
                result["std_error"] = (variance / users) ** 0.5
        return result

    @functools.cached_property
    def _worst_variance(self) -> float | None:
        from ._rappor_reports import worst_variance

        size = self.domain_size
        if size is None or size > _MOST_PREDICTED or size**2 * self.bits * self.cohorts > _MOST_WORK:
            return None
        return worst_variance(self._family.of_candidates(self._candidates(None)), self._law)
