"""Fixtures of all tests: the `--slow` option, the distribution to workers, a fixed clock, a ledger, the command line."""

from __future__ import annotations

import csv
import gc
import importlib.resources
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

# Before numpy is imported: there is a worker for every core, and none to spare for threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import hypothesis
import pytest
from click.testing import CliRunner, Result

import ldp_budget
from ldp_budget.accounting.accountant import Accountant
from warm_command import WarmCommand

# Tests that several ledgers inherit; their assertions are as telling as those of a test file.
pytest.register_assert_rewrite("ledger_contract", "ledger_model")

# How long an example takes says nothing about whether it is right. A test that is content with less, or wants more,
# takes a part or a multiple of `settings.default.max_examples`.
hypothesis.settings.register_profile("tests", deadline=None, max_examples=25)
hypothesis.settings.register_profile("slow", deadline=None, max_examples=100)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests marked slow as well, and more examples")


def pytest_sessionstart() -> None:
    gc.disable()  # what is collected stays: nothing of it is looked for in vain


def pytest_collection_finish() -> None:
    """Ten thousand tests are no garbage: each search for some would take a quarter of a second."""
    gc.freeze()
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    hypothesis.settings.load_profile("slow" if config.getoption("--slow") else "tests")
    if sys.dont_write_bytecode and hasattr(config, "cache"):
        # Nothing may be written next to the sources, but compiled files are kept, for a hundred processes.
        folder = str(config.cache.mkdir("bytecode"))
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = folder
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        sys.dont_write_bytecode = False


@pytest.hookimpl(tryfirst=True)  # before `-m slow` chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    cases: Counter[str] = Counter()
    now, later = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        some = item.get_closest_marker("some")
        if some is not None:
            function = item.nodeid.partition("[")[0]
            if cases[function] % some.args[0]:
                item.add_marker(pytest.mark.slow)
            cases[function] += 1
        is_late = "slow" in item.keywords and not config.getoption("--slow")
        (later if is_late else now).append(item)
    if later:
        items[:] = now
        config.hook.pytest_deselected(items=later)


# The set-up of their first test is expensive, so one worker runs the whole file.
TOGETHER = {
    "tests/clients/test_explain.py",
    "tests/registry/test_registry.py",
    "tests/cli/test_plugin_commands.py",
    "tests/docs/test_example_numeric_plugin.py",
    "tests/docs/test_example_plugin.py",
    "tests/docs/test_reference.py",
    "tests/docs/test_repeated_survey.py",
    "tests/house/test_architecture.py",
    "tests/house/test_decimal_contexts.py",
    "tests/house/test_frozen_api.py",
    "tests/house/test_wheel.py",
    "tests/ledger/test_postgres_tampering.py",
}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than there are cores: many tests wait, for a disk, a server, another process, or a clock."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Each test goes to a free worker, except the files of `TOGETHER`, which are handed out first."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return file if file in TOGETHER else nodeid

        def _pending_of(self, workload: dict[str, dict[str, bool]]) -> int:
            """A worker takes its units in order: the remaining ones are at the end, after thousands of others."""
            left = 0
            for unit in reversed(workload.values()):
                if all(unit.values()):
                    break
                left += list(unit.values()).count(False)
            return left

        def remove_node(self, node: Any) -> str | None:
            """The test in which a worker ended, as by its timeout, has failed: the next worker continues after it."""
            units = self.assigned_work[node]
            left = [(unit, test) for unit in units.values() for test, done in unit.items() if not done]
            for unit, test in left[:1]:
                unit[test] = True
            self.assigned_work[node] = {scope: unit for scope, unit in units.items() if not all(unit.values())}
            super().remove_node(node)
            return left[0][1] if left else None

        def _reschedule(self, node: Any) -> None:
            if node in self.registered_collections:  # one that comes in the place of another has to collect first
                super()._reschedule(node)

        def schedule(self) -> None:
            super().schedule()
            # A replacement worker starts a test when it knows the next one, or that there is none.
            for node in self.nodes:
                self._reschedule(node)

    return Scheduling(config, log)


class Clock:
    """A clock with a time that the test sets."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 21, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> None:
        self.now += timedelta(**by)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def accountant(clock: Clock) -> Iterator[Accountant]:
    """A ledger in memory, at noon on Saturday 21 November 2026."""
    with Accountant(":memory:", clock=clock) as made:
        yield made


@pytest.fixture
def coin() -> Callable[[Any], ldp_budget.Mechanism]:
    """A mechanism of the given ε."""
    return lambda epsilon: ldp_budget.mechanism("randomized-response")(epsilon=epsilon)


class CommandLine:
    """Runs `ldp-budget` in this process, on a ledger of its own."""

    def __init__(self, ledger: Path | str) -> None:
        self.ledger = ledger
        self._runner = CliRunner(env={"LDP_BUDGET_LEDGER": str(ledger)})

    def __call__(self, *arguments: object, code: int = 0, **options: Any) -> Result:
        """Run a command and check its exit code. No command may end in a traceback."""
        from ldp_budget_cli.app import cli

        words = [str(argument) for argument in arguments]
        result = self._runner.invoke(cli, words, prog_name="ldp-budget", **options)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    def json(self, *arguments: object, code: int = 0, **options: Any) -> Any:
        """Return the output of a command with `--json`: one JSON value and nothing else."""
        return json.loads(self(*arguments, "--json", code=code, **options).stdout)

    def error(self, *arguments: object, code: int = 1, **options: Any) -> str:
        """Return the message of a command that must fail; stdout must be empty."""
        result = self(*arguments, code=code, **options)
        assert result.stdout == ""
        return result.stderr


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path / "budget.db")


@pytest.fixture(scope="session")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Callable[[CommandLine], None], CommandLine], None]:
    """Prepare a ledger once; every further test gets a copy of its files."""
    told: dict[Callable[[CommandLine], None], Path] = {}

    def begin(story: Callable[[CommandLine], None], command: CommandLine) -> None:
        if story not in told:
            folder = tmp_path_factory.mktemp("begun")
            story(CommandLine(folder / "budget.db"))
            told[story] = folder
        shutil.copytree(told[story], Path(command.ledger).parent, dirs_exist_ok=True)

    return begin


@pytest.fixture(scope="session")
def warm_command() -> Iterator[WarmCommand]:
    """`ldp-budget` in processes of its own, without the wait."""
    with WarmCommand() as command:
        yield command


@pytest.fixture(scope="session")
def programs(warm_command: WarmCommand) -> str:
    """A PATH for shells: `ldp-budget` without the wait, the tools of this Python, and what was there."""
    return os.pathsep.join([str(warm_command.folder), str(Path(sys.executable).parent), os.environ["PATH"]])


@pytest.fixture
def thorough(request: pytest.FixtureRequest) -> bool:
    """True with `--slow`: try all cases."""
    return bool(request.config.getoption("--slow"))


@pytest.fixture(scope="session")
def survey() -> list[dict[str, str]]:
    """The 944 respondents of the poll that is shipped with the package."""
    data = importlib.resources.files("ldp_budget_cli") / "data" / "anes96.csv"
    with data.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))
