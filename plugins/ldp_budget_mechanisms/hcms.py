"""The Hadamard count mean sketch (Apple 2017; Jeong, Hong and Seo 2020, corrected): one bit in place of m.

The client's cell h is the vector v with a one at h and zeros elsewhere; its Hadamard transform w = H·v has entries
±1, w_l = (-1)^(number of ones in h AND l). The client draws l uniformly from the m coefficients and sends the sign
of w_l, turned with probability 1/(e^ε+1). A report supports the cells whose w_l has the sign sent.
"""

from __future__ import annotations

import functools
import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ldp_budget.authoring.channels import Case, Comparison, Factor
from ldp_budget.errors import InvalidParameter
from ldp_budget.guarantees import Guarantee, SymmetricPair
from ldp_budget.guarantees.amounts import DOWN, UP, exp_down
from ldp_budget.randomness import ONE, threshold

from ._sketch import Sketch
from ._sources import CASE_STUDY

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.authoring.programs import Program
    from ldp_budget.randomness import RandomSource

    from ._sketch import Cells
    from ._sketch_server import SketchAggregate


class HadamardCountMeanSketch(Sketch):
    """HCMS: the sign of one Hadamard coefficient of the cell; the width is a power of two.

    The signs of two cells differ in half of the coefficients, and which one is sent does not depend on the value, so
    the loss is ±ε with probability τ = 1/2 and nothing otherwise.
    """

    name = "hcms"
    aliases = ("hadamard-count-mean-sketch",)
    summary = "one randomized sign of a hash of the value; for domains too large to list, in a few bytes"
    source = f"Apple, Learning with Privacy at Scale (2017); {CASE_STUDY}, section 3.2.2, corrected"

    def check(self) -> None:
        super().check()
        if self.width & (self.width - 1):
            raise InvalidParameter("width", "a power of two", self.width)
        if 2 * self.keep <= ONE:
            expected = "a loss large enough to be drawn with 64-bit probabilities"
            raise InvalidParameter("epsilon", expected, self.declared["epsilon"])

    @functools.cached_property
    def keep(self) -> int:
        """The probability e^ε/(e^ε+1) that a sign is kept, as it is drawn: in units of 2**-64, rounded down."""
        turned = UP.divide(Decimal(1), DOWN.add(exp_down(self.epsilon), Decimal(1)))
        return threshold(DOWN.subtract(Decimal(1), turned), up=False)

    @property
    def guarantee(self) -> Guarantee:
        return SymmetricPair(self.epsilon, Decimal("0.5"))

    @property
    def _cell_probabilities(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.keep, ONE), Fraction(1, 2)

    @property
    def notes(self) -> tuple[str, ...]:
        epsilon = float(self.epsilon)
        printed = -math.tanh(epsilon / 2) / math.tanh(epsilon / 4) / 2
        return (
            "Fig. 9 and 10 of Jeong, Hong and Seo (2020) start from a vector of -1, debias by e^(ε/2) and add the "
            f"1/2 of CMS: among n users, a value that nobody holds would be counted about {printed:.3g}·n times. "
            "Here the vector starts from 0, c is (e^ε+1)/(e^ε-1), and nothing is added.",
            *super().notes,
        )

    # -- client -----------------------------------------------------------------------------------------

    def randomize(self, values: Any, *, rng: RandomSource = None, secrets: Any = None) -> NDArray[Any]:
        """Reports are unsigned integers (n,), the smallest that hold 2km - 1.

        Report 2(j·m + l) + s is the sign (-1)^s for coefficient l under hash function j.
        """
        from ldp_budget.randomness import open_stream

        from ._hcms_reports import draw_reports

        return draw_reports(open_stream(rng), self._family, self._points(self.domain.check(values)), self.keep)

    def check_reports(self, reports: Any) -> None:
        from ._hcms_reports import check_reports

        check_reports(reports, self._family)

    def client_program(self) -> Program:
        from ldp_budget.authoring.programs import Program, answers, uint, whole

        from ._hcms_reports import cell_bits

        function: list[Any] = ["shr", "place", cell_bits(self._family)]
        # The sign that is kept is the parity; the bit sent is one where it is not.
        steps: tuple[tuple[str, Any], ...] = (
            ("place", ["below", self.hashes * self.width]),
            ("kept", ["bit", whole(self.keep)]),
            ("cell", ["polynomial", str(self.seed), function, "value", self.width]),
            ("sign", ["eq", ["parity", ["and", "place", "cell"]], "kept"]),
            ("report", ["add", ["mul", 2, "place"], "sign"]),
        )
        return Program(answers(self.domain), steps, uint("report", 2 * self.hashes * self.width - 1))

    # -- what can be checked ----------------------------------------------------------------------------

    def compare(self, first: int, second: int) -> Comparison:
        """Whether the sign is that of the first value, for the half of the coefficients that tell cells apart."""
        keep = Fraction(self.keep, ONE)
        telling = self._family.share_apart(first, second) / 2
        return Comparison((Case(telling, (Factor.bit(keep, 1 - keep),)), Case(1 - telling, ())))

    def outcomes(self, reports: Any, first: int, second: int) -> Any:
        from ._hcms_reports import number_reports

        return number_reports(reports, self._family, first, second)

    # -- server -----------------------------------------------------------------------------------------

    def aggregate(self, reports: Any) -> SketchAggregate:
        """The sum of the signs sent for each coefficient. Raises `NotSupported` for anything but reports."""
        from ._hcms_reports import count_reports

        return count_reports(reports, self._family, self.fingerprint)

    def _cell_sums(self, rows: Cells) -> Cells:
        from ._hcms_reports import hadamard

        return hadamard(rows)

    def _support(self, total: SketchAggregate, values: NDArray[np.int64]) -> NDArray[np.int64]:
        # The sums are of +1 for a report that supports the value and -1 for one that does not.
        return (super()._support(total, values) + total.reports) // 2

    def _energy(self, rows: Cells) -> float:
        # Coefficient 0 is the same for every cell and tells nothing.
        return float((rows[:, 1:].astype(float) ** 2).sum())

    @property
    def _energies(self) -> tuple[float, float]:
        p, _ = self._cell_probabilities
        m = self.width
        return (m - 1) / m, float((2 * p - 1) ** 2) * (m - 1) / m**2

    def _theorem_variance(self) -> float:
        return 1 / math.tanh(float(self.epsilon) / 2) ** 2
