"""The chance of a report under each answer, from the law of its mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.errors import NotSupported

if TYPE_CHECKING:
    from .sample import Floats


def set_likelihood(mechanism: Any, reports: Any) -> Floats:
    """Return the same of an item of a grid, whose report is a set of answers, all sets with the answer equally likely.

    The law of the grid is one of several answers at once. That of an item follows from p, the chance that a set holds the
    answer, and from the size of the sets.

    Parameters:
        mechanism: that of the item.
        reports: sets of answers.

    Raises:
        NotSupported: the sets are of several sizes.
    """
    [(p, q)] = mechanism.support_probabilities
    held = np.rint(float(q) + float(p - q) * mechanism.contributions(reports))
    answers, size = held.shape[1], round(float(p + q * (held.shape[1] - 1)))
    if not (held.sum(axis=1) == size).all():
        raise NotSupported(f"reports of {mechanism.name} are sets of several sizes, so their likelihood is not known")
    found: Floats = np.where(held == 1, float(p) * (answers - size), float(1 - p) * size)
    return found


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
