"""What the server makes of the reports to a count mean sketch: their exact sums, and counts with standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldp_budget.authoring.estimates import check_same

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


def std_errors(counts: Floats, reports: int, law: SupportLaw, same_pairs: float, pair_variance: float) -> Floats:
    """Those of `counts`, where `same_pairs` estimates Σ f(f-1) over all values, and one pair adds `pair_variance`.

    A count's own pairs add nothing to its variance v = a + P·c, where a is the noise of the reports, P the pairs of
    the other values and c a pair's part. The square of the estimated count is f² + v on average, so f(f-1) is not
    read off the estimate as it is: P = same_pairs - count·(count-1) + v, which is solved for P. What comes out below
    0 is cut off, so a sketch of a handful of cells states too large an error rather than too small a one.
    """
    noise = law.variance(counts, reports)
    if pair_variance < 1:
        pairs = (same_pairs - counts * (counts - 1) + noise) / (1 - pair_variance)
    else:  # one function of two cells, which tells nothing about a count's own pairs
        pairs = np.full(len(counts), same_pairs)
    errors: Floats = np.sqrt(noise + np.clip(pairs, 0, reports * (reports - 1.0)) * pair_variance)
    return errors
