"""Malformed definitions: Python, JavaScript and Rust load the same ones, and make the same reports and failures of them."""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path

import pytest

from javascript import PACKAGE, node
from judged_definitions import REFUSED, by_lines, in_python
from malformed_definitions import malformed
from rust import cargo

CRATE = PACKAGE.parent / "rust"
LOT = 10_000
"""How many definitions a process of a client gets."""


@pytest.fixture(scope="module")
def rust(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rust")
    build = [cargo(), "build", "--release", "--offline", "--manifest-path", str(CRATE / "Cargo.toml")]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(folder)}
    done = subprocess.run(build, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return folder / "release" / "ldp-client"


@pytest.mark.parametrize(("seed", "count"), [(0, 2_000), pytest.param(1, 100_000, marks=pytest.mark.exhaustive)])
def test_malformed_definitions_are_the_same_to_all_clients(rust: Path, seed: int, count: int) -> None:
    commands = {"JavaScript": [node(), str(PACKAGE / "src" / "adapter.mjs")], "Rust": [str(rust)]}
    made, loaded = malformed(seed), 0
    for start in range(0, count, LOT):
        texts = list(itertools.islice(made, min(LOT, count - start)))
        judged = [in_python(text, start + place) for place, text in enumerate(texts)]
        asked, expected = [questions for questions, _ in judged], [said for _, said in judged]
        loaded += sum(said != [REFUSED] for said in expected)
        for client, command in commands.items():
            found = by_lines(command, texts, asked)
            differ = [row for row in zip(texts, expected, found, strict=True) if row[1] != row[2]]
            assert differ == [], f"{client}: {len(differ)} differ, first {differ[0]}"
    assert 0.1 * count < loaded < 0.4 * count
