"""The plugin registry with really installed distributions: correct ones, and broken ones of every kind.

A distribution is installed the way Python sees it: a dist-info folder and a module in a directory on the path. Each
test gets such a directory of its own and looks at it from a process of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import ldp_budget
from case_files import case_table
from ldp_budget.registry.plugins import OWN_DISTRIBUTION, registry
from ldp_budget_cli import app
from warm_command import WarmCommand

OTHER_COMMANDS = [
    ["calibrate", "oue", "--epsilon", "0.6", "--domain-size", "4", "--json"],
    ["spend", "alice", "oue", "--epsilon", "0.6", "--domain-size", "4", "--json"],
    ["spend", "alice", "oue", "--epsilon", "0.6", "--domain-size", "4", "--json"],
]


@dataclass
class Site:
    """A directory of installed distributions, and a machine that has it on its path."""

    root: Path
    command: WarmCommand

    def install(self, name: str, module: str, *, entry_points: str = "", metadata: str = "") -> None:
        package = name.replace("-", "_")
        info = self.root / f"{package}-2.1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(metadata or f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.1\n")
        (info / "entry_points.txt").write_text(entry_points or f"[ldp_budget]\n{package} = {package}\n")
        (self.root / f"{package}.py").write_text(dedent(module))

    def environment(self, **extra: str) -> dict[str, str]:
        paths = [str(self.root), *filter(None, [os.environ.get("PYTHONPATH")])]
        ledger = str(self.root / "ledger.db")
        return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "LDP_BUDGET_LEDGER": ledger, **extra}

    def run(self, *commands: list[str], **extra: str) -> list[dict[str, Any]]:
        """Each command's exit code and output, all from processes of their own, which load the plugins."""
        environment = self.environment(**extra)
        made = [self.command.run(*words, env=environment, cwd=self.root) for words in commands]
        assert [each.stderr for each in made if "Traceback" in each.stderr] == []
        return [{"code": each.returncode, "out": each.stdout, "err": each.stderr} for each in made]

    def mechanisms(self, **extra: str) -> list[dict[str, Any]]:
        [answer] = self.run(["mechanisms", "--json"], **extra)
        return rows(answer)


