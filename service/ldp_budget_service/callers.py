"""Who calls, and what they may do: API keys and invitations as bearer tokens, by the table of access.

A caller is let in, or turned away, before anything of the body is read: `Guarded` is the class of every route.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from . import current
from .kinds import ServiceError
from .positions import MinPosition, check
from .respondents import Respondent, find
from .scopes import ANY, INVITED, NO, OPEN, Access, access_of

if TYPE_CHECKING:
    from ldp_budget import Accountant, Collection
    from ldp_budget.accounting.access.keys import ApiKey, ApiKeys

    from .held import Collections

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
class Desk:
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
    if state.keys.at_hand() and (not access.invited or state.invitations.at_hand()):
        _let_in(request, access, token)
    else:
        await run_in_threadpool(_let_in, request, access, token)


def _let_in(request: Request, access: Access, token: str) -> None:
    found = find(request, token) if access.invited else None
    request.state.caller = _desk(request, access, token) if found is None else found


def _desk(request: Request, access: Access, token: str) -> Desk:
    """The desk of a caller with a key, if the table lets them in."""
    state = request.app.state
    key = None if access.scope == INVITED else state.keys.find(token)
    if key is None:
        raise _unauthorized(access)
    current.told().caller = key.name
    if access.scope != ANY and not key.allows(access.scope):
        raise _forbidden(f"this key has not the scope {access.scope}")
    for what, bound, may in (
        ("policies", key.policies, access.policy),
        ("collections", key.collections, access.collection),
    ):
        if bound is not None and may == NO:
            raise _forbidden(f"this key is bound to the {what} {', '.join(bound)}; this is about more than those")
    state.rates.check(key.name)
    return Desk(state.accountant.acting_for(key.caller), key, state.collections, state.keys, token)


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


async def _caller(request: Request, described: _Described) -> Desk:
    """A dependency: the desk of the caller with a key."""
    found: Desk = request.state.caller
    return found


def _reader(request: Request, described: _Described, min_position: MinPosition = None) -> Desk:
    """The same for those who read: the journal must be as far as they say."""
    found: Desk = request.state.caller
    if min_position is not None:
        check(min_position, found.accountant.position())
    return found


def _respondent(request: Request, described: _Invitation) -> Respondent:
    """A dependency: the respondent who comes with an invitation."""
    found: Respondent = request.state.caller
    return found


def _sending(request: Request, described: _Described, invitation: _Invitation) -> Desk | Respondent:
    """A dependency: either of them."""
    found: Desk | Respondent = request.state.caller
    return found


Caller = Annotated[Desk, Depends(_caller)]
Reader = Annotated[Desk, Depends(_reader)]
Invited = Annotated[Respondent, Depends(_respondent)]
Sending = Annotated[Desk | Respondent, Depends(_sending)]
