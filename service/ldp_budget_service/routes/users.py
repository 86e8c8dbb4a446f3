"""`/v1/users/{user}`: what somebody has spent, and how nobody knows any more that it was they.

`POST /v1/balances`: of many users, or of everybody.

`/v1/users:…`: questions about users whose names stand in the body, and so in the log of nobody on the way.

A name in a body may be any text, and no proxy takes a part of it for a part of the path. Answers hold exact amounts
in `units`, from which a client makes the library's own objects again.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from ldp_budget.accounting.policies import DEFAULT
from ldp_budget.api import schemas
from ldp_budget.api.schemas import MOST_ENTRIES, balance_row

from ..auth import Caller, Reader, router_of
from ..error_codes import ServiceError
from ..problems import documented
from ..responses import DOCUMENTED, FIRST, MOST, Row, history_response, ok_with_position, streamed
from ..schemas import Asked

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
    return ok_with_position(position, desk.accountant.balance(user, policy).to_row())


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
    return history_response(desk, user, first, most)


@router.get(
    "/v1/users/{user:name}/remaining",
    response_model=list[Row],
    responses=documented("unknown-name"),
)
def remaining(user: str, desk: Reader, policy: PolicyQuery = DEFAULT) -> Response:
    """What was left of each limit of a policy, as it is now, from the user's first charge until now."""
    desk.check_policy(policy)
    position = desk.accountant.position(user)
    return ok_with_position(position, [each.to_json() for each in desk.accountant.remaining_over_time(user, policy)])


@router.delete("/v1/users/{user:name}", response_model=ErasedAnswer, responses=documented("unknown-name"))
def erase(
    user: str,
    desk: Caller,
    unknown: Annotated[bool, Query(description="Block the name for good even where it was never seen.")] = False,
) -> Response:
    """Forget whose account it is: keys, labels and notes go, the sums stay, and there is no fresh budget."""
    erased = desk.accountant.erase(user, unknown=unknown)
    return ok_with_position(desk.accountant.position(user), {"user": user, "erased": erased})


balances_router = router_of(tags=["users"])

MOST_USERS = 100_000


class BalancesAsked(Asked):
    """Whose balances, under which policy: `users`, or `all` of them."""

    users: list[Annotated[str, Field(min_length=1)]] | None = Field(
        None, max_length=MOST_USERS, examples=[["alice", "bob"]]
    )
    all: bool = Field(False, description="Every account, by its number: a ledger holds no names.")
    policy: str = DEFAULT


@balances_router.post("/v1/balances", response_class=Response, responses=documented("unknown-name") | DOCUMENTED)
def balances(asked: BalancesAsked, desk: Reader) -> Response:
    """The balance of each of many users, in their order, a line each; without the odometer.

    A key that is bound to policies names the users.
    """
    desk.check_policy(asked.policy)
    if asked.all and desk.bound:
        raise ServiceError(
            "forbidden", "this key is bound to some policies; the balances of all users are about more"
        )
    if (asked.users is None) is not asked.all:
        raise ServiceError("malformed", "users: expected users, or all in their place")
    position = desk.accountant.position()
    rows = (balance_row(balance) for balance in desk.accountant.balances(asked.users, asked.policy))
    return streamed(position, rows)


lookups_router = router_of(tags=["users"])

UserName = Annotated[str, Field(min_length=1, examples=["alice"])]


class UserAsked(Asked):
    """A user."""

    user: UserName


class HistoryAsked(UserAsked):
    """A user, and which part of their history."""

    first: int = FIRST
    most: int = MOST


class LimitsAsked(UserAsked):
    """A user, and the policy to hold it against."""

    policy: str = DEFAULT


class EraseAsked(UserAsked):
    """Whom to forget."""

    unknown: bool = Field(False, description="Block the name for good even where it was never seen.")


class OpenAsked(Asked):
    """Which open reservations."""

    user: UserName | None = Field(None, description="Whose; everybody's without it.")
    most: int | None = Field(20, ge=0, description="How many, the newest first; null for all.")


class ReceiptAsked(Asked):
    """A reservation by its receipt."""

    receipt: str = Field(min_length=1)


class KnownErased(BaseModel):
    """Whether the user was erased, and gets no budget."""

    erased: bool


@lookups_router.post("/v1/users:balance", response_model=BalanceAnswer, responses=documented("unknown-name"))
def named_balance(asked: LimitsAsked, desk: Reader) -> Response:
    """What the user has spent under each limit of a policy, with what was charged, and without the odometer.

    A key that is bound to policies is not told what was charged, as other policies have a part in that.
    """
    desk.check_policy(asked.policy)
    position = desk.accountant.position(asked.user)
    found = desk.accountant.balance(asked.user, asked.policy)
    return ok_with_position(position, schemas.balance_form(replace(found, charges=()) if desk.bound else found))


@lookups_router.post("/v1/users:remaining", response_model=list[Row], responses=documented("unknown-name"))
def named_remaining(asked: LimitsAsked, desk: Reader) -> Response:
    """What was left of each limit of a policy, as it is now, from the user's first charge until now."""
    desk.check_policy(asked.policy)
    position = desk.accountant.position(asked.user)
    found = desk.accountant.remaining_over_time(asked.user, asked.policy)
    return ok_with_position(position, [schemas.remaining_form(each) for each in found])


@lookups_router.post("/v1/users:history", response_model=list[Row], responses=documented("user-erased"))
def named_history(asked: HistoryAsked, desk: Reader) -> Response:
    """The user's part of the journal, oldest first; a reservation's `state` says what has become of it.

    Where there is more, the header `Next-Entry` says the `first` of the next part.
    """
    return history_response(desk, asked.user, asked.first, asked.most)


@lookups_router.post("/v1/users:reservations", response_model=list[Row], responses=documented())
def reservations(asked: OpenAsked, desk: Reader) -> Response:
    """The reservations that can still be committed or voided, newest first."""
    position = desk.accountant.position(asked.user)
    rows: Any = (row for row in desk.accountant.open_reservations(None, user=asked.user) if desk.sees(row))
    return ok_with_position(position, list(itertools.islice(rows, asked.most)))


@lookups_router.post("/v1/users:reservation", response_model=Row, responses=documented("unknown-name"))
def reservation(asked: ReceiptAsked, desk: Reader) -> Response:
    """A reservation, with the `state` that it is in."""
    desk.check_reservation(asked.receipt)
    position = desk.accountant.position()
    return ok_with_position(position, desk.accountant.reservation(asked.receipt))


@lookups_router.post("/v1/users:erased", response_model=KnownErased, responses=documented())
def is_erased(asked: UserAsked, desk: Reader) -> Response:
    """Whether the user was erased."""
    position = desk.accountant.position(asked.user)
    return ok_with_position(position, {"erased": desk.accountant.is_erased(asked.user)})


@lookups_router.post("/v1/users:erase", response_model=ErasedAnswer, responses=documented("unknown-name"))
def named_erase(asked: EraseAsked, desk: Caller) -> Response:
    """Forget whose account it is: keys, labels and notes go, the sums stay, and there is no fresh budget."""
    erased = desk.accountant.erase(asked.user, unknown=asked.unknown)
    return ok_with_position(desk.accountant.position(asked.user), {"user": asked.user, "erased": erased})
