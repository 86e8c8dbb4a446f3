"""One estimate of what reports come to, whether the collection lists its answers or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..authoring.domain import Categories

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..authoring.estimates import Estimate
    from ..catalogue.collections import Collection


def lists_answers(collection: Collection) -> bool:
    """Whether the answers were declared, so that all of them can be estimated."""
    domain = collection.mechanism.domain
    return isinstance(domain, Categories) and domain.listed


def estimate_total(collection: Collection, total: Any, names: Sequence[str] | None) -> Estimate:
    """The estimate from an aggregate; where answers are not listed, of those named."""
    mechanism: Any = collection.mechanism
    if names is None or lists_answers(collection):
        estimated: Estimate = mechanism.estimate(total)
    else:
        estimated = mechanism.estimate(total, candidates=collection.read_values(names))
    return estimated
