"""The reference: its examples run, and its generated pages equal new ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from doc_blocks import blocks, follow

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = ROOT / "docs" / "reference"
EXAMPLES = sorted((REFERENCE / "examples").glob("*.txt"))
CARDS = sorted(page for page in (REFERENCE / "mechanisms").glob("*.md") if page.stem != "index")

# -- Python --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.stem)
def test_examples_of_a_page_run_and_print_what_they_show(page: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="no pyarrow: pip install 'ldp-budget[interop]'")
    found = follow(page, tmp_path, {"LDP_BUDGET_NO_PLUGINS": "1"})
    assert found == [], "\n".join(found)


# -- mechanisms ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", CARDS, ids=lambda page: page.stem)
def test_card_example_runs_and_prints_what_it_shows(page: Path, tmp_path: Path) -> None:
    shown = list(blocks(page.read_text(encoding="utf-8")))
    assert [block.kind for block in shown] == ["python", "text"]
    found = follow(page, tmp_path, {"LDP_BUDGET_NO_PLUGINS": "1"})
    assert found == [], "\n".join(found)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reference")
    subprocess.run([sys.executable, REFERENCE / "generate.py", "--out", out], check=True, timeout=120)
    return out


BY_HAND = (
    "certificate-format",
    "client-programs",
    "formats/publication",
    "law-check",
    "questionnaires",
    "stability",
    "write-a-client",
)


def test_generated_pages_compared_with_new_ones_are_equal(fresh: Path) -> None:
    """If not: python docs/reference/generate.py"""
    made = {page.relative_to(fresh) for page in fresh.rglob("*.*")}
    by_hand = {Path(f"{name}.md") for name in BY_HAND}
    assert {page.relative_to(REFERENCE) for page in REFERENCE.rglob("*.md")} | {
        Path("packages.svg")
    } == made | by_hand
    different = [
        str(page)
        for page in sorted(made)
        if (REFERENCE / page).read_text(encoding="utf-8") != (fresh / page).read_text(encoding="utf-8")
    ]
    assert different == []


def test_generated_pages_name_no_machine(fresh: Path) -> None:
    for page in fresh.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert " at 0x" not in text
        assert str(ROOT) not in text