@pytest.fixture(scope="session")
def empty_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a ledger whose default policy allows 1 in a lifetime."""
    folder = tmp_path_factory.mktemp("ledger")
    with ldp_budget.Accountant(folder / "ledger.db") as accountant:
        accountant.set_policy("default", ["lifetime=1"])
    return folder


@pytest.fixture
def site(tmp_path: Path, empty_ledger: Path, warm_command: WarmCommand) -> Site:
    return Site(Path(shutil.copytree(empty_ledger, tmp_path / "site")), warm_command)


def rows(answer: dict[str, Any]) -> list[dict[str, Any]]:
    assert answer["code"] == 0, answer
    found: list[dict[str, Any]] = json.loads(answer["out"])
    return found


def toy(name: str, body: str = "", *, fields: str = "", guarantee: bool = True) -> str:
    """The source of a plugin with one mechanism. `fields` and `body` are more lines of the class."""
    promise = "    @property\n    def guarantee(self):\n        return Pure(self.epsilon)\n" if guarantee else ""
    lines = "".join(f"    {line}\n" for line in (*fields.splitlines(), *body.splitlines()))
    return (
        "import ldp_budget\n"
        "from ldp_budget.sdk.parameters import flag, integer, real\n"
        "from ldp_budget.guarantees import Pure\n\n"
        "class Toy(ldp_budget.Mechanism):\n"
        f"    name = {name!r}\n"
        "    summary = 'a toy'\n"
        "    source = 'nowhere'\n"
        "    epsilon = real('privacy loss of one report', above=0)\n"
        f"{lines}{promise}\n"
        "@ldp_budget.hookimpl\n"
        "def register_mechanisms(register):\n"
        "    register(Toy)\n"
    )


def failures(listed: list[dict[str, Any]]) -> dict[str, str]:
    return {row["plugin"]: row["status"] for row in listed if row["status"] != "ok"}


def assert_everything_else_works(answers: list[dict[str, Any]]) -> None:
    """`OTHER_COMMANDS` calibrate, spend once within the limit, and are refused once."""
    calibrated, spent, refused = answers
    assert [answer["code"] for answer in answers] == [0, 0, 3], answers
    assert json.loads(calibrated["out"])["parameters"]["p"] == 0.5
    assert json.loads(spent["out"])["status"] == "spent"
    assert json.loads(refused["out"])["status"] == "refused"


# -- a plugin that works --------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_third_party_mechanism_gets_every_command_from_its_fields(site: Site) -> None:
    fields = "rounds = integer('how often', at_least=1, at_most=9, default=2)\nloud = flag('speak up')"
    promise = "aliases = ('toy-two',)\n@property\ndef parameters(self):\n    return {'rounds': self.rounds}"
    site.install("nice-plugin", toy("toy-one", promise, fields=fields))
    listed, helped, calibrated, quoted, spent, refused, by_alias, balance = site.run(
        ["mechanisms", "--json"],
        ["spend", "alice", "toy-one", "--help"],
        ["calibrate", "toy-one", "--epsilon", "0.75", "--rounds", "3", "--loud", "--json"],
        ["quote", "alice", "toy-one", "--epsilon", "0.75", "--json"],
        ["spend", "alice", "toy-one", "--epsilon", "0.75", "--key", "k", "--json"],
        ["spend", "alice", "toy-one", "--epsilon", "0.75", "--json"],
        ["spend", "alice", "toy-two", "--epsilon", "0.25", "--json"],
        ["balance", "alice", "--json"],
    )
    [row] = [row for row in rows(listed) if row["name"] == "toy-one"]
    assert (row["plugin"], row["plugin_version"], row["status"]) == ("nice-plugin", "2.1", "ok")
    assert (row["aliases"], row["summary"], row["source"]) == (["toy-two"], "a toy", "nowhere")
    for option in ("--epsilon", "--rounds", "--loud", "--reports", "--key", "--policy", "--json"):
        assert option in helped["out"]
    made = json.loads(calibrated["out"])
    assert (made["guarantee"]["epsilon"], made["parameters"]) == (0.75, {"rounds": 3})
    statuses = [json.loads(answer["out"])["status"] for answer in (quoted, spent, refused, by_alias)]
    assert statuses == ["quoted", "spent", "refused", "spent"]
    assert refused["code"] == 3
    assert json.loads(balance["out"])["limits"][0]["remaining"]["epsilon"] == 0


def test_third_party_field_validates_its_option(site: Site) -> None:
    site.install(
        "nice-plugin", toy("toy-one", fields="rounds = integer('how often', at_least=1, at_most=9, default=2)")
    )
    for options, said in (
        (["--epsilon", "0"], "--epsilon must be a number > 0: got 0"),
        (["--epsilon", "1", "--rounds", "10"], "--rounds must be a whole number from 1 to 9: got 10"),
        ([], "--epsilon is missing: it must be a number > 0"),
    ):
        [answer] = site.run(["calibrate", "toy-one", *options])
        assert answer["code"] == 2
        assert said in answer["err"]


def test_field_names_of_any_spelling_are_accepted(site: Site) -> None:
    # None of them is an option of the commands, though click calls its own parameters so.
    names = ("N", "n", "as_json", "lambda_", "ctx")
    fields = "\n".join(f"{name} = real('a number', default={index})" for index, name in enumerate(names))
    values = (
        f"@property\ndef parameters(self):\n    return {{name: float(getattr(self, name)) for name in {names!r}}}"
    )
    site.install("nice-plugin", toy("toy-one", values, fields=fields))
    [answer] = site.run(["calibrate", "toy-one", "--epsilon", "1", "--N", "7", "--as-json", "8", "--json"])
    assert json.loads(answer["out"])["parameters"] == {"N": 7, "n": 1, "as_json": 8, "lambda_": 3, "ctx": 4}


def test_built_ins_are_registered_first_by_the_same_hook(site: Site) -> None:
    # "aardvark" sorts before the entry point of our own.
    site.install("aardvark", toy("toy-one"))
    assert [row["plugin"] for row in site.mechanisms()][-1] == "aardvark"
    assert {plugin.name for plugin in registry().plugins if plugin.own} == {OWN_DISTRIBUTION}
    assert registry().plugins[0].own


def test_no_plugins_option_leaves_third_parties_out(site: Site) -> None:
    site.install("nice-plugin", toy("toy-one"))
    site.install("loud-plugin", "raise RuntimeError('boom')")
    for value in ("1", "yes"):
        assert {row["plugin"] for row in site.mechanisms(LDP_BUDGET_NO_PLUGINS=value)} == {OWN_DISTRIBUTION}
    for value in ("0", ""):
        listed = site.mechanisms(LDP_BUDGET_NO_PLUGINS=value)
        assert {row["plugin"] for row in listed} == {OWN_DISTRIBUTION, "nice-plugin", "loud-plugin"}
    assert_everything_else_works(site.run(*OTHER_COMMANDS, LDP_BUDGET_NO_PLUGINS="1"))


# -- plugins that are broken ----------------------------------------------------------------------------------

HOOK = "@ldp_budget.hookimpl\ndef register_mechanisms(register):\n    "

BROKEN = case_table("integration_registry", "BROKEN")


def distribution(case: str) -> str:
    return "plugin-that-" + case.replace(" ", "-")


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory, empty_ledger: Path, warm_command: WarmCommand) -> Site:
    """A machine with every broken plugin at once, and a good one among them."""
    site = Site(Path(shutil.copytree(empty_ledger, tmp_path_factory.mktemp("crowd") / "site")), warm_command)
    for number, (case, (module, _)) in enumerate(BROKEN.items()):
        site.install(distribution(case), module.replace("toy-one", f"toy-{number}"))
    site.install("nice-plugin", toy("toy-nice"))
    return site


@pytest.fixture(scope="module")
def crowded(crowd: Site) -> list[dict[str, Any]]:
    return crowd.mechanisms()


@pytest.mark.parametrize("case", BROKEN)
def test_broken_plugin_is_reported_with_the_reason(crowded: list[dict[str, Any]], case: str) -> None:
    [row] = [row for row in crowded if row["plugin"] == distribution(case)]
    assert row["name"] == "-"
    assert row["plugin_version"] == "2.1"
    assert row["status"].startswith("failed: ")
    assert BROKEN[case][1] in row["status"]
    assert row["status"].isprintable()


def test_broken_plugins_do_not_affect_others(crowd: Site, crowded: list[dict[str, Any]]) -> None:
    assert set(failures(crowded)) == set(map(distribution, BROKEN))
    working = {row["name"]: row["plugin"] for row in crowded if row["status"] == "ok"}
    assert working.pop("toy-nice") == "nice-plugin"
    assert {"gaussian", "randomized-response", "unary-encoding", "sue", "oue"} <= set(working)
    assert set(working.values()) == {OWN_DISTRIBUTION}
    assert_everything_else_works(crowd.run(*OTHER_COMMANDS))


def test_field_named_as_an_option_of_the_commands_is_refused() -> None:
    from ldp_budget.errors import PluginError
    from ldp_budget.registry import imports_in, taken_names
    from ldp_budget.registry.plugins import check_mechanism
    from ldp_budget.sdk.mechanism import Mechanism
    from ldp_budget.sdk.parameters import real

    with imports_in(nullcontext, app._own_options):
        taken = taken_names()
    assert {"reports", "key", "label", "digest", "policy", "json", "users", "total_epsilon", "ledger"} <= taken
    assert "json" not in taken_names()
    for option in taken:
        made = type("Toy", (Mechanism,), {"name": "toy", "guarantee": None, option: real("x", default=1)})
        with pytest.raises(PluginError, match=f"Toy has a field '{option}', which is an option of the commands"):
            check_mechanism(made, taken)


def test_reserved_field_is_refused_in_python(site: Site) -> None:
    site.install("nice-plugin", toy("toy-one", fields="label = real('x', default=1)"))
    code = """
