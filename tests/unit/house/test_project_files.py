"""The files of a maintained project: tasks, hooks, templates and the workflow agree with each other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="no PyYAML: pip install 'ldp-budget[docs]'")

ROOT = Path(__file__).resolve().parents[3]
TASKS = re.findall(
    r"^([a-z][a-z-]*)(?: [A-Z*a-z ]+)?:(?: |$)", (ROOT / "justfile").read_text(encoding="utf-8"), re.MULTILINE
)
NAMING = ["CONTRIBUTING.md", "changelog.d/README.md", ".github/pull_request_template.md"]


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_tasks_include_one_for_each_tier_and_check() -> None:
    assert {"setup", "lint", "types", "docs", "unit", "integration", "exhaustive", "bench", "release-check"} <= set(
        TASKS
    )
    assert len(TASKS) == len(set(TASKS))


@pytest.mark.parametrize("name", NAMING)
def test_files_that_name_a_task_name_one_of_the_justfile(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    named = set(re.findall(r"(?:`|run: )just ([a-z][a-z-]*)", text))
    assert named
    assert named <= set(TASKS)


def test_workflow_runs_the_three_tiers_and_every_check() -> None:
    jobs = read(".github/workflows/tests.yml")["jobs"]
    runs = {step["run"] for job in jobs.values() for step in job["steps"] if "run" in step}
    assert {"pytest", "pytest --integration", "pytest --exhaustive"} <= runs
    assert set(jobs["check"]["strategy"]["matrix"]["task"]) == {"lint", "types", "docs"}


@pytest.mark.parametrize(
    "name", ["README.md", "README.ko.md", "docs/README.md", "docs/start/install.md", "CONTRIBUTING.md"]
)
def test_page_names_the_pythons_on_which_the_unit_tests_run(name: str) -> None:
    run = read(".github/workflows/tests.yml")["jobs"]["unit"]["strategy"]["matrix"]["python"]
    listed = "또는" if name.endswith(".ko.md") else "or"
    assert f"Python {', '.join(run[:-1])} {listed} {run[-1]}" in (ROOT / name).read_text(encoding="utf-8")


def test_classifiers_name_the_pythons_on_which_the_unit_tests_run() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r"Programming Language :: Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert named == read(".github/workflows/tests.yml")["jobs"]["unit"]["strategy"]["matrix"]["python"]
    assert project["requires-python"] == f">={named[0]}"


def test_hooks_run_programs_of_this_environment_and_download_nothing() -> None:
    repositories = read(".pre-commit-config.yaml")["repos"]
    assert [each["repo"] for each in repositories] == ["local"]
    hooks = {hook["id"]: hook["language"] for hook in repositories[0]["hooks"]}
    assert hooks == dict.fromkeys(("ruff-check", "ruff-format", "lint-imports", "mypy"), "system")


@pytest.mark.parametrize("kind", ["bug", "feature", "documentation"])
def test_issue_forms_have_a_required_question_and_unique_fields(kind: str) -> None:
    form = read(f".github/ISSUE_TEMPLATE/{kind}.yml")
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert {"name", "description", "body"} <= set(form)
    assert len({field["id"] for field in fields}) == len(fields)
    assert any(field.get("validations", {}).get("required") for field in fields)
