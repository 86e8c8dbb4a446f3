"""Balances, histories, reservations and erasure of users.

- `/v1/users/{user}`: one user, named in the path.
- `POST /v1/balances`: the balances of many users, or of all.
- `/v1/users:…`: the same questions with the user's name in the body, so that no log on the way contains it. A name
  in a body may be any text, and no proxy mistakes a part of it for a part of the path. These responses hold exact
  amounts in `units`, from which a client rebuilds the library's own objects.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from ldp_budget import InvalidParameter, UnknownName
from ldp_budget._validation import canonical_text
from ldp_budget.charge_options import DEFAULT
from ldp_budget_service.api import schemas
from ldp_budget_service.api.schemas import MOST_ENTRIES, balance_row

from ..auth import Caller, Reader, router_of
from ..problems import documented
from ..responses import DOCUMENTED, FIRST, MOST, Row, history_response, ok_with_position, streamed
from ..schemas import Asked, Switch, Whole
from .reservations import open_reservations

router = router_of(tags=["users"])

PolicyQuery = Annotated[str, Query(description="The policy whose limits are shown.")]


class BalanceAnswer(BaseModel):
    """The spent and remaining amounts of a user under each limit of a policy."""

    model_config = ConfigDict(extra="allow")

    policy: str
    limits: list[Row]


class ErasedAnswer(BaseModel):
    """Result of an erasure. `erased` is false if there was nothing to erase, as after an earlier erasure."""

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
    """Return the user's spent and remaining amounts under each limit of a policy, in the current windows.

    The exact composed loss of all charges is expensive to compute. `POST /v1/users:balance` returns the data that a
    client needs to compute it.
    """
    position = desk.position(user)
    return ok_with_position(position, desk.accountant.balance(user, policy).to_row())


@router.get("/v1/users/{user:name}/history", response_model=list[Row], responses=documented("user-erased"))
def history(
    user: str,
    desk: Reader,
    first: Annotated[int, Query(ge=1, le=2**62, description="The number of the entry from which on.")] = 1,
    most: Annotated[int, Query(ge=1, le=MOST_ENTRIES, description="How many entries at most.")] = MOST_ENTRIES,
) -> Response:
    """Return the user's part of the journal, oldest first. The `state` of a reservation says how it ended.

    If there is more, the header `Next-Entry` has the `first` of the next part. A key that is bound to policies or
    collections sees only the charges under those, with numbers of their own.
    """
    return history_response(desk, user, first, most)


@router.get(
    "/v1/users/{user:name}/remaining",
    response_model=list[Row],
    responses=documented("unknown-name"),
)
def remaining(user: str, desk: Reader, policy: PolicyQuery = DEFAULT) -> Response:
    """Return what was left of each limit of a policy over time, from the user's first charge until now.

    The limits are those of the policy's current version.
    """
    position = desk.position(user)
    return ok_with_position(position, [each.to_json() for each in desk.accountant.remaining_over_time(user, policy)])


@router.delete("/v1/users/{user:name}", response_model=ErasedAnswer, responses=documented("unknown-name"))
def erase(
    user: str,
    desk: Caller,
    unknown: Annotated[bool, Query(description="Block the name even if it was never charged.")] = False,
) -> Response:
    """Erase a user: delete the link to the account, its keys, labels, notes and unsealed reports, but keep its sums.

    The user gets no fresh budget.
    """
    try:
        erased = desk.accountant.erase(user, unknown=unknown)
    except UnknownName as error:
        hint = "Nothing was erased. To block the name all the same, add ?unknown=true."
        raise UnknownName(error.kind, error.name, None, hint) from None
    return ok_with_position(desk.position(user), {"user": canonical_text(user), "erased": erased})


# -- many users -----------------------------------------------------------------------------------------

balances_router = router_of(tags=["users"])

MOST_USERS = 100_000


class BalancesAsked(Asked):
    """The `users` whose balances are requested, or `all` of them, and the policy."""

    users: list[Annotated[str, Field(min_length=1)]] | None = Field(
        None, max_length=MOST_USERS, examples=[["alice", "bob"]]
    )
    all: Switch = Field(False, description="Every account, by its number: a ledger holds no names.")
    policy: str = DEFAULT


@balances_router.post("/v1/balances", response_class=Response, responses=documented("unknown-name") | DOCUMENTED)
def balances(asked: BalancesAsked, desk: Reader) -> Response:
    """Return the balances of many users in the given order, one line each, without the odometer."""
    if (asked.users is None) is not asked.all:
        if asked.all:
            raise InvalidParameter("users", "left out if all is true", "a list")
        raise InvalidParameter("users", "a list of users, or all must be true")
    position = desk.position()
    rows = (balance_row(balance) for balance in desk.accountant.balances(asked.users, asked.policy))
    return streamed(position, rows)


# -- users named in the body ----------------------------------------------------------------------------

lookups_router = router_of(tags=["users"])

UserName = Annotated[str, Field(min_length=1, examples=["alice"])]


class UserAsked(Asked):
    """A user."""

    user: UserName


class HistoryAsked(UserAsked):
    """A user, and the requested part of the history."""

    first: Whole = FIRST
    most: Whole = MOST


class LimitsAsked(UserAsked):
    """A user, and the policy to compare with."""

    policy: str = DEFAULT


class EraseAsked(UserAsked):
    """The user to erase."""

    unknown: Switch = Field(False, description="Block the name even if it was never charged.")


class OpenAsked(Asked):
    """Selection of open reservations."""

    user: UserName | None = Field(None, description="The user; null: all users.")
    most: Whole | None = Field(20, ge=0, description="How many, the newest first; null for all.")


class ReceiptAsked(Asked):
    """A reservation by its receipt."""

    receipt: str = Field(min_length=1)


class KnownErased(BaseModel):
    """`erased` is true if the user was erased and gets no budget."""

    erased: bool


@lookups_router.post("/v1/users:balance", response_model=BalanceAnswer, responses=documented("unknown-name"))
def named_balance(asked: LimitsAsked, desk: Reader) -> Response:
    """Return the user's spent and remaining amounts under each limit, and the charges, without the odometer."""
    position = desk.position(asked.user)
    found = desk.accountant.balance(asked.user, asked.policy)
    return ok_with_position(position, schemas.balance_form(found))


