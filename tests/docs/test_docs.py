"""The documentation: every block runs and prints what it shows, and every link leads somewhere.

The tutorial, the repeated survey and the reference have tests of their own, `test_tutorial.py`,
`test_repeated_survey.py` and `test_reference.py`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from doc_blocks import Command, Shell, at_free_port, blocks, commands, differences, follow

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# The README comes first.
PAGES = [
    ROOT / "README.md",
    *sorted((DOCS / "explanation").glob("*.md")),
    *sorted((DOCS / "guides").glob("*.md")),
]
# What a page needs besides the library; developers have it.
NEEDS = {
    "README": ("fastapi", "matplotlib", "uvicorn"),
    "clusters": ("apache_beam", "distributed", "pyarrow", "ray"),
    "data": ("fsspec", "pandas", "polars", "pyarrow"),
    "fastapi": ("fastapi", "httpx2"),
    "other-libraries": ("dp_accounting", "opendp"),
    "operations": ("fastapi", "prometheus_client", "uvicorn"),
    "remote": ("fastapi", "httpx2", "uvicorn"),
    "weekly-staff-survey": ("matplotlib",),
}
# Engines that take longer to start than all else here together, servers, other libraries' tables, and whole surveys:
# their commands are seen one by one in the tests of their rooms.
SLOW = (
    "auditing",
    "clusters",
    "daily-question",
    "data",
    "devices",
    "fastapi",
    "operations",
    "remote",
    "weekly-staff-survey",
)
LINK = re.compile(r"\]\(([^)\s]+)\)")

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="the commands of a page are those of a shell")


@needs_bash
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] if page.stem in SLOW else [], id=page.stem) for page in PAGES],
)
def test_every_block_of_a_page_runs_and_prints_what_it_shows(page: Path, tmp_path: Path, programs: str) -> None:
    for module in NEEDS.get(page.stem, ()):
        pytest.importorskip(module, reason=f"no {module}: pip install 'ldp-budget[dev,interop]'")
    _wait_over_midnight()
    environment = {
        "PATH": programs,
        "LDP_BUDGET_LEDGER": str(tmp_path / "ledger.db"),
        "LDP_BUDGET_CERTIFICATES": str(tmp_path / "certificates.json"),
        "LDP_BUDGET_NO_PLUGINS": "1",
        "HOME": str(tmp_path),  # where Ray would keep a token
        "RAY_USAGE_STATS_ENABLED": "0",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # a page that runs pytest shows none, and they load for seconds
        "PYTHONPATH": os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])),
    }
    found = follow(page, tmp_path, environment)
    assert found == [], "\n".join(found)


def _wait_over_midnight() -> None:
    """Pages charge twice on what should be one day."""
    left = 86_400 - time.time() % 86_400
    if left < 30:
        time.sleep(left)


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.stem)
def test_every_program_that_a_page_writes_is_run_by_it(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    written = [block.text.split()[1] for block in blocks(text) if re.match(r"# \w+\.py\n", block.text)]
    run = " ".join(command.text for command in commands(text))
    for name in written:
        assert name.removesuffix(".py") in run


@needs_bash
def test_the_survey_of_the_readme_runs_under_its_policy(tmp_path: Path, programs: str) -> None:
    pytest.importorskip("matplotlib")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [survey] = [block.text for block in blocks(readme) if block.kind == "sh" and "collection add" in block.text]
    policy = next(command.text for command in commands(readme) if "policy set" in command.text)
    with Shell(tmp_path, PATH=programs, LDP_BUDGET_LEDGER=str(tmp_path / "ledger.db")) as shell:
        printed = shell.run(f"set -e; {policy}{survey}")
    assert "300 reports written to party.reports" in printed
    assert "300 reports; 95 % intervals" in printed
    assert (tmp_path / "party.png").exists()


@needs_bash
@pytest.mark.slow
def test_service_of_the_readme_pasted_into_an_empty_folder_answers(tmp_path: Path, programs: str) -> None:
    """The block failed in every order: 409, no ledger, no policy, or a service that nothing came after."""
    pytest.importorskip("uvicorn")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [block] = [block for block in blocks(readme) if block.kind == "sh" and "serve" in block.text]
    with Shell(tmp_path, PATH=programs) as shell:
        printed = shell.run(f"set -e; {at_free_port(block.text)}")
    assert '"status":"spent"' in printed.replace(" ", "")


# Blocks that no test runs, by page. A new one is seen in the difference of this table.
NOT_RUN = {
    "README.ko.md": 2,
    "README.md": 2,
    "clusters.md": 2,
    "devices.md": 1,
    "operations.md": 2,
    "scaling.md": 4,
    "survey-page.md": 1,
}


def test_blocks_of_shell_commands_run_or_say_why_not() -> None:
    """Blocks marked `sh` were run by no test, and several could not be."""
    counts: dict[str, int] = {}
    for page in [
        *ROOT.glob("*.md"),
        *DOCS.rglob("*.md"),
        *ROOT.glob("clients/*/*.md"),
        *ROOT.glob("plugins/**/*.md"),
    ]:
        for block in blocks(page.read_text(encoding="utf-8")):
            kind, _, mark = block.kind.partition(" ")
            assert kind not in ("shell", "zsh"), f"{page.name}, line {block.line}: name it sh"
            if kind == "sh" and mark:
                assert re.fullmatch(r"no-run: it \w+.{5,}|no-run: it installs", mark), (
                    f"{page.name}, line {block.line}"
                )
                counts[page.name] = counts.get(page.name, 0) + 1
            elif kind == "sh":
                assert page in PAGES or page.name == "README.ko.md", (
                    f"{page.name}, line {block.line}: no test runs it"
                )
    assert counts == NOT_RUN


@needs_bash
@pytest.mark.parametrize(("text", "wrong"), [("true\nx=1\n", ""), ("true\nfalse\ntrue\n", "false"), ("a\n", "a")])
def test_shell_block_with_a_command_that_fails_is_told(tmp_path: Path, text: str, wrong: str) -> None:
    with Shell(tmp_path) as shell:
        assert shell.run_block(text).partition("\n")[0] == (f"this failed: {wrong}" if wrong else "")
        assert shell.run("sleep 100 & echo $x\n") == ("1\n" if "x=1" in text else "\n"), "and it goes on"


def test_the_plugin_of_the_readme_registers_a_mechanism(tmp_path: Path) -> None:
    [block] = [
        block for block in blocks((ROOT / "README.md").read_text(encoding="utf-8")) if "# coin.py" in block.text
    ]
    (tmp_path / "coin.py").write_text(block.text, encoding="utf-8")
    program = """
