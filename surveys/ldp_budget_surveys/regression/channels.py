"""The chance of a report under each answer, from the law of its mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.errors import NotSupported

if TYPE_CHECKING:
    from .sample import Floats


def report_likelihood(mechanism: Any, reports: Any) -> Floats:
    """Return the chance of each report under each answer, (n, d), over that under answer 0 or another factor of the report.

    Parameters:
        mechanism: a mechanism over categories.
        reports: as `randomize` returns them.

    Raises:
        NotSupported: the mechanism does not number the outcomes of its reports, or answer 0 excludes a report.
    """
    found = np.ones((len(reports), mechanism.domain.size))
    for answer in range(1, found.shape[1]):
        masses = mechanism.compare(0, answer).masses()
        ratios = np.array([float(q / p) if p else np.inf for p, q in masses])
        found[:, answer] = ratios[np.asarray(mechanism.outcomes(reports, 0, answer), np.int64)]
    if not np.isfinite(found).all():
        raise NotSupported(
            f"a report of {mechanism.name} excludes an answer for certain, so it has no likelihood ratio"
        )
    scaled: Floats = found / found.max(axis=1, keepdims=True)
    return scaled
