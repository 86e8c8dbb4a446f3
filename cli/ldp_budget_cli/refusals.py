"""The limits that refused the users of a list: their names, how many users each refused, and when they reset."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from .notes import print_note
from .output import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ldp_budget.accounting.budget_client import BudgetClient
    from ldp_budget.registry.collections import Collection
    from ldp_budget.sdk.mechanism import Mechanism

MOST_QUOTED = 100
"""The largest number of refused users whose limits are looked up."""


def print_refusing_limits(
    ledger: BudgetClient,
    users: Sequence[str],
    refused: int,
    chosen: Mechanism | Collection,
    policy: str,
    tags: Iterable[str] = (),
) -> None:
    """Print on stderr how many users each limit refused, from the first refused users of a run.

    Parameters:
        ledger: the ledger that refused them.
        users: the first refused users, at most `MOST_QUOTED`.
        refused: the number of all refusals.
        chosen: the mechanism or collection of the report that was refused.
        policy: the name of the policy.
        tags: the tags of the charges.
    """
    from ldp_budget.errors import LdpBudgetError

    found: Counter[str] = Counter()
    try:
        for user in users:
            quoted = ledger.quote(user, chosen, policy=policy, tags=tags)
            resets = {state.limit.label: state.resets_at for state in quoted.limits}
            names = [quoted.why] if quoted.why else [_named(each, resets.get(each)) for each in quoted.binding]
            found.update(names)
    except LdpBudgetError:
        return  # an API key may charge and not quote, and a labeled report has no quote without its label
    if found:
        which = "" if len(users) == refused else f" (of the first {len(users)})"
        limits = "; ".join(f"{name}: {counted(count, 'user')}" for name, count in found.most_common())
        print_note(f"Refused by{which}: {limits}")


def _named(limit: str, resets_at: object) -> str:
    """Return a limit with the time when it resets."""
    return f"{limit} limit" if resets_at is None else f"{limit} limit (resets at {resets_at:%Y-%m-%d %H:%M} UTC)"
