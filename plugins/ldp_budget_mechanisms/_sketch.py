"""What the count mean sketches of document 002, section 3.2, have in common.

A client hashes its value v to one of m cells by one of k public functions, j, and reports j with a randomized form
of the cell h_j(v). A report supports the value u if it speaks for the cell h_j(u). Another value shares v's cell
with probability 1/m over the draw of the functions, so a sketch is a frequency mechanism with

    p_v = p,   q_v = q + (p - q)/m,

where p and q are the probabilities of support for the client's own cell and for another one. Its estimate is that of
the document's Fig. 7. Two clients of one other value share v's cell or miss it together if they use the same
function, which adds Σ_{u≠v} f_u(f_u - 1)/(k(m - 1)) to the variance of the count of v; no other two reports are
correlated where functions are three-wise independent.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any, Self

from ldp_budget.authoring.domain import Categories, check_users
from ldp_budget.authoring.estimates import CountEstimate, check_same
from ldp_budget.authoring.fields import integer, optional_integer, real
from ldp_budget.authoring.frequency import FrequencyMechanism
from ldp_budget.errors import InvalidParameter, NotSupported

from ._hashing import HashFamily

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Cells = NDArray[np.int64]

BLOCK = 1 << 13
"""Reports drawn at a time: the words of a block stay in the cache while it is hashed."""

_MOST_CELLS = 2**30
_ANY_NUMBER = 2**63
_SMALL_DOMAIN = 2**10
_TRIED = 16
_COMPARED = 1024
_SERVER_BLOCK = 1 << 15


@dataclass
class SketchAggregate:
    """The exact sketch of `reports` reports: `cells`, whole numbers (k, m), zero outside the rows `functions`."""

    fingerprint: str
    reports: int
    functions: NDArray[np.int64]
    cells: Cells

    def merge(self, other: SketchAggregate) -> SketchAggregate:
        """Add `other`, whose cells stay as they are; raises `NotSupported` if it was made by another mechanism."""
        import numpy as np

        check_same(self, other)
        self.reports += other.reports
        self.functions = np.union1d(self.functions, other.functions)
        # Row by row: a sketch may have millions of cells, and a few reports touch a few rows.
        for function in other.functions:
            self.cells[function] += other.cells[function]
        return self


class Sketch(FrequencyMechanism):
    """A count mean sketch; subclasses say how a cell is randomized and how reports fill the rows."""

    # Which values collide is drawn with the hash functions, and corrected for on average over them.
    public_seed = "seed"

    epsilon = real("privacy loss of one report", above=0, at_most=10**6)
    hashes = integer("hash functions k, the rows of the sketch", at_least=1, at_most=2**20)
    width = integer("cells m of each row", at_least=2, at_most=2**20)
    seed = integer("draws the hash functions; public, one for all clients", at_least=0, at_most=2**63 - 1, default=0)
    domain_size = optional_integer(
        "number of possible values; if left out, values are any whole numbers >= 0 and estimates need candidates",
        at_least=2,
        at_most=10**9,
    )

    @classmethod
    def for_answers(cls, epsilon: Any, domain_size: int) -> Self:
        """With 1024 functions and a width of 1024: 8 MB, where document 002's own sketches take up to 512 MB.

        At ε = 1 it takes four million users for collisions, at their worst, to weigh as much as the noise.
        """
        return cls.calibrate(epsilon=epsilon, domain_size=domain_size, hashes=_COMPARED, width=_COMPARED)

    def check(self) -> None:
        most = _MOST_CELLS // self.hashes
        if self.width > most:
            raise InvalidParameter("width", f"at most {most} with hashes = {self.hashes}", self.width)

    # -- for subclasses ---------------------------------------------------------------------------------

    @property
    def _cell_probabilities(self) -> tuple[Fraction, Fraction]:
        """(p, q), exactly as drawn: how often a report supports the client's own cell, and another one."""
        raise NotImplementedError

    def _cell_sums(self, rows: Cells) -> Cells:
        """For each cell of `rows`, shape (r, m), the sum of what the reports say of it."""
        raise NotImplementedError

    def _energy(self, rows: Cells) -> float:
        """A sum of squares that grows with the pairs of reports that share function and cell, for `_energies`."""
        raise NotImplementedError

    @property
    def _energies(self) -> tuple[float, float]:
        """What one report adds to the expected energy, and what two reports of one value and function add."""
        raise NotImplementedError

    def _theorem_variance(self) -> float:
        """The variance per user in the document's theorem, without (m/(m-1))² and the collisions."""
        raise NotImplementedError

    # -- what follows from the parameters ---------------------------------------------------------------

    @property
    def answers(self) -> int:
        """d. Raises `InvalidParameter` where no domain was declared."""
        if self.domain_size is None:
            raise InvalidParameter("domain_size", self.fields["domain_size"].expected)
        return self.domain_size

    @property
    def domain(self) -> Categories:
        """The declared values, else any whole number of 63 bits."""
        return Categories(_ANY_NUMBER, listed=False) if self.domain_size is None else Categories(self.domain_size)

    @property
    def parameters(self) -> dict[str, int]:
        return {"hashes": self.hashes, "width": self.width}

    @property
    def support_probabilities(self) -> list[tuple[Fraction, Fraction]]:
        p, q = self._cell_probabilities
        return [(p, q + (p - q) / self.width)]

    @property
    def _pair_variance(self) -> float:
        """What two users of one other value add to the variance of a count, 1/(k(m-1)), for each order of the two."""
        return 1 / (self.hashes * (self.width - 1))

    def utility(self, users: int | None = None) -> dict[str, Any]:
        """`variance_per_user` and `std_error` leave collisions out: they depend on the values of the others.

        With collisions at their worst, all users hold one value; `largest_variance` is then that of another value's
        count, and `theorem_bound` what Theorem 1 or 2 of document 002 says of it.
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
            result["theorem_bound"] = self._theorem_bound(users)
        return result

    def _theorem_bound(self, users: int) -> float:
        shrink = (self.width / (self.width - 1)) ** 2
        return shrink * users * (self._theorem_variance() + users / (self.hashes * self.width))

    def share_errors(self, users: int) -> tuple[float, float]:
        """As everywhere, for any values the users may have, so with collisions at their worst."""
        zero, _ = self._per_user()
        collisions = (users - 1) * self._pair_variance
        total = self.total_variance() + (self.answers - 1) * collisions
        return math.sqrt((zero + collisions) / users), math.sqrt(total / self.answers / users)

    def _per_user(self) -> tuple[float, float]:
        zero, slope = self._variance()
        return float(zero[0]), float(slope[0])

    @property
    def notes(self) -> tuple[str, ...]:
        zero, _ = self._per_user()
        equal = 1 + zero / self._pair_variance
        return (
            "Estimates are unbiased over the draw of the hash functions; those of one seed shift them alike in every "
            "round. Standard errors include that. Where most users hold one value, collisions outweigh the noise of "
            f"the reports from {equal:.3g} users on; more hashes or a larger width help.",
        )

    # -- what can be checked ----------------------------------------------------------------------------

    def critical_inputs(self) -> Sequence[int]:
        """Of the first values the two that share a cell under the fewest functions."""
        import numpy as np

        cells = [self._cells_of(value) for value in range(min(self.domain_size or _TRIED, _TRIED))]
        pairs = list(combinations(range(len(cells)), 2))
        apart = [int(np.count_nonzero(cells[first] != cells[second])) for first, second in pairs]
        return pairs[apart.index(max(apart))]

    def _cells_of(self, value: int) -> Cells:
        """The cell of a value under each of the functions, shape (k,)."""
        import numpy as np

        return self._family(np.arange(self.hashes), self._family.points([value]))

    def _share_apart(self, first: int, second: int) -> Fraction:
        """The share of the functions under which two values do not collide."""
        import numpy as np

        apart = np.count_nonzero(self._cells_of(first) != self._cells_of(second))
        return Fraction(int(apart), self.hashes)

    # -- client -----------------------------------------------------------------------------------------

    @functools.cached_property
    def _family(self) -> HashFamily:
        return HashFamily(self.seed, self.hashes, self.width)

    @functools.cached_property
    def _table(self) -> NDArray[np.uint64]:
        """The points of the whole domain."""
        return self._family.points(range(self.answers))

    def _points(self, values: NDArray[np.int64]) -> NDArray[np.uint64]:
        import numpy as np

        # A table of the domain pays where there are as many values; a client with one value makes one digest.
        if self.domain_size is not None and self.domain_size <= max(len(values), _SMALL_DOMAIN):
            return self._table[values]
        distinct, place = np.unique(values, return_inverse=True)
        return self._family.points(distinct)[place]

    # -- server -----------------------------------------------------------------------------------------

    def aggregate(self, reports: Any) -> SketchAggregate:
        raise NotImplementedError

    def support(self, reports: Any) -> tuple[int, NDArray[np.int64]]:
        import numpy as np

        total = self.aggregate(reports)
        return total.reports, self._support(total, np.arange(self.answers))

    def estimate(self, reports: Any, candidates: Any = None) -> CountEstimate:
        """The counts of `candidates`, whole numbers (c,), or of the whole domain, from reports or their aggregate.

        Raises `NotSupported` where there are neither candidates nor a declared domain.
        """
        total = self.total(reports)
        values = self._candidates(candidates)
        _, q = self._probabilities()
        counts = (self._support(total, values) - total.reports * q) / self._gap()
        return CountEstimate(total.reports, counts, self._std_errors(total, counts))

    def _candidates(self, candidates: Any) -> NDArray[np.int64]:
        import numpy as np

        if candidates is not None:
            return self.domain.check(candidates)
        if self.domain_size is None:
            raise NotSupported(f"{self!r} declares no domain_size, so estimate needs candidates")
        return np.arange(self.domain_size)

    def _support(self, total: SketchAggregate, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many reports support each of `values`."""
        import numpy as np

        points = self._points(values)
        sums = np.zeros(len(values), dtype=np.int64)
        for functions in self._parts(total, max(len(values), self.width)):
            cells = self._family(functions[:, np.newaxis], points)
            spoken = self._cell_sums(total.cells[functions])
            sums += np.take_along_axis(spoken, cells, axis=1).sum(axis=0)
        return sums

    def _parts(self, total: SketchAggregate, each: int) -> Iterator[NDArray[np.int64]]:
        """The functions that reports used, a few at a time where each takes `each` words."""
        step = max(1, _SERVER_BLOCK // each)
        for start in range(0, len(total.functions), step):
            yield total.functions[start : start + step]

    def _std_errors(self, total: SketchAggregate, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        import numpy as np

        n = total.reports
        zero, slope = self._variance()
        own = np.clip(counts, 0, n)
        pairs = np.clip(self._same_pairs(total) - own * (own - 1), 0, None)
        errors: NDArray[np.float64] = np.sqrt(n * zero + slope * own + pairs * self._pair_variance)
        return errors

    def _same_pairs(self, total: SketchAggregate) -> float:
        """An estimate of Σ f(f-1) over all values, candidates or not, kept within what n users can have.

        It is unbiased before that. Its own error moves the variance of a count by about √(2/(km)) of that variance.
        """
        energy = sum(self._energy(total.cells[functions]) for functions in self._parts(total, self.width))
        report, pair = self._energies
        n = total.reports
        return min(max(0.0, (energy - n * report) * self.hashes / pair), n * (n - 1.0))
