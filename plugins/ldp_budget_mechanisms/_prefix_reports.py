"""Reports on prefixes of words: the hash of a prefix, the table of reports, and the search for frequent words.

A word is cut into chunks of 16 bits. Its prefix of level l has l + 1 chunks: a *parent*, all but the last one, and a
*child*, the last one. Function j takes a prefix to the cell

    h_j(parent, child) = a_j(parent) ⊕ M_j·child,

where a_j is a function of a `HashFamily` with g = 2^r cells, and M_j a matrix of r rows of 16 bits each. The rows are
hashes of other families. Over the draw of the functions, the cells of any three different prefixes of a level are
independent and uniform, as two different differences of children are linearly independent over the field of two.

The search goes from level to level. For a parent, the number of reports that support each of its 65,536 children is

    S(child) = Σ_j T_j(a_j ⊕ M_j·child),

with T_j(s) the reports of function j and cell s. With the Hadamard transform T̂_j of T_j this is (1/g) times the
Hadamard transform of the vector that has, at the place M_jᵀ·r for each j and r, the sum of T̂_j(r)·(-1)^{r·a_j}. So a
parent takes one pass over the table and one transform of 65,536 numbers, all in exact whole numbers, for any number
of functions. The parents that go on to the next level are at most `beam`, so time and memory are bounded.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ldp_budget.sdk.estimates import CountEstimate, StudentLaw

from ._sketch_reports import HashFamily, hadamard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ldp_budget.sdk.estimates import SupportLaw

    Cells = NDArray[np.int64]
    Floats = NDArray[np.float64]

CHUNK = 16
CHILDREN = 1 << CHUNK
_SPARE = 8
"""So many times as many children are looked at as go on, before the counts of their parents are considered."""
_AGREES = 3.0
_TOGETHER = 16
"""Parents whose children are counted at a time: their transforms take 8 MB."""


class PrefixFamily:
    """The functions h_0..h_{count-1} of `seed`, from prefixes to 2^`bits` cells."""

    def __init__(self, seed: int, count: int, bits: int) -> None:
        self.count = count
        self.bits = bits
        self.parents = HashFamily(parent_seed(seed), count, 1 << bits)
        self._seeds = [row_seed(seed, row) for row in range(bits)]

    @functools.cached_property
    def rows(self) -> Cells:
        """The rows of every matrix, shape (bits, count)."""
        functions = np.arange(self.count)
        families = [HashFamily(seed, self.count, CHILDREN) for seed in self._seeds]
        return np.stack([family(functions, family.points([0])) for family in families])

    @functools.cached_property
    def _places(self) -> Cells:
        """M_jᵀ·r for every function j and every r, shape (count · cells,)."""
        places = np.zeros((self.count, 1 << self.bits), dtype=np.int64)
        for row in range(self.bits):
            places ^= np.where(np.arange(1 << self.bits) >> row & 1, self.rows[row][:, np.newaxis], 0)
        return places.reshape(-1)

    @functools.cached_property
    def _signs(self) -> Cells:
        """(-1)^{r·a}, shape (cells, cells)."""
        return hadamard(np.eye(1 << self.bits, dtype=np.int64))

    def cells(self, functions: Cells, prefixes: NDArray[Any]) -> Cells:
        """Return the cell of each prefix under the function of the same place, which broadcast."""
        distinct, place = np.unique(prefixes >> CHUNK, return_inverse=True)
        cells = self.parents(functions, self.parents.points(distinct)[place].reshape(prefixes.shape))
        children = (prefixes & (CHILDREN - 1)).astype(np.int64)
        for row in range(self.bits):
            cells = cells ^ (_parity(self.rows[row].take(functions) & children) << row)
        return cells

    def support(self, table: Cells, prefixes: NDArray[Any]) -> Cells:
        """Return the number of reports of a level, shape (count, cells), that support each of some prefixes."""
        functions = np.arange(self.count)
        found = [table[functions, self.cells(functions, np.array([each]))].sum() for each in prefixes]
        return np.array(found, dtype=np.int64)

    def children(self, table: Cells, parents: list[int]) -> Iterator[Cells]:
        """Yield the same for all children of some parents at a time, shape (parents, 65536)."""
        transformed = hadamard(table)
        for start in range(0, len(parents), _TOGETHER):
            points = self.parents.points(parents[start : start + _TOGETHER])
            spectra = np.empty((len(points), CHILDREN))
            for place, point in enumerate(points):
                signs = self._signs[self.parents(np.arange(self.count), point)]
                spectra[place] = np.bincount(self._places, (transformed * signs).reshape(-1), CHILDREN)
            yield hadamard(spectra.astype(np.int64)) >> self.bits


def parent_seed(seed: int) -> str:
    """Return the seed of the hash of a parent."""
    return f"{seed} parents"


def row_seed(seed: int, row: int) -> str:
    """Return the seed of one row of the matrices."""
    return f"{seed} row {row}"


class Found(NamedTuple):
    """A prefix, its support among the reports of its level, and its estimated users with their variance.

    Levels above may help to estimate the users, see `_settled`.
    """

    prefix: int
    support: int
    users: float
    variance: float


def frequent(family: PrefixFamily, tables: Cells, law: SupportLaw, beam: int, top: int) -> list[Found]:
    """Return the words with the largest estimated counts, at most `top`, largest first.

    `tables` has the reports of each level, shape (levels, count, cells), and `law` is that of the count of one level.
    Of a level, at most `beam` prefixes go on.
    """
    reports = tables.sum(axis=(1, 2))
    found = [Found(0, 0, float(reports.sum()), 0.0)]
    for level, table in enumerate(tables):
        if not reports[level]:
            return []
        stretch = reports.sum() / reports[level]
        most = top if level == len(tables) - 1 else beam
        parents = {each.prefix: each for each in found}
        own = float(law.at_zero[0] * stretch**2 * reports[level])
        listed: list[Found] = []
        for start, supports in enumerate(family.children(table, list(parents))):
            some = [*parents][start * _TOGETHER : (start + 1) * _TOGETHER]
            if level == 0:
                supports[:, 0] = 0  # no word begins with zeros
            best = np.argpartition(-supports, _SPARE * most, axis=None)[: _SPARE * most]
            counts = stretch * law.counts(supports.flat[best], int(reports[level]))
            for place, count in zip(best.tolist(), counts.tolist(), strict=True):
                prefix = (some[place >> CHUNK] << CHUNK) + place % CHILDREN
                listed.append(Found(prefix, int(supports.flat[place]), count, own))
            listed = sorted(listed, key=lambda each: (-each.users, each.prefix))[: _SPARE * most]
        found = _settled(listed, parents if level else {})[:most]
    return found


def _settled(listed: list[Found], parents: dict[int, Found]) -> list[Found]:
    """Return prefixes by their counts, those of their parents considered, largest first.

    The largest child of a parent comes first. Where its count agrees with what is left of the parent's, the two are
    measurements of one number, so their weighted mean is taken. A child that is larger than what is left is noise.
    """
    found: list[Found] = []
    left = {prefix: parent.users for prefix, parent in parents.items()}
    for each in listed:
        parent = parents.get(each.prefix >> CHUNK)
        if parent is not None:
            rest, count, own, above = left[parent.prefix], each.users, each.variance, parent.variance
            left[parent.prefix] = rest - count
            if rest - count <= _AGREES * (own + above) ** 0.5:
                weight = own / (own + above)
                each = each._replace(users=count + weight * (rest - count), variance=(1 - weight) * own)
        found.append(each)
    return sorted(found, key=lambda each: (-each.users, each.prefix))


@dataclass(frozen=True)
class FoundWords(CountEstimate):
    """Counts of the words that a search found. They were chosen by these counts, so they are too large on average."""


@dataclass(frozen=True)
class FoundLaw:
    """Intervals of counts that were chosen out of `tried` ones because they are large.

    The low ends hold for all that were tried at once, so also for those that were chosen. A large count was not
    chosen because its error is far below zero, so each high end holds as it would without a choice.
    """

    freedom: int
    tried: int

    def ends(self, estimate: CountEstimate, level: float) -> tuple[Floats, Floats]:
        """Return the ends of the intervals."""
        law = StudentLaw(self.freedom)
        low, _ = law.ends(estimate, 1 - (1 - level) / self.tried)
        return low, law.ends(estimate, level)[1]


def _parity(numbers: Cells) -> Cells:
    """Return 1 for each number of up to 16 bits with an odd number of ones."""
    for shift in (8, 4, 2, 1):
        numbers = numbers ^ (numbers >> shift)
    return numbers & 1
