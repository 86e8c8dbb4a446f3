"""The table of access: for each operation the scope that it asks for, and what a key that is bound may do there.

`callers.Guarded` decides by this table before the body of a request is read. A route without a row cannot be made.
The tests ask every route with every scope and every kind of binding, and compare the answers with this table.
"""

from __future__ import annotations

from typing import Any, NamedTuple

OPEN, ANY, INVITED = "open", "any", "invited"
"""Scopes that are not those of keys: no key is needed; any key that is good now; an invitation."""

NO, NAMED, ROWS, FREE = "no", "named", "rows", "free"
"""What a key may do that is bound to policies, or to collections.

`NO`: nothing, as the operation is about all of the ledger or about what others did. `NAMED`: the request names the
policy or the collection, and that must be one of those the key is bound to. `ROWS`: the answer holds only the rows of
those. `FREE`: the operation says and changes nothing of any policy or collection.
"""


class Access(NamedTuple):
    """Who may use an operation: the `scope`, and what keys may do that are bound to policies or to collections.

    `invited`: an invitation is as good as a key with the scope. `local`: no key is needed on this machine where the
    settings say so.
    """

    scope: str
    policy: str = NO
    collection: str = NO
    invited: bool = False
    local: bool = False


_OPEN = Access(OPEN, FREE, FREE)

ACCESS: dict[tuple[str, str], Access] = {
    ("POST", "/v1/spends"): Access("spend", NAMED, NAMED),
    ("POST", "/v1/spends:batch"): Access("spend", NAMED, NAMED),
    ("POST", "/v1/reservations"): Access("spend", NAMED, NAMED),
    ("GET", "/v1/reservations"): Access("read", ROWS, ROWS),
    ("POST", "/v1/reservations/{receipt}/commit"): Access("spend", NAMED, NAMED),
    ("POST", "/v1/reservations/{receipt}/void"): Access("spend", NAMED, NAMED),
    # A balance adds up the charges of all collections.
    ("GET", "/v1/users/{user}/balance"): Access("read", NAMED, NO),
    ("POST", "/v1/users:balance"): Access("read", NAMED, NO),
    ("POST", "/v1/balances"): Access("read", NAMED, NO),
    ("GET", "/v1/users/{user}/history"): Access("read", ROWS, ROWS),
    ("POST", "/v1/users:history"): Access("read", ROWS, ROWS),
    # It has a row for each charge of the user, also for those under other policies.
    ("GET", "/v1/users/{user}/remaining"): Access("read"),
    ("POST", "/v1/users:remaining"): Access("read"),
    ("DELETE", "/v1/users/{user}"): Access("erase"),
    ("POST", "/v1/users:reservations"): Access("read", ROWS, ROWS),
    ("POST", "/v1/users:reservation"): Access("read", NAMED, NAMED),
    ("POST", "/v1/users:erased"): Access("read"),
    ("POST", "/v1/users:erase"): Access("erase"),
    # The terms of a policy bind every collection.
    ("GET", "/v1/policies"): Access("read", ROWS, FREE),
    ("GET", "/v1/policies/{name}"): Access("read", NAMED, FREE),
    ("PUT", "/v1/policies/{name}"): Access("policy", NAMED, NO),
    ("GET", "/v1/policies/{name}/simulation"): Access("read", NAMED, NAMED),
    # Every definition is public.
    ("GET", "/v1/collections"): Access("read", FREE, ROWS),
    ("POST", "/v1/collections"): Access("policy", NO, NAMED),
    ("GET", "/v1/collections/{name}"): _OPEN,
    ("POST", "/v1/collections/{name}/reports"): Access("collect", NAMED, NAMED, invited=True),
    ("POST", "/v1/collections/{name}/rounds"): Access("admin", NO, NAMED),
    ("GET", "/v1/collections/{name}/estimate"): Access("read", NO, NAMED),
    ("GET", "/v1/mechanisms"): Access("read", FREE, FREE),
    ("POST", "/v1/calibrate"): Access("read", FREE, FREE),
    ("POST", "/v1/compose"): Access("read", FREE, NAMED),
    ("POST", "/v1/plan"): Access("read", FREE, NAMED),
    ("POST", "/v1/compare"): Access("read", FREE, FREE),
    ("GET", "/v1/ledger"): Access(ANY, FREE, FREE),
    ("POST", "/v1/ledger/position"): Access("read", FREE, FREE),
    ("GET", "/v1/ledger/records"): Access("audit"),
    ("POST", "/v1/ledger/records"): Access("admin"),
    ("POST", "/v1/ledger/keys"): Access("admin"),
    ("POST", "/v1/ledger/keys:revoke"): Access("admin"),
    ("GET", "/v1/ledger/stats"): Access("read"),
    ("GET", "/v1/ledger/verify"): Access("audit"),
    ("POST", "/v1/ledger/verifications"): Access("audit"),
    ("GET", "/v1/ledger/journal"): Access("audit"),
    ("POST", "/v1/ledger/journal"): Access("audit"),
    ("POST", "/v1/ledger/checkpoint"): Access("audit"),
    ("POST", "/v1/ledger/repair-clock"): Access("admin"),
    ("GET", "/v1/overview"): Access("read"),
    ("GET", "/v1/overview/activity"): Access("read"),
    ("GET", "/v1/overview/refusals"): Access("read"),
    ("GET", "/v1/overview/limits"): Access("read"),
    ("GET", "/v1/overview/mechanisms"): Access("read"),
    ("GET", "/v1/alerts"): Access("read"),
    ("POST", "/v1/alerts:test"): Access("policy"),
    ("GET", "/v1/proposals"): Access("policy"),
    ("POST", "/v1/proposals"): Access("policy", NAMED, NO),
    ("POST", "/v1/proposals/{number}/approve"): Access("policy", NAMED, NO),
    ("POST", "/v1/proposals/{number}/set"): Access("policy", NAMED, NO),
    ("POST", "/v1/proposals/{number}/withdraw"): Access("policy", NAMED, NO),
    ("PUT", "/v1/approvals"): Access("policy"),
    ("GET", "/v1/officer"): Access("policy"),
    ("GET", "/v1/officer/alerts"): Access("policy"),
    ("GET", "/v1/officer/policies"): Access("policy"),
    ("GET", "/v1/officer/keys"): Access("policy"),
    ("GET", "/v1/officer/records"): Access("policy"),
    ("GET", "/v1/me"): Access(INVITED, FREE, FREE, invited=True),
    ("GET", "/problems/{code}"): _OPEN,
    ("GET", "/livez"): _OPEN,
    ("GET", "/readyz"): _OPEN,
    ("GET", "/metrics"): Access("read", local=True),
    ("GET", "/"): _OPEN,
    ("GET", "/officer"): _OPEN,
    ("GET", "/me"): _OPEN,
    ("GET", "/s/{collection}"): _OPEN,
    ("GET", "/static/{name}"): _OPEN,
}
"""By the method and the template of the path."""


def access_of(method: str, path: str) -> Access:
    """The row of an operation. Raises `KeyError` where the table has none."""
    return ACCESS[method, path.replace(":name}", "}").replace(":path}", "}")]


def add_to(schema: dict[str, Any]) -> None:
    """Say in a description which scope each operation asks for, as `x-scope`."""
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            if (method.upper(), path) in ACCESS:
                operation["x-scope"] = ACCESS[method.upper(), path].scope
