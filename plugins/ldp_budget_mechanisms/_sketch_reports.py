"""Reports to count mean sketches: hash functions, the client's draws, exact sums, and counts with standard errors.

A report to the count mean sketch is the number of a hash function and the cell as m randomized bits. A report to the
Hadamard count mean sketch is the numbers of a hash function and of a coefficient, and the coefficient's sign.

The hash functions are those of `ldp_budget.sdk.hash_families`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.errors import NotSupported
from ldp_budget.sdk.estimates import CountEstimate, StudentLaw, check_same
from ldp_budget.sdk.interpreter import as_reports, check_rows, column_sums

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from ldp_budget.sdk.estimates import SupportLaw
    from ldp_budget.sdk.hash_families import HashFamily, Words

    Cells = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Reports = NDArray[Any]

_BLOCK = 1 << 15


@dataclass
class SketchAggregate:
    """The exact sketch of `reports` reports: `cells`, integers (k, m), zero outside the rows `functions`."""

    fingerprint: str
    reports: int
    functions: NDArray[np.int64]
    cells: Cells

    def merge(self, other: SketchAggregate) -> SketchAggregate:
        """Add `other`, whose cells stay unchanged; raises `NotSupported` if another mechanism made it."""
        check_same(self, other)
        self.reports += other.reports
        self.functions = np.union1d(self.functions, other.functions)
        # Row by row: a sketch may have millions of cells, and a few reports touch a few rows.
        for function in other.functions:
            self.cells[function] += other.cells[function]
        return self

    def parts(self, each: int) -> Iterator[NDArray[np.int64]]:
        """Yield the functions that reports used, a few at a time if each takes `each` words."""
        step = max(1, _BLOCK // each)
        for start in range(0, len(self.functions), step):
            yield self.functions[start : start + step]


def cell_sums(
    total: SketchAggregate, family: HashFamily, points: Words, sums_of: Callable[[Cells], Cells]
) -> NDArray[np.int64]:
    """Return the sum of the cells of each value at these points, (n,); `sums_of` reads the cells of a row."""
    sums = np.zeros(len(points), dtype=np.int64)
    for functions in total.parts(max(len(points), family.width)):
        cells = family(functions[:, np.newaxis], points)
        spoken = sums_of(total.cells[functions])
        sums += np.take_along_axis(spoken, cells, axis=1).sum(axis=0)
    return sums


def with_errors(
    counts: Floats, reports: int, law: SupportLaw, same_pairs: float, places: int, *, few: bool
) -> CountEstimate:
    """Return `counts` with their standard errors; `same_pairs` estimates Σ f(f-1) over all values.

    `places` is k(m-1), the number of free numbers in a sketch. `few` is True if they are so few that errors are
    bounds.
    One pair of users of one other value adds 1/places to a count's variance. So v = a + P/places, where a is the
    noise of
    the reports and P the pairs of the other values. The square of an estimated count is f² + v on average, so f(f-1)
    must
    not be read from the estimate directly: P = same_pairs - count·(count-1) + v, which is solved for v,

        v = a + (same_pairs - count·(count-1) + a)/(places - 1).

    With an a linear in the count this is the variance on average, for any number of cells. So no value is cut off
    from
    above, even if n users cannot produce it: the average of the rest would be too small. A result below a is replaced
    by
    a, which makes it a bound. Unless there are `few`, that hardly ever happens. If it moves the average by less than
    is
    visible, figures are limited to what is possible: pairs to 0 and more, a to a share of one.

    The rest of the sketch, without the part that gave the count, is `places` - 1 numbers. Their mean square is v:
    noise and
    collisions. So the intervals are Student's. One function of two cells shows the size of a count and nothing else,
    for
    any values of the others: there v is its largest possible value, as if all others held one value.
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


# -- count mean sketch -----------------------------------------------------------------------------------------------