@lookups_router.post("/v1/users:remaining", response_model=list[Row], responses=documented("unknown-name"))
def named_remaining(asked: LimitsAsked, desk: Reader) -> Response:
    """Return what was left of each limit of a policy over time, from the user's first charge until now.

    The limits are those of the policy's current version.
    """
    position = desk.position(asked.user)
    found = desk.accountant.remaining_over_time(asked.user, asked.policy)
    return ok_with_position(position, [schemas.remaining_form(each) for each in found])


@lookups_router.post("/v1/users:history", response_model=list[Row], responses=documented("user-erased"))
def named_history(asked: HistoryAsked, desk: Reader) -> Response:
    """Return the user's part of the journal, oldest first. The `state` of a reservation says how it ended.

    If there is more, the header `Next-Entry` has the `first` of the next part.
    """
    return history_response(desk, asked.user, asked.first, asked.most)


@lookups_router.post("/v1/users:reservations", response_model=list[Row], responses=documented())
def reservations(asked: OpenAsked, desk: Reader) -> Response:
    """Return the reservations that can still be committed or voided, newest first."""
    return ok_with_position(desk.position(asked.user), open_reservations(desk, asked.user, asked.most))


@lookups_router.post("/v1/users:reservation", response_model=Row, responses=documented("unknown-name"))
def reservation(asked: ReceiptAsked, desk: Reader) -> Response:
    """Return a reservation with its `state`."""
    position = desk.position()
    return ok_with_position(position, desk.row(desk.accountant.reservation(desk.reservation(asked.receipt))))


@lookups_router.post("/v1/users:erased", response_model=KnownErased, responses=documented())
def is_erased(asked: UserAsked, desk: Reader) -> Response:
    """Return true if the user was erased."""
    position = desk.position(asked.user)
    return ok_with_position(position, {"erased": desk.accountant.is_erased(asked.user)})


@lookups_router.post("/v1/users:erase", response_model=ErasedAnswer, responses=documented("unknown-name"))
def named_erase(asked: EraseAsked, desk: Caller) -> Response:
    """Erase a user: delete the link to the account, its keys, labels, notes and unsealed reports, but keep its sums.

    The user gets no fresh budget.
    """
    erased = desk.accountant.erase(asked.user, unknown=asked.unknown)
    return ok_with_position(desk.position(asked.user), {"user": asked.user, "erased": erased})
