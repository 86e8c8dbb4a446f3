"""A sealed round as a partition: the same reports, once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="no pyarrow: pip install 'ldp-budget[arrow]'")

from command_line import CommandLine


def sealed(command: CommandLine, tmp_path: Path) -> list[Path]:
    """Take six reports with regions and seal them; write the round as a report file and as two partitions."""
    command("policy", "set", "default", "--limit", "lifetime=2")
    command("collection", "add", "mood", "grr", "--epsilon", 1, "--categories", "a,b,c", "--minimum-group", 2)
    lines = [
        json.dumps({"user": f"u{n}", "key": "1", "report": f"0{n % 3}", "public": {"region": "ns"[n % 2]}})
        for n in range(6)
    ]
    command("inbox", "take", "mood", "-", input="\n".join(lines))
    paths = [tmp_path / name for name in ("may.reports", "may.parquet", "copy.parquet")]
    for path in paths:
        command("inbox", "seal", "mood", path, "--round", "may", "--group", 2)
    return paths


def test_seal_to_a_partition_writes_the_reports_of_the_round(command: CommandLine, tmp_path: Path) -> None:
    file, partition, _ = sealed(command, tmp_path)
    assert partition.read_bytes()[:4] == b"PAR1"
    first, other = (command.json("estimate", "mood", path, "--by", "region") for path in (file, partition))
    assert first == other


def test_sealed_partition_and_its_copy_are_counted_once(command: CommandLine, tmp_path: Path) -> None:
    _, partition, copy = sealed(command, tmp_path)
    assert "must be given once" in command.error("estimate", "mood", partition, copy)
