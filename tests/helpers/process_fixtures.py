"""Fixtures of the integration and exhaustive tiers: processes, servers, and keys of ledgers on a server."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import axe_core
from chromium import devices, launched
from postgres_servers import Server, find_binaries, reason_for_none
from service_farm import Farm
from warm_command import WarmCommand

MANY_VECTORS = 200


@pytest.fixture(scope="session")
def warm_command() -> Iterator[WarmCommand]:
    """`ldp-budget` in processes of its own, forked from one that has imported all."""
    with WarmCommand() as command:
        yield command


@pytest.fixture(scope="session")
def programs(warm_command: WarmCommand) -> str:
    """A PATH for shells: the forked `ldp-budget`, the tools of this Python, and the PATH of the tests."""
    return os.pathsep.join([str(warm_command.folder), str(Path(sys.executable).parent), os.environ["PATH"]])


@pytest.fixture(scope="session")
def farm() -> Iterator[Farm]:
    """Servers that start at once, in processes that can be killed."""
    if not hasattr(os, "fork"):
        pytest.skip("processes are forked")
    with Farm() as made:
        yield made


@pytest.fixture(scope="module")  # not longer: it keeps an event loop, and other tests start their own
def browser() -> Iterator[Any]:
    """The system's Chromium."""
    with launched() as started:
        yield started


@pytest.fixture
def device(browser: Any) -> Iterator[Callable[..., Any]]:
    """Make pages, each of its own device; a step of a page may take 20 seconds."""
    with devices(browser, 20_000) as made:
        yield made


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, which finds what keeps people from using a page."""
    return axe_core.installed(tmp_path_factory.mktemp("axe"))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A PostgreSQL server that the test may damage."""
    pytest.importorskip("psycopg")
    binaries = find_binaries()
    if binaries is None:
        pytest.skip(reason_for_none())
    with Server(tmp_path / "server", binaries) as made:
        yield made


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the wait for a server that is gone."""
    from ldp_budget_postgres import pool, store

    monkeypatch.setattr(pool, "WAIT_SECONDS", 1.0)
    monkeypatch.setattr(store, "WAIT_SECONDS", 1.0)


@pytest.fixture(scope="session")
def many_vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of 200 vectors for each setting, made by Python; the first 40 of each are those of the package."""
    import make

    folder = tmp_path_factory.mktemp("vectors")
    make.write(folder, MANY_VECTORS)
    return folder
