"""Mutation tests of the vectors: an interpreter with one fault never agrees with all of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from case_files import case_table
from javascript import PACKAGE, VECTORS, run

MUTANTS = case_table("integration_mutants", "MUTANTS")


@pytest.mark.some(20)
@pytest.mark.parametrize(("file", "old", "new"), MUTANTS, ids=lambda part: None)
def test_vectors_find_a_fault(tmp_path: Path, file: str, old: str, new: str) -> None:
    shutil.copytree(PACKAGE, tmp_path / "js")
    source = tmp_path / "js" / "src" / file
    text = source.read_text()
    assert old in text
    source.write_text(text.replace(old, new, 1))
    done = run(tmp_path / "js" / "test" / "vectors.mjs", VECTORS, "--first")
    assert done.returncode == 1, f"{file}: {old} -> {new} is not seen"
