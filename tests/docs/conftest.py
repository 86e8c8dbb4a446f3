"""Shared by the tests of the documentation: commands that start at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from warm_command import WarmCommand


@pytest.fixture(scope="session")
def programs() -> Iterator[str]:
    """A PATH for shells: `ldp-budget` without the wait, the tools of this Python, and what was there."""
    with WarmCommand() as command:
        yield os.pathsep.join([str(command.folder), str(Path(sys.executable).parent), os.environ["PATH"]])
