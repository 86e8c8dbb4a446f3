"""Node, and scripts for it: the client in JavaScript of `clients/js`."""

from __future__ import annotations

import atexit
import json
import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parents[2] / "clients" / "js"
VECTORS = Path(__file__).parents[2] / "clients" / "vectors" / "cases"
_INDEX = (PACKAGE / "src" / "index.js").as_uri()
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
    """Return the JSON that a module logs; it finds the package as `client`."""
    return _asked(module=f"import * as client from {json.dumps(_INDEX)};\n{source}")


def answered(lines: Iterable[Any]) -> list[Any]:
    """Return the client's answers to lines of JSON, in the process of the other tests."""
    found: list[Any] = _asked(lines=[*lines])
    return found


def adapted(lines: Iterable[Any]) -> list[Any]:
    """The same, of the adapter in a process of its own."""
    asked = "".join(f"{json.dumps(line)}\n" for line in lines)
    adapter = [node(), str(PACKAGE / "src" / "adapter.mjs")]
    done = subprocess.run(adapter, input=asked, capture_output=True, text=True, timeout=300, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _asked(**asked: Any) -> Any:
    engine = _engine()
    assert engine.stdin is not None
    assert engine.stdout is not None
    engine.stdin.write(f"{json.dumps(asked)}\n")
    engine.stdin.flush()
    answer = json.loads(engine.stdout.readline())
    assert "failed" not in answer, answer["failed"]
    return answer["said"]


@cache
def _engine() -> subprocess.Popen[str]:
    """Node, started once for the tests of this process; it ends when its input does."""
    engine = subprocess.Popen(
        [node(), str(Path(__file__).with_name("engine.mjs")), _INDEX],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(engine.communicate)
    return engine
