"""Who calls, and what they may do: API keys and invitations as bearer tokens, by the table of access.

A caller is let in, or turned away, before anything of the body is read: `Guarded` is the class of every route.

Respondents: they come with an invitation, may send the report that it is for, and see what they were charged.

The table of access: for each operation the scope that it asks for, and what a key that is bound may do there.

`callers.Guarded` decides by this table before the body of a request is read. A route without a row cannot be made.
The tests ask every route with every scope and every kind of binding, and compare the answers with this table.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from . import request_context
from .consistency import MinPosition, check
from .error_codes import ServiceError

if TYPE_CHECKING:
    from fastapi import Request

    from ldp_budget import Accountant, Collection
    from ldp_budget.accounting.api_keys import ApiKey, ApiKeys
    from ldp_budget.accounting.invitations import Invitation

    from .report_store import CachedCollection, Collections


CALLER = "(invitation)"
"""What the log calls whoever comes with one; no API key can be called so."""


@dataclass(frozen=True)
class Respondent:
    """Somebody who was invited, and where they are served."""

    accountant: Accountant
    invitation: Invitation
    held: Collections

    @property
    def user(self) -> str:
        """Who is charged."""
        return self.invitation.user

    @property
    def invited_to(self) -> CachedCollection:
        """The collection, and what clients are told of it."""
        return self.held.get(self.invitation.collection)

    @property
    def collection(self) -> Collection:
        """What they were invited to."""
        return self.invited_to.collection

    def check_collection(self, name: str) -> None:
        """Refuse another collection than that of the invitation."""
        if name != self.invitation.collection:
            raise ServiceError("forbidden", "this invitation is to another collection")

    def check_key(self, key: str) -> None:
        """Refuse another key than that of the one report that the invitation is for."""
        if key != self.invitation.key:
            raise ServiceError("forbidden", "an invitation is for one report, under the key that GET /v1/me says")


def find(request: Request, token: str) -> Respondent | None:
    """The respondent with an invitation that is good now. Raises `ServiceError` where they come too often."""
    state = request.app.state
    found = state.invitations.find(token)
    if found is None:
        return None
    request_context.current_request().caller = CALLER
    state.respondents.check((found.user, found.key))
    return Respondent(state.accountant, found, state.collections)


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


_described = HTTPBearer(
    auto_error=False, scheme_name="HTTPBearer", description="An API key, made by `ldp-budget api-key create`."
)
_Described = Annotated[HTTPAuthorizationCredentials | None, Depends(_described)]
_invitation = HTTPBearer(
    auto_error=False, scheme_name="Invitation", description="An invitation, made by `ldp-budget invite`."
)
_Invitation = Annotated[HTTPAuthorizationCredentials | None, Depends(_invitation)]

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


@dataclass(frozen=True)
class AuthContext:
    """Where a caller is served: the ledger, as they may use it, and their key."""

    accountant: Accountant
    key: ApiKey
    held: Collections
    keys: ApiKeys = field(repr=False)
    token: str = field(repr=False)

    def collection(self, name: str) -> Collection:
        """The collection of that name. Raises as the library does."""
        return self.held.get(name).collection

    def check_policy(self, policy: str) -> None:
        """Refuse a policy that the caller's key is not bound to."""
        if self.key.policies is not None and policy not in self.key.policies:
            raise _forbidden(f"this key is bound to the policies {', '.join(self.key.policies)}; asked for {policy}")

    def check_collection(self, collection: str | None) -> None:
        """Refuse a collection that the caller's key is not bound to; None: a mechanism that belongs to none."""
        bound = self.key.collections
        if bound is not None and collection not in bound:
            raise _forbidden(f"this key is bound to the collections {', '.join(bound)}; asked for {collection}")

    @property
    def bound(self) -> bool:
        """Whether the caller's key is bound to some policies or collections."""
        return self.key.policies is not None or self.key.collections is not None

    def check_key(self) -> None:
        """Refuse a key that is not good any more, for work that continues after the caller was let in."""
        found = self.keys.find(self.token)
        if found is None or found.number != self.key.number:
            raise ServiceError("unauthorized", "this API key is not good any more")

    def check_reservation(self, receipt: str) -> None:
        """Refuse a reservation under a policy or of a collection that the caller's key is not bound to."""
        if self.key.policies is not None or self.key.collections is not None:
            found = self.accountant.reservation(receipt)
            self.check_policy(found["policy"])
            self.check_collection(found["collection"])

    def sees(self, row: Mapping[str, Any]) -> bool:
        """Whether the caller's key is bound to nothing else than what a row of the journal is about."""
        return all(
            bound is None or row[name] in bound
            for name, bound in (("policy", self.key.policies), ("collection", self.key.collections))
        )


