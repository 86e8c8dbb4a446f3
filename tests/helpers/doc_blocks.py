"""Blocks of the documentation, read, run and recorded.

In a ```console block `$ ` begins a command and `> ` continues it; the lines below are its output. Where the line before
a block is `<!-- random -->`, the commands run and only the shape of their output is compared. All commands of a page run
in one shell. A ```sh block runs there too; it shows no output, and each of its commands must succeed. A server that is
started with `&` ends with the page. A block that cannot run here says why: ```sh no-run: it needs another host.

A ```python block runs in one namespace with the others of its page, a ```pycon block is a doctest in that namespace, and
a ```text block right after a ```python block is what that prints. A block whose first line names a file, `# name.py` or
`# name.toml`, is written to that file; one that begins `# from FILE` must be part of that file of an example plugin.

A page with `<!-- continues: OTHER.md -->` runs after OTHER, in the same shell and namespace. `pip install` installs into
a folder of the test. `$EXAMPLES` is the folder of the examples.

    python tests/helpers/doc_blocks.py --record docs/start/quickstart.md    # write what the blocks print into the page
    python tests/helpers/doc_blocks.py docs/start/quickstart.md             # show what differs

Both take any number of pages, and run the pages that these continue. A random block keeps its output if the new one has
the same shape.
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import io
import os
import re
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

from ldp_budget import Accountant

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "tutorials" / "examples"
STUDIES = ROOT / "docs" / "case-studies"
RANDOM = "<!-- random -->"
_CONTINUES = re.compile(r"^<!-- continues: (\S+) -->$", re.MULTILINE)
_NAMED = re.compile(r"# (?P<part>from )?(?P<path>[\w/.-]+\.(?:py|toml))\n")
_RECEIPT = re.compile(r"receipt (\d+)-[0-9a-f]{20}")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ| \d\d:\d\d)?")
_MARK = "==== end of a command ===="
_SECONDS = 900
# `pip install WHAT` of a page: no network, and nothing of it stays. The page then sees plugins.
_PIP = """pip() {
  unset LDP_BUDGET_NO_PLUGINS
  set -- "${@: -1}"
  [ -d "$1" ] && set -- "./${1#./}"
  python -m pip install --quiet --no-deps --no-build-isolation --no-compile --disable-pip-version-check --upgrade \\
    --target "$SITE" "$1"
}"""


class Block(NamedTuple):
    """A fenced block: its first line, the word after the fence, its text, and the line before it."""

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


class Difference(NamedTuple):
    """A part of a page that printed something else: the lines that it takes there, and what to show in their place."""

    line: int
    first: int
    shown: int
    printed: str


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


def chain(page: Path) -> list[Path]:
    """The page after all pages that it continues."""
    named = _CONTINUES.search(page.read_text(encoding="utf-8"))
    return [*(chain(page.parent / named[1]) if named else []), page]


_FOLDERS = ("start", "guides", "tutorials", "case-studies", "explanation", "help", "ko")
PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "README.md",
    *(page for folder in _FOLDERS for page in sorted((ROOT / "docs" / folder).glob("*.md"))),
]
"""The pages whose blocks run."""
ENDS = [page for page in PAGES if page not in {each for other in PAGES for each in chain(other)[:-1]}]
"""The pages that no other one continues: a page that another one continues runs with that one."""


def shape(output: str) -> list[int]:
    """The number of words of each line."""
    return [len(line.split()) for line in output.splitlines()]


def timeless(output: str) -> str:
    """The output with a word in place of every moment, such as when a limit resets, and of each receipt's digits."""
    return _RECEIPT.sub(r"receipt \1-RECEIPT", _MOMENT.sub("MOMENT", output))


