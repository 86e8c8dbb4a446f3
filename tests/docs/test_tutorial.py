"""docs/tutorials/writing-a-plugin.md: every block of it runs, in order, and every hook it lists is as in the code.

A block whose first line names a file is written to that file; one that begins `# from FILE` must stand in that file
of an example plugin. Other ```python blocks run in one namespace, ```pycon blocks as doctests in the same, and in
```console blocks `$ ` begins a command and what follows is its output. Where the line before the block is
`<!-- random -->`, commands must succeed and their output is not compared. What `pip install` installs goes to a
folder of the test.
"""

from __future__ import annotations

import doctest
import functools
import inspect
import math
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from doc_blocks import timeless
from ldp_budget import FrequencyMechanism, Mechanism, NumericMechanism
from ldp_budget.guarantees import ZeroConcentrated
from ldp_budget.registry import hookspecs

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tutorials" / "writing-a-plugin.md"
EXAMPLES = [ROOT / "docs" / "tutorials" / "examples" / name for name in ("ldp-budget-olh", "ldp-budget-piecewise")]
NAMED = re.compile(r"# (?P<part>from )?(?P<path>[\w/.-]+\.(py|toml))\n")
MARK = "==== end of a command ===="
MODULES = ("coin", "habit", "ldp_budget_olh", "ldp_budget_piecewise")