def router_of(**options: Any) -> APIRouter:
    """A router whose routes let callers in by the table of access."""
    return APIRouter(route_class=Guarded, **options)


class Guarded(APIRoute):
    """A route that turns a caller away, by the table of access, before it reads the body."""

    def get_route_handler(self) -> Handler:
        """What the framework calls."""
        handler = super().get_route_handler()
        method = next(iter(self.methods or ()))
        access = access_of(method, self.path)

        async def guarded(request: Request) -> Response:
            await _admit(request, access)
            return await handler(request)

        return guarded


async def _admit(request: Request, access: Access) -> None:
    """Leave in the request's state who calls. Raises `ServiceError`.

    Where the keys or the invitations are to be read again, a thread does that: the event loop waits for no ledger.
    """
    state = request.app.state
    if access.scope == OPEN or (access.local and state.settings.open_metrics and is_local(request)):
        return
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise _unauthorized(access)
    if state.keys.is_fresh() and (not access.invited or state.invitations.is_fresh()):
        _let_in(request, access, token)
    else:
        await run_in_threadpool(_let_in, request, access, token)


def _let_in(request: Request, access: Access, token: str) -> None:
    found = find(request, token) if access.invited else None
    request.state.caller = _desk(request, access, token) if found is None else found


def _desk(request: Request, access: Access, token: str) -> AuthContext:
    """The desk of a caller with a key, if the table lets them in."""
    state = request.app.state
    key = None if access.scope == INVITED else state.keys.find(token)
    if key is None:
        raise _unauthorized(access)
    request_context.current_request().caller = key.name
    if access.scope != ANY and not key.allows(access.scope):
        raise _forbidden(f"this key has not the scope {access.scope}")
    for what, bound, may in (
        ("policies", key.policies, access.policy),
        ("collections", key.collections, access.collection),
    ):
        if bound is not None and may == NO:
            raise _forbidden(f"this key is bound to the {what} {', '.join(bound)}; this is about more than those")
    state.rates.check(key.name)
    return AuthContext(state.accountant.acting_for(key.caller), key, state.collections, state.keys, token)


def is_local(request: Request) -> bool:
    """Whether a request comes from this machine, and no proxy says that it passed the request on."""
    if request.client is None or {"x-forwarded-for", "forwarded"} & set(request.headers):
        return False
    try:
        return ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False


def _unauthorized(access: Access) -> ServiceError:
    what = "an invitation that is good now" if access.scope == INVITED else "an API key"
    return ServiceError(
        "unauthorized", f"expected {what}, as `Authorization: Bearer …`", {"WWW-Authenticate": "Bearer"}
    )


def _forbidden(why: str) -> ServiceError:
    return ServiceError("forbidden", why)


async def _caller(request: Request, described: _Described) -> AuthContext:
    """A dependency: the desk of the caller with a key."""
    found: AuthContext = request.state.caller
    return found


def _reader(request: Request, described: _Described, min_position: MinPosition = None) -> AuthContext:
    """The same for those who read: the journal must be as far as they say."""
    found: AuthContext = request.state.caller
    if min_position is not None:
        check(min_position, found.accountant.position())
    return found


def _respondent(request: Request, described: _Invitation) -> Respondent:
    """A dependency: the respondent who comes with an invitation."""
    found: Respondent = request.state.caller
    return found


def _sending(request: Request, described: _Described, invitation: _Invitation) -> AuthContext | Respondent:
    """A dependency: either of them."""
    found: AuthContext | Respondent = request.state.caller
    return found


Caller = Annotated[AuthContext, Depends(_caller)]
Reader = Annotated[AuthContext, Depends(_reader)]
Invited = Annotated[Respondent, Depends(_respondent)]
Sending = Annotated[AuthContext | Respondent, Depends(_sending)]
