"""A client in Perl, written from docs/reference/client-programs.md alone: the page is enough to write one from."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import make
import pytest

from client_cases import CASES, Recorder, streams
from ldp_budget.registry.collections import Collection
from ldp_budget.registry.public_definition import digest_of
from ldp_budget.sampling.memoisation import secrets_within
from named_answers import NAMED, PARTY, UNREADABLE_WORDS, WORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

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

SURVEYS = [
    *NAMED,
    (Collection("buckets", CASES["kept buckets"]), ["0", "1", "4", "19"]),
    (Collection("a-number", CASES["a kept bit"]), ["0.0", "37.5", "0.1", "100.0"]),
]
REFUSED = [
    (PARTY, ["unknown", "0", ""]),
    (WORDS, UNREADABLE_WORDS),
    (Collection("four", CASES["oue"]), ["4", "-1", "0.5", "word"]),
    (Collection("a-number", CASES["a kept bit"]), ["-0.1", "100.1"]),
]


def answered(collection: Collection, answers: Sequence[str]) -> list[dict[str, Any]]:
    """Return the reports and labels of Python's client for each answer, from bytes and the device's secret."""
    mechanism, chance = collection.mechanism, random.Random(collection.name)
    program = mechanism.client_program()
    made = streams(program, 1)
    rows = []
    for answer in answers:
        values = collection.read_values([answer])
        stream, secret = Recorder(next(made)), chance.randbytes(16 + chance.randrange(32))
        own = secrets_within([secret], f"collection {collection.fingerprint}", 1) if program.memo else None
        report = mechanism.randomize(values, rng=stream, secrets=own)
        rows.append(
            {
                "answer": answer,
                "secret": secret.hex(),
                "stream": stream.read_so_far.hex(),
                "report": report.astype(report.dtype.newbyteorder("<")).tobytes().hex(),
                "label": collection.labels(values, [secret])[0] if program.memo else None,
            }
        )
    return rows


def laid_down(folder: Path, definition: dict[str, Any], rows: list[dict[str, Any]]) -> Path:
    (folder / "case.json").write_text(json.dumps({"definition": definition, "vectors": rows}))
    return folder


@pytest.mark.parametrize(("collection", "answers"), SURVEYS, ids=lambda part: getattr(part, "name", ""))
def test_definition_of_every_form_agrees(tmp_path: Path, collection: Collection, answers: list[str]) -> None:
    done = run(laid_down(tmp_path, collection.definition(), answered(collection, answers)))
    assert (done.returncode, done.stdout) == (0, f"{len(answers)} vectors\n")


@pytest.mark.parametrize(("collection", "answers"), REFUSED, ids=lambda part: getattr(part, "name", ""))
def test_answer_invalid_is_refused(tmp_path: Path, collection: Collection, answers: list[str]) -> None:
    rows = [{"answer": answer, "secret": "00" * 16, "stream": "", "report": "an answer"} for answer in answers]
    done = run(laid_down(tmp_path, collection.definition(), rows))
    assert done.stdout.count(" gives an error: no answer\n") == len(answers)


def test_definition_changed_is_refused(tmp_path: Path) -> None:
    changed = {**PARTY.definition(), "title": "Another"}
    done = run(laid_down(tmp_path, changed, answered(PARTY, ["other"])))
    assert done.returncode
    assert "expected another digest" in done.stderr


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"version": 2}, "expected version 1"),
        ({"steps": [["a", ["shift", 1]]]}, "no operator shift"),
        ({"steps": [["a", ["add", 1, ["below", 2]]]]}, "below stands alone at the top of a step"),
        ({"steps": [["a", "later"], ["later", 1]]}, "no later"),
        ({"report": {"dtype": "|u1", "shape": [], "parts": [["code", "value"]]}}, "no part code"),
    ],
)
def test_definition_with_unknown_parts_is_refused(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    changed = {**PARTY.definition(), **change}
    done = run(laid_down(tmp_path, {**changed, "digest": digest_of(changed)}, answered(PARTY, ["other"])))
    assert done.returncode
    assert why in done.stderr


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
