"""Certified figures do not depend on the decimal context of the process and the thread that compute them."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import ambient_figures

_SCRIPT = Path(ambient_figures.__file__)


@lru_cache
def _figures(context: str, *options: str) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, str(_SCRIPT), context, *options], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize(
    "context",
    [
        # A thread that may round nothing, below, sees what any of these does.
        "one digit down",
        "nothing rounded",
        "three digits up",
        "a hundred digits",
    ],
)
def test_figures_are_the_same_under_any_context(context: str) -> None:
    found, usual = _figures(context), _figures("default")
    assert {name: each for name, each in found.items() if each != usual[name]} == {}
    assert found.keys() == usual.keys()


def test_figures_are_the_same_in_a_thread_with_a_context_of_its_own() -> None:
    assert _figures("nothing rounded", "thread") == _figures("default")
