"""`ldp-budget plugin new` and `plugin check`, on distributions that are really built and installed.

Nothing is downloaded: hatchling is there already. What is installed goes to a folder of the test, and every command
runs in a process of its own that has this folder on its path.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ldp_budget_verify.contract import CHECKS, statement_of
from warm_command import WarmCommand

LEAST = "5000"


@dataclass
class Workshop:
    """A folder to write distributions in, and a machine that has its `site` on the path."""

    folder: Path
    command: WarmCommand

    @property
    def environment(self) -> dict[str, str]:
        paths = [str(self.folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "LDP_BUDGET_CERTIFICATES": str(self.certificates),
            "LDP_BUDGET_LEDGER": str(self.folder / "ledger.db"),
        }

    def python(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, *arguments], env=self.environment, cwd=cwd, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def ldp_budget(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = self.command.run(*arguments, env=self.environment, cwd=self.folder)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def install(self, *projects: str) -> None:
        options = (
            "--no-deps",
            "--no-index",
            "--no-build-isolation",
            "--disable-pip-version-check",
            "--target",
            "site",
        )
        written = (str(self.folder / project) for project in projects)
        self.python("-m", "pip", "install", "-q", *options, *written, cwd=self.folder)

    def listed(self, name: str) -> dict[str, Any]:
        rows = json.loads(self.ldp_budget("mechanisms", "--json").stdout)
        [row] = [row for row in rows if row["name"] == name]
        found: dict[str, Any] = row
        return found

    @property
    def certificates(self) -> Path:
        return self.folder / "certificates.json"


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory, warm_command: WarmCommand) -> Workshop:
    """A workshop where `plugin new tally-marks` was run, and what it wrote is installed; so is a numeric one."""
    workshop = Workshop(tmp_path_factory.mktemp("workshop"), warm_command)
    workshop.ldp_budget("plugin", "new", "tally-marks")
    workshop.ldp_budget("plugin", "new", "long-jump", "--numeric", "--distribution", "athletics")
    workshop.install("tally-marks", "long-jump")
    return workshop


@dataclass
class Checked:
    """Return the output of `plugin check` for tally-marks, and the file with the certificate."""

    done: subprocess.CompletedProcess[str]
    recorded: str


@pytest.fixture(scope="module")
def checked(workshop: Workshop) -> Checked:
    workshop.certificates.unlink(missing_ok=True)
    done = workshop.ldp_budget("plugin", "check", "ldp-budget-tally-marks", "--samples", LEAST, "--json")
    return Checked(done, workshop.certificates.read_text())


# -- plugin new -----------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_plugin_new_writes_a_distribution(workshop: Workshop) -> None:
    project = workshop.folder / "tally-marks"
    files = {path.relative_to(project).as_posix() for path in project.rglob("*") if path.is_file()}
    assert files >= {"pyproject.toml", "README.md", "src/tally_marks/__init__.py", "tests/test_contract.py"}
    row = workshop.listed("tally-marks")
    assert (row["plugin"], row["plugin_version"], row["status"]) == ("ldp-budget-tally-marks", "0.1.0", "ok")


@pytest.mark.exhaustive
@pytest.mark.parametrize("project", ["tally-marks", "long-jump"])
def test_plugin_new_tests_pass(workshop: Workshop, project: str) -> None:
    options = ("-q", "-p", "no:cacheprovider", "-W", "error")
    said = workshop.python("-m", "pytest", *options, cwd=workshop.folder / project).stdout
    [passed, skipped] = re.findall(r"(\d+) (?:passed|skipped)", said)
    assert int(passed) >= 30
    assert int(skipped) == 4  # it memoizes nothing


def test_new_mechanism_works_in_every_command(workshop: Workshop) -> None:
    options = ("tally-marks", "--epsilon", "0.7", "--domain-size", "4")
    made = json.loads(workshop.ldp_budget("calibrate", *options, "--json").stdout)
    assert made["guarantee"]["epsilon"] == 0.7
    refused = workshop.ldp_budget("calibrate", "tally-marks", "--epsilon", "0", "--domain-size", "4", code=2)
    assert "--epsilon must be a number >= 0.000001 and <= 30: got 0" in refused.stderr


def test_new_numeric_mechanism_estimates_a_mean(workshop: Workshop) -> None:
    values = "\n".join(str(number % 9) for number in range(2000))
    (workshop.folder / "jumps.csv").write_text(f"metres\n{values}\n")
    workshop.ldp_budget("collection", "add", "jumps", "long-jump", "--epsilon", "2", "--lower", "0", "--upper", "10")
    workshop.ldp_budget("randomize", "jumps", "jumps.csv", "--column", "metres", "--out", "jumps.reports")
    estimate = json.loads(workshop.ldp_budget("estimate", "jumps", "jumps.reports", "--json").stdout)
    assert abs(estimate["mean"] - 4) <= 4.5 * estimate["std_error"] < 1.5


def test_plugin_new_overwrites_nothing(workshop: Workshop) -> None:
    module = workshop.folder / "tally-chalk" / "src" / "tally_chalk" / "__init__.py"
    workshop.ldp_budget("plugin", "new", "tally-chalk")
    module.write_text("mine")
    again = workshop.ldp_budget("plugin", "new", "tally-chalk", code=1)
    assert "exists. Nothing was written" in again.stderr
    assert module.read_text() == "mine"


# -- plugin check ---------------------------------------------------------------------------------------------


def assert_certified(done: subprocess.CompletedProcess[str]) -> None:
    certificate = json.loads(done.stdout)
    assert done.stderr.startswith("passed: exact. The guarantee of tally-marks is proved.\n")
    assert "ldp-budget-tally-marks 0.1.0 is recorded in" in done.stderr
    assert "why not exact" not in done.stderr
    assert f"does not apply: tally-marks: {statement_of('memo_is_kept')}: it memoizes nothing" in done.stderr
    assert (certificate["verdict"], len(certificate["pair"])) == ("holds", 2)
    assert 0 < certificate["loss"] <= 3
    assert (certificate["distribution"], certificate["version"]) == ("ldp-budget-tally-marks", "0.1.0")
    assert {"ldp_budget", "python", "numpy", "checked"} <= set(certificate)
    [mechanism] = certificate["mechanisms"]
    assert (mechanism["mechanism"], mechanism["checked"]) == ("tally-marks", "exact")
    assert [example["declared"] for example in mechanism["examples"]] == [
        {"domain_size": 5, "epsilon": "1"},
        {"domain_size": 2, "epsilon": "0.2"},
    ]
    assert [example["declared"]["domain_size"] for example in mechanism["chosen"]] == [5, 5]
    for example in (*mechanism["examples"], *mechanism["chosen"]):
        [audit] = example["audits"]
        assert 0 <= audit["lower_bound"] <= example["claimed"]
        assert audit["samples"] == int(LEAST)
        assert example["exact"]["verdict"] == "holds"
        assert example["exact"]["lower"] <= example["claimed"]
        assert {found["verdict"] for found in example["checks"]} == {"passed", "skipped"}


def test_plugin_check_certifies_an_installed_plugin(checked: Checked) -> None:
    assert_certified(checked.done)


def test_mechanisms_shows_the_certificate_until_the_code_changes(workshop: Workshop, checked: Checked) -> None:
    workshop.certificates.unlink(missing_ok=True)
    assert workshop.listed("tally-marks")["checked"] == "no"
    workshop.certificates.write_text(checked.recorded)
    assert workshop.listed("tally-marks")["checked"] == "exact"
    module = workshop.folder / "site" / "tally_marks" / "__init__.py"
    honest = module.read_text()
    module.write_text(honest.replace("draw.coin(), value", "1 ^ draw.coin(), value"))
    assert workshop.listed("tally-marks")["checked"] == "no"
    module.write_text(honest)
    assert workshop.listed("tally-marks")["checked"] == "exact"


def test_plugin_check_of_a_false_guarantee_fails(workshop: Workshop) -> None:
    module = workshop.folder / "site" / "tally_marks" / "__init__.py"
    honest = module.read_text()
    half = "guarantee = property(lambda self: Pure(self.epsilon / 2))"
    false = honest.replace("    def client", f"    {half}\n\n    def client")
    module.write_text(f"from ldp_budget.guarantees import Pure\n{false}")
    try:
        done = workshop.ldp_budget("plugin", "check", "tally_marks", "--samples", "40000", code=1)
    finally:
        module.write_text(honest)
    failed = "failed: tally-marks(domain_size=5, epsilon=1)"
    assert done.stdout.startswith("not passed: tally-marks: ")
    assert (
        f"{failed}: {statement_of('guarantee_is_exact')}: the loss ln P/Q of a report is above the claim"
        in done.stderr
    )
    assert f"{failed}: {statement_of('audit_finds_no_more')}: one report loses at least" in done.stderr
    assert "ldp-budget-tally-marks 0.1.0 is recorded" in done.stderr
    assert not [check for check in CHECKS if check in done.stdout + done.stderr]
    assert re.search(r"^tally-marks +no +0\.5 +violated", done.stdout, re.M)


CLOAK = """
import ldp_budget
from ldp_budget.sdk.parameters import integer, real
from ldp_budget.guarantees import Pure
from ldp_budget_mechanisms.unary_encoding import OptimizedUnaryEncoding

