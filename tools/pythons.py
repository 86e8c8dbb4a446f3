"""The Python interpreters of this machine on which the project has to work: the newest patch release of each version.

    python tools/pythons.py            # print one path a line, the oldest version first
    python tools/pythons.py --others   # leave out the version that runs this script

An interpreter of `PATH`, of the system (`/usr/bin`) and of pyenv counts if it starts and has the module `venv`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
Version = tuple[int, int, int]


def least() -> tuple[int, int]:
    """Return the oldest version that the project supports, from `requires-python`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    major, minor = map(int, project["requires-python"].removeprefix(">=").split("."))
    return major, minor


def places() -> Iterator[Path]:
    """Yield the paths at which an interpreter may lie."""
    yield Path(sys.executable)
    folders = [*os.environ.get("PATH", "").split(os.pathsep), "/usr/bin", "/usr/local/bin"]
    folders += map(str, Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/*/bin"))
    for folder in filter(None, folders):
        yield from sorted(
            path for path in Path(folder).glob("python3*") if re.fullmatch(r"python3(\.\d+)?", path.name)
        )


def version_of(python: Path) -> Version | None:
    """Return the version of an interpreter; None if it does not start or has no `venv`."""
    code = "import sys, venv; print(*sys.version_info[:3])"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60)
    except OSError:
        return None
    if done.returncode:
        return None
    major, minor, patch = map(int, done.stdout.split())
    return major, minor, patch


def interpreters() -> dict[tuple[int, int], Path]:
    """Return the interpreter of the newest patch release for each supported version, the oldest version first."""
    found: dict[tuple[int, int], tuple[Version, Path]] = {}
    for python in dict.fromkeys(path for path in places()):
        version = version_of(python)
        if version is None or version[:2] < least():
            continue
        known = found.get(version[:2])
        if known is None or known[0] < version:
            found[version[:2]] = version, python
    return {version: path for version, (_, path) in sorted(found.items())}


if __name__ == "__main__":
    for version, path in interpreters().items():
        if "--others" not in sys.argv[1:] or version != sys.version_info[:2]:
            print(path)
