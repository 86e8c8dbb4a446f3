"""What is worth an alert: limits that many users have nearly or wholly used, many refusals, a ledger that fails.

Each is raised once for its threshold and window; what it is called says both. No alert names a user.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ldp_budget.accounting.overview import Overview

    from .verifying import Verified

LIMIT_USED = "limit.used"
REFUSALS = "refusals.many"
VERIFICATION = "verification.failed"
TEST = "test"


class Rules(NamedTuple):
    """When to raise what.

    `used` are thresholds in percent of a limit, one alert for each that a share of `users` has reached. `refusals` is
    the share of what was asked in the last hour that was refused, if that was at least `least` requests.
    """

    used: tuple[int, ...] = (80, 100)
    users: float = 0.05
    refusals: float = 0.5
    least: int = 100


class Alert(NamedTuple):
    """Something to be told: `name` says what it is about, and that of which it is told once."""

    name: str
    type: str
    data: Mapping[str, Any]


def worth_telling(rules: Rules, overview: Overview, verified: Verified | None, now: datetime) -> Iterator[Alert]:
    """Everything that is worth an alert just now, whether or not it was told before."""
    for limit in overview.limits():
        yield from _of_limit(rules, limit)
    yield from _of_refusals(rules, overview.recent(1), now)
    if verified is not None and not verified.ok:
        yield Alert(f"{VERIFICATION} {verified.record}", VERIFICATION, verified.to_json())


def _of_limit(rules: Rules, limit: Mapping[str, Any]) -> Iterator[Alert]:
    used: Sequence[int] = limit["used"]
    for threshold in rules.used:
        users = sum(used[threshold:])
        if users and users >= rules.users * limit["users"]:
            about = {name: limit[name] for name in ("policy", "period", "rule", "epsilon", "delta", "resets_at")}
            # A limit that was raised is another one, and so is its next window.
            which = sha256("\n".join(map(str, about.values())).encode("utf-8", "surrogatepass")).hexdigest()[:24]
            data = {**about, "used_percent": threshold, "users": users, "of": limit["users"]}
            yield Alert(f"{LIMIT_USED} {threshold} {which}", LIMIT_USED, data)


def _of_refusals(rules: Rules, recent: Mapping[str, int], now: datetime) -> Iterator[Alert]:
    asked = recent["charges"] + recent["refused"]
    if asked >= rules.least and recent["refused"] >= rules.refusals * asked:
        data = {"refused": recent["refused"], "of": asked, "threshold": rules.refusals}
        yield Alert(f"{REFUSALS} {rules.refusals} {now.date().isoformat()}", REFUSALS, data)
