"""Batches of a caller whose right to charge may end meanwhile: a check before each part."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ldp_budget import Accountant, InvalidParameter, LdpBudgetError, mechanism
from ldp_budget.accounting.batch import PART, Spend
from ldp_budget.accounting.charge_request import Principal

CALLER = Principal(1, "app", None)
COIN = mechanism("randomized-response")(epsilon="0.1")


class RevokedError(LdpBudgetError):
    """The error of a caller whose key was revoked."""


def ends_after(parts: int) -> Callable[[], None]:
    """Return a check that passes for a number of parts."""
    left = iter(range(parts))

    def check() -> None:
        if next(left, None) is None:
            raise RevokedError("revoked")

    return check


@pytest.mark.slow
@pytest.mark.policy("lifetime=4")
def test_batch_ends_at_the_part_before_which_the_check_fails(accountant: Accountant) -> None:
    lines = [Spend(f"user {number}", COIN) for number in range(3 * PART)]
    with pytest.raises(RevokedError):
        accountant.acting_for(CALLER, check=ends_after(1)).spend_batch(lines, key="run")
    assert accountant.stats()["users"] == PART
    again = accountant.acting_for(CALLER, check=ends_after(9)).spend_batch(lines, key="run")
    assert sum(each.repeated for each in again) == PART
    assert accountant.stats()["users"] == 3 * PART


@pytest.mark.slow
@pytest.mark.policy("lifetime=4")
def test_keyed_lines_behind_the_failed_check_have_its_error(accountant: Accountant) -> None:
    lines = [Spend(f"user {number}", COIN, key="k") for number in range(2 * PART)]
    outcomes = accountant.acting_for(CALLER, check=ends_after(1)).spend_each(lines)
    assert [isinstance(each, RevokedError) for each in outcomes] == [False] * PART + [True] * PART
    assert accountant.stats()["users"] == PART


@pytest.mark.policy("lifetime=4")
def test_check_that_fails_at_once_charges_nothing(accountant: Accountant) -> None:
    view = accountant.acting_for(CALLER, check=ends_after(0))
    for charge in (
        lambda: view.spend_batch([Spend("alice", COIN)], key="run"),
        lambda: view.spend_each([Spend("alice", COIN, key="k")]),
    ):
        with pytest.raises(RevokedError):
            charge()
    assert accountant.stats()["users"] == 0


def test_check_that_is_no_function_is_refused(accountant: Accountant) -> None:
    with pytest.raises(InvalidParameter, match="check"):
        accountant.acting_for(CALLER, check=1)  # type: ignore[arg-type]
