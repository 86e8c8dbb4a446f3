"""The documentation: every block runs and prints what it shows."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from doc_blocks import ENDS, STUDIES, Shell, at_free_port, blocks, follow, follow_chain, page_environment, record

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
# test_javascript_guide.py and test_road_guides.py follow these, with a browser in the middle.
WITH_A_BROWSER = [DOCS / "guides" / f"{name}.md" for name in ("devices", "surveyjs", "telemetry")]
# tests/exhaustive/docs/test_staff_survey.py and test_telemetry_study.py follow these, and compare their figures.
WITH_FIGURES = [STUDIES / "staff-survey.md", STUDIES / "telemetry.md"]
# Modules that a page needs besides the library; developers have them.
NEEDS = {
    "README": ("fastapi", "matplotlib", "uvicorn"),
    "analyse-in-sql": ("duckdb", "pyarrow"),
    "collect-from-csv": ("pandas", "polars", "pyarrow"),
    "clusters": ("apache_beam", "pyarrow"),
    "fastapi": ("fastapi", "httpx2"),
    "monitoring": ("fastapi", "prometheus_client", "uvicorn"),
    "operations": ("fastapi", "prometheus_client", "uvicorn"),
    "other-libraries": ("dp_accounting", "opendp"),
    "remote": ("fastapi", "httpx2", "uvicorn"),
    "survey-page": ("fastapi", "httpx2"),
}
# Engines, servers, tables of other libraries, whole surveys and contracts of plugins.
SLOW = (
    "auditing",
    "clusters",
    "collect-from-csv",
    "daily-question",
    "fastapi",
    "first-survey",
    "monitoring",
    "operations",
    "plugin-publish",
    "remote",
    "sandbox",
    "survey-page",
)

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="the commands of a page are those of a shell")


@needs_bash
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            marks=[pytest.mark.exhaustive] if page.stem in SLOW else [],
            id=page.relative_to(ROOT).with_suffix("").as_posix(),
        )
        for page in ENDS
        if page not in [*WITH_A_BROWSER, *WITH_FIGURES]
    ],
)
def test_page_with_all_its_blocks_run_prints_what_it_shows(page: Path, tmp_path: Path, programs: str) -> None:
    for module in NEEDS.get(page.stem, ()):
        pytest.importorskip(module, reason=f"no {module}: pip install 'ldp-budget[dev,interop]'")
    _wait_over_midnight()
    found = follow(page, tmp_path, page_environment(tmp_path, programs))
    assert found == [], "\n".join(found)


def _wait_over_midnight() -> None:
    """Pages charge twice on what should be one day."""
    left = 86_400 - time.time() % 86_400
    if left < 30:
        time.sleep(left)


@needs_bash
def test_survey_of_the_readme_in_an_empty_folder_prints_an_estimate(tmp_path: Path, programs: str) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [survey] = [block.text for block in blocks(readme) if block.kind == "sh" and "collection add" in block.text]
    with Shell(tmp_path, PATH=programs) as shell:
        printed = shell.run(f"set -e; {survey}")
    assert "5000 reports written to week-1.reports" in printed
    assert "5000 reports; 95 % confidence intervals" in printed


@needs_bash
@pytest.mark.parametrize(("text", "wrong"), [("true\nx=1\n", ""), ("true\nfalse\ntrue\n", "false"), ("a\n", "a")])
def test_shell_block_with_a_command_that_fails_is_told(tmp_path: Path, text: str, wrong: str) -> None:
    with Shell(tmp_path) as shell:
        assert shell.run_block(text).partition("\n")[0] == (f"this failed: {wrong}" if wrong else "")
        assert shell.run("sleep 100 & echo $x\n") == ("1\n" if "x=1" in text else "\n"), "the shell continues"


# -- what a block shows ---------------------------------------------------------------------------------------------


@needs_bash
def test_shell_of_a_page_keeps_variables_and_the_last_exit_code(tmp_path: Path) -> None:
    with Shell(tmp_path, SHOWN="yes") as shell:
        assert shell.run("here=1; export there=2; (exit 3)\n") == ""
        assert shell.run("echo $? $here $SHOWN; bash -c 'echo $there; read || echo no input'; printf end\n") == (
            "3 1 yes\n2\nno input\nend"
        )


@needs_bash
def test_page_that_shows_another_output_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n\n```console\n$ echo 3\n4\n```\n", encoding="utf-8")
    assert follow(page, tmp_path, {}) == ["page.md, line 5:\n1\n", "page.md, line 10:\n3\n"]


@needs_bash
def test_record_writes_outputs_into_the_page_and_keeps_random_ones_of_equal_shape(tmp_path: Path) -> None:
    first, second = tmp_path / "first.md", tmp_path / "second.md"
    first.write_text("```console\n$ name=Ada; echo 'old text' > note\n```\n", encoding="utf-8")
    text = (
        "<!-- continues: first.md -->\n\n```console\n$ echo $name\nBob\n$ cat note\n> cat note\n```\n\n"
        "<!-- random -->\n```console\n$ echo 1 2\n8 9\n```\n\n```python\nprint(1)\n```\n\n```text\n```\n\n"
        "```pycon\n>>> 1 + 1\n3\n>>> def f():\n...     return 5\n>>> f()\n```\n\n```sh\nfalse\n```\n"
    )
    second.write_text(text, encoding="utf-8")
    found = [at for page, at in follow_chain(second, tmp_path, {}) if page == second]
    assert [at.printed.partition("\n")[0] for at in record(second, found)] == ["this failed: false"]
    assert second.read_text(encoding="utf-8") == (
        text.replace("Bob", "Ada")
        .replace("> cat note\n", "> cat note\nold text\nold text\n")
        .replace("```text\n", "```text\n1\n")
        .replace("1 + 1\n3", "1 + 1\n2")
        .replace(">>> f()\n", ">>> f()\n5\n")
    )
    assert [at.printed for _, at in follow_chain(second, tmp_path, {})] == ["this failed: false\n"]


@needs_bash
@pytest.mark.exhaustive
def test_service_of_the_readme_pasted_into_an_empty_folder_answers(tmp_path: Path, programs: str) -> None:
    """The block failed in every order: 409, no ledger, no policy, or a service that nothing came after."""
    pytest.importorskip("uvicorn")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [block] = [block for block in blocks(readme) if block.kind == "sh" and "serve" in block.text]
    with Shell(tmp_path, PATH=programs) as shell:
        printed = shell.run(f"set -e; {at_free_port(block.text)}")
    assert '"status":"spent"' in printed.replace(" ", "")