print("a plugin that talks")

class Priced(ldp_budget.Mechanism):
    name = "priced"
    epsilon = real("privacy loss of one report", above=0)
    guarantee = property(lambda self: Pure(self.epsilon))

class Undescribed(OptimizedUnaryEncoding):
    name = "undescribed"
    aliases = ()
    examples = ({"epsilon": 1, "domain_size": 3},)
    compare = ldp_budget.Mechanism.compare
    _rivals = lambda self: {}

class Unbuildable(ldp_budget.Mechanism):
    name = "unbuildable"
    key_size = integer("a number that no search finds", at_least=10**12 + 7, at_most=10**12 + 7)
    guarantee = property(lambda self: Pure(1))
    def check(self):
        raise ldp_budget.InvalidParameter("key_size", "something else", 1)

REGISTERED = [Priced, Undescribed]

@ldp_budget.hookimpl
def register_mechanisms(register):
    for mechanism in REGISTERED:
        register(mechanism)
"""


@pytest.mark.exhaustive
def test_plugin_check_without_a_proof_is_audited(workshop: Workshop) -> None:
    (workshop.folder / "site" / "cloak.py").write_text(CLOAK)
    done = workshop.ldp_budget("plugin", "check", "cloak", "--samples", LEAST, "--json", code=1)  # one ends with "no"
    assert "not passed: priced could not be checked. The lines that begin with not audited say" in done.stderr
    certificate = json.loads(done.stdout)
    assert [(found["mechanism"], found["checked"]) for found in certificate["mechanisms"]] == [
        ("priced", "no"),
        ("undescribed", "audited"),
    ]
    assert (certificate["distribution"], certificate["version"], certificate["checked"]) == ("cloak", "", "no")
    assert "cloak is not recorded, because it is not an installed distribution" in done.stderr
    why = "mechanism priced names no inputs to compare"
    assert f"not audited: priced: no report of it was looked at: {why}" in done.stderr
    assert f"skipped: priced: {statement_of('seed_decides')}: {why}; define `critical_inputs`" in done.stderr
    assert (
        f"why not exact: undescribed: {statement_of('guarantee_is_exact')}: undescribed describes no channel; define"
        in done.stderr
    )


LEAK = """
import ldp_budget
from ldp_budget.sdk import FrequencyMechanism, integer, real, where

