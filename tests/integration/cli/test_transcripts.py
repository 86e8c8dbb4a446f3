"""Transcripts: each recorded session of commands prints today what it printed when it was recorded.

A transcript is a terminal session in an empty folder, with the ledger `budget.db`:

    # A remark.
    = file answers.csv
        party
        independent
    $ ldp-budget collection show party
    its standard output
    ! its standard error
    [exit 1]

`= file` writes the indented lines to a file. `= needs MODULE` skips the session if an optional package is missing.
`<` and `>` redirect standard input and output; `cp`, `cat` and `ls` copy and show files.

Text that differs from run to run is written as `<folder>`, `<time>`, `<head>`, `<receipt>`, `<secret>`, `<version>` or
`<sources>`. In a command, `<head>` and `<receipt>` are the last ones that were printed. Fingerprints stay, because a
mechanism has the same one everywhere. The client draws from a seed made of the command, so its reports are the same
in every run. Users of one batch are charged in no fixed order, so no session shows the entries of several users.

    python tests/integration/cli/test_transcripts.py             # replay, compare to the last digit, and show the differences
    python tests/integration/cli/test_transcripts.py --record    # record the present output

Both take names of transcripts, to use only those. Read the differences before you keep a new recording.
"""

from __future__ import annotations

import difflib
import math
import os
import random
import re
import shlex
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import click
import pytest
from click.testing import CliRunner

import ldp_budget
from ldp_budget.sampling import rng
from ldp_budget.sampling.rng import SeededStream
from ldp_budget_cli.app import cli
from ldp_budget_verify import contract

TRANSCRIPTS = Path(__file__).parents[2] / "data" / "transcripts"
NAMES = sorted(path.stem for path in TRANSCRIPTS.glob("*.txt"))

GROUPS = ("policy", "collection", "survey", "inbox", "api-key", "ledger", "plugin")
COMMAND, FILE, NEEDS, REMARK = "$ ", "= file ", "= needs ", "# "
INDENT = "    "

# Patterns of text that differs from run to run, and its replacement: the group that matched is replaced.
HEAD = re.compile(r"(?:head\b\W+|the head |(?m:^))(?P<it>[0-9a-f]{84}|\d+-[0-9a-f]{64})")
RECEIPT = re.compile(
    r"\"receipt\": \"(?P<it>[^\"]+)\""
    r"|\(receipt (?P<of_charge>[^)\s]+)\)"
    r"|: receipt (?P<resolved>[^,\s]+),"
    r"|reservation (?P<conflicting>\S+) is (?!called)"
    r"|reservation is (?:named|called) '(?P<unknown>[^']+)'"
    r"|ldp-budget (?:commit|void) (?P<next>\d+-[0-9a-f]{20})"
    r"|(?m:^(?:  )?)(?P<open>\d+-[0-9a-f]{20})\b"
)
TIME = re.compile(
    r"(?P<it>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)"
    r"|(?P<minute>\d{4}-\d\d-\d\d \d\d:\d\d)(?!:)"
    r"|  (?P<day>\d{4}-\d\d-\d\d)(?m:$)"
)
VERSION = re.compile(rf"\b(?P<it>{re.escape(ldp_budget.__version__)}|{re.escape(sqlite3.sqlite_version)})\b")
SECRET = re.compile(r"(?P<it>ldpb_[A-Za-z0-9_-]{43})|#(?P<token>[A-Za-z0-9_.-]{40,})")
SOURCES = re.compile(r'"sources": "(?P<it>[0-9a-f]{64})"')  # a certificate covers ldp-budget's own code
VARYING = {
    "<head>": HEAD,
    "<receipt>": RECEIPT,
    "<time>": TIME,
    "<version>": VERSION,
    "<secret>": SECRET,
    "<sources>": SOURCES,
}
REMEMBERED = ("<head>", "<receipt>")
"""The texts that a later command may name, as they were printed last."""

NUMBER = re.compile(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)")
LONG = 15
"""Numbers of so many characters may differ in their last digits, as other processors and libraries round otherwise.

The script compares these as well."""


# -- reading a transcript ------------------------------------------------------------------------------------


