"""The tiers of tests, and the fixtures of all tiers: a fixed clock, a ledger, the command line.

`tests/unit` is the plain run. `--integration` and `--exhaustive` run another tier in its place; several of `--unit`,
`--integration` and `--exhaustive` run several. A path to a file or folder of a tier chooses that tier too. A single case
of a unit or integration test may have the marker `exhaustive`: it belongs to the exhaustive tier. A unit test of more than
a twentieth of a second has the marker `slow`: it runs with the integration tests, and when a path names it. Properties belong
to their own tier with 25 examples, and to the exhaustive tier with 100.
"""

from __future__ import annotations

import csv
import gc
import importlib.resources
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Before numpy is imported: there is a worker for every core, and none to spare for threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Some shells export the width of their terminal; a test that is about widths sets its own.
os.environ.pop("COLUMNS", None)

import hypothesis
import pytest

import ldp_budget
from command_line import CommandLine
from fixed_clock import Clock
from ldp_budget.accounting.accountant import Accountant
from tiers import TIERS, mark_some, part, part_of, tier_of, tiers_of

# Tests that several ledgers inherit; their assertions are as telling as those of a test file.
pytest.register_assert_rewrite("contract")

from contract.places import InMemory, Place  # noqa: E402

# How long an example takes says nothing about whether it is right. A test that is content with less, or wants more,
# takes a part or a multiple of `settings.default.max_examples`.
hypothesis.settings.register_profile("tests", deadline=None, max_examples=25)
hypothesis.settings.register_profile("exhaustive", deadline=None, max_examples=100)


# -- tiers -----------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tiers", "tiers of tests (without an option: --unit)")
    group.addoption(
        "--unit", action="store_true", help="run tests/unit without the slow ones: one process, no network"
    )
    group.addoption(
        "--integration",
        action="store_true",
        help="run tests/integration, with processes, servers and a browser, and the slow tests of tests/unit",
    )
    group.addoption(
        "--exhaustive",
        action="store_true",
        help="run tests/exhaustive and the exhaustive cases of other tests, with 100 Hypothesis examples in place of 25",
    )
    group.addoption(
        "--part", type=part, metavar="I/N", help="run part I of N of these tests, chosen by a hash of the names"
    )


def chosen(config: pytest.Config) -> set[str]:
    """The tiers of this run; a path to unit tests chooses the slow ones of them, too."""
    named = {tier for tier in TIERS if config.getoption(f"--{tier}")}
    paths = (config.invocation_params.dir / str(argument).partition("::")[0] for argument in config.args)
    pointed = {tier for path in paths if (tier := tier_of(path.resolve())) is not None}
    return named or pointed | ({"slow"} if "unit" in pointed else set()) or {"unit"}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the folders of the other tiers; exhaustive cases are in all three, slow ones in tests/unit."""
    tier = tier_of(collection_path)
    holding = {tier, "exhaustive"} | ({"integration"} if tier == "unit" else set())
    return True if tier is not None and not holding & chosen(config) else None


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mark_some(items)
    tiers, wanted = chosen(config), config.getoption("--part")
    now, later = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        is_in_part = wanted is None or part_of(item.nodeid, wanted[1]) == wanted[0]
        (now if tiers_of(item) & tiers and is_in_part else later).append(item)
    if later:
        items[:] = now
        config.hook.pytest_deselected(items=later)


# -- the run ---------------------------------------------------------------------------------------------------


def pytest_sessionstart() -> None:
    gc.disable()  # collected items stay alive, so no search among them finds garbage


def pytest_collection_finish() -> None:
    """Thousands of tests are no garbage: each search among them would take a quarter of a second."""
    gc.freeze()
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    hypothesis.settings.load_profile("exhaustive" if "exhaustive" in chosen(config) else "tests")
    if sys.dont_write_bytecode and hasattr(config, "cache"):
        # Nothing may be written next to the sources, but compiled files are kept, for a hundred processes.
        folder = str(config.cache.mkdir("bytecode"))
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = folder
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        sys.dont_write_bytecode = False


# -- fixtures --------------------------------------------------------------------------------------------------


@pytest.fixture
def clock() -> Clock:
    """Noon on Saturday 21 November 2026, until the test advances it."""
    return Clock()


@pytest.fixture
def place() -> Place:
    """The place of the test's ledger, in memory; a file or class of tests may name another one."""
    return InMemory()


@pytest.fixture
def accountant(place: Place, clock: Clock, request: pytest.FixtureRequest) -> Iterator[Accountant]:
    """An empty ledger, or one with the default policy that the marker `policy` gives."""
    with place.open(clock) as made:
        if (policy := request.node.get_closest_marker("policy")) is not None:
            made.set_policy("default", list(policy.args), **policy.kwargs)
        yield made


@pytest.fixture
def coin() -> Callable[[Any], ldp_budget.Mechanism]:
    """A mechanism of the given ε."""
    return lambda epsilon: ldp_budget.mechanism("randomized-response")(epsilon=epsilon)


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    """`ldp-budget` on a ledger in the folder of the test."""
    return CommandLine(tmp_path / "budget.db")


@pytest.fixture
def own_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the keys of ledgers on a server, and of sandboxes, in a folder of the test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("LDP_BUDGET_KEY", raising=False)


@pytest.fixture(scope="session")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Callable[[CommandLine], None], CommandLine], None]:
    """Prepare a ledger once; every further test gets a copy of its files."""
    prepared: dict[Callable[[CommandLine], None], Path] = {}

    def begin(story: Callable[[CommandLine], None], command: CommandLine) -> None:
        if story not in prepared:
            folder = tmp_path_factory.mktemp("begun")
            story(CommandLine(folder / "budget.db"))
            prepared[story] = folder
        shutil.copytree(prepared[story], Path(command.ledger).parent, dirs_exist_ok=True)

    return begin


@pytest.fixture(params=[pytest.param(False, id="some"), pytest.param(True, id="all", marks=pytest.mark.exhaustive)])
def thorough(request: pytest.FixtureRequest) -> bool:
    """True in the exhaustive case of a test: try all values in place of some."""
    return bool(request.param)


@pytest.fixture(scope="session")
def survey() -> list[dict[str, str]]:
    """The 944 respondents of the poll that is shipped with the package."""
    data = importlib.resources.files("ldp_budget_surveys") / "data" / "anes96.csv"
    with data.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))
