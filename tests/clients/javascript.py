"""Node, and what is run with it: the client in JavaScript of `clients/js`."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

PACKAGE = Path(__file__).parents[2] / "clients" / "js"
VECTORS = Path(__file__).parents[2] / "clients" / "vectors" / "cases"
_LEAST = 20


@cache
def node() -> str:
    """The program, of version 20 or newer; without it the test is skipped."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("no Node.js on this machine")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.removeprefix("v").split(".")[0]) < _LEAST:
        pytest.skip(f"Node.js {version.strip()} is older than {_LEAST}")
    return found


def run(script: str | Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A script of the package, to its end."""
    return subprocess.run(
        [node(), str(script), *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False
    )


def evaluated(source: str) -> Any:
    """What a module writes as JSON; it finds the package as `client`."""
    index = (PACKAGE / "src" / "index.js").as_uri()
    module = f"import * as client from {json.dumps(index)};\n{source}"
    done = subprocess.run(
        [node(), "--input-type=module", "-"], input=module, capture_output=True, text=True, timeout=120, check=False
    )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


def answered(lines: Iterable[Any]) -> list[Any]:
    """What the adapter answers to lines of JSON."""
    asked = "".join(f"{json.dumps(line)}\n" for line in lines)
    adapter = [node(), str(PACKAGE / "src" / "adapter.mjs")]
    done = subprocess.run(adapter, input=asked, capture_output=True, text=True, timeout=300, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]