def index_bytes(family: HashFamily) -> int:
    """Return the number of bytes for the number of any function."""
    return max(1, -(-(family.count - 1).bit_length() // 8))


def number_cms_reports(reports: Reports, family: HashFamily, first: int, second: int) -> Cells:
    """Number the bits of the cells of two values, 0..3, or 4 if they collide."""
    functions, bits = _functions(reports, family), reports[:, index_bytes(family) :]
    rows = np.arange(len(reports))
    own, other = (family.cells_of(value)[functions] for value in (first, second))
    told = [bits[rows, cells >> 3] >> (cells & 7) & 1 for cells in (own, other)]
    return np.where(own == other, 4, 2 * told[0] + told[1])


def check_cms_reports(reports: Any, family: HashFamily) -> None:
    """Raise `NotSupported` for anything but reports."""
    rows = as_reports(reports)
    _functions(rows, family)
    check_rows(rows[:, index_bytes(family) :], family.width)


def count_cms_reports(reports: Any, family: HashFamily, fingerprint: str) -> SketchAggregate:
    """Count the reports of each function with each bit set. Raises `NotSupported` for anything but reports."""
    rows = as_reports(reports)
    numbers = _functions(rows, family)
    order = np.argsort(numbers, kind="stable")
    functions, starts = np.unique(numbers[order], return_index=True)
    cells = np.zeros((family.count, family.width), dtype=np.int64)
    bits = rows[order, index_bytes(family) :]
    for function, start, end in zip(functions, starts, [*starts[1:], len(rows)], strict=False):
        cells[function] = column_sums(bits[start:end], family.width)
    return SketchAggregate(fingerprint, len(rows), functions, cells)


def _functions(rows: Reports, family: HashFamily) -> Cells:
    """Return the number of the hash function of each report."""
    return read_rows(rows, family, -(-family.width // 8), "cms")[0]


def read_rows(reports: Any, family: HashFamily, rest: int, name: str) -> tuple[Cells, NDArray[np.uint8]]:
    """Return the numbers of the functions, and the other `rest` bytes. Raises `NotSupported` for anything else."""
    rows, head = as_reports(reports), index_bytes(family)
    if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != head + rest:
        expected = f"uint8 of shape (n, {head + rest})"
        raise NotSupported(f"reports of {name} must be {expected}: got {rows.dtype} of shape {rows.shape}")
    words = np.zeros((len(rows), 8), dtype=np.uint8)
    words[:, :head] = rows[:, :head]
    numbers = words.view("<i8").reshape(-1).astype(np.int64)
    if numbers.size and numbers.max() >= family.count:
        raise NotSupported(f"the hash function of a report must be from 0 to {family.count - 1}: got {numbers.max()}")
    return numbers, rows[:, head:]


# -- Hadamard count mean sketch --------------------------------------------------------------------------------------


_COUNTED = 1 << 20


def cell_bits(family: HashFamily) -> int:
    """Return the number of bits of a cell number, the lowest bits of a place."""
    return family.width.bit_length() - 1


def number_hcms_reports(reports: Reports, family: HashFamily, first: int, second: int) -> Cells:
    """Return 1 if the sign is that of the first of two values, 0 if of the second; 2 if theirs are the same."""
    rows = reports.astype(np.int64)
    places = rows >> 1
    signs = [_odd(places & family.cells_of(value)[places >> cell_bits(family)]) for value in (first, second)]
    return np.where(signs[0] == signs[1], 2, signs[0] == (rows & 1).astype(np.bool_))


def check_hcms_reports(reports: Any, family: HashFamily) -> None:
    """Raise `NotSupported` for anything but reports."""
    _check(as_reports(reports), 2 * family.count * family.width - 1)


def count_hcms_reports(reports: Any, family: HashFamily, fingerprint: str) -> SketchAggregate:
    """Sum the signs sent for each coefficient. Raises `NotSupported` for anything but reports."""
    rows = as_reports(reports)
    _check(rows, 2 * family.count * family.width - 1)
    signs = np.zeros(family.count * family.width, dtype=np.int64)
    used = np.zeros(family.count, dtype=np.int64)
    for start in range(0, len(rows), _COUNTED):
        block = rows[start : start + _COUNTED].astype(np.int64)
        np.add.at(signs, block >> 1, 1 - 2 * (block & 1))
        used += np.bincount(block >> (1 + cell_bits(family)), minlength=family.count)
    return SketchAggregate(fingerprint, len(rows), np.flatnonzero(used), signs.reshape(family.count, -1))


def _check(rows: Reports, largest: int) -> None:
    if rows.dtype.kind not in "iu" or rows.ndim != 1:
        raise NotSupported(f"reports of hcms must be integers of shape (n,): got {rows.dtype} of shape {rows.shape}")
    if rows.size and not 0 <= int(rows.min()) <= int(rows.max()) <= largest:
        raise NotSupported(f"reports must be from 0 to {largest}: got {rows.min()} to {rows.max()}")


def _odd(numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return True for each number with an odd number of ones among its lowest 32 bits."""
    parity = numbers.astype(np.uint32)
    for shift in (16, 8, 4, 2, 1):
        parity ^= parity >> np.uint32(shift)
    return (parity & np.uint32(1)).astype(np.bool_)


def hadamard(rows: Cells) -> Cells:
    """Return `rows` times the Hadamard matrix, for rows of shape (r, m) with m a power of two.

    The matrix is that of equation (2) of Jeong, Hong and Seo 2020. The fast transform: each of log2 m passes takes sums
    and differences of neighbors and puts the sums first, which moves the next bit of the column number into place.
    """
    columns = rows.shape[1]
    for _ in range(columns.bit_length() - 1):
        even, odd = rows[:, 0::2], rows[:, 1::2]
        rows = np.concatenate((even + odd, even - odd), axis=1)
    return rows
