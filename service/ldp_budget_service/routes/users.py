"""`/v1/users/{user}`: what somebody has spent, and how nobody knows any more that it was they."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict

from ldp_budget.accounting.policies import DEFAULT

from ..answers import Row, told
from ..callers import Eraser, Reader
from ..problems import documented

router = APIRouter(tags=["users"])

PolicyQuery = Annotated[str, Query(description="The policy to hold it against.")]
MOST_SHUFFLED = 10**12


class BalanceAnswer(BaseModel):
    """What a user has spent under each limit of a policy, and has left."""

    model_config = ConfigDict(extra="allow")

    policy: str
    limits: list[Row]


class ErasedAnswer(BaseModel):
    """Whether there was anything to erase, which is no more if it was done before."""

    user: str
    erased: bool


@router.get(
    "/v1/users/{user:name}/balance",
    response_model=BalanceAnswer,
    responses=documented("unknown-name"),
)
def balance(
    user: str,
    desk: Reader,
    policy: PolicyQuery = DEFAULT,
    shuffled: Annotated[
        int | None,
        Query(ge=1, le=MOST_SHUFFLED, description="Also the central loss if reports were shuffled among so many."),
    ] = None,
    odometer: Annotated[bool, Query(description="Also the exact loss of all that was charged.")] = True,
) -> Response:
    """What the user has spent under each limit of a policy, in the windows that are open now, and has left."""
    desk.check_policy(policy)
    position = desk.accountant.position(user)
    found = desk.accountant.balance(user, policy)
    shown = found.to_json() if odometer else found.to_row()
    return told(position, shown if shuffled is None else {**shown, "shuffled": found.shuffled(shuffled)})


@router.get("/v1/users/{user:name}/history", response_model=list[Row], responses=documented())
def history(user: str, desk: Reader) -> Response:
    """The user's part of the journal, oldest first; a reservation's `state` says what has become of it.

    A key that is bound to policies or collections sees what was charged under those.
    """
    position = desk.accountant.position(user)
    return told(position, [row for row in desk.accountant.history(user) if desk.sees(row)])


@router.get(
    "/v1/users/{user:name}/remaining",
    response_model=list[Row],
    responses=documented("unknown-name"),
)
def remaining(user: str, desk: Reader, policy: PolicyQuery = DEFAULT) -> Response:
    """What was left of each limit of a policy, as it is now, from the user's first charge until now."""
    desk.check_policy(policy)
    position = desk.accountant.position(user)
    return told(position, [each.to_json() for each in desk.accountant.remaining_over_time(user, policy)])


@router.delete("/v1/users/{user:name}", response_model=ErasedAnswer, responses=documented("unknown-name"))
def erase(
    user: str,
    desk: Eraser,
    unknown: Annotated[bool, Query(description="Block the name for good even where it was never seen.")] = False,
) -> Response:
    """Forget whose account it is: keys, labels and notes go, the sums stay, and there is no fresh budget."""
    desk.check_unbound()
    erased = desk.accountant.erase(user, unknown=unknown)
    return told(desk.accountant.position(user), {"user": user, "erased": erased})
