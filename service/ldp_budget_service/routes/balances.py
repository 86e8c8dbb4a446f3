"""`POST /v1/balances`: of many users, or of everybody."""

from __future__ import annotations

from typing import Annotated

from fastapi.responses import Response
from pydantic import Field

from ldp_budget.accounting.policies import DEFAULT
from ldp_budget.api.schemas import balance_row

from ..asked import Asked
from ..callers import Reader, router_of
from ..kinds import ServiceError
from ..ndjson import DOCUMENTED, streamed
from ..problems import documented

router = router_of(tags=["users"])

MOST_USERS = 100_000


class BalancesAsked(Asked):
    """Whose balances, under which policy: `users`, or `all` of them."""

    users: list[Annotated[str, Field(min_length=1)]] | None = Field(
        None, max_length=MOST_USERS, examples=[["alice", "bob"]]
    )
    all: bool = Field(False, description="Every account, by its number: a ledger holds no names.")
    policy: str = DEFAULT


@router.post("/v1/balances", response_class=Response, responses=documented("unknown-name") | DOCUMENTED)
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
