"""`ldp-budget report` of public columns, and public columns of `ldp-budget randomize`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from command_line import CommandLine


def regions(command: CommandLine) -> None:
    """A survey of 40 people in two regions, 3 of them in the south."""
    folder = Path(command.ledger).parent
    command("policy", "set", "default", "--limit", "lifetime=1")
    command("collection", "add", "mood", "grr", "--epsilon", "1", "--categories", "good,bad")
    rows = "".join(f"u{user},good,{'south' if user < 3 else 'north'}\n" for user in range(40))
    (folder / "rows.csv").write_text(f"user,mood,region\n{rows}")


@pytest.fixture
def regional(command: CommandLine, begun: Callable[..., None]) -> CommandLine:
    begun(regions, command)
    return command


WORDS = ("--column", "mood", "--user-column", "user", "--public", "region", "--spend", "--out")


def test_report_of_public_column_names_it_and_its_smallest_group(regional: CommandLine, tmp_path: Path) -> None:
    regional("randomize", "mood", tmp_path / "rows.csv", *WORDS, tmp_path / "r")
    regional("report", "mood", tmp_path / "r", "--out", tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    for page in (html, regional("report", "mood", tmp_path / "r", "--markdown").stdout):
        assert "Each report also carries the public column region, without any noise." in page
        assert "the smallest group has 3 reports." in page
        assert "The public column region: ε does not count what it reveals." in page
    assert "also these, without noise" in regional("report", "mood", "--markdown").stdout