import sys, ldp_budget
try:
    ldp_budget.mechanism("toy-one")
except ldp_budget.UnknownName as error:
    print(error.hint)
print("click" in sys.modules)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=site.environment(), capture_output=True, text=True, timeout=60, check=True)
    hint, click_loaded = done.stdout.splitlines()
    assert "nice-plugin 2.1 (Toy has a field 'label', which is an option of the commands. Rename the field)" in hint
    assert click_loaded == "False"


def test_broken_plugin_is_named_when_its_mechanism_is_requested(site: Site) -> None:
    site.install("broken-plugin", "1 / 0")
    [answer] = site.run(["calibrate", "toy-one", "--epsilon", "1"])
    assert answer["code"] == 2
    assert "No mechanism or collection is named 'toy-one'" in answer["err"]
    assert "broken-plugin 2.1 (ZeroDivisionError: division by zero)" in answer["err"]


def test_output_printed_by_a_plugin_is_suppressed(site: Site) -> None:
    site.install("chatty-plugin", "print('hello')\n" + toy("toy-one"))
    command = [sys.executable, "-c", "from ldp_budget_cli import main; main()", "mechanisms", "--json"]
    done = subprocess.run(command, env=site.environment(), capture_output=True, text=True, timeout=60, check=True)
    assert "toy-one" in [row["name"] for row in json.loads(done.stdout)]
    assert "hello" in done.stderr


