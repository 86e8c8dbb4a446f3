"""`Accountant` and `Client` implement `BudgetClient`: by their types, which mypy reads here, and at run time."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from ldp_budget import Accountant, BudgetClient, InvalidParameter, mechanism
from ldp_budget.registry.collections import Collection
from ldp_budget.reports.charged_release import release
from ldp_budget_service.admin_log_projection import RecordLog
from ldp_budget_service.client import Client

NAMES = sorted(name for name in vars(BudgetClient) if not name.startswith("_"))
CALLS = [name for name in NAMES if inspect.isfunction(getattr(BudgetClient, name))]
OF_ALL = {"caller", "sandbox"}
"""Properties that both have. Those of a service are asked for, which `isinstance` must not do."""
LOCAL = {"acting_for", "backup", "books", "ledger", "reports", "spend_batch"}
"""The calls that only the machine of a ledger has."""


def types_agree(accountant: Accountant, client: Client) -> tuple[BudgetClient, BudgetClient, RecordLog, RecordLog]:
    """For mypy: assignments that it refuses where a call is missing or differs."""
    one: BudgetClient = accountant
    other: BudgetClient = client
    first: RecordLog = accountant
    second: RecordLog = client
    return one, other, first, second


def test_accountant_and_client_are_budget_clients() -> None:
    with Accountant(":memory:") as accountant, Client("https://unreachable.invalid", "key") as client:
        assert isinstance(accountant, BudgetClient)
        assert isinstance(client, BudgetClient)
        assert types_agree(accountant, client) == (accountant, client, accountant, client)
    assert not isinstance(object(), BudgetClient)


@pytest.mark.parametrize("cls", [Accountant, Client])
@pytest.mark.parametrize("name", CALLS)
def test_budget_client_members_have_equal_signatures_and_docstrings(cls: type, name: str) -> None:
    assert inspect.signature(getattr(cls, name)) == inspect.signature(getattr(BudgetClient, name))
    assert inspect.getdoc(getattr(cls, name))


def test_budget_client_lists_every_public_member() -> None:
    def public(cls: type) -> set[str]:
        return {name for name in vars(cls) if not name.startswith("_")}

    assert public(Client) == {*NAMES, *OF_ALL}
    assert public(Accountant) == {*NAMES, *OF_ALL, *LOCAL}


@pytest.mark.parametrize("wrong", [None, "budget.db", Accountant])
def test_release_without_a_budget_client_is_refused(tmp_path: Path, wrong: Any) -> None:
    poll = Collection("poll", mechanism("oue")(epsilon=1, domain_size=3))
    with pytest.raises(InvalidParameter, match="an `Accountant` or a `Client`"):
        release(tmp_path / "out", poll, wrong, [0], users=["alice"], policy="default")  # type: ignore[arg-type]
