"""Who calls, and what they may do: API keys as bearer tokens, with scopes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from . import current
from .kinds import ServiceError
from .positions import MinPosition, check

if TYPE_CHECKING:
    from ldp_budget import Accountant, Collection
    from ldp_budget.accounting.access.keys import ApiKey

    from .held import Collections

bearer = HTTPBearer(auto_error=False, description="An API key, made by `ldp-budget key create`.")

Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]


@dataclass(frozen=True)
class Desk:
    """Where a caller is served: the ledger, as they may use it, and their key."""

    accountant: Accountant
    key: ApiKey
    held: Collections

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

    def check_unbound(self) -> None:
        """Refuse whoever is bound to some policies or collections, where it is about the whole ledger."""
        for what, bound in (("policies", self.key.policies), ("collections", self.key.collections)):
            if bound is not None:
                raise _forbidden(
                    f"this key is bound to the {what} {', '.join(bound)}; this is about all of the ledger"
                )

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


def allowed(scope: str | None) -> Callable[..., Desk]:
    """A dependency: the desk of a caller whose key has the scope; with None of whoever has a key."""

    def desk(request: Request, credentials: Credentials) -> Desk:
        return desk_for(request, credentials, scope)

    return desk


def reading(scope: str) -> Callable[..., Desk]:
    """The same for whoever reads: the journal must be as far as they say."""

    def desk(request: Request, credentials: Credentials, min_position: MinPosition = None) -> Desk:
        caller = desk_for(request, credentials, scope)
        if min_position is not None:
            check(min_position, caller.accountant.position())
        return caller

    return desk


async def desk_soon(request: Request, credentials: HTTPAuthorizationCredentials | None, scope: str) -> Desk:
    """The same without keeping the event loop waiting: where the keys are to be read anew, that is for a thread."""
    if request.app.state.keys.at_hand():
        return desk_for(request, credentials, scope)
    return await run_in_threadpool(desk_for, request, credentials, scope)


def desk_for(request: Request, credentials: HTTPAuthorizationCredentials | None, scope: str | None) -> Desk:
    """The desk of a caller whose key has the scope, or any with None. Raises `ServiceError`."""
    keys, accountant = request.app.state.keys, request.app.state.accountant
    key = None if credentials is None else keys.find(credentials.credentials)
    if key is None:
        why = "expected an API key, as `Authorization: Bearer …`"
        raise ServiceError("unauthorized", why, {"WWW-Authenticate": "Bearer"})
    current.told().caller = key.name
    if scope is not None and not key.allows(scope):
        raise _forbidden(f"this key has not the scope {scope}")
    request.app.state.rates.check(key.name)
    return Desk(accountant.acting_for(key.caller), key, request.app.state.collections)


def _forbidden(why: str) -> ServiceError:
    return ServiceError("forbidden", why)


KeyHolder = Annotated[Desk, Depends(allowed(None))]
Spender = Annotated[Desk, Depends(allowed("spend"))]
Reader = Annotated[Desk, Depends(reading("read"))]
Officer = Annotated[Desk, Depends(allowed("policy"))]
Eraser = Annotated[Desk, Depends(allowed("erase"))]
Auditor = Annotated[Desk, Depends(allowed("audit"))]
AuditReader = Annotated[Desk, Depends(reading("audit"))]
Admin = Annotated[Desk, Depends(allowed("admin"))]
