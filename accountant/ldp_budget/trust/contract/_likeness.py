"""Statistics that know nothing of what a report means: are two samples alike, and are two columns independent?

Of the many figures of one look the least likely counts, and its p-value is multiplied by their number (Bonferroni).
A look that comes to less than `LEAST_P` is taken again from another seed (`_chances.twice`), so that an honest
mechanism fails one of these checks with a probability of at most 1e-9. Of binary figures the p-values are exact, of
tables they are those of the chi-square distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betainc, chdtrc, gammaln

from ._chances import LEAST_EXPECTED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

LEAST_P = 3e-5
"""In each of two looks: together 1e-9."""

_CANDIDATES, _UNLIKELY = 24, 4.0
"""Of the binary figures so many that look worst, and more than this many standard deviations off, are looked at
exactly; one that is not is no evidence among so many."""


@dataclass
class Evidence:
    """What the tests of one look came to: how many there were, and the least likely of them in words."""

    tests: int = 0
    p: float = 1.0
    why: str = ""

    def add(self, p: float, why: str, tests: int = 1) -> None:
        """The least p-value of so many tests."""
        self.tests += tests
        if p < self.p:
            self.p, self.why = p, why

    def verdict(self) -> str:
        """What speaks against the sample, "" where nothing does."""
        p = self.p * self.tests
        return f"{self.why}: p = {p:.3g}" if self.tests and p < LEAST_P else ""


def hypergeometric_p(both: int, first: int, second: int, total: int) -> float:
    """Fisher's exact test, two-sided by doubling: of `total`, `first` are this, `second` that, and `both` both."""
    low, high = max(0, first + second - total), min(first, second)
    counts = np.arange(low, high + 1)
    cells = counts, first - counts, second - counts, total - first - second + counts
    logs: Floats = -np.sum([gammaln(cell + 1.0) for cell in cells], axis=0)
    masses = np.exp(logs - logs.max())
    masses /= masses.sum()
    place = both - low
    return float(min(1.0, 2 * min(masses[: place + 1].sum(), masses[place:].sum())))


def equal_p(hits: int, total: int, chance: float) -> float:
    """How likely `hits` or more among `total` are at this chance of each."""
    return float(betainc(hits, total - hits + 1, chance)) if hits and chance < 1 else 1.0


# -- two samples ----------------------------------------------------------------------------------------------


def compare_samples(evidence: Evidence, first: Any, second: Any, words: str, order: int) -> None:
    """Hold two samples of reports, rows of bytes, against each other: whole, and up to `order` bits at a time.

    Any function of three bits is a sum of products of at most three signs, so signs and their products are all that
    is looked at. Of the whole report there is the table of all that was seen, if that is not too much, and the parity
    of all bits.
    """
    _compare_tables(evidence, first, second, words)
    bits = [np.unpackbits(rows, axis=1, bitorder="little") for rows in (first, second)]
    parities = [(each.sum(axis=1) & 1).astype(np.bool_) for each in bits]
    one, other = (each[:, np.newaxis] for each in parities)
    _compare_signs(evidence, one, other, f"the parity of all bits of {words}", 1)
    varying = np.flatnonzero((bits[0] != bits[0][:1]).any(axis=0) | (bits[1] != bits[0][:1]).any(axis=0))
    one, other = (each[:, varying].astype(np.bool_) for each in bits)
    _compare_signs(evidence, one, other, f"bits of {words}", order)


def _compare_tables(evidence: Evidence, first: Any, second: Any, words: str) -> None:
    keys = np.concatenate([keys_of(first), keys_of(second)])
    values, places = np.unique(keys, return_inverse=True)
    if len(values) * LEAST_EXPECTED / 2 <= len(keys):
        table = [np.bincount(part, minlength=len(values)) for part in np.split(places, [len(first)])]
        compare_counts(evidence, table[0], table[1], f"whole {words}")


def compare_counts(evidence: Evidence, first: Any, second: Any, words: str) -> None:
    """Two rows of counts of the same cells, by Pearson's chi-square; rare cells are put together."""
    both = first + second
    share = min(first.sum(), second.sum()) / max(1, both.sum())
    order = np.argsort(both, kind="stable")
    due = both[order] * share
    few = max(int(np.searchsorted(np.cumsum(due), LEAST_EXPECTED)) + 1, int(np.searchsorted(due, LEAST_EXPECTED)))
    rows = [np.concatenate([[row[order][:few].sum()], row[order][few:]]).astype(float) for row in (first, second)]
    total = rows[0] + rows[1]
    if len(total) < 2 or total[0] * share < LEAST_EXPECTED / 2:
        rows, total = [row[1:] for row in rows], total[1:]
    if len(total) < 2:
        return
    figure = 0.0
    for row in rows:
        expected = total * row.sum() / total.sum()
        figure += float(((row - expected) ** 2 / expected).sum())
    evidence.add(float(chdtrc(len(total) - 1, figure)), f"{words} are not alike (chi-square)")


