"""The C interface, with its example under AddressSanitizer: its reports are accepted and estimated."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from client_cases import CASES
from ldp_budget.registry.collections import Collection
from rust import cargo

CLIENTS = Path(__file__).parents[3] / "clients"
COUNT = 20_000
PARTY = Collection("party", CASES["oue"], ("democrat", "republican", "무소속", "other"))


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C program of the example, linked to the static library."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc on this machine")
    folder = tmp_path_factory.mktemp("c")
    manifest = str(CLIENTS / "c" / "Cargo.toml")
    build = [cargo(), "build", "--release", "--offline", "--manifest-path", manifest]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(folder)}
    done = subprocess.run(build, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    library = folder / "release" / "libldp_budget_c.a"
    source = [str(CLIENTS / "c" / "example.c"), str(library), "-lpthread", "-ldl", "-lm"]
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-g", "-fsanitize=address,undefined", f"-I{CLIENTS / 'c'}"]
    done = subprocess.run(
        ["gcc", *flags, *source, "-o", str(folder / "example")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "example"


def written(example: Path, folder: Path, digest: str, answer: str) -> subprocess.CompletedProcess[bytes]:
    path = folder / "party.json"
    path.write_text(json.dumps(PARTY.definition()))
    return subprocess.run([example, path, digest, answer, str(COUNT)], capture_output=True, check=False)


def test_c_example_writes_reports_with_the_law_of_the_mechanism(example: Path, tmp_path: Path) -> None:
    """Each bit of oue is 1 with a known chance; the bound of seven standard errors fails once in 10**11 runs."""
    done = written(example, tmp_path, PARTY.definition()["digest"], "무소속")
    assert (done.returncode, done.stderr) == (0, b"")
    reports = np.frombuffer(done.stdout, np.uint8).reshape(COUNT, -1)
    estimate = PARTY.mechanism.estimate(reports)
    expected = np.array([0, 0, COUNT, 0])
    assert (np.abs(estimate.counts - expected) < 7 * estimate.std_errors).all()


def test_c_example_refuses_another_digest(example: Path, tmp_path: Path) -> None:
    done = written(example, tmp_path, "0" * 64, "other")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"and not the agreed 0000" in done.stderr


def test_c_example_refuses_what_is_no_answer(example: Path, tmp_path: Path) -> None:
    done = written(example, tmp_path, PARTY.definition()["digest"], "unknown")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"none of the answers" in done.stderr