# -- clashes between third parties ----------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("a-plugin", "z-plugin"), ("z-plugin", "a-plugin")])
def test_third_parties_with_one_name_both_fail_in_any_order(site: Site, names: tuple[str, str]) -> None:
    site.install(names[0], toy("toy-one", "aliases = ('only-mine',)"))
    site.install(names[1], toy("toy-two", "aliases = ('toy-one',)"))
    listed, asked, innocent, *others = site.run(
        ["mechanisms", "--json"],
        ["calibrate", "toy-one", "--epsilon", "1"],
        ["calibrate", "toy-two", "--epsilon", "1"],
        *OTHER_COMMANDS,
    )
    why = "the mechanism name 'toy-one' is registered by a-plugin 2.1 and z-plugin 2.1"
    assert failures(rows(listed)) == {"a-plugin": f"failed: {why}", "z-plugin": f"failed: {why}"}
    assert {row["plugin"] for row in rows(listed) if row["status"] == "ok"} == {OWN_DISTRIBUTION}
    assert asked["code"] == 1
    assert why in asked["err"]
    assert "No mechanism or collection is named 'toy-two'" in innocent["err"]
    assert_everything_else_works(others)


# -- distributions whose metadata is broken -------------------------------------------------------------------


@pytest.mark.parametrize(
    "entry_points",
    ["[ldp_budget]\nno equals sign\n", "[console_scripts]\nno equals sign\n"],
    ids=["in our group", "in another group"],
)
@pytest.mark.some(2)
def test_entry_points_that_cannot_be_read_are_reported(site: Site, entry_points: str) -> None:
    site.install("broken-plugin", "", entry_points=entry_points)
    site.install("nice-plugin", toy("toy-one"))
    listed, *others = site.run(["mechanisms", "--json"], *OTHER_COMMANDS)
    assert list(failures(rows(listed))) == ["broken-plugin"]
    assert "entry points cannot be read" in failures(rows(listed))["broken-plugin"]
    assert {"oue", "toy-one"} <= {row["name"] for row in rows(listed)}
    assert_everything_else_works(others)


# -- names of collections -------------------------------------------------------------------------------------


def test_plugin_installed_later_does_not_take_the_name_of_a_collection(site: Site) -> None:
    add = ["collection", "add", "toy-one", "oue", "--epsilon", "0.5", "--domain-size", "3"]
    assert [answer["code"] for answer in site.run(add)] == [0]
    site.install("nice-plugin", toy("toy-two", "aliases = ('toy-one',)"))
    both, meant, other = site.run(
        ["spend", "alice", "toy-one", "--epsilon", "0.1"],
        ["spend", "alice", "collection:toy-one", "--json"],
        ["spend", "alice", "toy-two", "--epsilon", "0.25", "--json"],
    )
    assert both["code"] == 2
    assert "'toy-one' is both the mechanism toy-two and a collection of this ledger" in both["err"]
    assert "For the collection, write collection:toy-one" in both["err"]
    assert json.loads(meant["out"])["cost"]["epsilon"] == 0.5
    assert json.loads(other["out"])["cost"]["epsilon"] == 0.25


def test_broken_plugin_does_not_hide_a_collection(site: Site) -> None:
    add = ["collection", "add", "toy-one", "oue", "--epsilon", "0.5", "--domain-size", "3"]
    assert [answer["code"] for answer in site.run(add)] == [0]
    site.install("broken-plugin", toy("toy-one", guarantee=False))
    [answer] = site.run(["spend", "alice", "toy-one", "--json"])
    assert json.loads(answer["out"])["status"] == "spent"
