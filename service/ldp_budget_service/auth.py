"""Authentication and authorization: API keys and invitations as bearer tokens, checked by an access table.

`ACCESS` gives for each operation the required scope and the rights of a bound API key. `Guarded`, the class of every
route, checks the table before it reads the request body. A route without a row in the table cannot be created. The
tests call every route with every scope and every kind of binding, and compare the responses with this table.

A respondent comes with an invitation. Respondents may send the report of the invitation and see their charges.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from ldp_budget import InvalidParameter, LdpBudgetError, UnknownName
from ldp_budget._number_parsing import is_number
from ldp_budget._validation import shown
from ldp_budget_service.api_keys import ACTIVE, EXPIRED, PENDING

from . import request_attributes
from .consistency import MinPosition, check
from .error_codes import STATUSES, ServiceError
from .json_bodies import StrictRequest
from .request_limits import token_of
from .visibility import refusal_in_words, revealed, unnumbered, without_number, without_sums

if TYPE_CHECKING:
    from starlette.datastructures import State
    from starlette.types import Message, Receive, Scope

    from ldp_budget import Accountant, Collection
    from ldp_budget.accounting.receipts import Receipt
    from ldp_budget_service.api_keys import ApiKey, ApiKeys
    from ldp_budget_service.invitations import Invitation, Invitations

    from .report_store import CachedCollection, Collections


# -- respondents ----------------------------------------------------------------------------------------

CALLER = "(invitation)"
"""Name of a caller with an invitation in the log. An API key cannot have this name."""
_ENDED = "this API key or invitation ended while the request was in progress. The rest of the request was not done."


@dataclass(frozen=True)
class Respondent:
    """An authenticated respondent: the ledger, the invitation and the collections."""

    accountant: Accountant
    invitation: Invitation
    held: Collections
    invitations: Invitations = field(repr=False)
    token: str = field(repr=False)

    def check_valid(self) -> None:
        """Refuse an invitation that is no longer valid, for work that continues after authentication."""
        if self.invitations.find(self.token) is None:
            raise ServiceError("unauthorized", _ENDED, {"WWW-Authenticate": "Bearer"})

    def needs_ledger(self) -> bool:
        """True if `check_valid` has to read the ledger."""
        return not self.invitations.is_fresh()

    @property
    def user(self) -> str:
        """The user to charge."""
        return self.invitation.user

    @property
    def invited_to(self) -> CachedCollection:
        """The collection with its public definition."""
        return self.held.get(self.invitation.collection)

    @property
    def collection(self) -> Collection:
        """The collection of the invitation."""
        return self.invited_to.collection

    def check_collection(self, name: str) -> None:
        """Refuse a collection other than that of the invitation."""
        if name != self.invitation.collection:
            raise ServiceError("forbidden", "this invitation is for another collection")

    def shown(self, receipt: Receipt) -> Receipt:
        """Return a receipt as the respondent may see it."""
        return without_number(self.accountant.keyed_digest, receipt)

    def explained(self, receipt: Receipt) -> str:
        """Return the line that explains a refusal."""
        return receipt.explain()

    def error(self, error: LdpBudgetError) -> LdpBudgetError:
        """Return an error as the respondent may see it: without the names of other objects."""
        return UnknownName(error.kind, error.name, None) if isinstance(error, UnknownName) else error

    def check_key(self, key: str) -> None:
        """Refuse an idempotency key other than that of the invitation's one report."""
        if key != self.invitation.key:
            raise ServiceError(
                "forbidden", "an invitation is for one report. Use the idempotency key that GET /v1/me returns."
            )


def find(state: State, token: str) -> Respondent | None:
    """Return the respondent with a valid invitation; None if there is none.

    Raises `ServiceError` if the respondent exceeds the rate limit.
    """
    found = state.invitations.find(token)
    if found is None:
        return None
    request_attributes.CURRENT.get().caller = CALLER
    state.respondents.check((found.user, found.key))
    return Respondent(state.accountant, found, state.collections, state.invitations, token)


async def is_known(state: State, token: str) -> bool:
    """True if the token is that of an active API key or of a valid invitation."""
    if state.keys.is_fresh() and state.invitations.is_fresh():
        return _is_known(state, token)
    return await run_in_threadpool(_is_known, state, token)


def _is_known(state: State, token: str) -> bool:
    try:
        return state.keys.find(token) is not None or state.invitations.find(token) is not None
    except LdpBudgetError:
        return False  # the ledger cannot be read


# -- access table ---------------------------------------------------------------------------------------

