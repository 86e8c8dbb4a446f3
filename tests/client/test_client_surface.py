"""A remote accountant is an accountant: it has every name of one, and nothing behind them needs a ledger at hand."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pytest

from ldp_budget import Accountant, Limit, NotSupported, mechanism
from ldp_budget.accounting.callers import LOCAL
from ldp_budget.client import Client

PUBLIC = [name for name in dir(Accountant) if not name.startswith("_")]


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_answer_of_its_own(name: str) -> None:
    """What is inherited would look for a ledger that is not there."""
    assert name in vars(Client), name


@pytest.mark.parametrize("name", [name for name in PUBLIC if inspect.isfunction(getattr(Accountant, name))])
def test_it_is_called_in_the_same_way_and_documented(name: str) -> None:
    here, there = (inspect.signature(getattr(cls, name)).parameters for cls in (Client, Accountant))
    assert [(each.name, each.kind, each.default) for each in here.values()] == [
        (each.name, each.kind, each.default) for each in there.values()
    ]
    assert inspect.getdoc(getattr(Client, name))


def test_nothing_else_is_public() -> None:
    assert {name for name in vars(Client) if not name.startswith("_")} <= set(PUBLIC)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("backup", ["copy.db"]),
        ("copy_to", ["copy.db"]),
        ("give_up_copy", ["copy.db"]),
        *((name, []) for name in ("key_states", "prepare_key", "discard_key", "activate_key")),
        ("acting_for", [LOCAL]),
        ("run", ["key"]),
        ("check_up", []),
        ("overview", []),
    ],
)
def test_what_makes_no_sense_over_http_says_why(name: str, arguments: list[Any]) -> None:
    with (
        Client("https://budget.example.org", "key") as accountant,
        pytest.raises(NotSupported, match="not over HTTP: "),
    ):
        getattr(accountant, name)(*arguments)


def test_a_digest_is_keyed_by_the_api_key_and_sent_nowhere() -> None:
    """What is digested may be answers; nobody who has not the key can guess them."""
    with (
        Client("https://unreachable.invalid", "one") as one,
        Client("https://unreachable.invalid", "other") as other,
    ):
        assert one.keyed_digest(b"yes") == one.keyed_digest(bytearray(b"yes"))
        assert len({one.keyed_digest(b"yes"), one.keyed_digest(b"no"), other.keyed_digest(b"yes")}) == 3


@pytest.mark.parametrize("text", ["lifetime=4", "day=0.1,1e-6", "week=4,9e-7+1e-7,zcdp", "month=30,1e-6,renyi:3"])
def test_a_limit_is_sent_as_the_text_that_says_all_of_it(text: str) -> None:
    limit = Limit.parse(text)
    assert Limit.parse(str(limit)) == limit
    assert Limit.parse(str(limit)).capacity == limit.capacity


def test_what_is_needed_to_speak_http_is_told_where_it_is_missing() -> None:
    program = """
import sys
sys.modules["httpx2"] = None
from ldp_budget import NotSupported
from ldp_budget.client import Client
try:
    Client("https://budget.example.org", "key")
except NotSupported as error:
    print(error)
"""
    printed = subprocess.run([sys.executable, "-c", program], check=True, timeout=60, capture_output=True, text=True)
    assert "pip install 'ldp-budget[remote]'" in printed.stdout


def test_who_only_charges_at_home_loads_nothing_of_it() -> None:
    program = """
import sys, ldp_budget
with ldp_budget.Accountant(":memory:") as accountant:
    accountant.set_policy("default", ["lifetime=9"])
    accountant.spend("alice", ldp_budget.mechanism("randomized-response")(epsilon=1))
print([name for name in sys.modules if "httpx2" in name or name.startswith("ldp_budget.client")])
"""
    printed = subprocess.run([sys.executable, "-c", program], check=True, timeout=60, capture_output=True, text=True)
    assert printed.stdout.strip() == "[]"


def test_mechanisms_are_told_by_name_and_by_what_was_declared() -> None:
    from ldp_budget.api.requests import charged

    oue = mechanism("oue")(epsilon="0.5", domain_size=4)
    assert charged(oue)["mechanism"] == {"name": "oue", **oue.declared}
    assert charged(oue)["at_least"] == list(oue.guarantee.least_costs())
