"""A killed writer of a file blocks no other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ldp_budget._files import open_alone


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# -- taking a file's place -------------------------------------------------------------------------------------


def test_killed_writer_blocks_no_other(tmp_path: Path) -> None:
    code = """
import os, sys
from pathlib import Path
from ldp_budget._files import open_alone
file = open_alone(Path(sys.argv[1]))
os._exit(9)
"""
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path / "f")], check=False, timeout=60)
    assert killed.returncode == 9
    open_alone(tmp_path / "f").close()
    assert contents(tmp_path) == {"f": b""}
