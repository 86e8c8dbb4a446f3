"""`ldp-budget` for shells of the tests: each command is a process of its own, forked from one that has imported all.

A page of the documentation runs dozens of commands, and most of the time of one goes into imports. `WarmCommand`
starts a server; the program `ldp-budget` in its `folder` hands its arguments, environment, working directory and
standard streams over, and ends as the command ended.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pkgutil
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Self

_CLIENT = """#!{python} -IS
import array, json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    call = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]).encode()
    streams = array.array("i", [0, 1, 2])
    server.sendmsg([len(call).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
    server.sendall(call)
    sys.exit((server.recv(1) or b"\\x7f")[0])
"""


class WarmCommand:
    """A folder to put first on a PATH; close it when no command runs any more."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="warm-"))
        address = str(self.folder / "socket")
        self._server = subprocess.Popen([sys.executable, __file__, address], stdout=subprocess.PIPE)
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == b"ready\n"
        program = self.folder / "ldp-budget"
        program.write_text(_CLIENT.format(python=sys.executable, address=address), encoding="utf-8")
        program.chmod(0o700)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.terminate()
        self._server.communicate()
        shutil.rmtree(self.folder)


# -- the server -----------------------------------------------------------------------------------------------


def serve(address: str) -> None:
    """Fork a process for every command that is asked for at the socket."""
    # What is wrong with an import is for the command that needs it to say.
    for package in ("ldp_budget", "ldp_budget_mechanisms", "ldp_budget_cli"):
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if module.name != "ldp_budget_cli.__main__":
                with contextlib.suppress(Exception):
                    importlib.import_module(module.name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        print("ready", flush=True)
        while True:
            caller, _ = server.accept()
            if os.fork() == 0:
                server.close()
                os._exit(_answer(caller))
            caller.close()


def _answer(caller: socket.socket) -> int:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with caller, caller.makefile("rb") as received:
        size, streams, _, _ = socket.recv_fds(caller, 4, 3)
        arguments, environment, folder = json.loads(received.read(int.from_bytes(size, "big")))
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        status = _run(arguments, environment, folder)
        with contextlib.suppress(OSError):  # nobody waits any more
            caller.sendall(bytes([status]))
    return status


def _run(arguments: list[str], environment: dict[str, str], folder: str) -> int:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[:0] = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.argv = ["ldp-budget", *arguments]
    sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115 - until the process ends
    sys.stdout = open(1, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    main: Any = importlib.import_module("ldp_budget_cli").main
    try:
        status = main()
    except SystemExit as end:
        status = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    sys.stderr.flush()
    return status if isinstance(status, int) else int(status is not None)


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file, which no command has on its path
    serve(sys.argv[1])
