"""Messages: each names the parameter, shows the value, and says what to do where that is not plain."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ldp_budget
from ldp_budget import Accountant, Collection, LdpBudgetError, Limit, compose, mechanism
from ldp_budget.accounting.policies import Plan
from ldp_budget.guarantees import Copies, FinitePair, Memoised, Pure, from_json
from ldp_budget_service.api_keys import ApiKeys
from ldp_budget_service.client import Client

OUE = mechanism("oue")(epsilon=1, domain_size=3)
POLL = Collection("poll", OUE, ("a", "b", "c"))
ROOT = Path(__file__).parents[3]
SOURCES = ("accountant", "plugins", "service")
OLD_FORM = re.compile(
    r"; found\b|nothing was given|expected [^.]*; |\bsomebody\b|\bnobody\b|\bwhoever\b|said aloud|\bis called\b|there are:"
)


@pytest.fixture(scope="module")
def ledger() -> Iterator[Accountant]:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        accountant.add_collection(POLL)
        ApiKeys(accountant).create("old", ["spend"])
        ApiKeys(accountant).revoke("old")
        accountant.spend("alice", OUE, key="k")
        yield accountant


def raised(call: Callable[[], Any]) -> str:
    """Return the message of the error that a call raises."""
    with pytest.raises((LdpBudgetError, ValueError, TypeError)) as caught:
        call()
    return str(caught.value)


# Each with the name of the parameter or object, and the value, as the message shows them.
IN_PYTHON: dict[str, tuple[Callable[[Accountant], Any], str, str]] = {
    "user of a number": (lambda on: on.spend(5, OUE), "user", "5 (int). Use str(user)."),  # type: ignore[arg-type]
    "empty user": (lambda on: on.spend("", OUE), "user", "''"),
    "blank user": (lambda on: on.spend(" ", OUE), "user", "' '"),
    "user with NUL": (lambda on: on.spend("a\0b", OUE), "user", r"'a\x00b'"),
    "reports": (lambda on: on.spend("a", OUE, reports=0), "reports", "got 0"),
    "label": (lambda on: on.spend("a", OUE, label=""), "label", "''"),
    "digest": (lambda on: on.spend("a", OUE, digest="xyz"), "digest", "'xyz'"),
    "note": (lambda on: on.spend("a", OUE, note="a\nb"), "note", r"'\n'"),
    "key with blanks": (lambda on: on.spend("a", OUE, key=" k"), "key", "' k'"),
    "key of another request": (lambda on: on.spend("alice", OUE, reports=2, key="k"), "'k'", "Use a new key"),
    "mechanism by name": (lambda on: on.spend("a", "oue"), "mechanism", "'oue' (str)"),
    "mechanism class": (lambda on: on.spend("a", type(OUE)), "mechanism", "class OptimizedUnaryEncoding"),
    "unknown policy": (lambda on: on.spend("a", OUE, policy="defalt"), "policy", "'defalt'. Policies: default."),
    "unknown collection": (lambda on: on.collection("pol"), "collection", "Did you mean 'poll'?"),
    "taken collection": (lambda on: on.add_collection(Collection("poll", OUE)), "collection", "'poll' exists"),
    "users of a string": (lambda on: on.spend_many("alice", OUE), "users", "'alice' (str). For one user"),
    "unknown reservation": (lambda on: on.commit("7-dead"), "reservation", "'7-dead'"),
    "expires": (lambda on: on.reserve("a", OUE, expires=0), "expires", "got 0"),
    "unknown user": (lambda on: on.erase("eve"), "user", "'eve'"),
    "head": (lambda on: on.verify("abc"), "expect", "'abc'"),
    "policy without lifetime": (lambda on: on.set_policy("p", ["day=1"]), "limit", "only day. Add lifetime=EPSILON"),
    "policy without limits": (lambda on: on.set_policy("p", []), "limit", "missing"),
    "two limits of a period": (
        lambda on: on.set_policy("p", ["day=1", "day=2"]),
        "limit",
        "day basic more than once",
    ),
    "share of no limit": (lambda on: on.set_policy("p", ["lifetime=1"], shares={"t": ["day=1"]}), "share", "t:day=1"),
    "relation": (lambda on: on.set_policy("p", ["lifetime=1"], relation="some"), "relation", "'some'"),
    "name of an API key": (lambda on: ApiKeys(on).create("a b", ["spend"]), "name", "'a b'"),
    "scopes": (lambda on: ApiKeys(on).create("k", ["fly"]), "scopes", "['fly']"),
    "revoked API key": (lambda on: ApiKeys(on).revoke("old"), "API key", "'old' is already revoked"),
    "unknown API key": (lambda on: ApiKeys(on).revoke("new"), "API key", "'new'"),
    "period of a limit": (lambda on: Limit.parse("year=1"), "limit", "got year"),
    "rule in place of delta": (lambda on: Limit.parse("day=1,zcdp"), "limit", "zcdp. The rule comes after DELTA"),
    "zcdp without delta": (lambda on: Limit.parse("day=1,0,zcdp"), "limit", "got 0. For example"),
    "limit without a period": (lambda on: Limit.parse("1"), "limit", "got 1. For example"),
    "epsilon of a limit": (lambda on: Limit("day", -1), "limit", "got -1"),
    "unknown rule": (lambda on: compose([(OUE, 1)], delta=0, rule="rdp"), "rule", "'rdp'"),
    "delta of a total": (lambda on: compose([(OUE, 1)], delta=2), "delta", "got 2"),
    "count of a charge": (lambda on: compose([(OUE, 0)], delta=0), "count", "got 0"),
    "charges": (lambda on: compose([("oue", 1)], delta=0), "charges", "'oue'"),  # type: ignore[list-item]
    "rule without delta": (lambda on: compose([(OUE, 1)], delta=0, rule="zcdp"), "delta", "got 0. Pass a delta"),
    "price of a plan": (lambda on: Plan([(OUE, 1)], 0, price=0.1), "price", "got 0.1"),  # type: ignore[arg-type]
    "missing parameter": (lambda on: mechanism("oue")(epsilon=1), "domain_size", "number of possible answers"),
    "unknown parameter": (
        lambda on: mechanism("oue")(epsilom=1, domain_size=3),
        "epsilom",
        "Parameters: domain_size",
    ),
    "epsilon of a mechanism": (lambda on: mechanism("oue")(epsilon=-1, domain_size=3), "epsilon", "got -1"),
    "two targets": (
        lambda on: mechanism("rr")(epsilon=1, p="0.7", q="0.1"),
        "epsilon",
        "epsilon and p and q together",
    ),
    "one bound": (lambda on: mechanism("laplace")(epsilon=1, lower=0), "upper", "Give both lower and upper."),
    "bounds": (lambda on: mechanism("laplace")(epsilon=1, lower=2, upper=1), "upper", "got 1"),
    "scale and epsilon": (lambda on: mechanism("laplace")(epsilon=1, scale=3, lower=0, upper=1), "scale", "got 3"),
    "unknown mechanism": (lambda on: mechanism("oeu"), "mechanism", "Did you mean 'oue'?"),
    "value outside": (lambda on: OUE.randomize([0, 3]), "position 1", "whole numbers from 0 to 2: got 3"),
    "table of values": (lambda on: OUE.randomize([[0]]), "values", "shape (1, 1)"),
    "answer outside": (lambda on: POLL.read_values(["a", "d"]), "position 1", "one of a, b, c: got 'd'"),
    "reports of numbers": (lambda on: OUE.estimate(np.zeros(3)), "reports", "float64"),
    "one category": (lambda on: Collection("p", OUE, ("a",)), "categories", "one name, 'a'"),
    "number of categories": (lambda on: Collection("p", OUE, ("a", "b")), "categories", "2 names"),
    "colon in a name": (lambda on: Collection("a:b", OUE), "name", "'a:b'"),
    "seed": (lambda on: OUE.randomize([0], rng="x"), "rng", "'x' (str)"),  # type: ignore[arg-type]
    "confidence": (lambda on: OUE.estimate(OUE.randomize([0])).interval(95), "level", "got 95"),
    "kind of a guarantee": (lambda on: from_json({"kind": "mine"}), "kind", "'mine'"),
    "epsilon of a guarantee": (lambda on: Pure(-1), "epsilon", "got -1"),
    "outcomes": (lambda on: FinitePair([(1, 2)]), "outcomes", "['2']"),  # type: ignore[arg-type]
    "curve": (lambda on: Memoised((2, 1), 3), "curve", "2"),
    "copies": (lambda on: Copies(0, Pure(1)), "count", "got 0"),
    "URL": (lambda on: Client("http://example.org", "ldpb_x"), "url", "http://example.org"),
    "database": (lambda on: Accountant("mysql://u:secret@h/d"), "ledger", "mysql://…"),
    "clock": (lambda on: Accountant(":memory:", clock=5), "clock", "5"),  # type: ignore[arg-type]
    "file that is no ledger": (lambda on: Accountant(__file__), "ledger", "not an ldp-budget ledger"),
    "interval of a simulation": (lambda on: on.simulate(OUE, every="year"), "every", "'year'"),
    "time without zone": (
        lambda on: on.simulate(OUE, every="day", start=datetime(2027, 1, 1)),
        "start",
        "datetime.datetime(2027, 1, 1, 0, 0)",
    ),
    "guarantee of a thing": (lambda on: ldp_budget.guarantee_of(5), "thing", "got 5"),
}


@pytest.mark.parametrize("case", IN_PYTHON)
def test_message_in_python_names_parameter_and_value(ledger: Accountant, case: str) -> None:
    call, name, value = IN_PYTHON[case]
    message = raised(lambda: call(ledger))
    assert name in message
    assert value in message
    assert OLD_FORM.search(message) is None, message


SPEND = {"user": "alice", "mechanism": {"name": "oue", "epsilon": "1", "domain_size": 3}}
OVER_HTTP: dict[str, tuple[str, str, Any, tuple[str, ...]]] = {
    "no JSON": ("POST", "/v1/spends", b"{x", ("The body is not valid JSON", "at position 1.")),
    "empty JSON": ("POST", "/v1/spends", b" ", ("The body is not valid JSON", "at position")),
    "no user": ("POST", "/v1/spends", {"collection": "poll"}, ("user is missing",)),
    "reports": ("POST", "/v1/spends", {**SPEND, "reports": 0}, ("reports must be", "got 0")),
    "unknown member": ("POST", "/v1/spends", {**SPEND, "repots": 2}, ("repots must be left out", "got 2")),
    "no mechanism": ("POST", "/v1/spends", {"user": "a"}, ("mechanism is missing", "collection")),
    "unknown collection": (
        "POST",
        "/v1/spends",
        {"user": "a", "collection": "pol"},
        ("'pol'", "Did you mean 'poll'?"),
    ),
    "unknown policy": ("POST", "/v1/spends", {**SPEND, "policy": "defalt"}, ("'defalt'", "Did you mean 'default'?")),
    "unknown mechanism": (
        "POST",
        "/v1/spends",
        {"user": "a", "mechanism": {"name": "oeu"}},
        ("'oeu'", "Did you mean 'oue'?"),
    ),
    "bad parameter": (
        "POST",
        "/v1/spends",
        {"user": "a", "mechanism": {"name": "oue", "epsilon": "-1", "domain_size": 3}},
        ("epsilon must be", "got -1"),
    ),
    "policy without lifetime": (
        "PUT",
        "/v1/policies/p",
        {"limits": ["day=1"]},
        ("limit must be", "got only day. Add"),
    ),
    "unknown path": ("GET", "/v1/nothing", None, ("'/v1/nothing'", "GET /openapi.json")),
    "wrong method": ("DELETE", "/v1/spends", None, ("DELETE", "Use ")),
    "position": ("GET", "/v1/policies?min_position=x", None, ("min_position must be", "got x")),
    "comparison": ("POST", "/v1/compare", {"epsilon": 1, "domain_size": 3}, ("users is missing",)),
    "unknown reservation": ("POST", "/v1/reservations/7-dead/commit", None, ("'7-dead'",)),
}


@pytest.fixture(scope="module")
def client(ledger: Accountant) -> Iterator[Any]:
    pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
    from fastapi.testclient import TestClient

    from ldp_budget_service import create_app

    secret = ApiKeys(ledger).create("tests", ["admin"])[1]
    with TestClient(create_app(ledger), headers={"Authorization": f"Bearer {secret}"}) as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("case", OVER_HTTP)
def test_message_over_http_names_parameter_and_value(client: Any, case: str) -> None:
    method, path, body, words = OVER_HTTP[case]
    sent = {"content": body} if isinstance(body, bytes) else {"json": body} if body is not None else {}
    headers = {"Idempotency-Key": f"key of {case}", "Content-Type": "application/json"}
    answer = client.request(method, path, headers=headers, **sent)
    assert answer.status_code >= 400
    detail = answer.json()["detail"]
    for each in words:
        assert each in detail
    assert OLD_FORM.search(detail) is None, detail


def test_hint_over_http_is_a_member(client: Any) -> None:
    answer = client.post("/v1/spends", json={"user": "a", "collection": "pol"}, headers={"Idempotency-Key": "h"})
    assert answer.json()["hint"] == "Did you mean 'poll'?"


def test_ledger_hint_over_http_stays_with_the_operator() -> None:
    from ldp_budget.errors import LedgerError
    from ldp_budget_service.api.problem_details import members_of

    detail, members = members_of(
        LedgerError("/var/lib/budget.db", "it is truncated", hint="Restore /backup/budget.db.")
    )
    assert "/" not in detail
    assert "hint" not in members


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the strings of a source file that are not docstrings, with their lines."""
    tree = ast.parse(path.read_text())
    docs = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docs:
            yield node.lineno, node.value


@pytest.mark.slow
@pytest.mark.parametrize("folder", SOURCES)
def test_no_source_string_has_the_old_form(folder: str) -> None:
    old = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, text in strings(path)
        if re.search(r"; found |nothing was given", text)
    ]
    assert old == []


def test_message_in_the_old_form_is_found() -> None:
    """The two checks of this file find the old form where it is."""
    assert OLD_FORM.search("epsilon: expected a number > 0; found -1")
    assert OLD_FORM.search("no policy is called 'x'; there are: default")
    source = Path(__file__)
    assert any("; found " in text for _, text in strings(source))
