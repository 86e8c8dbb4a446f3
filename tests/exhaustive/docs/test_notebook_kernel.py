"""The notebook of the tutorials runs in a kernel of Jupyter, which shows its results as HTML."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).resolve().parents[3] / "docs" / "tutorials" / "notebook.ipynb"


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::RuntimeWarning")
def test_notebook_runs_in_a_kernel_that_shows_its_results_as_html(tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="no nbclient: pip install 'ldp-budget[interop]'")
    nbformat = pytest.importorskip("nbformat", reason="no nbformat: pip install 'ldp-budget[interop]'")
    pytest.importorskip("ipykernel", reason="no ipykernel: pip install 'ldp-budget[interop]'")
    kernel = tmp_path / "kernels" / "here"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "here", "language": "python"}))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(tmp_path))
        nbclient.NotebookClient(notebook, timeout=60, kernel_name="here").execute()
    last = {cell["source"].splitlines()[-1]: cell.get("outputs") for cell in notebook.cells if cell["source"]}
    assert all("<svg" in last[name][0]["data"]["text/html"] for name in ("plan", "by_age", "model"))
