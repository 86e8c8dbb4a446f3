"""The reference: generated pages are up to date, and every public name, command, code and mechanism has its entry."""

from __future__ import annotations

from pathlib import Path

import pytest

from doc_blocks import blocks, follow

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = ROOT / "docs" / "reference"
EXAMPLES = sorted((REFERENCE / "examples").glob("*.md"))
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
