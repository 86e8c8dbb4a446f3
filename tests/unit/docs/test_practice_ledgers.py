"""Pages whose commands set a policy: they use a ledger of their own, never the reader's."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from doc_blocks import Block, blocks, chain, commands_of

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("start", "guides", "tutorials", "explanation", "help")
PAGES = [ROOT / "README.md", *(page for each in FOLDERS for page in sorted((ROOT / "docs" / each).glob("*.md")))]
EXPORT = "export LDP_BUDGET_LEDGER="
WRITES = re.compile(r"\bldp-budget (?!.*--ledger).*\b(policy set|collection add|spend|spend-many|erase|rotate-key)\b")


def on_the_readers_ledger(found: Iterable[Block]) -> list[str]:
    """Return the commands that change the ledger of the reader's environment."""
    unsafe, exported = list[str](), False
    for block in found:
        if block.kind == "console":
            lines = [command.text for command in commands_of(block)]
        elif block.kind == "sh":
            lines = block.text.splitlines()
        else:
            continue
        for line in lines:
            exported = exported or EXPORT in line
            if not exported and WRITES.search(line):
                unsafe.append(line.strip())
    return unsafe


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_that_changes_a_ledger_names_its_own_first(page: Path) -> None:
    text = "".join(each.read_text(encoding="utf-8") for each in chain(page))
    assert on_the_readers_ledger(blocks(text)) == []


def test_command_without_an_export_is_found() -> None:
    page = "```console\n$ ldp-budget policy set default --limit lifetime=1\n```\n"
    assert on_the_readers_ledger(blocks(page)) == ["ldp-budget policy set default --limit lifetime=1"]
    assert on_the_readers_ledger(blocks(page.replace("$ ldp", f"$ {EXPORT}x.db\n$ ldp"))) == []
    assert on_the_readers_ledger(blocks(page.replace("budget policy", "budget --ledger x.db policy"))) == []
