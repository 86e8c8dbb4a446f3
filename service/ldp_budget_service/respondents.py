"""Respondents: they come with an invitation, may send the one report it is for, and see what they were charged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from .kinds import ServiceError

if TYPE_CHECKING:
    from ldp_budget import Accountant, Collection
    from ldp_budget.access import invitations

    from .held import Collections

bearer = HTTPBearer(
    auto_error=False, scheme_name="Invitation", description="An invitation, made by `ldp-budget invite`."
)


@dataclass(frozen=True)
class Respondent:
    """Somebody who was invited, and where they are served."""

    accountant: Accountant
    invitation: invitations.Invitation
    held: Collections

    @property
    def user(self) -> str:
        """Who is charged."""
        return self.invitation.user

    @property
    def collection(self) -> Collection:
        """What they were invited to."""
        return self.held.get(self.invitation.collection).collection

    @property
    def digest(self) -> str:
        """Names the definition that their report has to be of."""
        return self.held.get(self.invitation.collection).digest

    def check_collection(self, name: str) -> None:
        """Refuse another collection than that of the invitation."""
        if name != self.invitation.collection:
            raise ServiceError("forbidden", "this invitation is to another collection")

    def check_key(self, key: str) -> None:
        """Refuse another key than that of the one report that the invitation is for."""
        if key != self.invitation.key:
            raise ServiceError("forbidden", "an invitation is for one report, under the key that GET /v1/me says")


Invitation = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]


def respondent(request: Request, credentials: Invitation) -> Respondent:
    """A dependency: whoever comes with an invitation that is good now."""
    state = request.app.state
    found = None if credentials is None else state.invitations.find(credentials.credentials)
    if found is None:
        why = "expected an invitation that is good now, as `Authorization: Bearer …`"
        raise ServiceError("unauthorized", why, {"WWW-Authenticate": "Bearer"})
    return Respondent(state.accountant, found, state.collections)


Invited = Annotated[Respondent, Depends(respondent)]
