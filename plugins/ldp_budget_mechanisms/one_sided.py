"""One-sided protection of a yes/no question, called garbling: a yes stays, and a no turns into a yes with probability g.

Answers are 1 (yes) and 0 (no). P[yes | yes] = 1, P[yes | no] = g and P[no | yes] = 0. A reported no proves a no, so no
finite ε holds. What holds is one-sided differential privacy of the answer yes (Kotsogiannis et al. 2020): for every
report o, P[o | yes] <= e^η P[o | no] with

    η = ln(1/g).

π̂ = (r - g)/(1 - g), with r the share of reports that say yes, is unbiased (Mangat 1994).
"""

from __future__ import annotations

import functools
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ldp_budget.errors import InvalidParameter
from ldp_budget.guarantees import OneSided
from ldp_budget.guarantees.fixed_point import UP, ln_up
from ldp_budget.sampling import ONE, threshold
from ldp_budget.sdk.frequency_oracle import FrequencyMechanism
from ldp_budget.sdk.parameters import real

from .randomized_response import count_ones

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.sdk.client_program import Program


class OneSidedResponse(FrequencyMechanism):
    """Garbling: a yes is reported as it is, a no as a yes with probability g. It does not protect the answer no."""

    name = "one-sided"
    aliases = ("garbling",)
    summary = "garbling: a yes stays, a no turns into a yes; no is not protected, and no limit in ε counts it"
    source = "Mangat, JRSS B 56(1), 1994; Kotsogiannis, Doudalis, Haney, Machanavajjhala and Mehrotra, ICDE 2020"

    targets = ("g",)

    g = real("probability of reporting yes if the answer is no", above=0, below=1)

    protected = (1,)
    """The answers that the guarantee protects: yes."""

    def check(self) -> None:
        if self.noise >= ONE:
            raise InvalidParameter("g", "a number below 1 by at least 2**-64", self.declared["g"])

    @functools.cached_property
    def noise(self) -> int:
        """g as the client draws it, rounded up, in units of 2**-64."""
        return threshold(self.g, up=True)

    @property
    def answers(self) -> int:
        return 2

    @property
    def parameters(self) -> dict[str, float]:
        return {"g": float(self.g)}

    @property
    def guarantee(self) -> OneSided:
        return OneSided(ln_up(UP.divide(Decimal(1), self.g)))

    @property
    def support_probabilities(self) -> list[tuple[Fraction, Fraction]]:
        g = Fraction(self.noise, ONE)
        return [(1 - g, Fraction(0)), (Fraction(1), g)]

    @property
    def notes(self) -> tuple[str, ...]:
        eta = self.guarantee.eta
        times = float(1 / (1 - Fraction(self.noise, ONE)))
        return (
            f'ε: unlimited. "yes" is deniable: η = {float(eta):.6g}. "no" is not protected: a reported no is certain.',
            f"randomized-response --epsilon {float(eta):.6g} protects both answers by these odds, with {times:.3g} times "
            "the variance for a rare yes, and fits a limit in ε.",
        )

    def client_program(self) -> Program:
        """Return the client program; reports are uint8 (n,), 1 for yes."""
        from ldp_budget.sdk.client_program import Program, answers, uint, whole

        steps: tuple[tuple[str, Any], ...] = (
            ("if_no", ["bit", whole(self.noise)]),
            ("report", ["where", "value", 1, "if_no"]),
        )
        return Program(answers(self.domain), steps, uint("report", 1))

    def support(self, reports: Any) -> tuple[int, NDArray[np.int64]]:
        import numpy as np

        count, ones = count_ones(reports)
        return count, np.array([count - ones, ones], dtype=np.int64)