import coin, ldp_budget
found = []
coin.register_mechanisms(register=found.append)
assert [cls(epsilon=1).guarantee.epsilon for cls in found] == [1.0]
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=60)


# -- what a block shows ---------------------------------------------------------------------------------------------


def test_blocks_are_read_with_what_stands_before_them() -> None:
    page = "<!-- random -->\n\n```console\n$ a\n> b\n1\n2\n```\ntext\n```console\n$ c\n$ d\n3\n```\n"
    assert [block.before for block in blocks(page)] == ["<!-- random -->", "text"]
    assert commands(page) == [
        Command(4, "a\nb\n", "1\n2\n", True),
        Command(11, "c\n", "", False),
        Command(12, "d\n", "3\n", False),
    ]


@pytest.mark.parametrize(
    ("shown", "printed", "random", "same"),
    [
        ("1 of 2\n", "1 of 2\n", False, True),
        ("1 of 2\n", "1 of 3\n", False, False),
        ("1 of 2\n", "1 of 3\n", True, True),
        ("1 of 2\n", "1 of 2 left\n", True, False),
        ("", "Traceback (most recent call last):\n", True, False),
        ("", "unexpected\n", False, False),
        ("resets at 2026-11-22T00:00:00Z\n", "resets at 2031-01-01T00:00:00Z\n", False, True),
    ],
)
def test_outputs_are_compared_word_for_word_or_by_their_shape(
    shown: str, printed: str, random: bool, same: bool
) -> None:
    assert (differences(Command(1, "x\n", shown, random), printed) == "") is same


@needs_bash
def test_a_shell_keeps_what_was_set_and_the_last_exit_code(tmp_path: Path) -> None:
    with Shell(tmp_path, SHOWN="yes") as shell:
        assert shell.run("here=1; export there=2; (exit 3)\n") == ""
        assert shell.run("echo $? $here $SHOWN; bash -c 'echo $there; read || echo no input'; printf end\n") == (
            "3 1 yes\n2\nno input\nend"
        )


@needs_bash
def test_a_page_that_shows_something_else_is_found_out(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n\n```console\n$ echo 3\n4\n```\n", encoding="utf-8")
    assert follow(page, tmp_path, {}) == ["page.md, line 5:\n1\n", "page.md, line 10:\n3\n"]


# -- links ----------------------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))], ids=lambda page: str(page.relative_to(ROOT))
)
def test_every_link_leads_to_a_page_and_a_heading_that_are_there(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        if re.match(r"\w+:", link):
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(target), f"{page.name}: {link}"


def test_the_index_leads_to_every_page() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    linked = {(DOCS / link.partition("#")[0]).resolve() for link in LINK.findall(index)}
    pages = {page.resolve() for page in DOCS.glob("*/*.md")}
    assert len(pages) >= 16
    assert pages <= linked
