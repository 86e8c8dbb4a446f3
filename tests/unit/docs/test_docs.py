"""The documentation: every link works, and every page opens in one way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from doc_blocks import (
    Command,
    blocks,
    chain,
    commands,
    differences,
)

ROOT = Path(__file__).resolve().parents[3]
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
LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", ENDS[1:], ids=lambda page: page.stem)
def test_programs_that_a_page_writes_are_run_by_it(page: Path) -> None:
    text = "".join(each.read_text(encoding="utf-8") for each in chain(page))
    written = [block.text.split()[1] for block in blocks(text) if re.match(r"# \w+\.py\n", block.text)]
    run = " ".join(block.text for block in blocks(text) if not re.match(r"# \w+\.py\n", block.text))
    imported = " ".join(re.findall(r"^from (\w+) import", text, re.MULTILINE))
    for name in written:
        assert name.removesuffix(".py") in f"{run} {imported}"


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


def test_docs_index_leads_to_every_page() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    linked = {(DOCS / link.partition("#")[0]).resolve() for link in LINK.findall(index)}
    pages = {page.resolve() for page in DOCS.glob("*/*.md")}
    assert len(pages) >= 16
    assert pages <= linked
