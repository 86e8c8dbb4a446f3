"""Installation of the wheel and of the source distribution by `pip install`: on every installed Python, and with the
oldest of all that is allowed.

Each goes into an environment of its own, to which pip brings what it needs.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from functools import cache
from pathlib import Path

import pytest

from clean_commands import run

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LEAST = int(PROJECT["project"]["requires-python"].removeprefix(">=3."))
ROOMS = ("accountant", "plugins", "cli", "service", "surveys", "verify")
# As far as Pythons are looked for; those that are not there are skipped.
MINORS = range(LEAST, LEAST + 6)


# -- what there is ---------------------------------------------------------------------------------------------------


@cache
def interpreters() -> dict[tuple[int, int], Path]:
    """The Pythons that `tools/pythons.py` finds, by their versions."""
    spec = importlib.util.spec_from_file_location("pythons_tool", ROOT / "tools" / "pythons.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    found: dict[tuple[int, int], Path] = tool.interpreters()
    return found


def python_of(minor: int) -> Path:
    """A Python of a version; skips the test where there is none."""
    python = interpreters().get((3, minor))
    return python or pytest.skip(f"there is no Python 3.{minor} here")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution of the tree."""
    folder = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    return folder


def only(folder: Path, ending: str) -> Path:
    [found] = folder.glob(f"*{ending}")
    return found


# -- installing ------------------------------------------------------------------------------------------------------


def environment(python: Path, folder: Path) -> Path:
    """The Python of a new, empty environment."""
    run(python, "-m", "venv", "--without-pip", folder / "env", cwd=folder)
    return folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"


def install(made: Path, what: Path | str, folder: Path, *options: str) -> None:
    """Install into an environment, by the pip of the Python that tests."""
    options = ("--quiet", "--disable-pip-version-check", "--no-compile", *options)
    run(sys.executable, "-m", "pip", "--python", made, "install", *options, what, cwd=folder)


def works(python: Path, folder: Path) -> None:
    """The story of the README, by the copy that was installed."""

    def command(*arguments: str, code: int = 0) -> str:
        return run(python, "-m", "ldp_budget_cli", *arguments, cwd=folder, code=code)

    assert "944 respondents" in command("demo")
    assert json.loads(command("calibrate", "gaussian", "--epsilon", "1", "--delta", "1e-6", "--json"))["parameters"]
    command("policy", "set", "default", "--limit", "lifetime=2", "--limit", "day=1")
    question = ("oue", "--epsilon", "1", "--domain-size", "3")
    assert json.loads(command("spend", "alice", *question, "--json"))["status"] == "spent"
    assert json.loads(command("spend", "alice", *question, "--json", code=3))["status"] == "refused"
    command("collection", "add", "party", *question[:-2], "--categories", "a,b,c")
    (folder / "answers.csv").write_text("user,party\n" + "".join(f"u{n},{'abc'[n % 3]}\n" for n in range(60)))
    asked = ("--column", "party", "--user-column", "user", "--spend", "--out", "party.reports")
    command("randomize", "party", "answers.csv", *asked)
    assert json.loads(command("estimate", "party", "party.reports", "--json"))["reports"] == 60
    assert json.loads(command("ledger", "verify", "--json"))["ok"]
    where = run(python, "-c", "import ldp_budget; print(ldp_budget.__version__, ldp_budget.__file__)", cwd=folder)
    version, file = where.split(maxsplit=1)
    assert version == PROJECT["project"]["version"]
    assert Path(file.strip()).is_relative_to(folder)


EXTRAS = ("service", "remote", "postgres", "fast", "plot")


def serves(python: Path, folder: Path) -> None:
    """A service of the copy that was installed charges a client of the same copy, and stops at SIGTERM."""
    folder = folder / "served"
    folder.mkdir()
    run(python, "-m", "ldp_budget_cli", "policy", "set", "default", "--limit", "lifetime=1", cwd=folder)
    key = run(python, "-m", "ldp_budget_cli", "api-key", "create", "app", "--scope", "spend", cwd=folder).strip()
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    code = f"""
import time, urllib.request
from ldp_budget import mechanism
from ldp_budget.client import Client

for _ in range(300):
    try:
        assert urllib.request.urlopen("{address}/livez", timeout=5).status == 200
        break
    except OSError:
        time.sleep(0.2)
oue = mechanism("oue")(epsilon="0.6", domain_size=7)
with Client("{address}", "{key}") as client:
    print(*(client.spend("alice", oue).status for _ in range(2)))
"""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LDP_BUDGET_"))}
    kept["LDP_BUDGET_LEDGER"] = str(folder / "ledger.db")
    words = [str(python), "-m", "ldp_budget_cli", "serve", "--port", address.rpartition(":")[2]]
    with subprocess.Popen(words, cwd=folder, env=kept, stdout=subprocess.DEVNULL) as service:
        try:
            assert run(python, "-c", code, cwd=folder) == "spent refused\n"
            service.terminate()
            assert service.wait(timeout=60) == 0
        finally:
            service.kill()


