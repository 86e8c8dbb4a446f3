"""`ldp-budget` for shells of the tests: each command is a process of its own, forked from one that has imported all.

A page of the documentation runs dozens of commands, and most of the time of one goes into imports. `WarmCommand`
starts a server; the program `ldp-budget` in its `folder` hands its arguments, environment, working directory and
standard streams over, and ends as the command ended.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import marshal
import os
import pkgutil
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

# It imports only what is built in, which is half of what one of them costs.
_CLIENT = """#!{python} -IS
import _socket, marshal, posix, sys
server = _socket.socket(_socket.AF_UNIX)
server.connect({address!r})
call = marshal.dumps([sys.argv[1:], posix.environ, posix.getcwd()])
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
server.sendmsg([len(call).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
server.sendall(call)
sys.exit((server.recv(1) or b"\\x7f")[0])
"""

# What no command imports: engines and testing tools, of which each fork would have the pages to copy.
_NOT_FOR_COMMANDS = {"ldp_budget_surveys.beam", "ldp_budget.testing", "ldp_budget_cli.__main__"}


class WarmCommand:
    """A folder to put first on a PATH, or to `run` by hand; close it when no command runs any more."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="warm-"))
        address = str(self.folder / "socket")
        self._server = subprocess.Popen([sys.executable, __file__, address], stdout=subprocess.PIPE)
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == b"ready\n"
        program = self.folder / "ldp-budget"
        program.write_text(_CLIENT.format(python=sys.executable, address=address), encoding="utf-8")
        program.chmod(0o700)

    def run(self, *arguments: str, env: Mapping[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run a command without a client in between; it reads nothing."""
        call = [list(arguments), {os.fsencode(name): os.fsencode(value) for name, value in env.items()}, str(cwd)]
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            files = [stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8")) for _ in range(2)]
            nothing = stack.enter_context(open(os.devnull, "rb"))
            server.settimeout(300)
            server.connect(str(self.folder / "socket"))
            sent = marshal.dumps(call)
            socket.send_fds(server, [len(sent).to_bytes(4, "big")], [stream.fileno() for stream in (nothing, *files)])
            server.sendall(sent)
            status = (server.recv(1) or b"\x7f")[0]
            for file in files:
                file.seek(0)
            said, told = (file.read() for file in files)
        return subprocess.CompletedProcess(["ldp-budget", *arguments], status, said, told)

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
            if module.name not in _NOT_FOR_COMMANDS:
                with contextlib.suppress(Exception):
                    importlib.import_module(module.name)
    gc.freeze()  # who looks for garbage in a fork does not write to what it shares with us
    signal.signal(signal.SIGCHLD, _bury)  # not ignored: a measurement of the test run includes their time
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


def _bury(*_signal: object) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _answer(caller: socket.socket) -> int:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with caller, caller.makefile("rb") as received:
        size, streams, _, _ = socket.recv_fds(caller, 4, 3)
        arguments, environment, folder = marshal.loads(received.read(int.from_bytes(size, "big")))
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        status = _run(arguments, environment, folder)
        with contextlib.suppress(OSError):  # no caller waits any more
            caller.sendall(bytes([status]))
    return status


def _run(arguments: list[str], environment: dict[bytes, bytes], folder: str) -> int:
    os.environb.clear()
    os.environb.update(environment)
    os.chdir(folder)
    sys.path[:0] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
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
