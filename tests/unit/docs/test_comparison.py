"""The page that compares libraries: all of it from what was measured, and the scripts that measure agree with it."""

from __future__ import annotations

import ast
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = ROOT / "benchmarks" / "peers"
PAGE = ROOT / "docs" / "evidence" / "comparison.md"
ADAPTERS = sorted((SCRIPTS / "adapters").glob("*.py"))
OWN = ("environments", "measure", "page", "verdicts", "work", "worker")


@pytest.fixture(scope="module")
def scripts() -> Iterator[dict[str, ModuleType]]:
    """The modules of the command, which import each other from one folder."""
    sys.path.insert(0, str(SCRIPTS))
    try:
        yield {name: importlib.import_module(name) for name in OWN}
    finally:
        sys.path.remove(str(SCRIPTS))
        for name in [*OWN, *(name for name in sys.modules if name.partition(".")[0] == "adapters")]:
            sys.modules.pop(name, None)


@pytest.fixture
def results() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SCRIPTS / "results.json").read_text(encoding="utf-8"))
    return found


def test_comparison_page_equals_its_recorded_results(scripts: dict[str, ModuleType], results: dict[str, Any]) -> None:
    assert PAGE.read_text(encoding="utf-8") == scripts["page"].page(results)


def test_comparison_adapters_answer_for_every_task(scripts: dict[str, ModuleType]) -> None:
    work = scripts["work"]
    assert [path.stem for path in ADAPTERS] == sorted(map(work.module_of, work.LIBRARIES))
    for library in work.LIBRARIES:
        adapter = importlib.import_module(f"adapters.{work.module_of(library)}")
        offered = {name for name in work.ABILITIES if hasattr(adapter, name)}
        assert offered | set(adapter.MISSING) == set(work.ABILITIES), library
        assert not offered & set(adapter.MISSING), library
        assert adapter.IMPORTS


@pytest.mark.parametrize("path", [*ADAPTERS, SCRIPTS / "worker.py", SCRIPTS / "work.py"], ids=lambda path: path.stem)
def test_comparison_worker_imports_nothing_of_ours_nor_anything_at_start(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    anywhere = {name.partition(".")[0] for name in imported(ast.walk(tree))}
    at_start = {name.partition(".")[0] for name in imported(tree.body)}
    if path.stem != "ldp_budget":
        assert not any(name.startswith("ldp_budget") for name in anywhere)
    assert at_start <= {*sys.stdlib_module_names, "work"}


def imported(nodes: Any) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


# -- what the verdicts mean -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("promised", "lower", "said"),
    [
        (1.0, 0.9, "safe"),
        (1.0, 1.0, "safe"),
        (1.0, 1.0 + 1e-12, "unsafe by rounding"),
        (1.0, 1.1, "**unsafe**"),
        (-0.8, 83.5, "**unsafe**"),
    ],
)
def test_comparison_promise_below_the_certified_loss_is_unsafe(
    scripts: dict[str, ModuleType], promised: float, lower: float, said: str
) -> None:
    assert scripts["verdicts"].verdict({"promised": promised, "lower": lower}) == said


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        ({"accepted": [True, True, False], "right": [True, True, False]}, "right"),
        ({"accepted": [True, False, False], "right": [True, True, False]}, "refuses what fits"),
        ({"accepted": [True, False, True], "right": [True, True, False]}, "**unsafe**"),
        ({"accepted": [True, True], "right": [True, False], "processes": 2}, "**forgets**"),
        ({"accepted": 207, "capacity": 200}, "**unsafe**"),
        ({"accepted": 200, "capacity": 200}, "right"),
    ],
)
def test_comparison_account_gives_out_what_fits_and_no_more(
    scripts: dict[str, ModuleType], figure: dict[str, Any], said: str
) -> None:
    assert scripts["verdicts"].account_verdict(figure) == said