OPEN, ANY, INVITED = "open", "any", "invited"
"""Special scopes: no API key is required; any valid API key; an invitation."""

NO, NAMED, ROWS, FREE = "no", "named", "rows", "free"
"""Rights of an API key that is bound to policies or collections.

`NO`: none; the operation concerns the whole ledger or the actions of others. `NAMED`: the request must name a policy
or collection that the key is bound to. `ROWS`: the response contains only rows of bound policies or collections.
`FREE`: the operation neither shows nor changes anything of a policy or collection.
"""


class Access(NamedTuple):
    """Access rule of an operation: the required `scope`, and the rights of keys bound to policies or collections.

    `invited`: True if an invitation is accepted instead of a key with the scope. `local`: True if requests from this
    machine need no key, provided that the settings allow it. `offline`: True if the last known keys are accepted while
    the ledger cannot be read.
    """

    scope: str
    policy: str = NO
    collection: str = NO
    invited: bool = False
    local: bool = False
    offline: bool = False


_OPEN = Access(OPEN, FREE, FREE)

ACCESS: dict[tuple[str, str], Access] = {
    ("POST", "/v1/spends"): Access("spend", NAMED, NAMED),
    ("POST", "/v1/spends:batch"): Access("spend", NAMED, NAMED),
    ("POST", "/v1/reservations"): Access("spend", NAMED, NAMED),
    ("GET", "/v1/reservations"): Access("read", ROWS, ROWS),
    ("POST", "/v1/reservations/{receipt}/commit"): Access("spend", NAMED, NAMED),
    ("POST", "/v1/reservations/{receipt}/void"): Access("spend", NAMED, NAMED),
    # A balance sums the charges under all policies and of all collections.
    ("GET", "/v1/users/{user}/balance"): Access("read"),
    ("POST", "/v1/users:balance"): Access("read"),
    ("POST", "/v1/balances"): Access("read"),
    ("GET", "/v1/users/{user}/history"): Access("read", ROWS, ROWS),
    ("POST", "/v1/users:history"): Access("read", ROWS, ROWS),
    # The response has a row for each charge of the user, including charges under other policies.
    ("GET", "/v1/users/{user}/remaining"): Access("read"),
    ("POST", "/v1/users:remaining"): Access("read"),
    # A statement has every charge of the user, whom it names.
    ("GET", "/v1/users/{user}/statement"): Access("statement"),
    ("POST", "/v1/users:statement"): Access("statement"),
    ("DELETE", "/v1/users/{user}"): Access("erase"),
    ("POST", "/v1/users:reservations"): Access("read", ROWS, ROWS),
    ("POST", "/v1/users:reservation"): Access("read", NAMED, NAMED),
    ("POST", "/v1/users:erased"): Access("read"),
    ("POST", "/v1/users:erase"): Access("erase"),
    # A policy applies to every collection.
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
    ("POST", "/v1/ledger/position"): Access("read"),
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
    ("GET", "/v1/proposals"): Access("policy"),
    ("POST", "/v1/proposals"): Access("policy", NAMED, NO),
    ("POST", "/v1/proposals/{number}/approve"): Access("policy", NAMED, NO),
    ("POST", "/v1/proposals/{number}/set"): Access("policy", NAMED, NO),
    ("POST", "/v1/proposals/{number}/withdraw"): Access("policy", NAMED, NO),
    ("PUT", "/v1/approvals"): Access("policy"),
    ("GET", "/v1/officer"): Access("policy"),
    ("GET", "/v1/officer/policies"): Access("policy"),
    ("GET", "/v1/officer/keys"): Access("policy"),
    ("GET", "/v1/officer/records"): Access("policy"),
    ("GET", "/v1/collections/{name}/proof"): _OPEN,
    ("GET", "/publications/{collection}/{file}"): _OPEN,
    ("GET", "/v1/me"): Access(INVITED, FREE, FREE, invited=True),
    ("GET", "/v1/me/proof"): Access(INVITED, FREE, FREE, invited=True),
    ("GET", "/problems/{code}"): _OPEN,
    ("GET", "/livez"): _OPEN,
    ("GET", "/readyz"): _OPEN,
    ("GET", "/metrics"): Access("read", local=True, offline=True),
    ("GET", "/"): _OPEN,
    ("GET", "/officer"): _OPEN,
    ("GET", "/me"): _OPEN,
    ("GET", "/check"): _OPEN,
    ("GET", "/s/{collection}"): _OPEN,
    ("GET", "/static/{name}"): _OPEN,
}
"""Access rules by method and path template."""


