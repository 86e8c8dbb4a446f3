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


@pytest.mark.parametrize("number", ["0", "x", "999"])
def test_proposal_unknown_is_not_found(served: Served, secrets: dict[str, str], number: str) -> None:
    answer = served.ask("POST", f"/v1/proposals/{number}/approve", secret=secrets["ana"])
    assert answer.status == (404 if number == "999" else 400)
