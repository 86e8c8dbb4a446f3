"""Changes of policies by two keys over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

from ldp_budget import Accountant
from service_threads import Served


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with Accountant(":memory:") as accountant, Served(accountant) as made:
        yield made


@pytest.fixture(scope="module")
def secrets(served: Served) -> dict[str, str]:
    found = {name: served.secret("policy", name=name) for name in ("ana", "ben")}
    return {**found, "bound": served.secret("policy", name="bound", policies=["other"])}


def propose(served: Served, secret: str, name: str, *limits: str) -> Any:
    answer = served.ask("POST", "/v1/proposals", {"name": name, "limits": list(limits)}, secret=secret)
    assert answer.status == 200, answer.body
    return answer.json()


def end(served: Served, secret: str, number: int, how: str) -> tuple[int, Any]:
    answer = served.ask("POST", f"/v1/proposals/{number}/{how}", secret=secret)
    return answer.status, answer.json()


def test_set_policy_response_says_that_it_may_need_an_approval(served: Served) -> None:
    answers = served.ask("GET", "/openapi.json").json()["paths"]["/v1/policies/{name}"]["put"]["responses"]
    assert "approval-needed" in answers["409"]["description"]


def test_proposal_approved_by_another_key_can_be_set_by_either(served: Served, secrets: dict[str, str]) -> None:
    served.accountant.set_policy("default", ["lifetime=1"])
    asked = served.ask("PUT", "/v1/approvals", {"demanded": True}, secret=secrets["ana"])
    assert asked.json() == {"demanded": True}
    needed = served.ask("PUT", "/v1/policies/default", {"limits": ["lifetime=2"]}, secret=secrets["ana"])
    assert (needed.status, needed.json()["reasons"]) == (409, ["it raises the limit lifetime=1 to lifetime=2"])
    row = propose(served, secrets["ana"], "default", "lifetime=2")
    assert (row["state"], row["by"], row["mine"], row["reasons"]) == ("open", "ana", True, needed.json()["reasons"])
    number = row["number"]
    assert end(served, secrets["ana"], number, "approve")[1]["type"] == "/problems/approval-conflict"
    assert end(served, secrets["ben"], number, "set")[1]["type"] == "/problems/approval-conflict"
    status, approved = end(served, secrets["ben"], number, "approve")
    assert (status, approved["state"], approved["ended_by"]) == (200, "approved", "ben")
    status, policy = end(served, secrets["ana"], number, "set")
    assert (status, policy["version"]) == (200, 2)
    told = served.ask("GET", "/v1/proposals", secret=secrets["ben"]).json()
    (row,) = [row for row in told["rows"] if row["number"] == number]
    assert (told["demanded"], row["state"], row["at"][-1]) == (True, "past", "Z")
    assert served.ask("PUT", "/v1/approvals", {"demanded": False}, secret=secrets["ana"]).status == 409


def test_policy_that_lowers_a_limit_needs_one_key(served: Served, secrets: dict[str, str]) -> None:
    served.accountant.set_policy("lowered", ["lifetime=2"], override="a test")
    lower = served.ask("PUT", "/v1/policies/lowered", {"limits": ["lifetime=1"]}, secret=secrets["ana"])
    assert (lower.status, lower.json()["version"]) == (200, 2)


def test_proposal_for_a_changed_policy_is_refused(served: Served, secrets: dict[str, str]) -> None:
    served.accountant.set_policy("moving", ["lifetime=2"], override="a test")
    number = propose(served, secrets["ana"], "moving", "lifetime=3")["number"]
    served.accountant.set_policy("moving", ["lifetime=1"])
    status, problem = end(served, secrets["ben"], number, "approve")
    assert (status, problem["type"]) == (409, "/problems/approval-conflict")
    rows = served.ask("GET", "/v1/proposals", secret=secrets["ben"]).json()["rows"]
    assert [row["state"] for row in rows if row["number"] == number] == ["past"]


def test_proposal_by_a_key_of_another_policy_is_refused(served: Served, secrets: dict[str, str]) -> None:
    number = propose(served, secrets["ana"], "mine", "lifetime=3")["number"]
    for how in ("approve", "withdraw", "set"):
        status, problem = end(served, secrets["bound"], number, how)
        assert (status, problem["type"]) == (403, "/problems/forbidden")
    body = {"name": "mine", "limits": ["lifetime=9"]}
    assert served.ask("POST", "/v1/proposals", body, secret=secrets["bound"]).status == 403
    assert end(served, secrets["ana"], number, "withdraw")[1]["state"] == "withdrawn"


@pytest.mark.parametrize("number", ["0", "x", "999"])
def test_proposal_unknown_is_not_found(served: Served, secrets: dict[str, str], number: str) -> None:
    answer = served.ask("POST", f"/v1/proposals/{number}/approve", secret=secrets["ana"])
    assert answer.status == (404 if number == "999" else 400)
