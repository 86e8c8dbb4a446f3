"""Sums of reports that also count the reports in bins, and estimates that add the bins to a mean."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ldp_budget.sdk.estimates import MeanEstimate, SumAggregate

if TYPE_CHECKING:
    from numpy.typing import NDArray

E = TypeVar("E", bound=MeanEstimate)


@dataclass(repr=False)
class BinnedSum(SumAggregate):
    """The sum of the reports, as for any number, and how many are in each bin, int64 (bins,)."""

    bins: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def merge(self, other: SumAggregate) -> BinnedSum:
        """Add `other`; raises `NotSupported` if another mechanism made it."""
        super().merge(other)
        assert isinstance(other, BinnedSum)
        self.bins = self.bins + other.bins
        return self


def extended(mean: MeanEstimate, kind: type[E], **more: Any) -> E:
    """Return the estimate of a mean as one of a subclass, which has more fields."""
    return kind(**{each.name: getattr(mean, each.name) for each in fields(MeanEstimate)}, **more)