def _compare_signs(evidence: Evidence, first: Bools, second: Bools, words: str, order: int) -> None:
    """The products of up to `order` signs."""
    if not first.shape[1]:
        return
    signs = [1 - 2 * each.astype(np.float32) for each in (first, second)]
    figures = [_products(each, order) for each in signs]
    names = _names(first.shape[1], order)
    totals = len(first), len(second)
    pooled = (figures[0] * totals[0] + figures[1] * totals[1]) / sum(totals)
    spread = np.sqrt(np.maximum(1 - pooled**2, 1e-12) * (1 / totals[0] + 1 / totals[1]))
    for place in _worst(np.abs(figures[0] - figures[1]) / spread):
        ones = [round(total * (1 - float(figure[place])) / 2) for total, figure in zip(totals, figures, strict=True)]
        p = hypergeometric_p(ones[0], totals[0], sum(ones), sum(totals))
        shares = " and ".join(f"{one / total:.4g}" for one, total in zip(ones, totals, strict=True))
        evidence.add(p, f"{words} differ (bits {names(place)} together: odd in {shares})", tests=0)
    evidence.add(1.0, "", tests=len(pooled))


def _worst(figures: Floats) -> list[int]:
    """The places of the largest."""
    off = np.flatnonzero(figures > _UNLIKELY)
    found: list[int] = off[np.argsort(-figures[off], kind="stable")][:_CANDIDATES].tolist()
    return found


def _products(signs: Any, order: int) -> Floats:
    """The means of all products of one, two, ... up to `order` columns, in the order of `_names`."""
    count, columns = signs.shape
    upper = np.triu_indices(columns, 1)
    parts = [signs.mean(axis=0, dtype=np.float64)]
    if order >= 2:
        parts.append(((signs.T @ signs) / count)[upper])
    if order >= 3:
        for place in range(columns - 2):
            rest = signs[:, place + 1 :]
            inner = np.triu_indices(columns - place - 1, 1)
            parts.append((((rest * signs[:, place : place + 1]).T @ rest) / count)[inner])
    return np.concatenate(parts).astype(np.float64)


def _names(columns: int, order: int) -> Any:
    """A function from the place of a product to its columns in words."""

    def name(place: int) -> str:
        if place < columns:
            return str(place)
        place -= columns
        pairs = columns * (columns - 1) // 2
        if place < pairs or order < 3:
            return ", ".join(str(each[place]) for each in np.triu_indices(columns, 1))
        place -= pairs
        for first in range(columns - 2):
            inner = (columns - first - 1) * (columns - first - 2) // 2
            if place < inner:
                others = (int(each[place]) + first + 1 for each in np.triu_indices(columns - first - 1, 1))
                return ", ".join(map(str, (first, *others)))
            place -= inner
        raise AssertionError(place)

    return name


# -- two columns ----------------------------------------------------------------------------------------------


def relate(evidence: Evidence, first: Bools, second: Bools, words: str) -> None:
    """Whether the features of each user's one report, (n, f), tell something of those of the other, (n, g)."""
    total = len(first)
    ones = first.sum(axis=0)[:, np.newaxis], second.sum(axis=0)[np.newaxis, :]
    both = first.T.astype(np.float32) @ second.astype(np.float32)
    expected = ones[0] * ones[1] / total
    spread = np.sqrt(np.maximum(expected * (total - ones[0]) * (total - ones[1]) / total**2, 1e-12))
    figures = (np.abs(both - expected) / spread).reshape(-1)
    figures[((ones[0] * (total - ones[0])) * (ones[1] * (total - ones[1])) == 0).reshape(-1)] = 0
    for place in _worst(figures):
        i, j = divmod(place, second.shape[1])
        p = hypergeometric_p(round(float(both[i, j])), int(ones[0][i, 0]), int(ones[1][0, j]), total)
        evidence.add(p, f"{words} are not independent", tests=0)
    evidence.add(1.0, "", tests=figures.size)


_MULTIPLIER = 0x9E3779B97F4A7C15


def keys_of(rows: Any) -> NDArray[np.uint64]:
    """A number for each row of bytes; different rows have the same one with a chance of about 2**-64."""
    powers = np.array([pow(_MULTIPLIER, place + 1, 1 << 64) for place in range(rows.shape[1])], dtype=np.uint64)
    keys: NDArray[np.uint64] = ((rows.astype(np.uint64) + np.uint64(1)) * powers).sum(axis=1, dtype=np.uint64)
    return keys ^ keys >> np.uint64(29)
