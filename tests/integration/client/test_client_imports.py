"""The modules that the client and the accountant import, in a process of its own."""

from __future__ import annotations

import subprocess
import sys


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