def access_of(method: str, path: str) -> Access:
    """Return the access rule of an operation. Raises `KeyError` if the table has no row for it."""
    return ACCESS[method, path.replace(":name}", "}").replace(":path}", "}")]


def add_to(schema: dict[str, Any]) -> None:
    """Add the required scope of each operation to an OpenAPI schema, as `x-scope`."""
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            if (method.upper(), path) in ACCESS:
                operation["x-scope"] = ACCESS[method.upper(), path].scope


# -- API keys -------------------------------------------------------------------------------------------

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
    """Authenticated caller: the ledger acting for the caller's API key, and the key."""

    accountant: Accountant
    key: ApiKey
    held: Collections
    keys: ApiKeys = field(repr=False)
    token: str = field(repr=False)

    def collection(self, name: str) -> Collection:
        """Return the collection with that name. Raises as the library does."""
        return self.held.get(name).collection

    def check_policy(self, policy: str) -> None:
        """Refuse a policy that the caller's key is not bound to."""
        if self.key.policies is not None and policy not in self.key.policies:
            raise _unbound("policy", "policies", self.key.policies, policy)

    def check_collection(self, collection: str | None) -> None:
        """Refuse a collection that the caller's key is not bound to; None: a mechanism without a collection."""
        bound = self.key.collections
        if bound is not None and collection not in bound:
            raise _unbound("collection", "collections", bound, collection)

    @property
    def bound(self) -> bool:
        """True if the caller's key is bound to some policies or collections."""
        return self.key.policies is not None or self.key.collections is not None

    def check_valid(self) -> None:
        """Refuse a key that is no longer valid, for work that continues after authentication."""
        check_valid(self.keys, self.key, self.token)

    def needs_ledger(self) -> bool:
        """True if `check_valid` has to read the ledger."""
        return not self.keys.is_fresh()

    def position(self, user: str | None = None) -> str | None:
        """Return the journal's position; None for a bound key, which must not learn how long the journal is."""
        return None if self.bound else self.accountant.position(user)

    def reservation(self, receipt: str) -> str:
        """Return the ledger's own receipt of a reservation.

        A bound key is refused with one error for the reservations of others and for those that do not exist.
        """
        own = revealed(self.accountant.keyed_digest, receipt)
        if self.bound:
            try:
                seen = self.sees(self.accountant.reservation(own))
            except UnknownName:
                seen = False
            if not seen:
                raise self.none_of_those("reservation")
        return own

    def none_of_those(self, what: str) -> ServiceError:
        """Return the error for what a bound key may not use, whether it exists or not."""
        bound = ", ".join([*(self.key.policies or ()), *(self.key.collections or ())])
        return _forbidden(f"this API key is bound to {bound}, and there is no such {what} among those")

    def shown(self, receipt: Receipt) -> Receipt:
        """Return a receipt as the caller may see it."""
        return without_sums(without_number(self.accountant.keyed_digest, receipt)) if self.bound else receipt

    def explained(self, receipt: Receipt) -> str:
        """Return the line that explains a refusal, without sums if the caller may not see them."""
        return refusal_in_words(receipt) if self.bound else receipt.explain()

    def error(self, error: LdpBudgetError) -> LdpBudgetError:
        """Return an error as the caller may see it: a bound key does not get the names of others."""
        return UnknownName(error.kind, error.name, None) if self.bound and isinstance(error, UnknownName) else error

    def row(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the row of a reservation as the caller may see it."""
        return unnumbered(self.accountant.keyed_digest, dict(row)) if self.bound else row

    def sees(self, row: Mapping[str, Any]) -> bool:
        """True if the bindings of the caller's key include the policy and collection of a journal row."""
        return all(
            bound is None or row[name] in bound
            for name, bound in (("policy", self.key.policies), ("collection", self.key.collections))
        )


def check_valid(keys: ApiKeys, key: ApiKey, token: str) -> None:
    """Refuse a key that is no longer valid. Raises `ServiceError`."""
    found = keys.find(token)
    if found is None or found.number != key.number:
        raise ServiceError("unauthorized", _ENDED, {"WWW-Authenticate": "Bearer"})


_API = "/v1/"
"""Prefix of the operations whose query parameters are checked; links to pages may have others."""


def router_of(**options: Any) -> APIRouter:
    """Return a router whose routes check the access table."""
    return APIRouter(route_class=Guarded, **options)


class Guarded(APIRoute):
    """Route that checks the access table before it reads the body."""

    def get_route_handler(self) -> Handler:
        """Return the framework's handler, preceded by the access check."""
        handler = super().get_route_handler()
        method = next(iter(self.methods or ()))
        access = access_of(method, self.path)

        known = {field.alias: _is_numeric(field) for field in _query_fields(self.dependant)}
        numbers = {field.alias for field in self.dependant.path_params if _is_numeric(field)}
        checked = self.path.startswith(_API)

        async def guarded(request: Request) -> Response:
            caller = await admitted(request.scope, access)
            if caller is not None:
                request.state.caller = caller
            if checked and request.scope["query_string"]:
                check_query(request, known)
            for name in numbers:
                _check_number(name, str(request.path_params[name]))
            return await handler(StrictRequest(request.scope, checked_at_the_end(request.receive, caller)))

        return guarded


_AT_ONCE_SECONDS = 0.05
"""A body that has arrived within this time of the first check needs no second one."""


def checked_at_the_end(receive: Receive, caller: AuthContext | Respondent | None) -> Receive:
    """Return `receive` with a check of the key or invitation when the end of the body has arrived.

    So a body that was begun before its key was revoked is not processed afterwards.
    """
    begun = time.monotonic()

    async def checked() -> Message:
        message = await receive()
        ends = message["type"] == "http.request" and not message.get("more_body", False)
        if ends and caller is not None and time.monotonic() - begun > _AT_ONCE_SECONDS:
            try:
                if caller.needs_ledger():
                    await run_in_threadpool(caller.check_valid)
                else:
                    caller.check_valid()
            except ServiceError as error:  # the framework reports any other error in a body as a malformed one
                raise HTTPException(STATUSES[error.code], str(error), error.headers) from None
        return message

    return checked


def _query_fields(dependant: Any) -> Iterator[Any]:
    yield from dependant.query_params
    for each in dependant.dependencies:
        yield from _query_fields(each)


def _is_numeric(field: Any) -> bool:
    annotation = field.field_info.annotation
    return bool({int, float} & {annotation, *get_args(annotation)})


def _check_number(name: str, value: str) -> None:
    """Refuse a number that the library does not read as one; the framework reads 1_0 as 10."""
    if not is_number(value):
        raise InvalidParameter(name, "a number", shown(value))


def check_query(request: Request, known: Mapping[str, bool]) -> None:
    """Refuse query parameters that the operation does not have. A misspelled one would be ignored.

    `known` has for each parameter True if it is a number.
    """
    for name, value in request.query_params.items():
        if known.get(name):
            _check_number(name, value)
        if name not in known:
            there = f"only {', '.join(sorted(known))}" if known else "no query parameters"
            raise ServiceError(
                "malformed", f"{shown(name)} must be left out of the query, which has {there}: got {shown(value)}"
            )


async def admitted(scope: Scope, access: Access) -> AuthContext | Respondent | None:
    """Return the authenticated caller; None where no key is needed. Raises `ServiceError`.

    If the keys or invitations must be read again, a thread reads them: the event loop never waits for the ledger.
    """
    state = scope["app"].state
    if access.scope == OPEN or (access.local and state.settings.open_metrics and is_local(Request(scope))):
        return None
    token = token_of(scope)
    if not token:
        raise _unauthorized(access)
    fresh = state.keys.is_fresh()
    if not fresh:
        await _read_keys(state)
        fresh = state.keys.is_fresh()
    if fresh and (not access.invited or state.invitations.is_fresh()):
        return _let_in(state, access, token)
    return await run_in_threadpool(_let_in, state, access, token)


async def _read_keys(state: State) -> None:
    """Read the keys again in a thread, once for all requests that wait for it; an error is left to `_let_in`."""
    reading = state.reading_keys
    if reading is None or reading.done() or reading.get_loop() is not asyncio.get_running_loop():
        reading = state.reading_keys = asyncio.ensure_future(run_in_threadpool(state.keys.refresh_if_stale))
    with suppress(LdpBudgetError):
        await asyncio.shield(reading)


def _let_in(state: State, access: Access, token: str) -> AuthContext | Respondent:
    found = find(state, token) if access.invited else None
    return _desk(state, access, token) if found is None else found


def _desk(state: State, access: Access, token: str) -> AuthContext:
    """Return the context of a caller with an API key. Raises `ServiceError` if the table denies access."""
    key = None if access.scope == INVITED else state.keys.find(token, offline=access.offline, ended=True)
    if key is None:
        raise _unauthorized(access)
    if (now := key.state(state.accountant.now())) != ACTIVE:
        raise _ended(key, now)
    request_attributes.CURRENT.get().caller = key.name
    if access.scope != ANY and not key.allows(access.scope):
        raise _forbidden(
            f"this API key lacks the scope {access.scope}: it has {', '.join(key.scopes)}. "
            f"Create a key with it: ldp-budget api-key create NAME --scope {access.scope}"
        )
    for what, bound, may in (
        ("policies", key.policies, access.policy),
        ("collections", key.collections, access.collection),
    ):
        if bound is not None and may == NO:
            raise _forbidden(
                f"this API key is bound to the {what} {', '.join(bound)}, and this request concerns others as well"
            )
    state.rates.check(key.name)
    known: AuthContext | None = state.callers.get(key.number)
    if known is None or known.key is not key:  # a record has changed the key since
        valid = partial(check_valid, state.keys, key, token)
        view = state.accountant.acting_for(key.caller, check=valid)
        known = state.callers[key.number] = AuthContext(view, key, state.collections, state.keys, token)
    return known


def is_local(request: Request) -> bool:
    """True if a request comes from this machine, for this machine, and no header says that a proxy forwarded it.

    `Host` must be a loopback address too: a page of another site reaches this machine by a name of its own.
    """
    if request.client is None or any(
        name in _OF_PROXIES or name.startswith("x-forwarded") for name in request.headers
    ):
        return False
    named = request.headers.get("Host", "")
    try:
        host = "" if "@" in named else urlsplit(f"//{named}").hostname or ""
    except ValueError:
        return False
    return _is_loopback(request.client.host) and (host == "localhost" or _is_loopback(host))


_OF_PROXIES = {
    *("forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "client-ip", "true-client-ip"),
    *("cf-connecting-ip", "fastly-client-ip", "x-original-host", "x-original-url", "x-envoy-external-address"),
}
"""Headers of a request that came through a proxy; besides those that begin with `X-Forwarded`."""


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _unauthorized(access: Access) -> ServiceError:
    what = "invitation" if access.scope == INVITED else "API key"
    why = f"the {what} is missing, unknown or no longer valid. Send it as `Authorization: Bearer …`."
    return ServiceError("unauthorized", why, {"WWW-Authenticate": "Bearer"})


def _ended(key: ApiKey, state: str) -> ServiceError:
    """Return the error for the holder of a secret that is not active."""
    if state == PENDING and key.starts is not None:
        why = f"this API key is valid from {key.starts:%Y-%m-%dT%H:%M:%SZ}. Retry then."
    else:
        at = key.expires if state == EXPIRED else key.revoked
        when = "" if at is None else f" at {at:%Y-%m-%dT%H:%M:%SZ}"
        make = f"rotate {key.name}" if state == EXPIRED else "create NAME"
        how = "expired" if state == EXPIRED else "was revoked"
        why = f"this API key {how}{when}. Make a new secret: ldp-budget api-key {make}"
    return ServiceError("unauthorized", why, {"WWW-Authenticate": "Bearer"})


def _unbound(one: str, many: str, bound: Sequence[str], found: str | None) -> ServiceError:
    got = f"got {shown(found)}" if found is not None else f"this request names no {one}"
    return _forbidden(
        f'this API key is bound to the {many} {", ".join(bound)}: {got}. Name one: "{one}": "{bound[0]}".'
    )


def _forbidden(why: str) -> ServiceError:
    return ServiceError("forbidden", why)


async def _caller(request: Request, described: _Described) -> AuthContext:
    """Dependency: the context of a caller with an API key."""
    found: AuthContext = request.state.caller
    return found


def _reader(request: Request, described: _Described, min_position: MinPosition = None) -> AuthContext:
    """Dependency: the context of a reader. The journal must have reached the reader's `min_position`."""
    found: AuthContext = request.state.caller
    if min_position is not None:
        if found.bound:
            raise _forbidden("leave out min_position: a bound API key does not learn the position of the journal")
        check(min_position, found.accountant.position())
    return found


def _respondent(request: Request, described: _Invitation) -> Respondent:
    """Dependency: the respondent with an invitation."""
    found: Respondent = request.state.caller
    return found


def _sending(request: Request, described: _Described, invitation: _Invitation) -> AuthContext | Respondent:
    """Dependency: a caller with an API key, or a respondent."""
    found: AuthContext | Respondent = request.state.caller
    return found


Caller = Annotated[AuthContext, Depends(_caller)]
Reader = Annotated[AuthContext, Depends(_reader)]
Invited = Annotated[Respondent, Depends(_respondent)]
Sending = Annotated[AuthContext | Respondent, Depends(_sending)]
