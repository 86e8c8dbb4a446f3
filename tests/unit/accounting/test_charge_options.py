"""The options and the arguments of a charge: one list of names for every call, and what an error says."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_budget import Accountant, BudgetExceeded, InvalidParameter, Mechanism, mechanism
from ldp_budget.accounting import bulk_run
from ldp_budget.charge_options import NAMES, check_options
from ldp_budget_service.approvals import Approvals
from ldp_budget_service.client import Client

OUE: Mechanism = mechanism("oue")(epsilon=1, domain_size=3)
UNKNOWN = r"option must be one of reports, label, tags, policy, key, digest, note, strict: got 'labl'\. Did you mean 'label'\?"


def called(budget: Any, call: str, **options: Any) -> Any:
    found = getattr(budget, call)("ada", OUE, **options)
    return asyncio.run(found) if call.endswith("_async") else found


@pytest.mark.parametrize("call", ["spend", "reserve", "spend_async", "reserve_async"])
@pytest.mark.policy("lifetime=2")
def test_charge_with_an_unknown_option_charges_nothing_and_names_the_similar_one(
    accountant: Accountant, call: str
) -> None:
    with pytest.raises(InvalidParameter, match=UNKNOWN):
        called(accountant, call, labl="x")
    assert accountant.balance("ada").limits[0].spent.epsilon == 0


@pytest.mark.parametrize("call", ["spend", "reserve"])
def test_client_with_an_unknown_option_sends_nothing(call: str) -> None:
    with (
        Client("https://ledger.invalid", "key", patience=0.01) as client,
        pytest.raises(InvalidParameter, match=UNKNOWN),
    ):
        called(client, call, labl="x")


@pytest.mark.parametrize("call", ["spend", "reserve", "spend_async", "reserve_async"])
@pytest.mark.policy("lifetime=3")
def test_charge_with_every_option_uses_each(accountant: Accountant, call: str) -> None:
    given: dict[str, Any] = {
        "reports": 2,
        "key": "k",
        "label": "first",
        "digest": "ab",
        "note": "door",
        "policy": "default",
    }
    given["tags"] = ["purpose:research"]
    assert set(NAMES) == {*given, "strict"}
    receipt = called(accountant, call, **given)
    assert (receipt.cost.epsilon, receipt.repeated) == (2, False)
    assert called(accountant, call, **given).repeated
    row = accountant.history("ada")[0]
    assert (row["note"], row["tags"]) == ("door", ["purpose:research"])
    with pytest.raises(BudgetExceeded):
        called(accountant, call, reports=2, strict=True)


@pytest.mark.policy("lifetime=2")
@pytest.mark.parametrize(
    "name", ["kind", "lasts", "report", "ledger", "caller", "asked", "expires", "options", "terms"]
)
def test_call_with_a_name_from_inside_is_refused(accountant: Accountant, name: str) -> None:
    """The functions behind the calls have more parameters, such as the kind of the entry."""
    head = accountant.position()
    calls = [("spend", {"user": "ada", "mechanism": OUE})]
    calls += [(call, OTHERS[call][0]) for call in OTHERS]
    for call, arguments in calls:
        with pytest.raises(InvalidParameter, match=f"option must be one of .*: got '{name}'"):
            getattr(accountant, call)(**arguments, **{name: 1})
    assert accountant.position() == head


OTHERS = {
    "set_policy": ({"name": "p", "limits": ["lifetime=1"]}, "unbonded", "unbounded"),
    "simulate": ({"mechanism": OUE, "every": "day"}, "begin", None),
    "spend_many": ({"users": ["ada"], "mechanism": OUE}, "sharp", "shard"),
}


@pytest.mark.policy("lifetime=2")
@pytest.mark.parametrize("call", OTHERS)
def test_call_with_an_unknown_option_changes_nothing_and_names_the_similar_one(
    accountant: Accountant, call: str
) -> None:
    given, wrong, similar = OTHERS[call]
    head = accountant.position()
    with Client("https://ledger.invalid", "key", patience=0.01) as client:
        for budget in (accountant, client):
            hint = f" Did you mean '{similar}'\\?" if similar else "$"
            with pytest.raises(InvalidParameter, match=rf"got '{wrong}'\.?{hint}"):
                getattr(budget, call)(**given, **{wrong: True})
    assert accountant.position() == head


def test_proposal_with_an_override_is_refused(accountant: Accountant) -> None:
    with pytest.raises(InvalidParameter, match="option must be one of relation, unbounded"):
        Approvals(accountant).propose("p", ["lifetime=1"], override="because")  # type: ignore[call-arg]


@given(st.text())
def test_check_options_refuses_every_other_name(name: str) -> None:
    if name in NAMES:
        check_options({name: None})
        return
    with pytest.raises(InvalidParameter, match="option must be one of"):
        check_options({name: None})


@pytest.mark.policy("lifetime=9")
@pytest.mark.parametrize("act", ["spend", "reserve", "spend_many"])
def test_digest_without_a_key_is_refused(accountant: Accountant, act: str) -> None:
    """It bound nothing, and no error said so."""
    who = ["alice"] if act == "spend_many" else "alice"
    with pytest.raises(
        InvalidParameter, match=r"digest must be left out without a key, .*: got 'ab'. Give a key too."
    ):
        getattr(accountant, act)(who, OUE, digest="ab")
    assert accountant.history("alice") == []
    assert getattr(accountant, act)(who, OUE, digest="ab", key="k")


@pytest.mark.policy("lifetime=9")
def test_invalid_user_of_a_list_is_named_by_position(accountant: Accountant, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        InvalidParameter, match=r"user must be a string: got None at position 1 of the list. No user was charged."
    ):
        accountant.spend_many(["alice", None], OUE)  # type: ignore[list-item]
    assert accountant.history("alice") == []
    monkeypatch.setattr(bulk_run, "BATCH", 2)
    with pytest.raises(
        InvalidParameter, match=r"got ' ' at position 3 of the list. Only earlier batches were charged."
    ):
        accountant.spend_many(["alice", "bob", "eve", " "], OUE)
    assert [len(accountant.history(user)) for user in ("alice", "bob", "eve")] == [1, 1, 0]
