"""Checks of the server: estimates are unbiased with true standard errors, aggregates merge, files keep reports."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...catalogue.collections import Collection
from ...collecting.reports import ReportWriter, read_reports
from ...errors import NotSupported
from .._advice import undefined
from ..verification import HOLDS, VIOLATED
from ..verification.estimators import check_estimator
from ._drawing import draw, users_of
from ._outcome import Broken, NotChecked, expect
from ._simulation import check_by_simulation

if TYPE_CHECKING:
    from ...authoring.base import Mechanism
    from ...authoring.estimates import Aggregate

_USERS = 600


def estimator_is_unbiased(mechanism: Mechanism) -> None:
    """Estimates are right on average and as spread as their standard errors say: proved, or else simulated."""
    try:
        found = check_estimator(mechanism)
    except NotSupported:
        check_by_simulation(mechanism)
        return
    if found.verdict == VIOLATED:
        raise Broken(found.why)
    if found.verdict != HOLDS:
        check_by_simulation(mechanism)


def aggregates_merge(mechanism: Mechanism) -> None:
    """Aggregates of parts, merged in any order, are exactly that of the whole; those of others are refused."""
    reports = draw(mechanism, users_of(mechanism, _USERS), 7)
    whole = _aggregate(mechanism, reports)
    for cuts in ((200, 333), (0, 1), (599, 600)):
        first, *others = (reports[: cuts[0]], reports[cuts[0] : cuts[1]], reports[cuts[1] :])
        for order in ((first, *others), (*reversed(others), first)):
            total: Any = _aggregate(mechanism, order[0])
            for part in order[1:]:
                total = total.merge(_aggregate(mechanism, part))
            expect(_same(total, whole), f"parts cut at {cuts} do not merge to the aggregate of the whole")
    _same_estimates(mechanism, reports, whole)


def _aggregate(mechanism: Mechanism, reports: Any) -> Aggregate:
    try:
        return mechanism.aggregate(reports)
    except NotSupported as error:
        raise NotChecked(undefined(mechanism, error, "aggregate")) from None


def _same_estimates(mechanism: Mechanism, reports: Any, whole: Aggregate) -> None:
    try:
        direct = mechanism.estimate(reports)
    except NotSupported:
        return
    expect(_same(direct, mechanism.estimate(whole)), "an aggregate is estimated otherwise than its reports")


def _same(one: Any, other: Any) -> bool:
    """Whether two aggregates or estimates hold the same, down to the last digit."""
    own, theirs = vars(one), vars(other)
    return own.keys() == theirs.keys() and all(np.array_equal(own[name], theirs[name]) for name in own)


def reports_survive_the_file(mechanism: Mechanism) -> None:
    """Reports written to a report file in two blocks are read back as they were."""
    reports = draw(mechanism, users_of(mechanism, _USERS), 7)
    collection = Collection("contract", mechanism)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reports"
        with ReportWriter(path, collection) as writer:
            writer.write(reports[:200])
            writer.write(reports[200:])
        read = np.concatenate(list(read_reports(path, collection)))
    expect(read.shape == reports.shape, f"reports of shape {reports.shape} are read back as {read.shape}")
    expect(np.array_equal(read, reports), "reports are read back from their file as others")
