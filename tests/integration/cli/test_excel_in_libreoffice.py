"""LibreOffice opens the Excel files of `--xlsx`, and runs no text in them."""

from __future__ import annotations

import csv
import shutil
import subprocess
from pathlib import Path

import pytest

from ldp_budget_surveys.excel_figures import book_of

pytest.importorskip("openpyxl", reason="the extra excel is not installed")


def test_text_that_begins_like_a_formula_is_a_text_in_libreoffice(tmp_path: Path) -> None:
    office = shutil.which("soffice") or shutil.which("libreoffice")
    if office is None:
        pytest.skip("LibreOffice is not installed")
    texts = ["=1+1", "+1", "-1", "@SUM(A1)", "'=1"]
    book = book_of([{"answer": text} for text in texts], {"answer": "The answer."}, lambda row, column: "General", {})
    (tmp_path / "figures.xlsx").write_bytes(book)
    home = f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}"
    words = [office, home, "--headless", "--convert-to", "csv", "--outdir", tmp_path, tmp_path / "figures.xlsx"]
    subprocess.run(words, check=True, capture_output=True, timeout=120)
    with open(tmp_path / "figures.csv", encoding="utf-8", newline="") as file:
        assert [row[0] for row in csv.reader(file)] == ["answer", *texts]
