"""The client in Rust, built without a network: its own tests, texts, labels, refused answers, and an audit."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client_cases import CASES, Recorder, streams
from javascript import PACKAGE, node
from ldp_budget.registry.collections import Collection
from ldp_budget.sampling.memoisation import secrets_within
from ldp_budget_verify.audit.subprocess_client import drawn_by
from named_answers import NAMED, PARTY, UNREADABLE_WORDS, WORDS
from rust import cargo

CRATE = Path(__file__).parents[3] / "clients" / "rust"
KIT = CRATE.parent / "conformance" / "run"
REFUSED: list[tuple[Collection, list[Any]]] = [
    (PARTY, ["unknown", "", 0, None, ["other"]]),
    (WORDS, UNREADABLE_WORDS),
    (Collection("four", CASES["oue"]), [4, -1, 0.5, "word", 1e300, True]),
    (Collection("a-number", CASES["a kept bit"]), [-0.1, 100.1, "x"]),
]


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


def asked(program: Path, *lines: Any) -> list[dict[str, Any]]:
    """The answers of the program to these lines."""
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_rust_tests_of_the_vectors_pass(target: Path) -> None:
    done = run(target, "test")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("collection", "answers"), NAMED, ids=lambda part: getattr(part, "name", ""))
def test_rust_client_of_texts_makes_the_reports_and_labels_of_python(
    program: Path, collection: Collection, answers: list[str]
) -> None:
    mechanism, chance = collection.mechanism, random.Random(collection.name)
    client = mechanism.client_program()
    made, lines, expected = streams(client, 1), [], []
    for answer in answers:
        values = collection.read_values([answer])
        stream, secret = Recorder(next(made)), chance.randbytes(16 + chance.randrange(32))
        own = secrets_within([secret], f"collection {collection.fingerprint}", 1) if client.memo else None
        report = mechanism.randomize(values, rng=stream, secrets=own)
        lines.append({"answer": answer, "secret": secret.hex(), "stream": stream.read_so_far.hex()})
        label = {"label": collection.labels(values, [secret])[0]} if client.memo else {}
        expected.append({"report": report.astype(report.dtype.newbyteorder("<")).tobytes().hex(), **label})
    assert asked(program, {"collection": collection.definition()}, *lines) == expected


@pytest.mark.parametrize(("collection", "answers"), REFUSED, ids=lambda part: getattr(part, "name", ""))
def test_rust_client_of_no_answer_refuses(program: Path, collection: Collection, answers: list[Any]) -> None:
    lines = [{"answer": answer, "secret": "00" * 16} for answer in answers]
    said = asked(program, {"collection": collection.definition()}, *lines)
    assert [list(each) for each in said] == [["error"]] * len(answers)


def test_rust_client_of_a_changed_definition_refuses(program: Path) -> None:
    said = asked(program, {"collection": {**PARTY.definition(), "title": "Another"}}, {"answer": "other"})
    assert [list(each) for each in said] == [["error"]] * 2


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


@pytest.mark.exhaustive
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
