"""What the server makes of the reports to a count mean sketch: their exact sums, and counts with standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldp_budget.authoring.estimates import CountEstimate, StudentLaw, check_same

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from ldp_budget.authoring.estimates import SupportLaw

    from ._hashing import HashFamily, Words

    Cells = NDArray[np.int64]
    Floats = NDArray[np.float64]

_BLOCK = 1 << 15


@dataclass
class SketchAggregate:
    """The exact sketch of `reports` reports: `cells`, whole numbers (k, m), zero outside the rows `functions`."""

    fingerprint: str
    reports: int
    functions: NDArray[np.int64]
    cells: Cells

    def merge(self, other: SketchAggregate) -> SketchAggregate:
        """Add `other`, whose cells stay as they are; raises `NotSupported` if it was made by another mechanism."""
        check_same(self, other)
        self.reports += other.reports
        self.functions = np.union1d(self.functions, other.functions)
        # Row by row: a sketch may have millions of cells, and a few reports touch a few rows.
        for function in other.functions:
            self.cells[function] += other.cells[function]
        return self

    def parts(self, each: int) -> Iterator[NDArray[np.int64]]:
        """The functions that reports used, a few at a time where each takes `each` words."""
        step = max(1, _BLOCK // each)
        for start in range(0, len(self.functions), step):
            yield self.functions[start : start + step]


def cell_sums(
    total: SketchAggregate, family: HashFamily, points: Words, sums_of: Callable[[Cells], Cells]
) -> NDArray[np.int64]:
    """For the values at these points, (n,), what their cells hold together, where `sums_of` reads a row's cells."""
    sums = np.zeros(len(points), dtype=np.int64)
    for functions in total.parts(max(len(points), family.width)):
        cells = family(functions[:, np.newaxis], points)
        spoken = sums_of(total.cells[functions])
        sums += np.take_along_axis(spoken, cells, axis=1).sum(axis=0)
    return sums


def with_errors(
    counts: Floats, reports: int, law: SupportLaw, same_pairs: float, places: int, *, few: bool
) -> CountEstimate:
    """`counts` with their standard errors, where `same_pairs` estimates Σ f(f-1) over all values.

    `places` is k(m-1), as many free numbers as a sketch holds; `few`: so few that errors are bounds. One pair of
    users of one other value adds 1/places to a count's variance. That is v = a + P/places, where a is the noise of
    the reports and P the pairs of the other values. The square of an estimated count is f² + v on average, so f(f-1)
    is not read off the estimate as it is: P = same_pairs - count·(count-1) + v, which is solved for v,

        v = a + (same_pairs - count·(count-1) + a)/(places - 1).

    With an a linear in the count that is the variance on average, however few cells there are. So nothing is cut off
    above, such as what n users cannot have: of the rest the average would be too small. What comes out below a is
    taken for a, which makes it a bound. Where there are not `few`, that hardly ever happens; and where it moves the
    average by less than can be seen, figures are kept to what there can be: pairs to 0 and more, a to a share of one.

    The rest of the sketch, without what the count was read off, is `places` - 1 numbers, of which v is the mean
    square: noise and collisions. So the intervals are Student's. One function of two cells shows the size of a count
    and nothing else, whatever the others hold: there v is the most it can be, as if all others held one value.
    """
    if places == 1:
        most = reports * (float(max(law.at_zero[0], law.at_one[0])) + reports - 1.0)
        return CountEstimate(reports, counts, np.full(len(counts), most**0.5))
    least = law.variance(counts, reports)
    if few:
        noise = reports * law.at_zero + counts * (law.at_one - law.at_zero)
    else:
        noise, same_pairs = least, max(0.0, same_pairs)
    collisions = (same_pairs - counts * (counts - 1) + noise) / (places - 1)
    errors = np.sqrt(np.maximum(noise + collisions, least))
    return CountEstimate(reports, counts, errors, law=StudentLaw(places - 1))
