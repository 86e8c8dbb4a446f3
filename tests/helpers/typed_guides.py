"""Guides of the clients, typed as they are printed, in a clone that has only the clients."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from doc_blocks import Block, Shell, commands_of, differences

ROOT = Path(__file__).resolve().parents[2]


def clone_of_clients(folder: Path) -> Path:
    """Copy what a clone has of the clients; without the programs that the guides need the test is skipped."""
    for program in ("npm", "bash", "curl"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} on this machine")
    left_out = shutil.ignore_patterns("node_modules", "dist", "*.db*")
    for name in ("js", "examples"):
        shutil.copytree(ROOT / "clients" / name, folder / "clients" / name, ignore=left_out)
    return folder


def free_ports(count: int) -> list[str]:
    with socket.socket() as one, socket.socket() as other:
        lines = (one, other)[:count]
        for line in lines:
            line.bind(("127.0.0.1", 0))
        return [str(line.getsockname()[1]) for line in lines]


def follow(shell: Shell, found: Iterator[Block], until: str | None) -> list[str]:
    """Type the commands of the next blocks, up to one with this text; what prints something else than the page shows."""
    wrong = []
    for block in found:
        for command in commands_of(block) if block.kind == "console" else ():
            printed = differences(command, shell.run(command.text))
            if printed:
                wrong.append(f"line {command.line}: {command.text}{printed}")
        if until is not None and until in block.text:
            break
    return wrong