@pytest.mark.parametrize("minor", MINORS, ids=lambda minor: f"3.{minor}")
def test_wheel_works_and_serves_with_the_newest_dependencies(minor: int, built: Path, tmp_path: Path) -> None:
    """From the wheel; on the second Python from the source distribution, which pip makes a wheel of."""
    archive = only(built, ".tar.gz" if minor == LEAST + 1 else ".whl")
    made = environment(python_of(minor), tmp_path)
    install(made, archive, tmp_path)
    works(made, tmp_path)
    install(made, f"{archive}[{','.join(EXTRAS)}]", tmp_path)
    serves(made, tmp_path)


def oldest(*extras: str) -> dict[str, str]:
    """The least version that is allowed of each library that the wheel and its extras need."""
    project = PROJECT["project"]
    needs = [*project["dependencies"], *(need for name in extras for need in project["optional-dependencies"][name])]
    return dict(re.sub(r"\[.*\]", "", need).split(">=") for need in needs)


def install_oldest(made: Path, wheel: Path, folder: Path, *extras: str) -> None:
    """Install the wheel and its extras with the oldest of all that they need."""
    needs = oldest(*extras)
    (folder / "oldest.txt").write_text("".join(f"{name}=={version}\n" for name, version in needs.items()))
    what = f"{wheel}[{','.join(extras)}]" if extras else wheel
    install(made, what, folder, "--constraint", str(folder / "oldest.txt"), "--only-binary", "numpy,scipy")
    found = run(sys.executable, "-m", "pip", "--python", made, "list", "--format", "json", cwd=folder)
    versions = {re.sub(r"[-_.]+", "-", row["name"]).lower(): row["version"] for row in json.loads(found)}
    for name, version in needs.items():
        assert re.fullmatch(rf"{re.escape(version)}(\.0)*", versions[name]), name


@pytest.mark.parametrize("minor", [LEAST, LEAST + 1], ids=lambda minor: f"3.{minor}")
def test_wheel_works_with_the_oldest_dependencies(minor: int, built: Path, tmp_path: Path) -> None:
    """On the two oldest Pythons: the oldest numpy and scipy have no wheel for newer ones."""
    made = environment(python_of(minor), tmp_path)
    install_oldest(made, only(built, ".whl"), tmp_path)
    works(made, tmp_path)
    if minor == LEAST:  # what the extras need in its oldest version has no wheel for newer Pythons
        install_oldest(made, only(built, ".whl"), tmp_path, *EXTRAS)
        serves(made, tmp_path)


# -- the two distributions -------------------------------------------------------------------------------------------


def test_wheel_has_every_file_of_the_packages_and_nothing_else(built: Path) -> None:
    with zipfile.ZipFile(only(built, ".whl")) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
    packages = {path.parent.name: path.parent for room in ROOMS for path in (ROOT / room).glob("*/__init__.py")}
    assert {name.split("/")[0] for name in names} == packages.keys()
    for folder in packages.values():
        files = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        assert {path.relative_to(folder.parent).as_posix() for path in files} <= names
    for path in (ROOT / "service" / "monitoring").iterdir():
        assert f"ldp_budget_service/monitoring/{path.name}" in names


def test_source_distribution_is_complete(built: Path) -> None:
    archive = only(built, ".tar.gz")
    top = archive.name.removesuffix(".tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.removeprefix(f"{top}/") for name in opened.getnames()}
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    kept = [name for name in listed.stdout.splitlines() if not name.startswith(".")]
    expected = set(kept) if listed.returncode == 0 else {"clients/js/src/index.js", "tests/conftest.py"}
    assert expected - names == set()
    assert not [name for name in names if "node_modules" in name or "__pycache__" in name]


def test_source_distribution_builds_the_wheel_of_the_tree(built: Path, tmp_path: Path) -> None:
    with tarfile.open(only(built, ".tar.gz")) as opened:
        opened.extractall(tmp_path, filter="data")
    [source] = tmp_path.iterdir()
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=source)

    def contents(wheel: Path) -> dict[str, bytes]:
        with zipfile.ZipFile(wheel) as opened:
            return {name: opened.read(name) for name in opened.namelist()}

    assert contents(only(tmp_path, ".whl")) == contents(only(built, ".whl"))
