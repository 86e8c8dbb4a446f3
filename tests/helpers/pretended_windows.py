"""`ldp-budget` on a pretended Windows, each command in a process of its own.

A process of Linux loses what Python lacks on Windows, and is forbidden what Windows forbids: to open a folder, and to
rename, replace or delete a file that it has open. Third-party packages are imported before, as they choose their system
when they are imported. Run as a program, this module reads one line of JSON for each command: `words`, `folder`,
`environment`, and the files `out` and `err`. It writes the exit code. The words `--script FILE` run a script.
"""

from __future__ import annotations

import asyncio
import csv
import fcntl
import http.server
import json
import multiprocessing
import os
import runpy
import stat
import subprocess
import sys
import traceback
import types
import warnings
from pathlib import Path
from typing import Any

import click.testing
import numpy
import platformdirs
import scipy.optimize
import scipy.special
import sqlite_utils

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import httpx2
    import matplotlib.figure
    import psycopg_pool
    import uvicorn

_THERE = (asyncio, csv, http.server, multiprocessing, subprocess, click.testing, numpy, platformdirs, scipy)
_THERE += (sqlite_utils, httpx2, matplotlib, psycopg_pool, uvicorn)

CONSOLE = "cp1252"

MODULES = "fcntl", "pwd", "grp", "resource", "termios"
CALLS = (
    "fchmod",
    "sync",
    "geteuid",
    "getuid",
    "killpg",
    "pread",
    "setpriority",
    "register_at_fork",
    "fork",
    "O_CLOEXEC",
)


def _is_open(path: Any) -> bool:
    """True if this process has the file open."""
    for number in os.listdir("/proc/self/fd"):
        try:
            if os.path.samestat(os.fstat(int(number)), os.stat(path)):
                return True
        except OSError:
            continue
    return False


def _closed_only(call: Any) -> Any:
    """Return a call that moves or deletes files as Windows does it: not while they are open."""

    def checked(path: Any, *arguments: Any, **options: Any) -> Any:
        for each in (path, *arguments[:1]):
            if isinstance(each, str | os.PathLike) and _is_open(each):
                raise PermissionError(13, "The process cannot access the file because it is being used", str(each))
        return call(path, *arguments, **options)

    return checked


def _files_only(path: Any, flags: int, mode: int = 0o777, *, _open: Any = os.open, dir_fd: int | None = None) -> int:
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", str(path))
    opened: int = _open(path, flags, mode, dir_fd=dir_fd)
    return opened


def _fsync(descriptor: int, *, _fsync: Any = os.fsync, _flags: Any = fcntl.fcntl) -> None:
    if stat.S_ISDIR(os.fstat(descriptor).st_mode) or _flags(descriptor, 3) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(9, "Bad file descriptor")
    _fsync(descriptor)


def _locking() -> types.ModuleType:
    """Return the module of Windows that locks bytes, of which POSIX locks do the work."""
    module: Any = types.ModuleType("msvcrt")
    module.LK_NBLCK = 2
    lockf, how = fcntl.lockf, fcntl.LOCK_EX | fcntl.LOCK_NB

    def locking(descriptor: int, mode: int, size: int) -> None:
        assert mode == module.LK_NBLCK
        lockf(descriptor, how, size, os.lseek(descriptor, 0, os.SEEK_CUR))

    module.locking = locking
    found: types.ModuleType = module
    return found


def pretend() -> None:
    """Make this process look like one on Windows to what is imported from now on."""
    locking = _locking()
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    sys.modules["msvcrt"] = locking
    os.open, os.fsync = _files_only, _fsync  # type: ignore[assignment]
    for name in ("rename", "replace", "unlink", "remove"):
        setattr(os, name, _closed_only(getattr(os, name)))
    for name in CALLS:
        delattr(os, name)
    sys.platform = "win32"
    assert "ldp_budget" not in sys.modules


class PretendedWindows:
    """Runs commands in a folder. Close it at the end."""

    def __init__(self, home: Path) -> None:
        words = [sys.executable, "-X", "warn_default_encoding", __file__]
        self._home, kept = home, {"MPLCONFIGDIR": str(home / "mpl")}
        self._server = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8", env=os.environ | kept
        )

    def run(
        self, *words: object, folder: Path, environment: dict[str, str], code: int
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command. Fails on another exit code, and on a traceback."""
        out, err = self._home / "out", self._home / "err"
        call = {"words": [str(word) for word in words], "folder": str(folder), "environment": environment}
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        print(json.dumps({**call, "out": str(out), "err": str(err)}), file=self._server.stdin, flush=True)
        status = int(self._server.stdout.readline())
        said, told = out.read_bytes(), err.read_bytes()
        assert b"Traceback" not in told, told.decode(CONSOLE)
        assert status == code, (said + told).decode(CONSOLE)
        return subprocess.CompletedProcess([*words], status, said, told)

    def close(self) -> None:
        self._server.communicate()


def _serve() -> None:
    """Fork a process for each line of standard input, and write its exit code."""
    for line in iter(sys.stdin.readline, ""):
        child = os.fork()
        if child == 0:
            os._exit(_run(json.loads(line)))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _run(call: dict[str, Any]) -> int:
    os.chdir(call["folder"])
    os.environ.clear()
    os.environ.update(call["environment"])
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - until the process ends
    sys.stdout = open(call["out"], "w", encoding=CONSOLE)  # noqa: SIM115
    sys.stderr = open(call["err"], "w", encoding=CONSOLE)  # noqa: SIM115
    sys.argv = ["ldp-budget", *call["words"]]
    pretend()
    # A text file must name its encoding: the default is that of the console.
    warnings.filterwarnings("error", category=EncodingWarning, module=r"ldp_budget.*")
    status: Any = 0
    try:
        if call["words"][0] == "--script":
            runpy.run_path(call["words"][1], run_name="__main__")
        else:
            from ldp_budget_cli import main

            main()
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return status if isinstance(status, int) else 1


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file, which no command has on its path
    _serve()
