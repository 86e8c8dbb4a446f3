"""`/v1/users/{user}`: what somebody has spent, and how nobody knows any more that it was they."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict

from ldp_budget.accounting.policies import DEFAULT
from ldp_budget.api.schemas import MOST_ENTRIES

from ..answers import Row, told, told_history
from ..callers import Caller, Reader, router_of
from ..problems import documented

router = router_of(tags=["users"])

PolicyQuery = Annotated[str, Query(description="The policy to hold it against.")]


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
) -> Response:
    """What the user has spent under each limit of a policy, in the windows that are open now, and has left.

    The exact loss of all charges takes long to work out: `POST /v1/users:balance` has what a client needs for that.
    """
    desk.check_policy(policy)
    position = desk.accountant.position(user)
    return told(position, desk.accountant.balance(user, policy).to_row())


@router.get("/v1/users/{user:name}/history", response_model=list[Row], responses=documented("user-erased"))
def history(
    user: str,
    desk: Reader,
    first: Annotated[int, Query(ge=1, le=2**62, description="The number of the entry from which on.")] = 1,
    most: Annotated[int, Query(ge=1, le=MOST_ENTRIES, description="How many entries at most.")] = MOST_ENTRIES,
) -> Response:
    """The user's part of the journal, oldest first; a reservation's `state` says what has become of it.

    Where there is more, the header `Next-Entry` says the `first` of the next part. A key that is bound to policies or
    collections sees what was charged under those.
    """
    return told_history(desk, user, first, most)


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
    desk: Caller,
    unknown: Annotated[bool, Query(description="Block the name for good even where it was never seen.")] = False,
) -> Response:
    """Forget whose account it is: keys, labels and notes go, the sums stay, and there is no fresh budget."""
    erased = desk.accountant.erase(user, unknown=unknown)
    return told(desk.accountant.position(user), {"user": user, "erased": erased})
