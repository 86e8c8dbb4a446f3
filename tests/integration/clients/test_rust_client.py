"""The client in Rust, built without a network: its own tests and an audit; and the conformance kit for clients."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from client_cases import CASES
from javascript import PACKAGE, node
from ldp_budget.registry.collections import Collection
from ldp_budget_verify.audit.subprocess_client import drawn_by
from rust import cargo

CRATE = Path(__file__).parents[3] / "clients" / "rust"
KIT = CRATE.parent / "conformance" / "run"


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rust")


def run(target: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [cargo(), *arguments, "--offline", "--manifest-path", str(CRATE / "Cargo.toml")]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture(scope="module")
def program(target: Path) -> Path:
    done = run(target, "build")
    assert done.returncode == 0, done.stderr
    return target / "debug" / "ldp-client"


def test_rust_tests_of_the_vectors_pass(target: Path) -> None:
    done = run(target, "test")
    assert done.returncode == 0, done.stdout + done.stderr


def test_rust_client_draws_for_an_audit(program: Path) -> None:
    four = Collection("four", CASES["oue"])
    with drawn_by(four, str(program)) as mechanism:
        reports = mechanism.randomize(np.arange(2000) % 4)
    assert reports.shape == (2000, 1)
    assert len(np.unique(reports)) > 8


def conformance(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(KIT), *command], capture_output=True, text=True, check=False)


def test_conformance_kit_finds_that_the_rust_client_holds(target: Path) -> None:
    done = run(target, "build", "--release")
    assert done.returncode == 0, done.stderr
    found = conformance(str(target / "release" / "ldp-client"))
    assert (found.returncode, found.stdout.count(": holds\n")) == (0, 7), found.stdout


def test_conformance_kit_finds_that_the_javascript_client_holds() -> None:
    found = conformance(node(), str(PACKAGE / "src" / "adapter.mjs"))
    assert (found.returncode, found.stdout.count(": holds\n")) == (0, 7), found.stdout


def test_conformance_kit_of_another_client_says_what_differs(tmp_path: Path) -> None:
    client = tmp_path / "client.sh"
    client.write_text("""while read -r line; do echo '{"report": "00"}'; done\n""")
    found = conformance("sh", str(client))
    assert found.returncode == 1
    assert "The secret" in found.stdout
    assert "must be refused" in found.stdout


def test_conformance_kit_of_a_client_that_ends_finds_that_no_section_holds() -> None:
    found = conformance("true")
    assert (found.returncode, found.stdout.count(": holds\n")) == (1, 0), found.stdout
