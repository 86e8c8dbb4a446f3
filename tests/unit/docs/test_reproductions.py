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

VERDICTS = [
    ("000", "ε of p = 0.75, q = 0.25", True),
    ("000", "SUE, ε = 1: p, q", True),
    ("000", "OUE, ε = 1: p, q", True),
    ("000", "ε = 1: q of the least Var*", True),
    ("000", "SUE, ε = 4, f = 0.5: variance per user", True),
    ("000", "OUE, ε = 4, f = 0: variance per user", True),
    ("000", "OUE, ε = 4, f = 0.5: variance per user", False),
    ("000", "ε = 1, d = 100: the better one", True),
    ("000", "ε = 1, d = 4: the better one", False),
    ("001", "ε = 1, γ = 0.45: loss", True),
    ("001", "ε = 1, γ = 0.5: loss", False),
    ("001", "ε = 1, γ = 0.9: loss", False),
    ("001", "ε = 1, γ = 1: loss", True),
    ("001", "ε̂", True),
    ("001", "definition 5 with f_{γ,ε}: loss", False),
    ("001", "least value", False),
    ("001", "γ from 0.16 to 0.22, ε from 0.2 to 10: MSE below bounded Laplace's", True),
    ("001", "all γ with a smaller MSE at every ε from 0.2 to 10", True),
    ("002", "Discovering Popular Emojis: Theorem 1, standard deviation", True),
    ("002", "Identifying High Energy and Memory Usage in Safari: Theorem 2, standard deviation", True),
    ("002", "HCMS to the letter of Fig. 9 and 10: count of a value nobody holds", False),
    ("002", "Fig. 3, ε", True),
    ("002", "Fig. 3, n = 1,000,000", True),
    ("002", "Fig. 14, mean 20: RAPPOR", True),
    ("002", "n ≥ 5,000, ε ≥ 1: from k = 8 to 1,024 the error changes by", False),
    ("002", "n = 10,000, ε = 5: 5BitFlip and CMS", True),
    ("002", "Table 2, n = 500, ε = 0.5: least", False),
    ("002", "Table 2, n = 500, ε = 1: least", True),
    ("002", "Table 2, n = 10,000, ε = 2: least", False),
    ("003", "Section 3.2.1: the same from γ ≤ ρ₂(1−ρ₁)/(ρ₁(1−ρ₂))", False),
    ("003", "Section 3.2.1: no symmetric matrix within γ has a smaller one, N = 64, γ = 5", False),
    ("003", "Theorem 4.1: σ of X̂ = √((N−1)(N+2γ−2)n)/(γ−1), N = 50, γ = 5, n = 50,000", True),
    ("003", "Figure 5: error, uniform, N = 50, n = 10,000", True),
    ("003", "Algorithm 2 keeps the amplification γ, N = 50, γ = 10, l = 4", False),
    ("003", "Section 5.1: the mean of X̂*/l follows X with slope 1, N = 50, γ = 5, l = 4", False),
    ("003", "Figure 8: error, normal, N = 50, n = 10,000, l = 4", False),
    ("003", "Table 1, N = 100, γ = 10, l = 4: error", True),
    ("003", "Table 2, N = 50, γ = 5, l = 4: error", False),
    ("003", "Table 2, N = 50, γ = 5, l = 4: random numbers", True),
    ("003", "Table 4, N = 100, γ = 10, l = 4: error", True),
    ("004", "σ = 1: E[L]", True),
    ("004", "σ = 1: Var[L]", True),
    ("004", "σ = 1, ε = 1: P[L > ε]", True),
    ("004", "σ = 1: least δ for ε = 1", False),
    ("004", "the formula's σ = 4.3791 meets (1, 1e-05)", True),
]


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


@pytest.mark.parametrize("document", DOCUMENTS)
def test_reproduction_table_has_the_verdicts(document: str, report: ModuleType) -> None:
    found = report.verdicts(SCRIPTS / f"{document}.csv")
    assert [row for row in VERDICTS if row[0] == document and row[1:] not in found] == []


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
    assert f"<!-- summary -->\n{script.summary()}<!-- end" in (SCRIPTS / "README.md").read_text(encoding="utf-8")


# -- the page -------------------------------------------------------------------------------------------------


def test_reproduction_row_that_is_not_reproduced_says_why(report: ModuleType) -> None:
    assert report.Row("σ", 1, 2, False, "misprint").verdict == "**not reproduced**: misprint"
    with pytest.raises(ValueError, match=r"^σ: expected why"):
        report.Row("σ", 1, 2, False)


def test_verdicts_are_read_back_from_the_table(report: ModuleType, tmp_path: Path) -> None:
    made = report.Report("999", "a title", tmp_path, quick=True)
    made.section("a section", "a paragraph")
    made.compare([report.Row("|s|", 0.1, "a | b", True), report.Row("t", 1, 1 / 3, False, "x | y")])
    made.table(("δ", "safe"), [(1e-5, True), (0.25, False)])
    text = made.write().read_text(encoding="utf-8")
    assert report.verdicts(tmp_path / "999.csv") == [("|s|", True), ("t", False)]
    assert "| t | 1 | 0.333333 | **not reproduced**: x \\| y |" in text
    assert "| 1e-05 | yes |\n| 0.25 | no |" in text


@pytest.mark.slow
def test_pictures_are_the_same_bytes_every_time(report: ModuleType, tmp_path: Path) -> None:
    def drawn() -> bytes:
        made = report.Report("999", "a title", tmp_path, quick=True)
        with made.picture("line", "A line") as figure:
            figure.add_subplot().plot([1, 2], [2, 1])
        assert "![A line](pictures/999-line.png)\n\nA line\n" in made.write().read_text(encoding="utf-8")
        return (tmp_path / "pictures" / "999-line.png").read_bytes()

    assert drawn() == drawn()
