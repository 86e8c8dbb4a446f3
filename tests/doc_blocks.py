"""Blocks of the documentation, read and run.

In a ```console block `$ ` begins a command and `> ` goes on with it; what follows is its output. Where the line
before a block is `<!-- random -->` the commands are run all the same, but only the shape of their output is compared.
All commands of a page run in one shell. A ```sh block runs there too; it shows no output, and no command of it may
fail. A server that is started with `&` ends with the page. A block that cannot run here says why, such as
```sh no-run: it needs another host. A ```python block runs in one namespace with the others of its page, and a
```text block right after it is what it prints; one whose first line names a file, `# name.py`, is written there
instead, for a command to run.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

from ldp_budget import Accountant

RANDOM = "<!-- random -->"
_NAMED = re.compile(r"# (\w+\.py)\n")
_RECEIPT = re.compile(r"receipt (\d+)-[0-9a-f]{20}")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ| \d\d:\d\d)?")
_MARK = "==== end of a command ===="
_SECONDS = 300


class Block(NamedTuple):
    """A fenced block: the line it begins at, the word after the fence, what stands in it, and what goes before."""

    line: int
    kind: str
    text: str
    before: str


class Command(NamedTuple):
    """A command of a console block and the output shown below it."""

    line: int
    text: str
    output: str
    random: bool


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    start, kind, before, kept = 0, "", "", list[str]()
    for number, line in enumerate(page.splitlines(), 1):
        if not line.startswith("```"):
            kept.append(line)
        elif start:
            yield Block(start, kind, "".join(f"{text}\n" for text in kept), before)
            start, kept = 0, []
        else:
            before = next((text for text in reversed(kept) if text), "")
            start, kind, kept = number, line[3:], []


def commands(page: str) -> list[Command]:
    """The commands of a page in order."""
    return [command for block in blocks(page) if block.kind == "console" for command in commands_of(block)]


def commands_of(block: Block) -> list[Command]:
    """The commands of one console block."""
    found: list[Command] = []
    for number, line in enumerate(block.text.splitlines(), block.line + 1):
        if line.startswith("$ "):
            found.append(Command(number, line[2:] + "\n", "", block.before == RANDOM))
        elif line.startswith("> "):
            found[-1] = found[-1]._replace(text=found[-1].text + line[2:] + "\n")
        else:
            found[-1] = found[-1]._replace(output=found[-1].output + line + "\n")
    return found


def shape(output: str) -> list[int]:
    """How many words each line has."""
    return [len(line.split()) for line in output.splitlines()]


def timeless(output: str) -> str:
    """The output with every moment, such as when a limit resets, and what nobody can guess of a receipt as a word."""
    return _RECEIPT.sub(r"receipt \1-RECEIPT", _MOMENT.sub("MOMENT", output))


def differences(command: Command, output: str) -> str:
    """What is wrong with the output of a command; empty where it is as shown."""
    if "Traceback" in output:
        return output
    alike = shape(output) == shape(command.output) if command.random else timeless(output) == timeless(command.output)
    return "" if alike else output or "nothing was printed"


class Shell:
    """One bash in a folder, with the tools of this Python first on its path; standard error goes with the output."""

    def __init__(self, folder: Path, **environment: str) -> None:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env={**os.environ, "PATH": path, "PYTHONIOENCODING": "utf-8", "LC_ALL": "C", **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
        self._limit = threading.Timer(_SECONDS, self._process.kill)

    def __enter__(self) -> Self:
        self._limit.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._limit.cancel()
        # Servers that it has started hold its output open. Then its input is closed, at which it ends.
        self._process.communicate("kill $(jobs -pr) 2> /dev/null; wait\n")

    def run_block(self, text: str) -> str:
        """Run all of a block; what is wrong with it, empty where each of its commands succeeded."""
        printed = self.run(f"failed=; trap 'failed=$BASH_COMMAND' ERR\n{text}trap - ERR; [ -z \"$failed\" ]\n")
        # A service that the block started may log a line at any moment.
        printed_last = self.run('echo; echo "failed command: $failed"\n').splitlines()
        failed = next(line for line in printed_last if line.startswith("failed command:")).partition(":")[2].strip()
        return f"this failed: {failed}\n{printed}" if failed else ""

    def run(self, command: str) -> str:
        """What a command prints. Its exit code is `$?` for the next, what it sets or exports stays."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{{ {command}}} </dev/null\nstatus=$?; echo '{_MARK}'; (exit $status)\n")
        self._process.stdin.flush()
        lines = []
        for line in self._process.stdout:
            if line.endswith(_MARK + "\n"):
                return "".join([*lines, line.removesuffix(_MARK + "\n")])
            lines.append(line)
        raise AssertionError(f"the shell ended in {command!r} after printing {''.join(lines)!r}")


def at_free_port(text: str) -> str:
    """A block whose service listens at a port that is free, and is a process that a signal ends."""
    if "ldp-budget serve" not in text:
        return text
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        port = line.getsockname()[1]
    return text.replace("ldp-budget serve", f"python -m ldp_budget_cli serve --port {port}").replace(
        "127.0.0.1:8000", f"127.0.0.1:{port}"
    )


class Reader:
    """Somebody who follows a page, block by block, in a folder of their own."""

    def __init__(self, folder: Path, shell: Shell) -> None:
        self._folder, self._shell = folder, shell
        self._names: dict[str, Any] = {"__name__": "page"}
        self._printed: str | None = None
        sys.path.insert(0, str(folder))

    def follow(self, block: Block) -> Iterator[tuple[int, str]]:
        """Do what a block says; each line where something else came out than it shows, and what."""
        if block.kind == "console":
            for command in commands_of(block):
                found = differences(command, self._shell.run(command.text))
                if found:
                    yield command.line, found
        elif block.kind == "sh":
            found = self._shell.run_block(at_free_port(block.text))
            if found:
                yield block.line, found
        elif block.kind == "python":
            self._python(block)
        elif block.kind == "text" and self._printed is not None and timeless(block.text) != timeless(self._printed):
            yield block.line, self._printed
        if block.kind != "python":
            self._printed = None

    def _python(self, block: Block) -> None:
        named = _NAMED.match(block.text)
        if named is not None:
            (self._folder / named[1]).write_text(block.text, encoding="utf-8")
            return
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.chdir(self._folder):
            exec(compile(block.text, f"line {block.line}", "exec"), self._names)
        self._printed = printed.getvalue()

    def close(self) -> None:
        """Close what the page left open, and forget the modules that it wrote."""
        for value in self._names.values():
            if isinstance(value, Accountant):
                value.close()
        sys.path.remove(str(self._folder))
        for file in self._folder.glob("*.py"):
            sys.modules.pop(file.stem, None)


def follow(page: Path, folder: Path, environment: Mapping[str, str]) -> list[str]:
    """Follow a page from top to bottom; everything that comes out otherwise than shown, with its line."""
    found = []
    with Shell(folder, **environment) as shell:
        reader = Reader(folder, shell)
        try:
            for block in blocks(page.read_text(encoding="utf-8")):
                found += [f"{page.name}, line {line}:\n{printed}" for line, printed in reader.follow(block)]
        finally:
            reader.close()
    return found