class Leak(FrequencyMechanism):
    name = "leak"
    epsilon = real("privacy loss of one report", above=0)
    domain_size = integer("number of possible answers", at_least=2, at_most=9)

    def client(self, value, draw):
        return where(draw.bit(2**63), value, draw.below(self.domain_size))

@ldp_budget.hookimpl
def register_mechanisms(register):
    register(Leak)
"""


def test_plugin_check_of_a_leaking_client_shows_the_answers_the_report_and_the_loss(workshop: Workshop) -> None:
    (workshop.folder / "leak.py").write_text(LEAK)
    done = workshop.ldp_budget("plugin", "check", "leak", "--samples", LEAST, "--json", code=1)
    found = json.loads(done.stdout)
    assert (found["verdict"], found["pair"], found["report"]) == ("violated", [0, 1], 0)
    assert found["loss"] > 1
    assert "violated: leak: answers 0 and 1, report 0: loss" in done.stderr


def test_plugin_check_of_a_wrong_guarantee_type_is_a_sentence(workshop: Workshop) -> None:
    text = CLOAK.replace("property(lambda self: Pure(self.epsilon))", "property(lambda self: 1.0)")
    text = text.replace("[Priced, Undescribed]", "[Priced]")
    (workshop.folder / "site" / "vague_module.py").write_text(text)
    done = workshop.ldp_budget("plugin", "check", "vague_module", code=1)
    assert "failed: plugin priced: Priced.guarantee must return a guarantee" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere_to_be_found", "no plugin or module is named 'nowhere_to_be_found'"),
        ("json.nothing", "no plugin or module is named 'json.nothing'"),
        ("json", "json: it implements no hook"),
        ("ill", "ill: ZeroDivisionError: division by zero"),
        ("needy", "needy: ModuleNotFoundError: No module named 'not_there_at_all'"),
    ],
)
def test_plugin_check_of_no_plugin_names_it(workshop: Workshop, name: str, said: str) -> None:
    (workshop.folder / "site" / "ill.py").write_text("1 / 0")
    (workshop.folder / "site" / "needy.py").write_text("import not_there_at_all")
    done = workshop.ldp_budget("plugin", "check", name, code=1)
    assert said in done.stderr
    assert done.stdout == ""


@pytest.mark.exhaustive
def test_plugin_check_takes_a_module_of_this_folder(workshop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "lone_coin.py").write_text(
        "import ldp_budget\n"
        "from ldp_budget.sdk.parameters import real\n"
        "from ldp_budget.guarantees import Pure\n"
        "class Coin(ldp_budget.Mechanism):\n"
        "    name = 'lone-coin'\n"
        "    epsilon = real('privacy loss of one report', above=0)\n"
        "    guarantee = property(lambda self: Pure(self.epsilon))\n"
        "@ldp_budget.hookimpl\n"
        "def register_mechanisms(register):\n"
        "    register(Coin)\n"
    )
    script = str(Path(sys.executable).with_name("ldp-budget"))
    check = [script, "plugin", "check", "lone_coin", "--samples", LEAST, "--json"]
    done = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stderr  # it names no inputs, so nothing is audited
    assert "not audited: lone-coin: no report of it was looked at" in done.stderr
    assert [found["mechanism"] for found in json.loads(done.stdout)["mechanisms"]] == ["lone-coin"]
    done = subprocess.run([*check[:3], "./lone_coin.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert "MODULE must be the name of a module" in done.stderr
