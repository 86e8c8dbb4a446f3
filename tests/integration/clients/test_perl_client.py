"""A client in Perl, written from docs/reference/client-programs.md alone: the page is enough to write one from."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import make
import pytest

from client_cases import CASES

CLIENT = Path(__file__).parents[2] / "helpers" / "client.pl"
VECTORS = Path(__file__).parents[3] / "clients" / "vectors" / "cases"
# What the script uses comes with Perl, but some distributions pack it apart.
MODULES = ("Digest::SHA", "Encode", "JSON::PP", "Math::BigInt", "POSIX")


@cache
def perl() -> str:
    """Perl of 64 bits, with its core modules; without them the test is skipped."""
    found = shutil.which("perl")
    if found is None:
        pytest.skip("no Perl on this machine")
    uses = [f"-M{module}" for module in MODULES]
    done = subprocess.run([found, *uses, "-e", "print ~0"], capture_output=True, text=True, check=False)
    if done.stdout != str(2**64 - 1):
        pytest.skip(f"a Perl without 64-bit numbers or one of {', '.join(MODULES)}")
    return found


def run(folder: Path, client: Path = CLIENT) -> subprocess.CompletedProcess[str]:
    """The script, over the vectors of a folder."""
    command = [perl(), str(client), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


# Their tables have tens of thousands of rows, which the script works out in seconds.
LARGE_TABLES = {"bounded-laplace.json", "bounded-laplace-at-20.json"}


@pytest.mark.exhaustive
def test_vectors_without_a_large_table_agree(tmp_path: Path) -> None:
    files = [path for path in VECTORS.iterdir() if path.name not in LARGE_TABLES]
    assert len(files) == len(CASES) + 1 - len(LARGE_TABLES)
    for path in files:
        shutil.copy(path, tmp_path)
    done = run(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{len(files) * make.COUNT} vectors\n", "")


@pytest.mark.exhaustive
def test_vectors_with_a_large_table_agree(tmp_path: Path) -> None:
    for name in LARGE_TABLES:
        shutil.copy(VECTORS / name, tmp_path)
    done = run(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{len(LARGE_TABLES) * make.COUNT} vectors\n", "")


# -- what the vectors have no part of: whole definitions, names, texts, labels --------------------------------------


def laid_down(folder: Path, definition: dict[str, Any], rows: list[dict[str, Any]]) -> Path:
    (folder / "case.json").write_text(json.dumps({"definition": definition, "vectors": rows}))
    return folder


# -- faults: one in the script is seen -----------------------------------------------------------------------------


def test_run_that_must_fail_makes_no_report(tmp_path: Path) -> None:
    """The vectors of refusals, as those of JavaScript and Python."""
    rows = json.loads((VECTORS.parent / "refusals.json").read_text())["failures"]
    for number, row in enumerate(rows):
        folder = tmp_path / str(number)
        folder.mkdir()
        vector = {"answer": row["answer"], "secret": bytes(32).hex(), "stream": "ff" * 64, "report": ""}
        done = run(laid_down(folder, row["definition"], [vector]))
        assert done.returncode == 1, row["name"]
        assert "an error: the specification defines no such step" in done.stdout, row["name"]
