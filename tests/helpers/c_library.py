"""The C library of the Rust client, built once for a run, and its layers for other languages."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from rust import cargo

CLIENTS = Path(__file__).parents[2] / "clients"


def built(folder: Path) -> Path:
    """The part of a folder, made if need be, that has the static and the shared library."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc on this machine")
    manifest = str(CLIENTS / "c" / "Cargo.toml")
    build = [cargo(), "build", "--release", "--offline", "--manifest-path", manifest]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(folder)}
    done = subprocess.run(build, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return folder / "release"


def compiled(output: Path, *words: str) -> Path:
    """What gcc makes of these files and options, without a warning."""
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-g", f"-I{CLIENTS / 'c'}"]
    libraries = ["-lpthread", "-ldl", "-lm"]
    command = ["gcc", *flags, *words, *libraries, "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return output
