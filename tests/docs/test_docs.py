"""The documentation: every block runs and prints what it shows, every link works, and every page opens in one way."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest

from doc_blocks import (
    Command,
    Shell,
    at_free_port,
    blocks,
    chain,
    commands,
    differences,
    follow,
    follow_chain,
    page_environment,
    record,
)

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FOLDERS = ("start", "guides", "tutorials", "explanation", "help")
PAGES = [
    ROOT / "README.md",
    DOCS / "README.md",
    *(page for folder in FOLDERS for page in sorted((DOCS / folder).glob("*.md"))),
    DOCS / "evidence" / "survey-choices.md",
]
# A page that another one continues runs with that one.
ENDS = [page for page in PAGES if page not in {each for other in PAGES for each in chain(other)[:-1]}]
# Modules that a page needs besides the library; developers have them.
NEEDS = {
    "README": ("fastapi", "matplotlib", "uvicorn"),
    "clusters": ("apache_beam", "distributed", "pyarrow", "ray"),
    "data": ("fsspec", "pandas", "polars", "pyarrow"),
    "fastapi-production": ("fastapi", "httpx2"),
    "monitoring": ("fastapi", "prometheus_client", "uvicorn"),
    "operations": ("fastapi", "prometheus_client", "uvicorn"),
    "other-libraries": ("dp_accounting", "opendp"),
    "remote": ("fastapi", "httpx2", "uvicorn"),
    "shards": ("pyarrow",),
    "survey-page": ("fastapi", "httpx2"),
}
# Engines, servers, tables of other libraries, whole surveys and contracts of plugins.
SLOW = (
    "auditing",
    "clusters",
    "collect-from-csv",
    "daily-question",
    "data",
    "devices",
    "fastapi-production",
    "first-survey",
    "fresh-or-memoised",
    "monitoring",
    "operations",
    "plugin-publish",
    "remote",
    "repeated-survey",
    "sandbox",
    "survey-choices",
    "survey-page",
)
LINK = re.compile(r"\]\(([^)\s]+)\)")

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="the commands of a page are those of a shell")


@needs_bash
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            marks=[pytest.mark.slow] if page.stem in SLOW else [],
            id=page.relative_to(ROOT).with_suffix("").as_posix(),
        )
        for page in ENDS
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


@pytest.mark.parametrize("page", ENDS[1:], ids=lambda page: page.stem)
def test_programs_that_a_page_writes_are_run_by_it(page: Path) -> None:
    text = "".join(each.read_text(encoding="utf-8") for each in chain(page))
    written = [block.text.split()[1] for block in blocks(text) if re.match(r"# \w+\.py\n", block.text)]
    run = " ".join(block.text for block in blocks(text) if not re.match(r"# \w+\.py\n", block.text))
    imported = " ".join(re.findall(r"^from (\w+) import", text, re.MULTILINE))
    for name in written:
        assert name.removesuffix(".py") in f"{run} {imported}"


@needs_bash
def test_survey_of_the_readme_in_an_empty_folder_prints_an_estimate(tmp_path: Path, programs: str) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [survey] = [block.text for block in blocks(readme) if block.kind == "sh" and "collection add" in block.text]
    with Shell(tmp_path, PATH=programs) as shell:
        printed = shell.run(f"set -e; {survey}")
    assert "5000 reports written to week-1.reports" in printed
    assert "5000 reports; 95 % confidence intervals" in printed


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
    "docs/README.md": 1,
    "docs/guides/devices.md": 1,
    "docs/guides/docker.md": 1,
    "docs/guides/move-a-ledger.md": 1,
    "docs/guides/operations.md": 1,
    "docs/guides/scaling.md": 3,
    "docs/guides/shards.md": 1,
    "docs/guides/survey-page.md": 1,
    "docs/start/install.md": 3,
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
                name = page.relative_to(ROOT).as_posix()
                counts[name] = counts.get(name, 0) + 1
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
        assert shell.run("sleep 100 & echo $x\n") == ("1\n" if "x=1" in text else "\n"), "the shell continues"


# -- what a block shows ---------------------------------------------------------------------------------------------


def test_blocks_of_a_page_keep_the_line_before_them() -> None:
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


# -- how a page reads -----------------------------------------------------------------------------------------------

OPENING = ("- **At the end**", "- **For**", "- **You need**", "- **First command:**")
TASKS = [page for folder in ("start", "guides") for page in sorted((DOCS / folder).glob("*.md"))]


def prose(page: Path) -> str:
    """The text of a page without its blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def pages_with_an_opening() -> list[Path]:
    """Every page that a reader follows or studies; glossary, hooks and help are looked up."""
    looked_up = {"architecture", "glossary", "plugin-hooks"}
    return [
        page
        for folder in ("start", "guides", "tutorials", "explanation")
        for page in sorted((DOCS / folder).glob("*.md"))
        if page.stem not in looked_up
    ]


@pytest.mark.parametrize("page", pages_with_an_opening(), ids=lambda page: page.stem)
def test_page_in_its_first_lines_says_result_readers_needs_and_first_command(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()[:16]
    found = [
        line.partition("** ")[0] + "**" if ":**" not in line else line[:20] for line in lines if line[:4] == "- **"
    ]
    assert [start[: len(wanted)] for start, wanted in zip(found, OPENING, strict=False)] == list(OPENING)


@pytest.mark.parametrize("page", TASKS, ids=lambda page: page.stem)
def test_guide_has_at_most_1200_words(page: Path) -> None:
    assert len(prose(page).split()) <= 1200


def test_guides_address_the_reader() -> None:
    words = [word for page in TASKS for word in re.findall(r"[a-z]+", prose(page).lower())]
    assert 1000 * sum(word in ("you", "your", "yours", "yourself") for word in words) / len(words) >= 15


@pytest.mark.parametrize(
    "term",
    [
        "audit",
        "confidence interval",
        "docker",
        "faq",
        "gdpr",
        "glossary",
        "install",
        "migrate",
        "quickstart",
        "rate limit",
        "retry",
        "sandbox",
        "tamper",
        "threat",
        "troubleshooting",
        "vulnerability",
    ],
)
def test_term_that_readers_search_for_is_in_a_heading(term: str) -> None:
    headings = [
        heading.lower()
        for page in [ROOT / "SECURITY.md", *DOCS.rglob("*.md")]
        for heading in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    ]
    assert [heading for heading in headings if term in heading]


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
