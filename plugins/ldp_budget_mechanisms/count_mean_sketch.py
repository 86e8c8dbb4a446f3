"""The count mean sketch (CMS) and the Hadamard count mean sketch (HCMS), and their base class.

Sources: Apple 2017; Jeong, Hong and Seo 2020, corrected for HCMS. CMS sends a hash of the value as m randomized bits,
HCMS one bit instead of m.

A client hashes its value v to one of m cells by one of k public functions, j, and reports j with a randomized form
of the cell h_j(v). A report supports the value u if it supports the cell h_j(u). Another value shares v's cell
with probability 1/m over the draw of the functions, so a sketch is a frequency mechanism with

    p_v = p,   q_v = q + (p - q)/m,

where p and q are the probabilities of support for the client's own cell and for another one. Its estimate is that of
their Fig. 7. Two clients of one other value share v's cell or miss it together if they use the same function. This
adds Σ_{u≠v} f_u(f_u - 1)/(k(m - 1)) to the variance of the count of v. With three-wise independent functions, no other
two reports are correlated.

For HCMS, the client's cell h is the vector v with a one at h and zeros elsewhere.
Its Hadamard transform w = H·v has entries ±1, w_l = (-1)^(number of ones in h AND l). The client draws l uniformly
from the m coefficients and sends the sign of w_l, flipped with probability 1/(e^ε+1). A report supports the cells
whose w_l has the sign sent.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget.guarantees import Guarantee, SymmetricPair
from ldp_budget.guarantees.fixed_point import DOWN, UP, exp_down
from ldp_budget.sampling import ONE, threshold
from ldp_budget.sdk.channels import Case, Comparison, Factor
from ldp_budget.sdk.domain import Categories, check_users
from ldp_budget.sdk.frequency_oracle import MOST_ANSWERS, FrequencyMechanism
from ldp_budget.sdk.parameters import integer, optional_integer, real

from ._citations import CASE_STUDY
from .unary_encoding import SymmetricUnaryEncoding

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.sdk.client_program import Program
    from ldp_budget.sdk.estimates import CountEstimate
    from ldp_budget.sdk.hash_families import HashFamily, Words

    from ._sketch_reports import SketchAggregate

    Cells = NDArray[np.int64]

_MOST_CELLS = 2**30
_ANY_NUMBER = 2**63
_SMALL_DOMAIN = 2**10
_TRIED = 16
_COMPARED = 1024
_FEW_PLACES = 16
"""From here on, a cut-off below the noise of the reports does not visibly change a standard error."""


class Sketch(FrequencyMechanism):
    """Base class of count mean sketches; subclasses define the randomized form of a cell and the sums of reports."""

    # The hash functions determine which values collide; the estimate corrects for collisions on average over them.
    public_seed = "seed"

    epsilon = real("privacy loss of one report", above=0, at_most=10**6)
    hashes = integer("hash functions k, the rows of the sketch", at_least=1, at_most=2**20)
    width = integer("cells m of each row", at_least=2, at_most=2**20)
    seed = integer(
        "draws the public hash functions; a collection draws its own", at_least=0, at_most=2**63 - 1, default=0
    )
    domain_size = optional_integer(
        "number of possible values; if left out, values are any whole numbers >= 0 and estimates need candidates",
        at_least=2,
        at_most=10**9,
    )

    @classmethod
    def for_answers(cls, epsilon: Any, domain_size: int) -> Self:
        """Return a sketch with 1024 functions and a width of 1024, which takes 8 MB.

        The sketches of Jeong, Hong and Seo take up to 512 MB. At ε = 1 it takes four million users until collisions,
        at their
        worst, add as much error as the noise.
        """
        return cls.calibrate(epsilon=epsilon, domain_size=domain_size, hashes=_COMPARED, width=_COMPARED)

    def check(self) -> None:
        most = _MOST_CELLS // self.hashes
        if self.width > most:
            raise InvalidParameter("width", f"at most {most} with hashes = {self.hashes}", self.width)

    # -- for subclasses ---------------------------------------------------------------------------------

    @property
    def _cell_probabilities(self) -> tuple[Fraction, Fraction]:
        """Return (p, q), as drawn: the probability of support for the client's own cell, and for another one."""
        raise NotImplementedError

    def _cell_sums(self, rows: Cells) -> Cells:
        """Return, for each cell of `rows`, shape (r, m), the sum of the reports' values for it: by default, the counts."""
        return rows

    def _energy(self, rows: Cells) -> float:
        """Return a sum of squares that grows with the pairs of reports that share function and cell, for `_energies`.

        By default it is taken around the mean of each row, which removes the effect of the number of reports in the row.
        """
        return float(((rows - rows.mean(axis=1, keepdims=True)) ** 2).sum())

    @property
    def _energies(self) -> tuple[float, float]:
        """Return the expected energy of one report, and the energy that two reports of one value and function add."""
        raise NotImplementedError

    def _theorem_variance(self) -> float | None:
        """Return the variance per user in a printed theorem, without (m/(m-1))² and the collisions, if there is one."""
        return None

    # -- derived from the parameters ----------------------------------------------------------------------

    @property
    def answers(self) -> int:
        """d. Raises `InvalidParameter` if no domain was declared."""
        if self.domain_size is None:
            raise InvalidParameter("domain_size", self.fields["domain_size"].expected)
        return self.domain_size

    @property
    def domain(self) -> Categories:
        """The declared values, else any integer of 63 bits."""
        return Categories(_ANY_NUMBER, listed=False) if self.domain_size is None else Categories(self.domain_size)

    @property
    def parameters(self) -> dict[str, int]:
        return {"hashes": self.hashes, "width": self.width}

    @property
    def support_probabilities(self) -> list[tuple[Fraction, Fraction]]:
        p, q = self._cell_probabilities
        return [(p, q + (p - q) / self.width)]

    @property
    def _places(self) -> int:
        """k(m-1): the number of independent ways in which a sketch can differ from an even one."""
        return self.hashes * (self.width - 1)

    @property
    def _pair_variance(self) -> float:
        """The variance that two users of one other value add to a count, for each order of the two."""
        return 1 / self._places

    @property
    def errors_are_bounds(self) -> bool:
        """True if there are too few cells to show how much values collide; see `with_errors`."""
        return self._places < _FEW_PLACES

    def utility(self, users: int | None = None) -> dict[str, Any]:
        """Return the errors of estimates.

        `variance_per_user` and `std_error` leave out collisions, which depend on the others' values. Collisions are at their
        worst if all users hold one value. `largest_variance` is then that of another value's count, and `theorem_bound` is
        the bound of Theorem 1 or 2 of Jeong, Hong and Seo.
        """
        zero, slope = self._per_user()
        result = {
            "variance_per_user": zero,
            "variance_per_unit_frequency": slope,
            "variance_per_pair": self._pair_variance,
        }
        if self.domain_size is not None:
            result["total_variance_per_user"] = self.total_variance()
        if users is not None:
            check_users(users)
            result["std_error"] = math.sqrt(zero / users)
            result["largest_variance"] = users * (zero + (users - 1) * self._pair_variance)
            printed = self._theorem_variance()
            if printed is not None:
                shrink = (self.width / (self.width - 1)) ** 2
                result["theorem_bound"] = shrink * users * (printed + users / (self.hashes * self.width))
        return result

    def share_errors(self, users: int) -> tuple[float, float]:
        """Return the errors of a share for any values that the users may have, so with collisions at their worst."""
        zero, _ = self._per_user()
        collisions = (users - 1) * self._pair_variance
        total = self.total_variance() + (self.answers - 1) * collisions
        return math.sqrt((zero + collisions) / users), math.sqrt(total / self.answers / users)

    def _per_user(self) -> tuple[float, float]:
        law = self._law
        return float(law.at_zero[0]), float(law.slope[0])

    @property
    def notes(self) -> tuple[str, ...]:
        zero, _ = self._per_user()
        equal = 1 + zero / self._pair_variance
        few = (
            f"With {self.hashes} x {self.width} cells a sketch hardly shows how much values collide: standard errors "
            "are bounds on average, and intervals wide. Where nearly all users hold one value, they cover less often "
            "than they say.",
        )
        return (
            *(few if self.errors_are_bounds else ()),
            "Estimates are unbiased over the draw of the hash functions; those of one seed shift them alike in every "
            "round. Standard errors include that. Where most users hold one value, collisions outweigh the noise of "
            f"the reports from {equal:.3g} users on; more hashes or a larger width help.",
        )

    # -- verification -----------------------------------------------------------------------------------

    def critical_inputs(self) -> Sequence[int]:
        """Return the two of the first values that share a cell under the fewest functions."""
        return self._family.least_colliding(min(self.domain_size or _TRIED, _TRIED))

    # -- client -----------------------------------------------------------------------------------------

    @functools.cached_property
    def _family(self) -> HashFamily:
        from ldp_budget.sdk.hash_families import HashFamily

        return HashFamily(self.seed, self.hashes, self.width)

    @functools.cached_property
    def _table(self) -> Words:
        """The points of the whole domain."""
        return self._family.points(range(self.answers))

    def _points(self, values: NDArray[np.int64]) -> Words:
        # A table of the domain is faster for as many values; a client with one value computes one digest.
        if self.domain_size is not None and self.domain_size <= max(len(values), _SMALL_DOMAIN):
            return self._table[values]
        return self._family.points_of(values)

    # -- server -----------------------------------------------------------------------------------------

    def aggregate(self, reports: Any) -> SketchAggregate:
        raise NotImplementedError

    def support(self, reports: Any) -> tuple[int, NDArray[np.int64]]:
        total = self.aggregate(reports)
        return total.reports, self._support(total, self._candidates(None))

    def estimate(self, reports: Any, candidates: Any = None, *, consistent: bool = False) -> CountEstimate:
        """Return the counts of `candidates`, integers (c,), or of the whole domain, from reports or their aggregate.

        With `consistent`, they are >= 0 and add up to the number of reports, or to at most that if there are values
        besides the candidates. Raises `NotSupported` if there are neither candidates nor a declared domain.
        """
        from ._sketch_reports import with_errors

        total = self.total(reports)
        values, law = self._candidates(candidates), self._law
        support = self._support(total, values)
        counts = law.counts(support, total.reports)
        pairs, few = self._same_pairs(total), self.errors_are_bounds
        found = with_errors(counts, total.reports, law, pairs, self._places, few=few)
        complete = len(values) == self.domain_size
        found = replace(found, fake_margins=law.fake_margins(), complete=complete)
        from ldp_budget.sdk.consistency import maybe_consistent

        return maybe_consistent(found, consistent)

    def _candidates(self, candidates: Any) -> NDArray[np.int64]:
        if candidates is None:
            if self.domain_size is None:
                raise NotSupported(f"{self!r} has no domain_size", hint="Pass the candidates to estimate.")
            if self.domain_size > MOST_ANSWERS:
                raise NotSupported(
                    f"domain_size must be at most {MOST_ANSWERS} to count every answer: got {self.domain_size}",
                    hint="Pass the candidates to estimate.",
                )
            candidates = range(self.domain_size)
        return self.domain.check(candidates)

    def _support(self, total: SketchAggregate, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of reports that support each of `values`."""
        from ._sketch_reports import cell_sums

        return cell_sums(total, self._family, self._points(values), self._cell_sums)

    def _same_pairs(self, total: SketchAggregate) -> float:
        """Return an estimate of Σ f(f-1) over all values, candidates or not: unbiased, so it may be below 0.

        Its own error changes the variance of a count by about √(2/(km)) of that variance.
        """
        energy = sum(self._energy(total.cells[functions]) for functions in total.parts(self.width))
        report, pair = self._energies
        return (energy - total.reports * report) * self.hashes / pair


class CountMeanSketch(Sketch):
    """CMS: the cell as m bits, by symmetric unary encoding at ε.

    Two values differ in two of the bits or, if they collide, in none.
    """

    name = "cms"
    aliases = ("count-mean-sketch",)
    summary = "one of k hashes of the value, as m randomized bits; for domains too large to list"
    source = f"Apple, Learning with Privacy at Scale (2017); {CASE_STUDY}, section 3.2.1"

    def check(self) -> None:
        super().check()
        _ = self._encoding.thresholds

    @functools.cached_property
    def _encoding(self) -> SymmetricUnaryEncoding:
        return SymmetricUnaryEncoding(epsilon=self.epsilon, domain_size=self.width)

    @property
    def guarantee(self) -> Guarantee:
        # The function's number is drawn without the value; given it, two values are two answers of the encoding.
        return self._encoding.guarantee

    @property
    def _cell_probabilities(self) -> tuple[Fraction, Fraction]:
        return self._encoding.support_probabilities[0]

    def check_reports(self, reports: Any) -> None:
        from ._sketch_reports import check_cms_reports

        check_cms_reports(reports, self._family)

    def client_program(self) -> Program:
        """Return the client program; reports are uint8 (n, b + ceil(m/8)).

        The first b bytes, as many as k - 1 needs, hold the number of the hash function, little-endian. Then cell i is
        in byte
        i // 8 at bit i % 8.
        """
        from ldp_budget.sdk.client_program import Program, answers, record, whole

        from ._sketch_reports import index_bytes

        keep, noise = map(whole, self._encoding.thresholds)
        steps: tuple[tuple[str, Any], ...] = (
            ("function", ["below", self.hashes]),
            ("cell", ["polynomial", str(self.seed), "function", "value", self.width]),
            ("others", ["bits", noise, self.width]),
            ("own", ["bit", keep]),
            ("row", ["put", "others", "cell", "own"]),
        )
        parts: list[list[Any]] = [["uint", "function", index_bytes(self._family), 1], ["packed", "row", self.width]]
        return Program(answers(self.domain), steps, record(parts))

    def compare(self, first: int, second: int) -> Comparison:
        """Compare the bits of both cells if the function separates the values; nothing if they collide."""
        p, q = self._cell_probabilities
        apart = self._family.share_apart(first, second)
        return Comparison((Case(apart, (Factor.bit(p, q), Factor.bit(q, p))), Case(1 - apart, ())))

    def outcomes(self, reports: Any, first: int, second: int) -> Any:
        from ._sketch_reports import number_cms_reports

        return number_cms_reports(reports, self._family, first, second)

    def aggregate(self, reports: Any) -> SketchAggregate:
        """Count the reports of each function with each bit set. Raises `NotSupported` for anything but reports."""
        from ._sketch_reports import count_cms_reports

        return count_cms_reports(reports, self._family, self.fingerprint)

    @property
    def _energies(self) -> tuple[float, float]:
        p, q = self._cell_probabilities
        m = self.width
        ones = p + (m - 1) * q
        spread = p * (1 - p) + (m - 1) * q * (1 - q)
        return float(ones - (spread + ones**2) / m), float((p - q) ** 2 * (m - 1) / m)

    def _theorem_variance(self) -> float:
        half = float(self.epsilon) / 2
        return math.exp(-half) / math.expm1(-half) ** 2 + 1 / self.width


class HadamardCountMeanSketch(Sketch):
    """HCMS: the sign of one Hadamard coefficient of the cell; the width is a power of two.

    The signs of two cells differ in half of the coefficients, and which one is sent does not depend on the value. So
    the
    loss is ±ε with probability τ = 1/2 and nothing otherwise.
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
            expected = "large enough to be drawn with 64-bit probabilities"
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
            f"1/2 of CMS: among n users, a value that no user has would be counted about {printed:.3g}·n times. "
            "Here the vector starts from 0, c is (e^ε+1)/(e^ε-1), and nothing is added.",
            *super().notes,
        )

    # -- client -----------------------------------------------------------------------------------------

    def check_reports(self, reports: Any) -> None:
        from ._sketch_reports import read_hcms

        read_hcms(reports, self._family)

    @property
    def _lot(self) -> int | None:
        return 2**13

    def client_program(self) -> Program:
        """Return the client program; reports are unsigned integers (n,), the smallest type that holds 2km - 1.

        Report 2(j·m + l) + s is the sign (-1)^s for coefficient l under hash function j.
        """
        from ldp_budget.sdk.client_program import Program, answers, uint, whole

        from ._sketch_reports import cell_bits

        function: list[Any] = ["shr", "place", cell_bits(self._family)]
        # The kept sign is the parity; the bit sent is one if the sign is not kept.
        steps: tuple[tuple[str, Any], ...] = (
            ("place", ["below", self.hashes * self.width]),
            ("kept", ["bit", whole(self.keep)]),
            ("cell", ["polynomial", str(self.seed), function, "value", self.width]),
            ("sign", ["eq", ["parity", ["and", "place", "cell"]], "kept"]),
            ("report", ["add", ["mul", 2, "place"], "sign"]),
        )
        return Program(answers(self.domain), steps, uint("report", 2 * self.hashes * self.width - 1))

    # -- verification -----------------------------------------------------------------------------------

    def compare(self, first: int, second: int) -> Comparison:
        """Compare the sign with that of the first value, for the half of the coefficients that separate the cells."""
        keep = Fraction(self.keep, ONE)
        telling = self._family.share_apart(first, second) / 2
        return Comparison((Case(telling, (Factor.bit(keep, 1 - keep),)), Case(1 - telling, ())))

    def outcomes(self, reports: Any, first: int, second: int) -> Any:
        from ._sketch_reports import number_hcms_reports

        return number_hcms_reports(reports, self._family, first, second)

    # -- server -----------------------------------------------------------------------------------------

    def aggregate(self, reports: Any) -> SketchAggregate:
        """Sum the signs sent for each coefficient. Raises `NotSupported` for anything but reports."""
        from ._sketch_reports import count_hcms_reports

        return count_hcms_reports(reports, self._family, self.fingerprint)

    def _cell_sums(self, rows: Cells) -> Cells:
        from ldp_budget.sdk.report_relations import hadamard

        return hadamard(rows)

    def _support(self, total: SketchAggregate, values: NDArray[np.int64]) -> NDArray[np.int64]:
        # The sums are of +1 for a report that supports the value and -1 for one that does not.
        return (super()._support(total, values) + total.reports) // 2

    def _energy(self, rows: Cells) -> float:
        # Coefficient 0 is the same for every cell and carries no information.
        return float((rows[:, 1:].astype(float) ** 2).sum())

    @property
    def _energies(self) -> tuple[float, float]:
        p, _ = self._cell_probabilities
        m = self.width
        return (m - 1) / m, float((2 * p - 1) ** 2) * (m - 1) / m**2

    def _theorem_variance(self) -> float:
        return 1 / math.tanh(float(self.epsilon) / 2) ** 2
