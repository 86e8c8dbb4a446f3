"""Reports of projective geometry response: numbers of slabs, how they are drawn, and how they are counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.errors import NotSupported
from ldp_budget.sdk.estimates import check_same

from ._sketch_reports import read_record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldp_budget.sdk.affine_geometry import LinearHashing

    Ints = NDArray[np.int64]

_SPARSE = 8
"""With this many times fewer reports than slabs, only the reported slabs are listed."""


def slabs_of(reports: Any, space: LinearHashing) -> Ints:
    """Return the numbers of the reported slabs, (n,). Raises `NotSupported` for anything but reports."""
    (slabs,), _ = read_record(reports, "pgr", [("slab", space.report_bytes, 256**space.report_bytes)])
    if slabs.size and int(slabs.max()) >= space.slabs:
        raise NotSupported(f"the slabs in reports of pgr must be below {space.slabs}: got {slabs.max()}")
    return slabs


@dataclass
class SlabAggregate:
    """Number of reports of each slab: of a few reports the reported ones alone, else all of them.

    `listed`: the numbers of the slabs that `counts` belong to, ascending; empty if they belong to all.
    """

    fingerprint: str
    reports: int
    slabs: int
    listed: Ints
    counts: Ints

    @classmethod
    def of(cls, fingerprint: str, given: Ints, space: LinearHashing) -> SlabAggregate:
        """Return the aggregate of reports with these numbers."""
        listed = np.empty(0, np.int64)
        if len(given) * _SPARSE < space.slabs:
            listed, counts = np.unique(given, return_counts=True)
        else:
            counts = np.bincount(given, minlength=space.slabs)
        return cls(fingerprint, len(given), space.slabs, listed, counts.astype(np.int64, copy=False))

    def merge(self, other: SlabAggregate) -> SlabAggregate:
        """Add `other`; raises `NotSupported` if another mechanism made it."""
        check_same(self, other)
        if (self.reports + other.reports) * _SPARSE < self.slabs:
            numbers = np.concatenate((self.listed, other.listed))
            counts = np.concatenate((self.counts, other.counts))
            self.listed, places = np.unique(numbers, return_inverse=True)
            self.counts = np.zeros(len(self.listed), np.int64)
            np.add.at(self.counts, places, counts)
        else:
            self.counts, self.listed = self._all(), np.empty(0, np.int64)
            if other.given is None:
                self.counts += other.counts
            else:
                self.counts[other.listed] += other.counts
        self.reports += other.reports
        return self

    @property
    def given(self) -> Ints | None:
        """The slabs that `counts` belong to; None if they belong to all."""
        return self.listed if self.reports * _SPARSE < self.slabs else None

    def _all(self) -> Ints:
        """Return the counts of all slabs."""
        if self.given is None:
            return self.counts
        counts = np.zeros(self.slabs, np.int64)
        counts[self.listed] = self.counts
        return counts
