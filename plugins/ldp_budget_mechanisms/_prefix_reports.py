"""Reports on prefixes of words: the hash of a prefix, the table of reports, and the search for frequent words.

The prefix of level 0 is the first two bytes of a word, and every further level adds two, or one for an odd last byte.
A prefix is a *parent*, the prefix of the level before (0 at level 0), and a *child*, what the level adds. Function j
takes a prefix to the cell

    h_j(parent, child) = a_j(parent) ⊕ M_j·child,

where a_j is a function of a `HashFamily` with g = 2^r cells, and M_j a matrix of r rows of 16 bits each. The rows are
hashes of other families. Over the draw of the functions, the cells of any three different prefixes of a level are
independent and uniform, as two different differences of children are linearly independent over the field of two.

For a parent, the number of reports that support each of its children is

    S(child) = Σ_j T_j(a_j ⊕ M_j·child),

with T_j(s) the reports of function j and cell s. With the Hadamard transform T̂_j of T_j this is (1/g) times the
Hadamard transform of the vector that has, at the place M_jᵀ·r for each j and r, the sum of T̂_j(r)·(-1)^{r·a_j}. So a
parent takes one pass over the table and one small transform, all in exact whole numbers, for any number of functions.

The search goes from level to level and keeps at most `beam` prefixes. Each level has users of its own, so a word is
measured once at each level. Measurements that agree are averaged, see `_users`. At the end the largest word is taken,
its users are subtracted from all its prefixes, and so on. So the time and the memory of a search are bounded.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ldp_budget.sdk.estimates import CountEstimate, StudentLaw
from ldp_budget.sdk.hash_families import HashFamily
from ldp_budget.sdk.parities import parities
from ldp_budget.sdk.report_relations import hadamard

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldp_budget.sdk.estimates import SupportLaw

    Cells = NDArray[np.int64]
    Floats = NDArray[np.float64]

CHILDREN = 1 << 16
"""The most children of a parent."""
_AGREES = 1.5
"""In standard deviations: a prefix that has more users than that above those of a word has other words too."""
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

    def cells(self, functions: Cells, parents: NDArray[Any], children: Cells) -> Cells:
        """Return the cell of each prefix under the function of the same place, which broadcast."""
        distinct, place = np.unique(parents, return_inverse=True)
        cells = self.parents(functions, self.parents.points(distinct)[place].reshape(parents.shape))
        for row in range(self.bits):
            cells = cells ^ (parities(self.rows[row].take(functions) & children).astype(np.int64) << row)
        return cells

    def support(self, table: Cells, parents: NDArray[Any], children: Cells) -> Cells:
        """Return the number of reports of a level, shape (count, cells), that support each of some prefixes."""
        functions = np.arange(self.count)
        pairs = ((parents[place : place + 1], children[place]) for place in range(len(parents)))
        found = [table[functions, self.cells(functions, *pair)].sum() for pair in pairs]
        return np.array(found, dtype=np.int64)

    def of_children(self, table: Cells, parents: list[int], children: int) -> Cells:
        """Return the same for all children 0..children-1 of some parents, shape (parents, children)."""
        transformed, places = hadamard(table), self._places & (children - 1)
        spectra = np.empty((len(parents), children))
        for place, point in enumerate(self.parents.points(parents)):
            signs = self._signs[self.parents(np.arange(self.count), point)]
            spectra[place] = np.bincount(places, (transformed * signs).reshape(-1), children)
        return hadamard(spectra.astype(np.int64)) >> self.bits


def parent_seed(seed: int) -> str:
    """Return the seed of the hash of a parent."""
    return f"{seed} parents"


def row_seed(seed: int, row: int) -> str:
    """Return the seed of one row of the matrices."""
    return f"{seed} row {row}"


def frequent(
    family: PrefixFamily, tables: Cells, sizes: list[int], law: SupportLaw, beam: int, top: int
) -> list[int]:
    """Return the numbers of the words with the most users, at most `top`.

    `tables` has the reports of each level, shape (levels, count, cells), `sizes` the children of a parent at each
    level, and `law` is that of the count of one level.
    """
    reports = tables.sum(axis=(1, 2))
    if not reports.all():
        return []
    stretch = reports.sum() / reports
    variances: Floats = law.at_zero[0] * stretch**2 * reports
    numbers, measured = [0], np.empty((1, 0))
    for level, (table, children) in enumerate(zip(tables, sizes, strict=True)):
        listed: list[int] = []
        rows: list[Floats] = []
        for start in range(0, len(numbers), _TOGETHER):
            parents = numbers[start : start + _TOGETHER]
            support = family.of_children(table, parents, children)
            if level == 0:
                support[:, 0] = 0  # no word begins with zeros
            users = stretch[level] * law.counts(support.reshape(-1), int(reports[level]))
            before = np.repeat(measured[start : start + _TOGETHER], children, axis=0)
            extended = np.concatenate([before, users[:, np.newaxis]], axis=1)
            best = _largest(_users(extended, variances), beam)
            listed += [parents[place // children] * children + place % children for place in best.tolist()]
            rows.append(extended[best])
        measured = np.concatenate(rows)
        best = _largest(_users(measured, variances), beam)
        numbers, measured = [listed[place] for place in best], measured[best]
    return _peeled(numbers, measured, sizes, variances, top)


def _users(measured: Floats, variances: Floats) -> Floats:
    """Return the users of prefixes, shape (n,), from those measured at each level, shape (n, levels).

    From the last level up, a measurement that agrees is averaged in, by its variance. A prefix with many more users
    has other words too, so it says nothing. One with fewer shows that what was measured below is noise.
    """
    last = measured.shape[1] - 1
    users, variance = measured[:, last].copy(), np.full(len(measured), variances[last])
    for level in reversed(range(last)):
        more, own = measured[:, level] - users, variances[level]
        weight = np.where(more <= _AGREES * np.sqrt(variance + own), variance / (variance + own), 0.0)
        users += weight * more
        variance *= 1 - weight
    return users


def _largest(users: Floats, most: int) -> NDArray[np.intp]:
    """Return the places of the largest, at most `most`, in ascending order."""
    if len(users) <= most:
        return np.arange(len(users))
    return np.sort(np.argpartition(-users, most - 1)[:most])


def _peeled(numbers: list[int], measured: Floats, sizes: list[int], variances: Floats, top: int) -> list[int]:
    """Return the numbers of words in the order of their users, each without the users of the words before it."""
    left, found = measured.copy(), list[int]()
    words = np.array(numbers, dtype=object)
    prefixes = [np.unique(words // prod(sizes[level + 1 :]), return_inverse=True)[1] for level in range(len(sizes))]
    while len(found) < min(top, len(numbers)):
        users = _users(left, variances)
        users[found] = -np.inf
        best = int(users.argmax())
        found.append(best)
        for level, same in enumerate(prefixes):
            left[same == same[best], level] -= users[best]
    return [numbers[place] for place in found]


@dataclass(frozen=True)
class FoundWords(CountEstimate):
    """Counts of the words that a search found. They were chosen by these counts, so they are too large on average."""

    unbiased: ClassVar[bool] = False


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
