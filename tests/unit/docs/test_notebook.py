"""The notebook of the tutorials: stored without outputs, and its cells run from top to bottom."""

from __future__ import annotations

import ast
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).resolve().parents[3] / "docs" / "tutorials" / "notebook.ipynb"


@pytest.fixture(scope="module")
def stored() -> Any:
    return json.loads(NOTEBOOK.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def shown(stored: Any) -> dict[str, str]:
    """The HTML of the last expression of each cell, by that expression."""
    names: dict[str, Any] = {}
    found = {}
    for cell in stored["cells"]:
        if cell["cell_type"] == "code":
            *before, last = ast.parse("".join(cell["source"])).body
            exec(compile(ast.Module(before, []), "notebook", "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "notebook", "eval"), names)
                found[ast.unparse(last)] = value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)
            else:
                exec(compile(ast.Module([last], []), "notebook", "exec"), names)
    return found


def cells(html: str) -> list[list[str]]:
    """The texts of the cells of a table, row by row."""
    rows = re.findall(r"<tr.*?</tr>", html, flags=re.S)
    return [[unescape(cell) for cell in re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row, flags=re.S)] for row in rows]


@pytest.mark.slow
def test_notebook_runs_and_its_story_is_true(shown: dict[str, str]) -> None:
    assert cells(shown["result"])[1] == ["844", "100", "0"]
    assert cells(shown["again"])[1] == ["0", "100", "844"]
    assert cells(shown["too_many"])[1] == ["0", "944", "0"]
    one, four = (cells(shown[name]) for name in ("estimate", "close.estimate(total)"))
    names = ["democrat", "independent", "republican"]
    assert [row[0] for row in one[1:]] == [row[0] for row in four[1:]] == names
    off = [float(row[-1]) for row in cells(shown["found"])[2:]]
    assert len(off) == 3
    assert max(map(abs, off)) < 6  # standard errors: that never happens
    # Of four times as many reports a share has half the standard error.
    share_errors = [[float(row[3]) / reports for row in rows[1:]] for rows, reports in ((one, 844), (four, 3376))]
    assert all(0.4 < later / first < 0.6 for first, later in zip(*share_errors, strict=True))
    assert "refused" in shown["accountant.spend('r0500', close)"]
    assert cells(shown["accountant.balance('r0500')"])[1][2:6] == ["epsilon", "4", "4", "0"]


@pytest.mark.slow
def test_notebook_shows_plan_groups_and_model_with_pictures(shown: dict[str, str]) -> None:
    plan, by_age, model = (shown[name] for name in ("plan", "by_age", "model"))
    assert all("<svg" in each for each in (plan, by_age, model))
    assert [row[0] for row in cells(model)[1:]] == ["Intercept", "old[T.yes]"]
    assert {row[cells(by_age)[0].index("group")] for row in cells(by_age)[1:]} == {"–", "no", "yes"}
