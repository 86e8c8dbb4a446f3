"""The test servers: they start, keep commits over a kill, and leave nothing behind."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from postgres_servers import (
    GivenServer,
    Server,
    find_binaries,
    processes,
    reason_for_none,
    shared_server,
    standby_of,
    wait_until,
)

psycopg = pytest.importorskip("psycopg")


@pytest.fixture(scope="module")
def binaries() -> Path:
    found = find_binaries()
    if found is None:
        pytest.skip(reason_for_none())
    return found


def family(pid: int) -> set[int]:
    return {pid} | {child for child, (parent, _) in processes().items() if parent == pid}


def are_gone(pids: set[int]) -> bool:
    found = processes()
    return all(found.get(pid, (0, "Z"))[1] == "Z" for pid in pids)


def is_empty(folder: Path) -> bool:
    return not any(folder.glob("*"))


def test_shared_server_gives_each_test_a_database() -> None:
    server = shared_server()
    if server is None:
        pytest.skip(reason_for_none())
    assert shared_server() is server
    one, other = (urlsplit(server.create_database()) for _ in range(2))
    assert one.netloc == other.netloc
    assert one.path != other.path
    server.run("CREATE TABLE t (n int)", one.path[1:])
    assert server.run("SELECT count(*) FROM pg_tables WHERE tablename = 't'", other.path[1:]) == [(0,)]


@pytest.mark.exhaustive
def test_killed_server_keeps_its_commits(tmp_path: Path, binaries: Path) -> None:
    told: list[int] = []

    def write() -> None:
        with suppress(psycopg.OperationalError), psycopg.connect(url, autocommit=True) as connection:
            while True:
                connection.execute("INSERT INTO t VALUES (%s)", [len(told)])
                told.append(len(told))

    with Server(tmp_path, binaries, {"autovacuum": "off"}) as server:
        assert server.run("SHOW autovacuum") == [("off",)]
        for name in ("fsync", "full_page_writes", "synchronous_commit"):
            assert server.run(f"SHOW {name}") == [("on",)]
        url = server.create_database()
        database = urlsplit(url).path[1:]
        server.run("CREATE TABLE t (n int PRIMARY KEY)", database)
        writer = threading.Thread(target=write)
        writer.start()
        wait_until(lambda: len(told) > 20, "nothing is written")
        assert server.pid is not None
        before = family(server.pid)
        assert len(before) > 3
        server.kill()
        assert are_gone(before)
        writer.join()
        server.restart()
        kept = [n for (n,) in server.run("SELECT n FROM t ORDER BY n", database)]
        assert kept in ([*told], [*told, len(told)]), "the last may be committed and not yet told"
        assert "was not properly shut down" in server.log.read_text()
        server.stop()
        server.start()
        assert server.run("SELECT count(*) FROM t", database) == [(len(kept),)]
        after = family(server.pid)
        server.kill()
    assert are_gone(after)
    assert not server.data.exists()


@pytest.mark.exhaustive
def test_server_ends_with_its_tests(tmp_path: Path, binaries: Path) -> None:
    """Also when they are killed, and nothing of Python's runs any more."""
    script = (
        "import sys, pathlib, postgres_servers as p\n"
        "server = p.Server(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])); server.start()\n"
        "print(server.pid, server.data, flush=True); sys.stdin.readline()"
    )
    for number, end in enumerate((signal.SIGKILL, None)):
        words = [sys.executable, "-c", script, str(tmp_path / str(number)), str(binaries)]
        path = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "helpers")}
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=path) as child:
            assert child.stdout is not None
            pid, data = child.stdout.readline().split()
            running = family(int(pid))
            assert not are_gone(running)
            if end is not None:
                child.send_signal(end)
        wait_until(functools.partial(are_gone, running), "the server outlives its tests")
        wait_until(functools.partial(is_empty, Path(data)), "its data stay")


@pytest.mark.exhaustive
def test_standby_follows_and_is_promoted(tmp_path: Path, binaries: Path) -> None:
    with (
        Server(tmp_path / "primary", binaries) as primary,
        standby_of(primary, tmp_path / "standby", "second", synchronous=True) as standby,
    ):
        primary.run("SET synchronous_commit = remote_apply; CREATE TABLE t AS SELECT 7 AS n")
        assert standby.run("SELECT n FROM t") == [(7,)]
        assert standby.run("SELECT pg_is_in_recovery()") == [(True,)]
        primary.kill()
        standby.promote()
        standby.run("INSERT INTO t VALUES (8)")
        assert standby.run("SELECT sum(n) FROM t") == [(15,)]


@pytest.mark.exhaustive
def test_given_server_is_found_by_url_or_by_keywords(tmp_path: Path, binaries: Path) -> None:
    assert GivenServer("postgresql://u:p@h:1/x?sslmode=disable").url("y") == "postgresql://u:p@h:1/y?sslmode=disable"
    with Server(tmp_path, binaries) as server:
        words = f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres"
        for dsn in (server.url(), words):
            given = GivenServer(dsn)
            assert psycopg.connect(given.create_database()).close() is None
            given.close()
        assert server.run("SELECT count(*) FROM pg_database WHERE datname LIKE 'test%'") == [(0,)]


def test_binaries_are_found_by_their_version(binaries: Path) -> None:
    said = subprocess.check_output([binaries / "postgres", "--version"], text=True).split()[2]
    assert find_binaries(said.partition(".")[0]) == find_binaries(said) == binaries
    assert find_binaries("1") is None
