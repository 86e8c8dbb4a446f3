"""The case study of telemetry: its page, block by block. The large sizes run in the exhaustive tier."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="no service: pip install 'ldp-budget[service]'")

from doc_blocks import ROOT, Reader, Shell, blocks, page_environment
from rust import cargo

PAGE = ROOT / "docs" / "case-studies" / "telemetry.md"
LARGE = "half_year.py 2000"
"""What the commands of the sizes 2000 and 20000 have in common."""


@pytest.mark.parametrize("large", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_telemetry_study_run_as_printed_prints_the_figures_of_its_page(
    large: bool, tmp_path: Path, programs: str
) -> None:
    cargo()
    home = Path.home()  # the pages have a home of their own, where rustup finds no toolchain
    environment = {
        **page_environment(tmp_path, programs),
        "CARGO_HOME": os.environ.get("CARGO_HOME", str(home / ".cargo")),
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(home / ".rustup")),
        "CARGO_TARGET_DIR": str(tmp_path / "target"),
    }
    with Shell(tmp_path, **environment) as shell:
        reader = Reader(tmp_path, shell)
        try:
            shown = [block for block in blocks(PAGE.read_text(encoding="utf-8")) if large or LARGE not in block.text]
            found = [difference for block in shown for difference in reader.follow(block)]
        finally:
            reader.close()
    assert [f"line {each.line}: {each.printed}" for each in found] == []