class Step(NamedTuple):
    """The lines of a transcript up to a command, and that command: all of it that is not recorded."""

    lines: list[str]

    @property
    def command(self) -> str:
        last = self.lines[-1]
        return last.removeprefix(COMMAND) if last.startswith(COMMAND) else ""

    def files(self) -> Iterator[tuple[str, str]]:
        """The files to write before the command: (name, text)."""
        for place, line in enumerate(self.lines):
            if line.startswith(FILE):
                text = []
                for below in self.lines[place + 1 :]:
                    if below and not below.startswith(INDENT):
                        break
                    text.append(below.removeprefix(INDENT))
                yield line.removeprefix(FILE), "\n".join(text).rstrip("\n") + "\n" if any(text) else ""


def is_script(line: str) -> bool:
    return line.startswith((COMMAND, FILE, NEEDS, REMARK))


def steps(text: str) -> list[Step]:
    """The steps of a transcript, without what was recorded."""
    found: list[Step] = []
    lines: list[str] = []
    for line in text.splitlines():
        if lines or is_script(line):
            lines.append(line)
        if line.startswith(COMMAND):
            found.append(Step(lines))
            lines = []
    return [*found, Step(lines)] if lines else found


def needs(text: str) -> list[str]:
    """The optional packages that a session needs."""
    return [line.removeprefix(NEEDS) for line in text.splitlines() if line.startswith(NEEDS)]


# -- replaying it --------------------------------------------------------------------------------------------


