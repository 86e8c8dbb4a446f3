"""Turns of respondents in a survey with a rotation: a report out of turn is neither taken nor charged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ldp_budget_surveys.questionnaires.survey_collection import rotating
from ldp_budget_surveys.rotation import Rotation

from .error_codes import ServiceError

if TYPE_CHECKING:
    from ldp_budget import Accountant, Collection


def turn_of(accountant: Accountant, collection: Collection, policy: str, user: str) -> dict[str, Any] | None:
    """Return the current or next turn of a user: `now`, and its first and last day; None without a rotation."""
    survey = rotating(collection)
    if survey is None:
        return None
    rotation = Rotation.of(accountant, survey, accountant.policy(policy))
    assert rotation is not None
    period = rotation.period_at(accountant.now())
    turn = rotation.next_turn(user, period)
    return {"now": turn == period, "first": turn.first.isoformat(), "last": turn.last.isoformat()}


def check_turn(accountant: Accountant, collection: Collection, policy: str, user: str, key: str) -> None:
    """Refuse a report of a user whose turn it is not, unless its idempotency key already has a response."""
    turn = turn_of(accountant, collection, policy, user)
    if turn is not None and not turn["now"] and not accountant.reports.has_key(user, key):
        why = (
            f"it is not the turn of this user, which is from {turn['first']} to {turn['last']}. Nothing was charged."
        )
        raise ServiceError("not-your-turn", why)
