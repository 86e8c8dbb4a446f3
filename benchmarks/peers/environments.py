"""An environment for every library, and a process at work in it.

An environment is first installed from the pinned library alone, as a user would, and then asked
to import it. Only where that fails it gets the rest of its file of `requirements`. The results of both are kept
next to it, so that a later run need not install again.
"""

from __future__ import annotations

import json
import select
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import work

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIMIT = 600.0  # seconds that a library may take to answer, of a machine that may be busy


def requirements(library: str) -> list[str]:
    """Installed packages, the library itself first."""
    if library == work.OURS:
        return [f"{ROOT}[fast]"]
    lines = (HERE / "requirements" / f"{library}.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def python_of(folder: Path, library: str) -> Path:
    return folder / library / "bin" / "python"


def prepared(folder: Path, library: str) -> dict[str, Any]:
    """Result of the installation: {"fresh": what it said, or None where it worked, "pins": what it needs besides}."""
    wanted = requirements(library)
    record = folder / library / "peers.json"
    python = python_of(folder, library)
    if record.exists():
        kept: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
        if kept["wanted"] == wanted:
            if library == work.OURS:  # its sources may have changed since, so they are built again
                kept["after"] = _install(python, ["--force-reinstall", "--no-deps", *wanted])
            return kept
    shutil.rmtree(folder / library, ignore_errors=True)
    venv.create(folder / library, with_pip=True)
    said = _install(python, wanted[:1]) or _imported(python, library)
    pins = wanted[1:] if said else []
    after = said and ((_install(python, wanted) if pins else said) or _imported(python, library))
    found = {"wanted": wanted, "fresh": said, "pins": pins, "after": after}
    record.write_text(json.dumps(found), encoding="utf-8")
    return found


def _install(python: Path, wanted: list[str]) -> str | None:
    """None, or the last line of what went wrong."""
    return _last_line([python, "-m", "pip", "install", "--quiet", *wanted])


def _imported(python: Path, library: str) -> str | None:
    code = f"import sys; sys.path.insert(0, {str(HERE)!r}); import worker; worker.Library({library!r})"
    return _last_line([python, "-c", code])


def _last_line(command: list[Any]) -> str | None:
    done = subprocess.run(command, capture_output=True, text=True, cwd=tempfile.gettempdir(), check=False)
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines() or [f"ended with code {done.returncode}"]
    return shown(lines[-1])


def shown(line: str) -> str:
    """A line of error without the folders of this machine."""
    return " ".join(word for word in line.split() if "/" not in word)[:160]


class Process:
    """A program that answers lines of JSON; started again where it dies or is silent for too long."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.command, self.folder = command, folder
        self._running: subprocess.Popen[str] | None = None

    def ask(self, **asked: Any) -> dict[str, Any]:
        """Its answer: "found", or "reason" or "failed" with a text."""
        if self._running is None:
            self._running = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
                cwd=self.folder,
            )
        running = self._running
        assert running.stdin is not None
        assert running.stdout is not None
        try:
            running.stdin.write(json.dumps(asked) + "\n")
            running.stdin.flush()
            ready, _, _ = select.select([running.stdout], [], [], LIMIT)
            line = running.stdout.readline() if ready else ""
        except BrokenPipeError:
            ready, line = [running], ""
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        self.end()
        code = running.returncode
        return {"failed": f"ended with code {code}" if ready else f"no answer within {LIMIT:g} s"}

    def end(self) -> None:
        if self._running is not None:
            self._running.kill()
            self._running.communicate()
            self._running = None


def worker(environments: Path, library: str, folder: Path) -> Process:
    """A process that does the work of `worker.py` in the environment of a library."""
    return Process([str(python_of(environments, library)), str(HERE / "worker.py"), library], folder)


def judge(environments: Path, folder: Path) -> Process:
    return Process([str(python_of(environments, work.OURS)), str(HERE / "judge.py")], folder)


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
