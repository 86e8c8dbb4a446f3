"""Checks of what goes into the client: nothing outside the domain gets through, nothing is changed in place."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...authoring.domain import Categories
from ...errors import LdpBudgetError, NotSupported
from ...randomness import open_stream
from ._drawing import draw, inputs_of, secrets_of, users_of
from ._outcome import Broken, expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...authoring.base import Mechanism

_USERS = 64
_UNLIKELY = 90_001
"""Added to the largest answer: a number that no report holds by chance where it is not one of few."""


def bad_input_is_refused(mechanism: Mechanism) -> None:
    """A value outside the domain, among good ones, raises an error of the package; so does a table of values."""
    good = users_of(mechanism, _USERS)
    draw(mechanism, good, 7)
    for what, values in _bad(mechanism, good.tolist()):
        try:
            reports = _randomized(mechanism, values)
        except LdpBudgetError:
            continue
        except Exception as error:
            raise Broken(f"{what} raises {type(error).__name__} ({error}), not OutsideDomain") from None
        raise Broken(f"{what} is accepted, and gives {len(reports)} reports")


def _randomized(mechanism: Mechanism, values: Any) -> Any:
    return mechanism.randomize(values, rng=7, secrets=secrets_of(len(values), 7))


def _bad(mechanism: Mechanism, good: list[Any]) -> Iterator[tuple[str, Any]]:
    for value in (*_outside(mechanism), float("nan"), float("inf"), -float("inf"), "no value", None, b"\x00"):
        yield f"the value {value!r}", [*good[1:], value]
    yield "a table of values", np.array([good, good])
    yield "a table of one column", np.array(good).reshape(-1, 1)
    yield "rows of different lengths", [good[:1], good[:2]]


def _outside(mechanism: Mechanism) -> Iterator[Any]:
    """Numbers just outside the declared domain, and of answers such as lie between two."""
    domain = mechanism.domain
    if isinstance(domain, Categories):
        size = domain.size
        yield from (-1, 0.5, -(2**63), size, float(size), size + _UNLIKELY, max(size, 2**63 - 1))
    elif domain is not None:
        lower, upper = domain.ends
        yield from (math.nextafter(lower, -math.inf), math.nextafter(upper, math.inf), 2 * lower - upper, 1e300)


def unknown_values_do_not_leak(mechanism: Mechanism) -> None:
    """A client that lets a value through that it does not know must at least not send it as it is."""
    good = users_of(mechanism, _USERS).tolist()
    draw(mechanism, np.array(good), 7)
    for value in (value for value in _outside(mechanism) if np.isfinite(value)):
        try:
            reports = np.asarray(_randomized(mechanism, [*good[1:], value]))
        except Exception:
            continue
        expect(not (reports[-1] == value).any(), f"the unknown value {value} is sent as it is")


def inputs_are_left_alone(mechanism: Mechanism) -> None:
    """Values and reports are read only, and may be read-only."""
    values = users_of(mechanism, _USERS)
    values.flags.writeable = False
    reports = draw(mechanism, values, 7).copy()
    reports.flags.writeable = False
    before = reports.copy()
    try:
        mechanism.estimate(mechanism.aggregate(reports))
        mechanism.estimate(reports)
    except NotSupported:
        return
    expect(np.array_equal(before, reports), "the server changes the reports")


def no_users_no_reports(mechanism: Mechanism) -> None:
    """No values give no reports, and no reports an aggregate of none."""
    kind = np.array(inputs_of(mechanism)).dtype
    full = draw(mechanism, users_of(mechanism, 1), 7)
    reports = np.asarray(mechanism.randomize(np.array([], dtype=kind), rng=open_stream(7), secrets=[]))
    expect(reports.shape == (0, *full.shape[1:]), f"no values give reports of shape {reports.shape}")
    expect(reports.dtype == full.dtype, f"no values give reports of {reports.dtype}, others of {full.dtype}")
    try:
        total = mechanism.aggregate(reports)
    except NotSupported:
        return
    expect(total.reports == 0, f"no reports give an aggregate of {total.reports}")
