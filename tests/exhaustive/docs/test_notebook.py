"""The notebook of the tutorials: stored without outputs, and it runs from top to bottom."""

from __future__ import annotations

import json
import re
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).resolve().parents[3] / "docs" / "tutorials" / "notebook.ipynb"


@pytest.fixture(scope="module")
def stored() -> Any:
    return json.loads(NOTEBOOK.read_text(encoding="utf-8"))


def test_notebook_is_stored_without_outputs_or_machine_data(stored: Any) -> None:
    code = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert [cell["outputs"] for cell in code] == [[]] * len(code)
    assert [cell["execution_count"] for cell in code] == [None] * len(code)
    assert stored["metadata"] == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The result of the last expression of each cell, by that expression."""
    nbclient = pytest.importorskip("nbclient", reason="no nbclient: pip install 'ldp-budget[interop]'")
    nbformat = pytest.importorskip("nbformat", reason="no nbformat: pip install 'ldp-budget[interop]'")
    pytest.importorskip("ipykernel", reason="no ipykernel: pip install 'ldp-budget[interop]'")
    kernel = tmp_path_factory.mktemp("jupyter") / "kernels" / "here"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "here", "language": "python"}))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(kernel.parents[1]))
        where = {"metadata": {"path": str(NOTEBOOK.parent)}}
        nbclient.NotebookClient(notebook, timeout=60, kernel_name="here", resources=where).execute()
    results = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output["output_type"] == "execute_result":
                results[cell["source"].splitlines()[-1]] = output["data"]
    return results


def cells(html: str) -> list[list[str]]:
    """The texts of the cells of a table, row by row."""
    rows = re.findall(r"<tr.*?</tr>", html, flags=re.S)
    return [[unescape(cell) for cell in re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row, flags=re.S)] for row in rows]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::RuntimeWarning")
def test_notebook_runs_and_its_story_is_true(shown: dict[str, Any]) -> None:
    assert cells(shown["result"]["text/html"])[1] == ["844", "100", "0"]
    assert cells(shown["again"]["text/html"])[1] == ["0", "100", "844"]
    assert cells(shown["too_many"]["text/html"])[1] == ["0", "944", "0"]
    one, four = (cells(shown[name]["text/html"]) for name in ("estimate", "close.estimate(total)"))
    names = ["democrat", "independent", "republican"]
    assert [row[0] for row in one[1:]] == [row[0] for row in four[1:]] == names
    off = [float(row[-1]) for row in cells(shown["found"]["text/html"])[2:]]
    assert len(off) == 3
    assert max(map(abs, off)) < 6  # standard errors: that never happens
    # Of four times as many reports a share has half the standard error.
    share_errors = [[float(row[3]) / reports for row in rows[1:]] for rows, reports in ((one, 844), (four, 3376))]
    assert all(0.4 < later / first < 0.6 for first, later in zip(*share_errors, strict=True))
    assert "refused" in shown['accountant.spend("r0500", close)']["text/html"]
    assert cells(shown['accountant.balance("r0500")']["text/html"])[1][2:6] == ["epsilon", "4", "4", "0"]


def test_notebook_shows_plan_groups_and_model_with_pictures(shown: dict[str, Any]) -> None:
    plan, by_age, model = (shown[name]["text/html"] for name in ("plan", "by_age", "model"))
    assert all("<svg" in each for each in (plan, by_age, model))
    assert [row[0] for row in cells(model)[1:]] == ["Intercept", "old[T.yes]"]
    assert {row[cells(by_age)[0].index("group")] for row in cells(by_age)[1:]} == {"–", "no", "yes"}
