"""The documentation: every link works, and every page opens in one way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from doc_blocks import PAGES, Command, blocks, commands, differences

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"


# Blocks that no test runs, by page. A new one is seen in the difference of this table.
NOT_RUN = {
    "docs/guides/backup.md": 1,
    "README.ko.md": 2,
    "README.md": 2,
    "docs/README.md": 1,
    "docs/guides/citus.md": 2,
    "docs/guides/devices.md": 1,
    "docs/guides/clusters.md": 1,
    "docs/guides/federated-learning.md": 3,  # typed by tests/exhaustive/docs/test_federated_guide.py
    "docs/guides/operations.md": 2,
    "docs/guides/report.md": 1,
    "docs/guides/publish-a-survey.md": 1,
    "docs/guides/scaling.md": 2,
    "docs/guides/survey-page.md": 1,
    "docs/start/install.md": 4,
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
