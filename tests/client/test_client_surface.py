"""The client of a service: the data that it sends, the data that it does not send, and its imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ldp_budget import Limit, mechanism
from ldp_budget.client import Client


def test_digest_is_keyed_by_the_api_key_and_the_data_is_not_sent() -> None:
    """The digested data may be answers; without the key they cannot be guessed."""
    with (
        Client("https://unreachable.invalid", "one") as one,
        Client("https://unreachable.invalid", "other") as other,
    ):
        assert one.keyed_digest(b"yes") == one.keyed_digest(bytearray(b"yes"))
        assert len({one.keyed_digest(b"yes"), one.keyed_digest(b"no"), other.keyed_digest(b"yes")}) == 3


@pytest.mark.parametrize("text", ["lifetime=4", "day=0.1,1e-6", "week=4,9e-7+1e-7,zcdp", "month=30,1e-6,renyi:3"])
def test_limit_is_sent_as_its_full_text(text: str) -> None:
    limit = Limit.parse(text)
    assert Limit.parse(str(limit)) == limit
    assert Limit.parse(str(limit)).capacity == limit.capacity


def test_client_without_http_library_names_the_extra() -> None:
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


def test_accountant_loads_no_http_library() -> None:
    program = """
import sys, ldp_budget
with ldp_budget.Accountant(":memory:") as accountant:
    accountant.set_policy("default", ["lifetime=9"])
    accountant.spend("alice", ldp_budget.mechanism("randomized-response")(epsilon=1))
print([name for name in sys.modules if "httpx2" in name or name.startswith("ldp_budget.client")])
"""
    printed = subprocess.run([sys.executable, "-c", program], check=True, timeout=60, capture_output=True, text=True)
    assert printed.stdout.strip() == "[]"


def test_mechanism_is_sent_as_name_and_parameters() -> None:
    from ldp_budget.api.schemas import charged

    oue = mechanism("oue")(epsilon="0.5", domain_size=4)
    assert charged(oue)["mechanism"] == {"name": "oue", **oue.declared}
    assert charged(oue)["at_least"] == list(oue.guarantee.least_costs())
