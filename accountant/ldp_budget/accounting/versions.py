"""The versions of policies as people read them: who set each, when, and what it is to the one before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ledger.windows import from_micros
from .policies import Policy
from .raising import raising
from .record_kinds import OVERRIDDEN, body_of, fault_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..ledger import Reading

FIRST, RAISED, LOWERED, CHANGED = "first", "raised", "lowered", "changed"
"""What a version is to the one before: `raised` admits more somewhere, `lowered` less somewhere and more nowhere."""


def version_rows(reading: Reading, set_by: Mapping[int, int]) -> list[dict[str, Any]]:
    """Every version of every policy, newest first; `set_by` says by which key a version was set, by its number."""
    names: dict[int, str | None] = {0: None}
    rows: list[dict[str, Any]] = []
    newest: dict[str, Policy] = {}
    reasons = overrides(reading)
    for stored in reading.rows.policies():
        policy = Policy.read(stored.definition)
        key = set_by.get(stored.number, 0)
        if key not in names:
            names[key] = next((record.name for record in reading.rows.admin_log(key)), None)
        rows.append(
            {
                "policy": policy.name,
                "version": policy.version,
                "at": from_micros(stored.created_at).isoformat().replace("+00:00", "Z"),
                "by": names[key],
                "by_known": stored.number in set_by,
                "change": change(newest.get(policy.name), policy),
                "override": reasons.get((policy.name, policy.version)),
                **_terms(policy),
            }
        )
        newest[policy.name] = policy
    return rows[::-1]


def overrides(reading: Reading) -> dict[tuple[str, int], str]:
    """The reasons of the versions of policies that were set without the approval that the ledger demanded."""
    found: dict[tuple[str, int], str] = {}
    for record in reading.rows.admin_log():
        body = body_of(record.body) if record.kind == OVERRIDDEN else None
        if body is not None and fault_of(record.kind, record.name, body) is None:
            found[record.name, body["version"]] = body["reason"]
    return found


def _terms(policy: Policy) -> dict[str, Any]:
    return {
        "limits": [str(limit) for limit in policy.limits],
        "relation": policy.relation,
        "unbounded": policy.unbounded,
        "checked": policy.checked,
        "plan": policy.plan is not None,
    }


def change(before: Policy | None, after: Policy) -> str:
    """What a version is to the one before: `first`, `raised`, `lowered`, or `changed` in other ways alone."""
    if before is None:
        return FIRST
    if admits_more(before, after):
        return RAISED
    return LOWERED if admits_more(after, before) else CHANGED


def admits_more(before: Policy, after: Policy) -> bool:
    """Whether anybody might be charged under `after` who would be refused under `before`, see `raising`."""
    return bool(raising(before, after))
