"""The guide of SQL, typed as it is printed, in an environment with DuckDB and this distribution alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

from doc_blocks import blocks
from federated_environment import ROOT, Environment

GUIDE = ROOT / "docs" / "guides" / "analyse-in-sql.md"


def test_sql_guide_typed_as_printed_estimates_in_duckdb_and_in_parts(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "environment", f"{ROOT}[arrow]", "duckdb")
    commands = ["set -e"]
    for place, block in enumerate(blocks(GUIDE.read_text(encoding="utf-8"))):
        if block.kind == "console":
            commands += [line[2:] for line in block.text.splitlines() if line.startswith(("$ ", "> "))]
        elif block.kind == "python":
            first = block.text.splitlines()[0]
            name = first[2:] if first.startswith("# ") else f"block{place}.py"
            (tmp_path / name).write_text(block.text, encoding="utf-8")
            commands += [] if first.startswith("# ") else [f"python {name}"]
    (tmp_path / "typed.sh").write_text("\n".join(commands), encoding="utf-8")
    typed = subprocess.run(
        ["bash", "typed.sh"], cwd=tmp_path, env=environment.env, capture_output=True, text=True, timeout=300
    )
    assert typed.returncode == 0, typed.stderr
    *shares, reports = typed.stdout.splitlines()
    assert [line.rsplit(" ", 3)[0] for line in shares] == ["east good", "east fair", "east bad"]
    assert reports == "1200"
