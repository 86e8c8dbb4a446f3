"""`ldp-budget audit COLLECTION --client COMMAND`: a client in another language, seen from its reports alone."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

import ldp_budget
from command_line import CommandLine
from javascript import PACKAGE, node
from ldp_budget import Collection, NotSupported
from ldp_budget_verify.audit import subprocess_client
from ldp_budget_verify.audit.subprocess_client import drawn_by

LEAKS = Path(__file__).parents[2] / "helpers" / "leaks.mjs"
FOUR = Collection("four", ldp_budget.mechanism("oue")(epsilon=1, domain_size=4))
ADAPTER = PACKAGE / "src" / "adapter.mjs"


@pytest.fixture
def agreed(command: CommandLine) -> CommandLine:
    """A ledger with two collections."""
    command("collection", "add", "four", "oue", "--epsilon", 1, "--domain-size", 4)
    command("collection", "add", "yes-no", "rr", "--epsilon", 1)
    return command


@pytest.mark.exhaustive
@pytest.mark.parametrize("collection", ["four", "yes-no"])
def test_audit_of_the_javascript_client_finds_no_violation(agreed: CommandLine, collection: str) -> None:
    found = agreed.json("audit", collection, "--client", f"{node()} {ADAPTER}", "--samples", 500_000)
    assert found["verdict"] == "holds"
    assert max(each["lower_bound"] for each in found["audits"]) >= 0.95


@pytest.mark.exhaustive
@pytest.mark.parametrize("leak", ["padding", "raw", "keeps", "stuck", "clears"])
def test_audit_of_a_leaking_client_finds_it(agreed: CommandLine, leak: str) -> None:
    found = agreed.json("audit", "four", "--client", f"{node()} {LEAKS} {leak}", code=1)
    assert found["verdict"] == "violated"
    assert max(each["lower_bound"] for each in found["audits"]) > 1


def test_audit_refuses_a_report_that_is_too_long(agreed: CommandLine) -> None:
    said = agreed.error("audit", "four", "--client", f"{node()} {LEAKS} longer", "--samples", 2000)
    assert "a report must have 1 bytes: got 2" in said


def client_that(does: str) -> str:
    """A client that says {} of the collection, and then for each answer does that."""
    lines = [
        "import sys, time",
        "print({}, flush=True)",
        "next(sys.stdin)",
        "for turn, _ in enumerate(sys.stdin):",
        f" {does}",
    ]
    return shlex.join([sys.executable, "-c", "\n".join(lines)])


def drawn(client: str, count: int) -> int:
    with drawn_by(FOUR, client) as mechanism:
        return len(mechanism.randomize(np.zeros(count, int)))


SAY = """print('{"report": "01"}', flush=True)"""


def test_audit_refuses_reports_of_different_lengths() -> None:
    """Two bytes and none are two reports of one in the sum; the lengths may tell the answer."""
    with pytest.raises(NotSupported, match="a report must have 1 bytes: got 2"):
        drawn(client_that("""print('{"report": "' + ("0101", "")[turn % 2] + '"}', flush=True)"""), 2)


def test_audit_refuses_extra_lines() -> None:
    with pytest.raises(NotSupported, match="wrote more than it was asked for"):
        drawn(client_that(f"{SAY}; {SAY}"), 3)


@pytest.mark.exhaustive
def test_audit_waits_for_a_slow_client_that_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess_client, "_SECONDS", 1)
    assert drawn(client_that(f"time.sleep(0.3); {SAY}"), 5) == 5
    with pytest.raises(NotSupported, match="did not answer for 1 s"):
        drawn(client_that("time.sleep(30)"), 1)


@pytest.mark.exhaustive
def test_audit_ends_the_processes_of_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess_client, "_SECONDS", 1)
    with pytest.raises(NotSupported, match="did not answer for 1 s"):
        drawn("sh -c 'sleep 1000; true'", 1)


@pytest.mark.parametrize("said", ["b'\\xff\\n'", "b'[' * 50000 + b'\\n'", "b'x' * 300000"])
def test_audit_reports_lines_of_any_bytes(said: str) -> None:
    with pytest.raises(NotSupported, match="must be a line of JSON"):
        drawn(client_that(f"sys.stdout.buffer.write({said}); sys.stdout.flush(); time.sleep(100)"), 1)


@pytest.mark.parametrize(
    ("client", "why"),
    [
        ("no-such-program", "cannot be started"),
        (f"{sys.executable} -c 'pass'", "ended, or did not answer"),
        (f"{sys.executable} -c 'print(1)'", "the client reports an error: 1"),
        (f"{sys.executable} -c 'print(\"hello\")'", "must be a line of JSON"),
        ("", "cannot be started"),
        ("'", "cannot be started"),
    ],
)
def test_audit_of_a_program_that_is_no_client_says_so(agreed: CommandLine, client: str, why: str) -> None:
    said = agreed.error("audit", "four", "--client", client, "--samples", 2000)
    assert why in said
    assert "Traceback" not in said


def test_audit_of_a_collection_runs_the_client(agreed: CommandLine) -> None:
    said = agreed.error("audit", "rr", "--epsilon", 1, "--client", "true", "--samples", 2000, code=2)
    assert "--client needs a collection: the ledger has none named 'rr'" in said
