"""Cargo, for the tests that build the client in Rust."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache

import pytest

OLDEST = (1, 89)


@cache
def cargo() -> str:
    """Cargo that is new enough; without it the tests are skipped."""
    found = shutil.which("cargo")
    if found is None:
        pytest.skip("no cargo on this machine")
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"(\d+)\.(\d+)", said)
    if version is None or (int(version[1]), int(version[2])) < OLDEST:
        pytest.skip(f"cargo is older than {OLDEST[0]}.{OLDEST[1]}: {said.strip()}")
    return found
