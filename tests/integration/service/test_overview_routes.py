"""Statistics of the ledger over HTTP: correct, about no single user, and for authorized callers only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

from ldp_budget import Accountant, mechanism
from ldp_budget_service.api_keys import SCOPES
from ldp_budget_service.settings import Settings
from service_threads import Served

RR = mechanism("randomized-response")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=4", "day=1"])
        for user, epsilon, key in (("alice", "0.5", "a"), ("bob", "0.9", "b"), ("alice", "0.7", "c")):
            accountant.spend(user, RR(epsilon=epsilon), key=key, note="at the door")
        with Served(accountant, Settings(usage_seconds=0)) as made:
            yield made


@pytest.fixture(scope="module")
def secrets(served: Served) -> dict[str, str]:
    return {scope: served.secret(scope, name=f"key-{scope}") for scope in SCOPES}


def told(served: Served, path: str, secret: str) -> Any:
    answer = served.ask("GET", path, secret=secret)
    assert answer.status == 200, answer.body
    assert answer.headers["Journal-Position"] == served.accountant.position()
    return answer.json()


# -- figures -------------------------------------------------------------------------------------------------------


def test_overview_figures_are_those_of_the_ledger(served: Served, secrets: dict[str, str]) -> None:
    read = secrets["read"]
    summary, stats = told(served, "/v1/overview", read), served.accountant.stats()
    assert summary["totals"] == {
        **{"users": stats["users"], "erased": 0, "charges": 2, "reports": 2},
        **{"refused": 1, "refused_in_bulk": 0},
    }
    assert summary["recent"] == {"hours": 24, "charges": 2, "refused": 1}
    assert summary["ledger"]["head"] == stats["head"]
    assert summary["ledger"]["entries"] == stats["entries"]
    (day,) = told(served, "/v1/overview/activity?days=7", read)["rows"]
    assert (day["users"], day["charges"], day["refused"]) == (2, 2, 1)
    (refused,) = told(served, "/v1/overview/refusals", read)["rows"]
    assert (refused["limit"], refused["refused"]) == ("day", 1)
    lifetime, today = told(served, "/v1/overview/limits", read)["rows"]
    assert (lifetime["used"][12], lifetime["used"][22], today["used"][50], today["used"][90]) == (1, 1, 1, 1)
    rows = told(served, "/v1/overview/mechanisms", read)["rows"]
    assert {(row["mechanism"], row["checked"], row["charges"]) for row in rows} == {
        ("randomized-response", "exact", 1)
    }


def test_records_do_not_contain_the_hash_of_a_secret(served: Served, secrets: dict[str, str]) -> None:
    rows = told(served, "/v1/officer/records", secrets["policy"])["rows"]
    keys = [row for row in rows if row["kind"] == "key"]
    assert keys
    assert not [row for row in keys if "hash" in row["body"]]
    assert [row["number"] for row in rows] == sorted((row["number"] for row in rows), reverse=True)
    assert len(told(served, "/v1/officer/records?most=2", secrets["policy"])["rows"]) == 2


def test_verification_is_recorded_with_the_name_of_its_caller(served: Served, secrets: dict[str, str]) -> None:
    answer = served.ask("POST", "/v1/ledger/verifications", secret=secrets["audit"])
    assert answer.json()["ok"]
    verified = told(served, "/v1/overview", secrets["read"])["ledger"]["verified"]
    assert (verified["ok"], verified["problems"], verified["by"]) == (True, 0, "key-audit")
    assert verified["entries"] == served.accountant.stats()["entries"] - 1  # that which says so came after


# -- the files of the pages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/officer"])
def test_pages_are_public_and_contain_no_data(served: Served, path: str) -> None:
    answer = served.ask("GET", path)
    assert (answer.status, answer.headers.get_content_type()) == (200, "text/html")
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
    assert "Set-Cookie" not in answer.headers
    text = answer.body.decode()
    assert " style=" not in text
    assert " onclick=" not in text
    assert "<style" not in text
    assert text.count("<script") == 1  # by its address
    again = served.ask("GET", path, If_None_Match=answer.headers["ETag"])
    assert (again.status, again.body) == (304, b"")
