"""Who sends a report: an application with its API key, for any user; or a respondent with an invitation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote_to_bytes

from fastapi import Depends, Header, Query

from ldp_budget.accounting.policies import DEFAULT

from .asked import KeyHeader, required
from .callers import Desk, Sending
from .kinds import ServiceError
from .respondents import CALLER, Respondent

if TYPE_CHECKING:
    from ldp_budget import Accountant

    from .held import Held

UserHeader = Annotated[
    str | None,
    Header(
        alias="X-User",
        description="Who has sent it, percent-encoded UTF-8, as headers hold few characters. An invitation says it.",
        examples=["alice"],
    ),
]
PolicyQuery = Annotated[str, Query(description="The policy to hold it against; with an invitation, the default one.")]


@dataclass(frozen=True)
class Sender:
    """Whose report it is, under which key, and by whom it was sent."""

    accountant: Accountant
    held: Held
    caller: str
    user: str
    key: str
    policy: str


def sender(
    name: str,
    caller: Sending,
    user: UserHeader = None,
    policy: PolicyQuery = DEFAULT,
    key: KeyHeader = None,
) -> Sender:
    """A dependency: who sends a report of the collection that the path names."""
    if isinstance(caller, Desk):
        return _application(caller, name, user, policy, key)
    return _respondent(caller, name, user, policy, key)


def _application(desk: Desk, name: str, user: str | None, policy: str, key: str | None) -> Sender:
    desk.check_collection(name)
    desk.check_policy(policy)
    return Sender(desk.accountant, desk.held.get(name), desk.key.name, _named(user), required(key), policy)


def _respondent(respondent: Respondent, name: str, user: str | None, policy: str, key: str | None) -> Sender:
    respondent.check_collection(name)
    if user is not None or policy != DEFAULT:
        raise ServiceError("forbidden", "an invitation says for whom and under which policy it is")
    key = required(key)
    respondent.check_key(key)
    return Sender(respondent.accountant, respondent.invited_to, CALLER, respondent.user, key, policy)


def _named(user: str | None) -> str:
    try:
        named = unquote_to_bytes(user or "").decode()
    except UnicodeDecodeError:
        named = ""
    if not named:
        raise ServiceError("malformed", "X-User: expected who has sent it, in UTF-8, percent-encoded")
    return named


From = Annotated[Sender, Depends(sender)]
