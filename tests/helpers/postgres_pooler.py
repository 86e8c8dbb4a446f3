"""pgbouncer in front of a server: each transaction gets a free session of a few. Gone when the process is.

with Pooler(tmp_path / "pooler", server.port) as pooler:
    address = pooler.address(server.create_database())
"""

from __future__ import annotations

import atexit
import re
import shutil
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from postgres_servers import (
    HOST,
    PATIENCE,
    dismiss,
    folder_for_programs,
    free_port,
    in_this_process,
    start_guarded,
    wait_until,
)


def find_pgbouncer() -> str | None:
    """The program, if it is here."""
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")


class Pooler:
    """A pgbouncer of our own, with `sessions` on the server for each database, for which one waits some seconds."""

    def __init__(self, folder: Path, port: int | None, sessions: int = 3, patience: int = 120) -> None:
        self.sessions, self.patience = sessions, patience
        self.target = port
        self.port = free_port()
        self.data = folder_for_programs(folder)
        self.log = folder / "pgbouncer.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._at_exit = in_this_process(self.close)
        atexit.register(self._at_exit)

    def __enter__(self) -> Pooler:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def address(self, url: str) -> str:
        """The same URL by way of the pooler."""
        return re.sub(r"(@[^/:]*):\d+", rf"\1:{self.port}", url)

    def start(self) -> None:
        """Start it and wait until it takes connections; after `kill` once more, on the same port."""
        self._write()
        program = find_pgbouncer()
        assert program is not None
        process, self._guard = start_guarded([program, self.data / "pgbouncer.ini"], self.log, self.data)
        self._process = process
        wait_until(lambda: process.poll() is not None or self._answers(), f"no start; see {self.log}")
        if process.poll() is not None:
            raise RuntimeError(f"pgbouncer does not start: {self.log.read_text()}")

    def lead_to(self, port: int | None) -> None:
        """Use another server from now on; clients stay connected."""
        self.target = port
        self._write()
        assert self._process is not None
        before = self._reloads()
        self._process.send_signal(signal.SIGHUP)
        wait_until(lambda: self._reloads() > before, "it does not read its settings again")

    def kill(self) -> None:
        """Drop all clients in the midst of their work."""
        if self._process is None or self._guard is None:
            return
        self._process.kill()
        self._process.wait(PATIENCE)
        dismiss(self._guard)
        self._process = self._guard = None

    def close(self) -> None:
        """End it and remove its folder; the log stays."""
        self.kill()
        shutil.rmtree(self.data, ignore_errors=True)
        atexit.unregister(self._at_exit)

    def _write(self) -> None:
        settings = {
            "listen_addr": HOST,
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_type": "any",
            "pool_mode": "transaction",
            "default_pool_size": self.sessions,
            "max_client_conn": 300,
            "server_login_retry": 1,
            "query_wait_timeout": self.patience,
        }
        lines = ["[databases]", f"* = host={HOST} port={self.target} user=postgres", "[pgbouncer]"]
        lines += [f"{name} = {value}" for name, value in settings.items()]
        file = self.data / "pgbouncer.ini"
        file.write_text("\n".join(lines) + "\n")
        file.chmod(0o644)

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection((HOST, self.port)):
            return True
        return False

    def _reloads(self) -> int:
        return self.log.read_text().count("SIGHUP")
