"""The reproductions of the five sources: their verdicts, and that the tables in `docs` are what they write."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("matplotlib")

SCRIPTS = Path(__file__).resolve().parents[3] / "docs" / "evidence" / "reproductions"
DOCUMENTS = [path.stem.removeprefix("document_") for path in sorted(SCRIPTS.glob("document_*.py"))]
LONG = ["002", "003"]  # a minute or more


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("report")


@pytest.fixture
def script(report: ModuleType) -> ModuleType:
    """`python docs/evidence/reproductions`, to be run in this process."""
    spec = importlib.util.spec_from_file_location("reproductions", SCRIPTS / "__main__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(script: ModuleType, folder: Path, *arguments: str) -> None:
    script.main(["--out", str(folder), *arguments], standalone_mode=False)


# -- the documents --------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "document", [pytest.param(name, marks=[pytest.mark.exhaustive] * (name in LONG)) for name in DOCUMENTS]
)
def test_reproduction_table_equals_what_its_script_writes(document: str, script: ModuleType, tmp_path: Path) -> None:
    run(script, tmp_path, document)
    assert (tmp_path / f"{document}.csv").read_bytes() == (SCRIPTS / f"{document}.csv").read_bytes()


@pytest.mark.exhaustive
@pytest.mark.parametrize("document", DOCUMENTS)
def test_reproduction_quick_run_gives_the_verdicts_of_its_table(
    document: str, script: ModuleType, report: ModuleType, tmp_path: Path
) -> None:
    run(script, tmp_path, "--quick", document)
    assert report.verdicts(tmp_path / f"{document}.csv") == report.verdicts(SCRIPTS / f"{document}.csv")


@pytest.mark.slow
def test_reproduction_overview_counts_the_rows_of_its_tables(script: ModuleType) -> None:
    assert f"<!-- summary -->\n{script.summary()}<!-- end" in script.OVERVIEW.read_text(encoding="utf-8")


# -- the page -------------------------------------------------------------------------------------------------


def test_verdicts_are_read_back_from_the_table(report: ModuleType, tmp_path: Path) -> None:
    made = report.Report("999", "a title", tmp_path, quick=True)
    made.section("a section", "a paragraph")
    made.compare([report.Row("|s|", 0.1, "a | b", True), report.Row("t", 1, 1 / 3, False, "x | y")])
    made.table(("δ", "safe"), [(1e-5, True), (0.25, False)])
    text = made.write().read_text(encoding="utf-8")
    assert report.verdicts(tmp_path / "999.csv") == [("|s|", True), ("t", False)]
    assert "| t | 1 | 0.333333 | **not reproduced**: x \\| y |" in text
    assert "| 1e-05 | yes |\n| 0.25 | no |" in text
