"""The planted faults of `tools/mutants.py` match the code, so that a run of them plants what it says."""

from __future__ import annotations

import runpy
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
MUTANTS = runpy.run_path(str(ROOT / "tools" / "mutants.py"))["MUTANTS"]


def test_mutants_are_ten_for_each_room() -> None:
    assert Counter(mutant.room for mutant in MUTANTS) == dict.fromkeys(
        ("composition", "accounting", "ledger", "sdk"), 10
    )
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_mutant_text_occurs_once_in_its_file() -> None:
    counts = {mutant.name: mutant.path(ROOT).read_text(encoding="utf-8").count(mutant.old) for mutant in MUTANTS}
    assert {name: count for name, count in counts.items() if count != 1} == {}


def test_mutant_names_a_test_file_that_exists() -> None:
    assert [mutant.found_by for mutant in MUTANTS if not (ROOT / "tests" / mutant.found_by).is_file()] == []