@contextmanager
def session(folder: Path) -> Iterator[pytest.MonkeyPatch]:
    """In this folder; modules that are imported from it, and the path to it, are forgotten afterwards."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "path", list(sys.path))
        yield patch
    for name in set(sys.modules) - before:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def replay(text: str, folder: Path) -> str:
    """The transcript as it is printed now, by a session in an empty folder."""
    told: dict[str, str] = {}
    parts = []
    with session(folder) as patch:
        # What a check draws by lot is the same in each run.
        patch.setattr(contract, "random", SimpleNamespace(SystemRandom=lambda: random.Random("a lot")))
        for step in steps(text):
            for name, content in step.files():
                Path(name).parent.mkdir(parents=True, exist_ok=True)
                Path(name).write_text(content, encoding="utf-8", newline="\n")
            parts.append("\n".join([*step.lines, *run(step.command, told, patch)]).rstrip("\n"))
    return "\n\n".join(parts) + "\n"


def run(command: str, told: dict[str, str], patch: pytest.MonkeyPatch) -> list[str]:
    """The lines that a command prints, with what varies replaced; `told` learns what it tells."""
    match shlex.split(command):
        case ["ldp-budget", *words]:
            return run_ldp_budget(command, [told.get(word, word) for word in words], told, patch)
        case ["cp", name, other]:
            shutil.copyfile(name, other)
            return []
        case ["cat", name]:
            return printed(Path(name).read_text(encoding="utf-8"))
        case ["ls", name]:
            files = (path for path in Path(name).rglob("*") if path.is_file() and path.suffix != ".pyc")
            return sorted(path.as_posix() for path in files)
        case []:
            return []
        case _:
            raise ValueError(f"a transcript has only ldp-budget, cp, cat FILE and ls FOLDER, not {command}")


def run_ldp_budget(command: str, words: list[str], told: dict[str, str], patch: pytest.MonkeyPatch) -> list[str]:
    source, target = redirection(words, "<"), redirection(words, ">")
    number = count()
    patch.setattr(rng, "_cryptographic_stream", lambda: SeededStream(f"{command} {next(number)}".encode()))
    runner = CliRunner(
        env={"COLUMNS": "80", "LDP_BUDGET_LEDGER": "budget.db", "LDP_BUDGET_CERTIFICATES": "certificates.json"}
    )
    given = None if source is None else Path(source).read_bytes()
    result = runner.invoke(cli, words, prog_name="ldp-budget", input=given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise AssertionError(f"a command ended in a traceback: {command}") from result.exception
    for name in REMEMBERED:
        told.update((name, found[found.lastgroup or 0]) for found in VARYING[name].finditer(result.stdout))
    stdout = result.stdout_bytes.decode()  # with every carriage return
    if target is not None:
        Path(target).write_text(stdout, encoding="utf-8", newline="")
    return [
        *printed("" if target else stdout),
        *(f"! {line}".rstrip() for line in printed(result.stderr)),
        *([f"[exit {result.exit_code}]"] if result.exit_code else []),
    ]


def redirection(words: list[str], sign: str) -> str | None:
    """Take `sign` and the file behind it out of the words of a command."""
    if sign not in words:
        return None
    place = words.index(sign)
    _, name = words[place : place + 2]
    del words[place : place + 2]
    return name


def printed(text: str) -> list[str]:
    """Return the lines of a transcript for a printed text."""
    text = text.replace(os.getcwd(), "<folder>")
    for name, pattern in VARYING.items():
        text = pattern.sub(partial(replaced, name), text)
    lines = text.replace("\r", r"\r").removesuffix("\n").split("\n") if text else []
    for line in lines:
        if is_script(line):
            raise ValueError(f"a command printed what a transcript would take for its own: {line}")
    return lines


def replaced(name: str, found: re.Match[str]) -> str:
    """Return the match with `name` in place of the varying part."""
    start, end = (place - found.start() for place in found.span(found.lastgroup or 0))
    return found[0][:start] + name + found[0][end:]


# -- comparing -----------------------------------------------------------------------------------------------


def alike(one: str, other: str) -> bool:
    """Return True if two lines are equal, up to the last digits of long numbers."""
    return len(parts := NUMBER.split(one)) == len(others := NUMBER.split(other)) and all(
        a == b or (place % 2 == 1 and max(len(a), len(b)) >= LONG and close(a, b))
        for place, (a, b) in enumerate(zip(parts, others, strict=True))
    )


def close(one: str, other: str) -> bool:
    return math.isclose(float(one), float(other), rel_tol=1e-9, abs_tol=1e-12)


def difference(recorded: str, found: str) -> str:
    """Return the differences as a diff."""
    lines = difflib.unified_diff(recorded.splitlines(), found.splitlines(), "recorded", "printed now", lineterm="")
    return "\n".join(lines)


EXPENSIVE = ("audit", "pictures", "plugin", "sketches")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.exhaustive if name in EXPENSIVE else ()) for name in NAMES]
)
@pytest.mark.some(2)
def test_transcript_replayed_prints_the_same(name: str, tmp_path: Path) -> None:
    recorded = (TRANSCRIPTS / f"{name}.txt").read_text(encoding="utf-8")
    for module in needs(recorded):
        pytest.importorskip(module, reason=f"no {module}: pip install 'ldp-budget[dev,interop]'")
    found = replay(recorded, tmp_path)
    lines, others = recorded.splitlines(), found.splitlines()
    if len(lines) != len(others) or not all(map(alike, lines, others)):
        pytest.fail(difference(recorded, found), pytrace=False)


def test_transcripts_call_every_command() -> None:
    """And every subcommand; what takes a mechanism is called with one, or with a collection."""
    wanted = set()
    root = click.Context(cli)
    for name in cli.list_commands(root):
        command = cli.get_command(root, name)
        if name in GROUPS and isinstance(command, click.Group):
            wanted |= {f"{name} {each}" for each in command.list_commands(root)}
        else:
            wanted.add(name)
    texts = [path.read_text(encoding="utf-8") for path in TRANSCRIPTS.glob("*.txt")]
    called = [step.command.split() for text in texts for step in steps(text)]
    assert wanted <= {" ".join(words[1:end]) for words in called for end in (2, 3)}


# -- by hand -------------------------------------------------------------------------------------------------


def main(*arguments: str) -> int:
    """Replay or record the transcripts of these names, or all; 1 where one differs to the last digit."""
    recording = "--record" in arguments
    differing = 0
    for name in [argument for argument in arguments if argument != "--record"] or NAMES:
        path = TRANSCRIPTS / f"{name}.txt"
        recorded = path.read_text(encoding="utf-8")
        missing = [module for module in needs(recorded) if find_spec(module) is None]
        if missing:
            print(f"{name}: left out, as it needs {', '.join(missing)}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = replay(recorded, Path(os.path.realpath(folder)))
        if found != recorded:
            differing += 1
            print(f"{name}: recorded" if recording else difference(recorded, found))
            if recording:
                path.write_text(found, encoding="utf-8", newline="\n")
    return 0 if recording else min(differing, 1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
