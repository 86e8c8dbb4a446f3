"""Shared by the tests of the service."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from service_farm import Farm


@pytest.fixture(scope="session")
def farm() -> Iterator[Farm]:
    """Servers that start at once, in processes that can be killed."""
    if not hasattr(os, "fork"):
        pytest.skip("processes are forked")
    with Farm() as made:
        yield made
