"""Respondents: they come with an invitation, may send the report that it is for, and see what they were charged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import current
from .kinds import ServiceError

if TYPE_CHECKING:
    from fastapi import Request

    from ldp_budget import Accountant, Collection
    from ldp_budget.accounting.access.invitations import Invitation

    from .held import Collections, Held

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
    def invited_to(self) -> Held:
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
    current.told().caller = CALLER
    state.respondents.check((found.user, found.key))
    return Respondent(state.accountant, found, state.collections)