class Block(NamedTuple):
    line: int
    kind: str
    text: str
    random: bool


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of the page, in order."""
    before, kind, start, kept = "", "", 0, list[str]()
    for number, line in enumerate(page.splitlines(), 1):
        if not line.startswith("```"):
            kept.append(line)
        elif start:
            yield Block(start, kind, "".join(f"{text}\n" for text in kept), before == "<!-- random -->")
            start = 0
        else:
            before = kept[-1] if kept else ""
            start, kind, kept = number, line[3:], []


class Workshop:
    """A folder to follow the page in, with the example plugin beside it."""

    def __init__(self, folder: Path, programs: str) -> None:
        self.folder, self.site, self.programs = folder, folder / "site", programs
        self.names: dict[str, Any] = {"__name__": "tutorial"}
        for example in EXAMPLES:
            shutil.copytree(example, folder / example.name, ignore=shutil.ignore_patterns("__pycache__", ".*"))

    def follow(self, block: Block) -> list[tuple[str, str]]:
        """Do what the block says; what it shows and what came of it, in pairs that should be equal."""
        named = NAMED.match(block.text)
        if named is not None:
            return self._file(block, named)
        return {"python": self._python, "pycon": self._session, "console": self._commands}[block.kind](block)

    def _file(self, block: Block, named: re.Match[str]) -> list[tuple[str, str]]:
        path = named["path"]
        if named["part"]:
            [source] = [file.read_text(encoding="utf-8") for each in EXAMPLES if (file := each / path).exists()]
            part = block.text[named.end() :]
            return [(part, part if _stands_in(part, source) else f"not in {path}")]
        (self.folder / path).write_text(block.text, encoding="utf-8")
        sys.modules.pop(Path(path).stem, None)
        return []

    def _python(self, block: Block) -> list[tuple[str, str]]:
        exec(compile(block.text, f"{PAGE.name}, line {block.line}", "exec"), self.names)
        return []

    def _session(self, block: Block) -> list[tuple[str, str]]:
        session = doctest.DocTestParser().get_doctest(block.text, self.names, PAGE.name, None, block.line)
        shown = [example.want for example in session.examples]
        session.globs = self.names  # and no copy: what is defined here sees what comes later
        seen = _Seen()
        seen.run(session, out=lambda text: None, clear_globs=False)
        return list(zip(shown, seen.outputs, strict=True))

    def _commands(self, block: Block) -> list[tuple[str, str]]:
        asked = [part.partition("\n") for part in block.text.removeprefix("$ ").split("\n$ ")]
        script = "".join(f"{self._here(command)}\necho '{MARK}'\n" for command, _, _ in asked)
        done = subprocess.run(
            ["bash", "-c", f"exec 2>&1\n{'set -e' if block.random else ''}\n{script}"],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            timeout=300,
        )
        printed = done.stdout.split(MARK + "\n")
        assert printed.pop() == "", done.stdout
        assert "Traceback" not in done.stdout, done.stdout
        shown = [output.rstrip("\n") + "\n" if output.strip() else "" for _, _, output in asked]
        return [] if block.random else list(zip(shown, printed, strict=True))

    def _here(self, command: str) -> str:
        """The command, which installs, if it is a `pip install`, into a folder of this test and quietly."""
        words = command.split()
        if words[:2] != ["pip", "install"]:
            return command
        options = (
            f"--quiet --no-deps --no-build-isolation --no-compile --disable-pip-version-check --target {self.site}"
        )
        return f"{sys.executable} -m pip install {options} {words[-1]}"

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PATH": self.programs,
            # The folder itself first: `pip install -e` makes what stands there importable as it is.
            "PYTHONPATH": os.pathsep.join([str(self.folder), str(self.site)]),
            "LDP_BUDGET_LEDGER": str(self.folder / "budget.db"),
            "LDP_BUDGET_CERTIFICATES": str(self.folder / "certificates.json"),
            "PYTHONIOENCODING": "utf-8",
            "COLUMNS": "120",
            "LC_ALL": "C",
        }


class _Seen(doctest.DocTestRunner):
    """Runs a session and keeps what each line of it printed."""

    def __init__(self) -> None:
        super().__init__(verbose=False)
        self.outputs: list[str] = []

    def report_success(self, out: Any, test: Any, example: Any, got: str) -> None:
        self.outputs.append(got)

    def report_failure(self, out: Any, test: Any, example: Any, got: str) -> None:
        self.outputs.append(got)

    def report_unexpected_exception(self, out: Any, test: Any, example: Any, exc_info: Any) -> None:
        raise exc_info[1]


def _stands_in(part: str, source: str) -> bool:
    """Whether it does, at the left, in the body of a class or in that of a method."""
    return any(textwrap.indent(part, "    " * depth) in source for depth in range(3))


@pytest.fixture
def workshop(tmp_path: Path, programs: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    made = Workshop(tmp_path, programs)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(made.site))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield made
    for name in [name for name in sys.modules if name.partition(".")[0] in MODULES]:
        del sys.modules[name]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="the page is a session of a shell")
def test_every_block_of_the_page_runs_and_prints_what_it_shows(workshop: Workshop) -> None:
    seen = list(blocks(PAGE.read_text(encoding="utf-8")))
    assert {"python", "pycon", "console", "toml"} == {block.kind for block in seen}
    for block in seen:
        for shown, printed in workshop.follow(block):
            assert timeless(printed) == timeless(shown), f"{PAGE.name}, line {block.line}"
    _hold_the_concentrated_promise_against_its_definition(workshop.names["DiscreteGaussian"])


def _hold_the_concentrated_promise_against_its_definition(mechanism: Callable[..., Mechanism]) -> None:
    """D_α ≤ ρα at several orders, and equal to it at whole ones (Canonne, Kamath and Steinke 2020, section 2.3)."""
    promise = mechanism(sigma=2, sensitivity=3).guarantee
    assert isinstance(promise, ZeroConcentrated)
    first, second = ([-((y - x) ** 2) / 8 for y in range(-60, 64)] for x in (0, 3))
    mass = math.fsum(map(math.exp, first))
    for order in (1.25, 1.5, 2.0, 3.0, 5.0):
        moment = math.fsum(math.exp(order * p + (1 - order) * q) for p, q in zip(first, second, strict=True)) / mass
        rate = math.log(moment) / (order - 1) / order
        assert rate <= float(promise.rho) * (1 + 1e-12)
        assert rate > 0.99 * float(promise.rho)


# -- every hook -----------------------------------------------------------------------------------------------


def hooks() -> list[str]:
    """The exact signature of all that the page must list."""
    plugins = (hookspecs.register_mechanisms, hookspecs.guarantee_of, hookspecs.source_of)
    found = [f"{hook.__name__}{_signature(hook)}" for hook in plugins]
    for owner in (Mechanism, FrequencyMechanism, NumericMechanism):
        names = {**owner.__annotations__, **vars(owner)}
        # Every class has `fields` of its own, which no class writes down but the first.
        own = (name for name in names if name != "fields" or owner is Mechanism)
        found += [_described(owner, name) for name in own if not name.startswith("_")]
    return found


def _described(owner: type[Mechanism], name: str) -> str:
    member = vars(owner).get(name)
    if isinstance(member, property):
        return f"@property {name}{_signature(member.fget)}"
    if isinstance(member, functools.cached_property):
        return f"@property {name}{_signature(member.func)}"
    if isinstance(member, classmethod):
        return f"@classmethod {name}{_signature(member.__func__)}"
    if inspect.isfunction(member):
        return f"{name}{_signature(member)}"
    if name in owner.fields:
        return f"{name}: a field"
    return f"{name}: {owner.__annotations__[name]}"


def _signature(function: Any) -> str:
    return str(inspect.signature(function)).replace("'", "")


def test_every_hook_is_listed_with_its_exact_signature_and_nothing_else_is() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("\n## Every hook\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^- `([^`]+)`", section, flags=re.MULTILINE)
    assert sorted(listed) == sorted(hooks())
