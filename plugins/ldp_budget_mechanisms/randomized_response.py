"""Warner's randomized response to a yes/no question (Warner 1965).

Answers are 1 (yes) and 0 (no). With p = P[report yes | yes] and q = P[report yes | no],

    ε = ln max( p/q, (1-q)/(1-p) ).

With two coins, the first says whether to answer truthfully (probability `truth`), the second what to say
otherwise (yes with probability `yes`): p = truth + (1-truth)·yes, q = (1-truth)·yes. Two fair coins give ln 3.
"""

from __future__ import annotations

import functools
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget.guarantees import Guarantee, SymmetricPair
from ldp_budget.guarantees.dominating_pairs import dominating_pair
from ldp_budget.guarantees.fixed_point import DOWN, UP, exp_down, float_above, float_below
from ldp_budget.sampling import ONE, threshold
from ldp_budget.sdk.frequency_oracle import FrequencyMechanism
from ldp_budget.sdk.parameters import optional_real

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.sdk.client_program import Program


class RandomizedResponse(FrequencyMechanism):
    """Randomized response from ε (symmetric, p = e^ε/(e^ε+1)), from two coins, or from p and q."""

    name = "randomized-response"
    aliases = ("rr", "warner")
    summary = "a yes/no answer, truthful with probability p"
    source = "Warner, JASA 60(309), 1965"

    targets = ("epsilon", "truth", "yes")

    epsilon = optional_real("privacy loss of one report", above=0, at_most=10**6)
    truth = optional_real("probability that the first coin says: answer truthfully", above=0, below=1)
    yes = optional_real("probability that the second coin says yes", above=0, below=1)
    p = optional_real("probability of reporting yes if the answer is yes", above=0, below=1, derived=True)
    q = optional_real("probability of reporting yes if the answer is no", above=0, below=1, derived=True)

    def check(self) -> None:
        ways = (("epsilon",), ("truth", "yes"), ("p", "q"))
        given = [way for way in ways if any(name in self.declared for name in way)]
        if len(given) != 1:
            hint = "Give epsilon, or truth and yes, or p and q."
            if not given:
                raise InvalidParameter("epsilon", self.fields["epsilon"].expected, hint=hint)
            expected = "given without other targets, or left out"
            raise InvalidParameter("epsilon", expected, f"{' and '.join(self.declared)} together", hint=hint)
        for name in given[0]:
            if name not in self.declared:
                raise InvalidParameter(name, self.fields[name].expected, hint=f"Give both {' and '.join(given[0])}.")
        keep, noise = self.thresholds
        if keep <= noise:
            option = given[0][0]
            raise InvalidParameter(
                option, "a value with which p is greater than q by at least 2**-64", self.declared[option]
            )

    def _bounds(self) -> tuple[Decimal, Decimal]:
        """p rounded down and q rounded up."""
        if self.epsilon is not None:
            q = UP.divide(Decimal(1), DOWN.add(exp_down(self.epsilon), Decimal(1)))
            return DOWN.subtract(Decimal(1), q), q
        if self.truth is not None and self.yes is not None:
            otherwise = UP.subtract(Decimal(1), self.truth)
            q = UP.multiply(otherwise, self.yes)
            return DOWN.add(self.truth, DOWN.multiply(otherwise, self.yes)), q
        assert self.p is not None
        assert self.q is not None
        return self.p, self.q

    @functools.cached_property
    def thresholds(self) -> tuple[int, int]:
        """p and q as the client draws them, in units of 2**-64."""
        p, q = self._bounds()
        return threshold(p, up=False), threshold(q, up=True)

    @property
    def answers(self) -> int:
        return 2

    @property
    def parameters(self) -> dict[str, float]:
        p, q = self._bounds()
        return {"p": float_below(p), "q": float_above(q)}

    @property
    def guarantee(self) -> Guarantee:
        if self.epsilon is not None:
            return SymmetricPair(self.epsilon, Decimal(1))
        p, q = map(Fraction, self._bounds())
        return dominating_pair([[p, 1 - p], [q, 1 - q]])

    @property
    def support_probabilities(self) -> list[tuple[Fraction, Fraction]]:
        p, q = (Fraction(drawn, ONE) for drawn in self.thresholds)
        return [(1 - q, 1 - p), (p, q)]

    def client_program(self) -> Program:
        """Return the client program; reports are uint8 (n,), 1 for yes."""
        from ldp_budget.sdk.client_program import Program, answers, uint, whole

        keep, noise = map(whole, self.thresholds)
        steps: tuple[tuple[str, Any], ...] = (
            ("if_yes", ["bit", keep]),
            ("if_no", ["bit", noise]),
            ("report", ["where", "value", "if_yes", "if_no"]),
        )
        return Program(answers(self.domain), steps, uint("report", 1))

    def support(self, reports: Any) -> tuple[int, NDArray[np.int64]]:
        import numpy as np

        count, ones = count_ones(reports)
        return count, np.array([count - ones, ones], dtype=np.int64)


def count_ones(reports: Any) -> tuple[int, int]:
    """Return the number of reports, and the number of ones. Raises `NotSupported` for anything but 0 and 1."""
    from ldp_budget.sdk.interpreter import as_reports

    rows = as_reports(reports)
    if rows.ndim != 1 or rows.dtype.kind not in "iubf" or not ((rows == 0) | (rows == 1)).all():
        raise NotSupported(f"reports must be 0 or 1, of shape (n,): got {rows.dtype} {rows.shape}")
    return len(rows), int(rows.sum())
