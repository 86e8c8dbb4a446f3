"""`ldp-budget audit COLLECTION --client COMMAND`: a client in another language, seen from its reports alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from javascript import PACKAGE, node

if TYPE_CHECKING:
    from conftest import CommandLine

LEAKS = Path(__file__).with_name("leaks.mjs")
ADAPTER = PACKAGE / "src" / "adapter.mjs"


@pytest.fixture
def agreed(command: CommandLine) -> CommandLine:
    """A ledger with two collections."""
    command("collection", "add", "four", "oue", "--epsilon", 1, "--domain-size", 4)
    command("collection", "add", "yes-no", "rr", "--epsilon", 1)
    return command


@pytest.mark.slow
@pytest.mark.parametrize("collection", ["four", "yes-no"])
def test_the_client_in_javascript_keeps_its_promise(agreed: CommandLine, collection: str) -> None:
    found = agreed.json("audit", collection, "--client", f"{node()} {ADAPTER}")
    assert found["verdict"] == "holds"
    assert max(each["lower_bound"] for each in found["audits"]) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("leak", ["padding", "raw", "keeps", "stuck", "clears"])
def test_a_client_that_leaks_is_convicted(agreed: CommandLine, leak: str) -> None:
    found = agreed.json("audit", "four", "--client", f"{node()} {LEAKS} {leak}", code=1)
    assert found["verdict"] == "violated"
    assert max(each["lower_bound"] for each in found["audits"]) > 1


def test_a_report_that_is_too_long_is_refused(agreed: CommandLine) -> None:
    said = agreed.error("audit", "four", "--client", f"{node()} {LEAKS} longer", "--samples", 2000)
    assert "expected 1 bytes of 1 reports; found 2" in said


@pytest.mark.parametrize(
    ("client", "why"),
    [
        ("no-such-program", "cannot be started"),
        (f"{sys.executable} -c 'pass'", "ended, or said nothing"),
        (f"{sys.executable} -c 'print(1)'", "the client says: 1"),
        (f"{sys.executable} -c 'print(\"hello\")'", "expected a line of JSON"),
        ("", "cannot be started"),
    ],
)
def test_a_program_that_is_no_client_is_told(agreed: CommandLine, client: str, why: str) -> None:
    said = agreed.error("audit", "four", "--client", client, "--samples", 2000)
    assert why in said
    assert "Traceback" not in said


def test_a_client_draws_for_a_collection(agreed: CommandLine) -> None:
    said = agreed.error("audit", "rr", "--epsilon", 1, "--client", "true", "--samples", 2000, code=2)
    assert "--client draws for a collection; rr is none of this ledger" in said