def differences(command: Command, output: str) -> str:
    """The output, where it is not as shown; else empty."""
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
        """The output of a command. Its exit code is `$?` for the next; what it sets or exports stays."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{{ {command}}} </dev/null\nstatus=$?; echo '{_MARK}'; (exit $status)\n")
        self._process.stdin.flush()
        lines = list[str]()
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
    """A reader who follows pages block by block, in a folder of their own."""

    def __init__(self, folder: Path, shell: Shell) -> None:
        self._folder, self._shell = folder, shell
        self._names: dict[str, Any] = {"__name__": "page"}
        self._printed: str | None = None
        self._paths = [str(folder), str(folder / "site")]
        self._modules = set(sys.modules)
        sys.path[:0] = self._paths

    def follow(self, block: Block) -> Iterator[Difference]:
        """Do what a block says; each place where it prints something else than it shows."""
        named = _NAMED.match(block.text) if block.kind in ("python", "toml") else None
        if block.kind == "console":
            yield from self._console(block)
        elif block.kind == "sh":
            found = self._shell.run_block(at_free_port(block.text))
            if found:
                yield Difference(block.line, 0, 0, found)
        elif named is not None:
            yield from self._file(block, named)
        elif block.kind == "python":
            self._python(block)
        elif block.kind == "pycon":
            yield from self._session(block)
        elif block.kind == "text" and self._printed is not None and timeless(block.text) != timeless(self._printed):
            yield Difference(block.line, block.line + 1, len(block.text.splitlines()), self._printed)
        if block.kind != "python":
            self._printed = None

    def _console(self, block: Block) -> Iterator[Difference]:
        for command in commands_of(block):
            found = differences(command, self._shell.run(command.text))
            if found:
                first = command.line + command.text.count("\n")
                shown = "" if found == "nothing was printed" else found
                yield Difference(command.line, first, command.output.count("\n"), shown)

    def _file(self, block: Block, named: re.Match[str]) -> Iterator[Difference]:
        if not named["part"]:
            (self._folder / named["path"]).write_text(block.text, encoding="utf-8")
            sys.modules.pop(Path(named["path"]).stem, None)
            return
        [source] = [path.read_text(encoding="utf-8") for path in EXAMPLES.glob(f"*/{named['path']}")]
        if not _is_part(block.text[named.end() :], source):
            yield Difference(block.line, 0, 0, f"not in {named['path']}")

    def _python(self, block: Block) -> None:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.chdir(self._folder):
            exec(compile(block.text, f"line {block.line}", "exec"), self._names)
        self._printed = printed.getvalue()

    def _session(self, block: Block) -> Iterator[Difference]:
        session = doctest.DocTestParser().get_doctest(block.text, self._names, "page", None, block.line)
        session.globs = self._names  # and no copy: what is defined here is there for later blocks
        seen = _Seen()
        with contextlib.chdir(self._folder):
            seen.run(session, out=lambda text: None, clear_globs=False)
        for example, printed in zip(session.examples, seen.outputs, strict=True):
            if printed != example.want:
                first = block.line + 1 + example.lineno + example.source.count("\n")
                yield Difference(first - 1, first, example.want.count("\n"), printed)

    def close(self) -> None:
        """Close what the pages left open, and forget the modules that they wrote or installed."""
        for value in self._names.values():
            if isinstance(value, Accountant):
                value.close()
        for path in self._paths:
            sys.path.remove(path)
        for name in set(sys.modules) - self._modules:
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and file.startswith(self._paths[0]):
                del sys.modules[name]


class _Seen(doctest.DocTestRunner):
    """Runs a session and keeps the output of each line."""

    def __init__(self) -> None:
        super().__init__(verbose=False)
        self.outputs: list[str] = []

    def report_success(self, out: Any, test: Any, example: Any, got: str) -> None:
        self.outputs.append(got)

    def report_failure(self, out: Any, test: Any, example: Any, got: str) -> None:
        self.outputs.append(got)

    def report_unexpected_exception(self, out: Any, test: Any, example: Any, exc_info: Any) -> None:
        raise exc_info[1]


def _is_part(part: str, source: str) -> bool:
    return any(textwrap.indent(part, "    " * depth) in source for depth in range(3))


def page_environment(folder: Path, path: str | None = None) -> dict[str, str]:
    """The environment of a page's shell."""
    places = [str(folder), str(folder / "site"), os.environ.get("PYTHONPATH")]
    return {
        **({} if path is None else {"PATH": path}),
        "COLUMNS": "80",  # the pages show what a terminal does
        "EXAMPLES": str(EXAMPLES),
        "STUDIES": str(STUDIES),
        "HOME": str(folder),
        "LDP_BUDGET_CERTIFICATES": "certificates.json",  # as the pages show it
        "LDP_BUDGET_LEDGER": str(folder / "ledger.db"),
        "LDP_BUDGET_NO_PLUGINS": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # a page that runs pytest shows none, and they load for seconds
        "PYTHONPATH": os.pathsep.join(filter(None, places)),
        "RAY_USAGE_STATS_ENABLED": "0",
        "SITE": str(folder / "site"),
    }


def follow_chain(page: Path, folder: Path, environment: Mapping[str, str]) -> Iterator[tuple[Path, Difference]]:
    """Each difference of a page and of those that it continues, in order."""
    with Shell(folder, **environment) as shell:
        shell.run(f"{_PIP}\n")
        reader = Reader(folder, shell)
        try:
            for each in chain(page):
                for block in blocks(each.read_text(encoding="utf-8")):
                    for difference in reader.follow(block):
                        yield each, difference
        finally:
            reader.close()


def follow(page: Path, folder: Path, environment: Mapping[str, str]) -> list[str]:
    """Every difference of a page and of those that it continues, as text."""
    found = follow_chain(page, folder, environment)
    return [f"{each.name}, line {at.line}:\n{at.printed or 'nothing was printed'}" for each, at in found]


def record(page: Path, differences: list[Difference]) -> list[Difference]:
    """Write the new outputs into a page; the differences that a person must look at: failures, tracebacks, paths."""
    lines, left = page.read_text(encoding="utf-8").splitlines(keepends=True), list[Difference]()
    for at in sorted(differences, reverse=True, key=lambda each: each.first):
        if not at.first or "Traceback" in at.printed or tempfile.gettempdir() in at.printed:
            left.append(at)
        else:
            ending = "" if not at.printed or at.printed.endswith("\n") else "\n"
            lines[at.first - 1 : at.first - 1 + at.shown] = [at.printed + ending]
    page.write_text("".join(lines), encoding="utf-8")
    return left


def main() -> int:
    """Follow pages by hand; the number of differences that are left."""
    parser = argparse.ArgumentParser(description="Run the blocks of pages, and show or record what they print.")
    parser.add_argument("--record", action="store_true", help="write what the blocks print into the pages")
    parser.add_argument("pages", nargs="+", type=Path)
    options = parser.parse_args()
    left = 0
    for page in options.pages:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            found: dict[Path, list[Difference]] = {}
            for each, at in follow_chain(page.resolve(), folder, page_environment(folder)):
                found.setdefault(each, []).append(at)
        for each, differing in found.items():
            shown = record(each, differing) if options.record else differing
            left += len(shown)
            print(f"{each.name}: {len(differing) - len(shown)} recorded", file=sys.stderr)
            for at in shown:
                print(f"{each.name}, line {at.line}:\n{at.printed or 'nothing was printed'}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
