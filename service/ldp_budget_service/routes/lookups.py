"""`/v1/users:…`: questions about users whose names stand in the body, and so in the log of nobody on the way.

A name in a body may be any text, and no proxy takes a part of it for a part of the path. Answers hold exact amounts
in `units`, from which a client makes the library's own objects again.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Annotated, Any

from fastapi.responses import Response
from pydantic import BaseModel, Field

from ldp_budget.accounting.policies import DEFAULT
from ldp_budget.api import schemas

from ..answers import FIRST, MOST, Row, told, told_history
from ..asked import Asked
from ..callers import Caller, Reader, router_of
from ..problems import documented
from .users import BalanceAnswer, ErasedAnswer

router = router_of(tags=["users"])

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


@router.post("/v1/users:balance", response_model=BalanceAnswer, responses=documented("unknown-name"))
def balance(asked: LimitsAsked, desk: Reader) -> Response:
    """What the user has spent under each limit of a policy, with what was charged, and without the odometer.

    A key that is bound to policies is not told what was charged, as other policies have a part in that.
    """
    desk.check_policy(asked.policy)
    position = desk.accountant.position(asked.user)
    found = desk.accountant.balance(asked.user, asked.policy)
    return told(position, schemas.balance_form(replace(found, charges=()) if desk.bound else found))


@router.post("/v1/users:remaining", response_model=list[Row], responses=documented("unknown-name"))
def remaining(asked: LimitsAsked, desk: Reader) -> Response:
    """What was left of each limit of a policy, as it is now, from the user's first charge until now."""
    desk.check_policy(asked.policy)
    position = desk.accountant.position(asked.user)
    found = desk.accountant.remaining_over_time(asked.user, asked.policy)
    return told(position, [schemas.remaining_form(each) for each in found])


@router.post("/v1/users:history", response_model=list[Row], responses=documented("user-erased"))
def history(asked: HistoryAsked, desk: Reader) -> Response:
    """The user's part of the journal, oldest first; a reservation's `state` says what has become of it.

    Where there is more, the header `Next-Entry` says the `first` of the next part.
    """
    return told_history(desk, asked.user, asked.first, asked.most)


@router.post("/v1/users:reservations", response_model=list[Row], responses=documented())
def reservations(asked: OpenAsked, desk: Reader) -> Response:
    """The reservations that can still be committed or voided, newest first."""
    position = desk.accountant.position(asked.user)
    rows: Any = (row for row in desk.accountant.open_reservations(None, user=asked.user) if desk.sees(row))
    return told(position, list(itertools.islice(rows, asked.most)))


@router.post("/v1/users:reservation", response_model=Row, responses=documented("unknown-name"))
def reservation(asked: ReceiptAsked, desk: Reader) -> Response:
    """A reservation, with the `state` that it is in."""
    desk.check_reservation(asked.receipt)
    position = desk.accountant.position()
    return told(position, desk.accountant.reservation(asked.receipt))


@router.post("/v1/users:erased", response_model=KnownErased, responses=documented())
def is_erased(asked: UserAsked, desk: Reader) -> Response:
    """Whether the user was erased."""
    position = desk.accountant.position(asked.user)
    return told(position, {"erased": desk.accountant.is_erased(asked.user)})


@router.post("/v1/users:erase", response_model=ErasedAnswer, responses=documented("unknown-name"))
def erase(asked: EraseAsked, desk: Caller) -> Response:
    """Forget whose account it is: keys, labels and notes go, the sums stay, and there is no fresh budget."""
    erased = desk.accountant.erase(asked.user, unknown=asked.unknown)
    return told(desk.accountant.position(asked.user), {"user": asked.user, "erased": erased})
